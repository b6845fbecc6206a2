"""A table written to a file and read again is the same table, whatever is in it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from margrove.data import TableEncoder, as_table, read_table
from margrove.data.dialect import DEFAULT_MISSING
from margrove.errors import InputError

# Text that a file can tell from a number, a truth value, a date or a missing cell, and without outer spaces:
# the letter at both its ends is in none of those.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]) | st.sampled_from(',;"\n|\t'),
    max_size=6,
).map(lambda text: f"q{text}q")
NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.integers(-(2**53), 2**53).map(float)


@st.composite
def tables(draw) -> pd.DataFrame:
    n = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(["number", "text", "truth"]), min_size=1, max_size=4))
    cells = {"number": NUMBER, "text": TEXT, "truth": st.booleans()}
    columns = {}
    for place, kind in enumerate(kinds):
        present = draw(cells[kind])  # a column with no cell at all has no kind to come back to
        rest = draw(st.lists(st.none() | cells[kind], min_size=n - 1, max_size=n - 1))
        columns[f"{kind} {place}"] = pd.Series([present, *rest], dtype=object).infer_objects()
    labels = draw(st.lists(st.sampled_from(["yes", "no", "perhaps"]), min_size=n, max_size=n))
    return pd.DataFrame({**columns, "label": labels})


def assert_same(found, wanted) -> None:
    assert found.names == wanted.names
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.kind, ours.levels) == (theirs.kind, theirs.levels)
        np.testing.assert_array_equal(ours.values, theirs.values)
    assert found.labels().tolist() == wanted.labels().tolist()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.sampled_from(",;|\t"), st.sampled_from(["\n", "\r\n"]))
def test_csv_round_trips(frame, delimiter, line_end):
    text = frame.to_csv(index=False, sep=delimiter, lineterminator=line_end).encode()
    found = read_table(io.BytesIO(text), delimiter=delimiter, header=True)
    assert_same(found, as_table(frame, target="label"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_parquet_round_trips(frame):
    file = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pandas(frame), file)
    file.seek(0)
    assert_same(read_table(file), as_table(frame, target="label"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.randoms(use_true_random=False))
def test_encoding_does_not_depend_on_the_order_of_rows_or_columns(frame, random):
    encoder = TableEncoder(drop_constant=False, drop_identifiers=False)
    numbers = [name for name in frame if name.startswith("number")]
    frame[numbers] = frame[numbers].clip(-1e300, 1e300)  # beyond, the difference of two cells overflows
    table = as_table(frame, target="label")
    Z = encoder.fit(table).transform(table)
    rows, names = list(range(table.n_rows)), list(table.names)
    random.shuffle(rows)
    random.shuffle(names)
    np.testing.assert_array_equal(encoder.transform(table.take(rows).select(names)), Z[rows])
    assert np.isfinite(Z).all()


def is_told_plainly(data: bytes) -> bool:
    """Whether the bytes are a table with rows, or refused in one line; any other error is not caught."""
    try:
        return read_table(io.BytesIO(data), target=False).n_rows > 0
    except InputError as error:
        return "\n" not in str(error)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_table_or_a_plain_error(data):
    assert is_told_plainly(data)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('ab1.,;\n"\r\t |?-:@{}'), max_size=60))
def test_any_text_is_a_table_or_a_plain_error(text):
    assert is_told_plainly(text.encode())


def test_the_missing_markers_are_the_documented_ones():
    assert DEFAULT_MISSING == (
        "", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"
    )  # fmt: skip
