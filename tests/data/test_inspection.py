"""Odd columns are named, once for each sort."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from margrove.data import as_table, load_penguins
from margrove.data.inspection import inspect_columns
from margrove.errors import DataWarning


def test_identifiers_and_constants_are_found():
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(10)],
            "key": list("abcdefghij"),
            "one": 1,
            "none": None,
            "x": range(10),
        }
    )
    with pytest.warns(DataWarning) as told:
        found = inspect_columns(as_table(frame))
    assert found == {"identifier": ["id", "key"], "constant": ["one", "none"], "stray words": [], "free text": []}
    assert [str(word.message) for word in told] == [
        "pandas table: constant or empty columns carry no information: 'one', 'none'.",
    ]


@pytest.mark.parametrize(("n_distinct", "is_one"), [(95, False), (96, True)])
def test_nearly_every_cell_different_makes_an_identifier(n_distinct, is_one):
    cells = [f"name {min(k, n_distinct - 1)}" for k in range(100)]
    frame = pd.DataFrame({"name": [*cells, *[None] * 20], "x": range(120)})  # missing cells do not count
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an identifier is harmless
        found = inspect_columns(as_table(frame))
    assert found["identifier"] == (["name"] if is_one else [])


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("KdNr", True), ("RECHNUNGSNR.", True), ("Kontonummer", True), ("orderId", True), ("paid", False), ("sum", False)],
)
def test_rising_numbers_are_identifiers_by_their_name(name, is_one):
    found = inspect_columns(as_table(pd.DataFrame({name: range(5000, 5060, 3)})))
    assert found["identifier"] == ([name] if is_one else [])


def test_few_rows_make_no_identifier():
    assert inspect_columns(as_table(pd.DataFrame({"c": list("abcdefghi")})))["identifier"] == []


def test_text_among_numbers_causes_a_warning():
    cells = [*(str(k) for k in range(20)), "12a", "7", "8"]  # and no identifier
    with pytest.warns(DataWarning, match="column 'age' is read as categories because of '12a' among its numbers"):
        found = inspect_columns(as_table(pd.DataFrame({"age": cells})))
    assert found["stray words"] == ["age"]


def test_empty_columns_of_a_sparse_table_are_constant():
    with pytest.warns(DataWarning, match="constant or empty columns carry no information: 'x1'"):
        inspect_columns(as_table(scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [2.0, 0.0]]))))


def test_a_sound_table_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inspect_columns(load_penguins())
