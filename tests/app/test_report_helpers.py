"""Small functions of the report, each by an example."""

from __future__ import annotations

import math

import numpy as np

from margrove.app.report.charts import digits, label
from margrove.app.report.command import size_words
from margrove.app.report.html import in_script
from margrove.app.report.plain_words import estimate_text, p_text, sentence
from margrove.app.report.writing import plain
from margrove.app.screen.display import number_text, value_texts
from margrove.certificate import Claim
from margrove.explanation import leads


def test_estimates_have_their_significant_digits() -> None:
    assert [estimate_text(number, None) for number in (27.9971, 0.123456, 208512.4)] == ["28", "0.1235", "208,512"]


def test_numbers_of_tables_have_no_exponents() -> None:
    numbers = (169_234.5, -19_414.0, 1234.56, 0.00012345, 1e20, float("nan"))
    assert [digits(number) for number in numbers] == ["169,200", "-19,410", "1,235", "0.0001234", "1e+20", ""]


def test_json_cannot_end_a_script() -> None:
    assert in_script({"name": "</script>"}) == '{"name":"\\u003c/script\\u003e"}'


def test_labels_are_escaped_and_shortened() -> None:
    assert label("a < b & <b>c</b>") == "a &lt; b &amp; &lt;b&gt;c&lt;/b&gt;"
    assert label("a" * 40, 5) == "aaaa…"


def test_sizes_of_files() -> None:
    assert [size_words(n) for n in (4_870_000, 12_345, 80)] == ["4.9 MB", "12 kB", "1 kB"]


def test_a_text_becomes_a_sentence() -> None:
    assert sentence("a final hold-out: 200 rows") == "A final hold-out: 200 rows."
    assert sentence("Really?") == "Really?"


def test_numbers_that_are_not_finite_become_null() -> None:
    assert plain({"a": (1.0, float("nan")), 1: np.int64(2)}) == {"a": [1.0, None], "1": 2}


def test_p_values_of_a_table_have_no_sign_of_equality() -> None:
    assert p_text(None) == ""
    assert not p_text(0.25).startswith(("p", "="))


def test_counts_are_written_in_full_and_limits_where_they_are_finite() -> None:
    assert [number_text(value) for value in (12_345.0, 0.12345, math.inf)] == ["12,345", "0.123", "inf"]
    claim = Claim("violation", (0.5, 2.0), (1.0, math.inf), True)
    assert value_texts(claim) == ["0.5 ≤ 1", "2"]
    assert value_texts(claim, "\n≤ ") == ["0.5\n≤ 1", "2"]


def test_the_lead_is_over_the_strongest_other_class() -> None:
    assert leads(np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 2.0]]), np.array([1, 2])).tolist() == [1.0, -3.0]
