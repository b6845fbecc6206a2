"""What is in memory comes in alike from NumPy, SciPy, pandas, polars and pyarrow."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from margrove.data import Table, as_table
from margrove.data.formats import NumberFormat
from margrove.errors import InputError, ParameterError

CELLS = {
    "int": [1, None, 3],
    "float": [0.5, 1.5, None],
    "flag": [True, None, False],
    "text": ["b", "a", None],
    "day": [datetime.datetime(1970, 1, 2), None, datetime.datetime(1970, 1, 1, 12)],
    "span": [datetime.timedelta(days=2), datetime.timedelta(hours=6), None],
    "money": [decimal.Decimal("1.25"), None, decimal.Decimal("3")],
}

FRAMES = {
    "pandas": lambda: pd.DataFrame({name: pd.Series(cells) for name, cells in CELLS.items()}),
    "pandas nullable": lambda: pd.DataFrame(CELLS).convert_dtypes(),
    "polars": lambda: pl.DataFrame(CELLS),
    "pyarrow": lambda: pa.table(CELLS),
}


def contents(table: Table) -> list[tuple]:
    return [(column.name, column.kind, column.levels, column.values.tolist()) for column in table]


@pytest.mark.parametrize("library", FRAMES)
def test_every_library_gives_the_same_table(library):
    table = as_table(FRAMES[library]())
    assert [column.kind for column in table] == [
        "numeric", "numeric", "boolean", "category", "numeric", "numeric", "numeric"
    ]  # fmt: skip
    np.testing.assert_array_equal(table["int"].values, [1, np.nan, 3])
    np.testing.assert_array_equal(table["float"].values, [0.5, 1.5, np.nan])
    assert table["flag"].values.tolist() == [1, -1, 0]
    assert table["text"].levels == ("a", "b")
    assert table["text"].values.tolist() == [1, 0, -1]
    np.testing.assert_array_equal(table["day"].values, [1.0, np.nan, 0.5])
    np.testing.assert_array_equal(table["span"].values, [2.0, 0.25, np.nan])
    np.testing.assert_array_equal(table["money"].values, [1.25, np.nan, 3.0])


def test_dates_are_noted():
    notes = as_table(pa.table({"day": [datetime.date(1970, 1, 3)], "span": [datetime.timedelta(1)]})).notes
    assert notes == (
        "Column 'day' holds dates.",
        "Column 'span' holds durations, read as days.",
    )


def test_times_of_day_are_hours():
    cells = [datetime.time(12), datetime.time(6)]
    for unit in (pa.time32("s"), pa.time64("us")):
        assert as_table(pa.table({"t": pa.array(cells, unit)}))["t"].values.tolist() == [12, 6]
    column = as_table(pd.DataFrame({"t": [*cells, None, datetime.time(8, 30, tzinfo=datetime.UTC)]}))["t"]
    np.testing.assert_array_equal(column.values, [12, 6, np.nan, 8.5])
    assert column.format == NumberFormat(unit="h")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_arrays_are_not_copied(dtype, order):
    X = np.asarray(np.arange(6).reshape(3, 2), dtype=dtype, order=order)
    table = as_table(X)
    assert np.shares_memory(table.block, X)
    assert table.block.dtype == dtype


def test_float_frames_of_pandas_are_not_copied():
    X = np.ones((4, 2), dtype=np.float32)
    assert np.shares_memory(as_table(pd.DataFrame(X, columns=["a", "b"], copy=False)).block, X)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_float32_frames_stay_float32(library):
    table = as_table(library({"a": np.ones(2, np.float32), "b": np.zeros(2, np.float32)}))
    assert table.block.dtype == np.float32
    assert table.names == ("a", "b")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integer_arrays_become_float64(dtype):
    assert as_table(np.array([[1, 2]], dtype=dtype)).block.dtype == np.float64


def test_half_precision_becomes_float32():
    assert as_table(np.array([[1, 2]], dtype=np.float16)).block.dtype == np.float32


def test_boolean_text_and_date_arrays_are_read():
    assert as_table(np.array([[True], [False]])).columns[0].kind == "boolean"
    assert as_table(np.array([["b"], ["a"]])).columns[0].levels == ("a", "b")
    dates = as_table(np.array([["1970-01-03"], ["NaT"]], dtype="datetime64[D]"))
    np.testing.assert_array_equal(dates.columns[0].values, [2.0, np.nan])
    assert "dates" in dates.notes[0]


def test_object_arrays_are_inferred_column_by_column():
    X = np.array([[1, "b", True, None, datetime.date(1970, 1, 2)], [None, "a", None, 2.5, None]], dtype=object)
    table = as_table(X)
    assert [column.kind for column in table] == ["numeric", "category", "boolean", "numeric", "numeric"]
    assert [column.n_missing for column in table] == [1, 0, 1, 1, 1]
    assert table["x4"].values[0] == 1.0


def test_rows_of_numbers_and_text_keep_both():
    table = as_table([[1, "b"], [2, "a"]])
    assert [column.kind for column in table] == ["numeric", "category"]


def test_numbers_and_text_in_one_column_are_text():
    frame = pd.DataFrame({"c": pd.Series([1, "x", None, pd.NA], dtype=object), "n": [1.0, 2.0, 3.0, 4.0]})
    table = as_table(frame)
    assert table.names == ("c", "n")
    assert table["c"].levels == ("1", "x")
    assert table["c"].n_missing == 2


def test_time_zones_are_moved_to_utc():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    noon = datetime.datetime(1970, 1, 1, 14, tzinfo=zone)
    assert as_table(np.array([[noon]], dtype=object)).columns[0].values[0] == 0.5
    assert as_table(pd.DataFrame({"t": [noon]})).columns[0].values[0] == 0.5


@pytest.mark.parametrize("levels", [["b", "a"], [3, 1], [2.5, 0.5]])
def test_categorical_columns_keep_their_levels(levels):
    column = as_table(pd.DataFrame({"c": pd.Categorical([levels[0], levels[1], None], categories=levels)}))["c"]
    assert column.kind == "category"
    assert column.levels == tuple(sorted(levels))
    assert column.values.tolist() == [1, 0, -1]


def test_categories_of_truth_values_are_booleans():
    column = as_table(pd.DataFrame({"c": pd.Categorical([True, False, None])}))["c"]
    assert (column.kind, column.values.tolist()) == ("boolean", [1, 0, -1])


def test_polars_categories_and_enums_are_categories():
    frame = pl.DataFrame({"c": ["b", "a"], "e": ["x", "y"]}).cast({"c": pl.Categorical, "e": pl.Enum(["y", "x"])})
    assert as_table(frame)["c"].levels == ("a", "b")
    assert as_table(frame)["e"].values.tolist() == [0, 1]


def test_a_missing_cell_of_a_polars_category_is_missing():
    table = as_table(pl.DataFrame({"c": ["b", None, "a"]}).cast({"c": pl.Categorical}))
    assert table["c"].levels == ("a", "b")
    assert table["c"].values.tolist() == [1, -1, 0]


def test_chunks_with_different_dictionaries_agree():
    chunks = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", "b", None]).dictionary_encode()]
    column = as_table(pa.table({"c": pa.chunked_array(chunks)}))["c"]
    assert column.levels == ("a", "b", "c")
    assert column.values.tolist() == [1, 0, 2, 1, -1]


def test_chunks_of_text_share_one_dictionary():
    column = as_table(pa.table({"c": pa.chunked_array([["b", "a"], ["c", "b", None]])}))["c"]
    assert column.values.tolist() == [1, 0, 2, 1, -1]


def test_a_column_of_nulls_is_numeric_and_missing():
    column = as_table(pa.table({"c": pa.nulls(3), "d": [1, 2, 3]}))["c"]
    assert (column.kind, column.n_missing) == ("numeric", 3)


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_sparse_stays_sparse(make):
    dense = np.array([[0, 1, 0], [2, 0, 0]], dtype=np.float32)
    table = as_table(make(dense))
    assert table.sparse.format == "csr"
    assert table.sparse.dtype == np.float32
    assert table.sparse.toarray().tolist() == dense.tolist()


def test_csr_is_not_copied():
    matrix = scipy.sparse.random(5, 4, 0.5, format="csr", random_state=0)
    assert as_table(matrix).sparse is matrix


def test_sparse_frames_of_pandas_stay_sparse():
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.eye(3, format="csr"), columns=["a", "b", "c"])
    table = as_table(frame)
    assert table.names == ("a", "b", "c")
    assert table.sparse.nnz == 3


def test_sparse_integers_become_float64():
    assert as_table(scipy.sparse.csr_matrix(np.eye(2, dtype=np.int16))).sparse.dtype == np.float64


def test_a_table_is_returned_as_it_is():
    table = as_table(np.zeros((2, 2)))
    assert as_table(table) is table


def test_the_target_may_be_named_or_counted():
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": ["no", "yes"]})
    assert as_table(frame).target is None
    for target in ("y", 1, -1):
        table = as_table(frame, target=target)
        assert table.names == ("a",)
        assert table.labels().tolist() == ["no", "yes"]


def test_integer_names_of_pandas_become_text():
    assert as_table(pd.DataFrame({0: [1.0], 1: [2.0]})).names == ("0", "1")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (lambda: pl.DataFrame({"bad": [[1, 2], [3]]}), "column 'bad': the cells are of type"),
        (lambda: pl.DataFrame({"bad": [{"a": 1}]}), "column 'bad': the cells are of type"),
        (lambda: pa.table({"bad": [b"\xff"]}), "column 'bad': the cells are raw bytes. Decode them to text"),
        (lambda: pd.DataFrame({"bad": [{1}, 2]}), r"column 'bad': the cell \{1\} in row 0 is of type set"),
        (lambda: np.array([[1j]]), "Complex data not supported"),
        (lambda: scipy.sparse.csr_matrix([[1j]]), "Complex data not supported"),
        (lambda: np.array([[b"x"]]), r"the array holds \|S1"),
        (lambda: np.zeros(3), "the array is 1-dimensional; a table has rows and columns. Reshape it"),
        (lambda: np.zeros((2, 2, 2)), "the array is 3-dimensional"),
        (lambda: np.array([[0.0], [np.inf]]), r"array, column 'x0': the number in row 1 is infinite \(inf\)"),
        (lambda: np.array([[np.nan], [-np.inf]]), r"the number in row 1 is infinite \(-inf\)"),
        (
            lambda: scipy.sparse.csr_matrix([[0, 1], [0, np.inf]]),
            "column 'x1': the number in row 1 is infinite",
        ),
        (
            lambda: pd.DataFrame({"a": ["x", "y"], "b": [1, np.inf]}),
            "column 'b': the number in row 1 is infinite",
        ),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "name 'a' occurs 2 times, as columns 1 and 2"),
        (lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "name 'a' occurs 2 times"),
    ],
)
def test_bad_tables_are_refused_with_their_place(frame, words):
    with pytest.raises(InputError, match=words):
        as_table(frame())


def test_large_finite_numbers_are_not_mistaken_for_infinite_ones():
    X = np.full((4, 1), 1e308)
    assert as_table(X).block is X


def test_a_path_is_not_a_table():
    with pytest.raises(ParameterError, match="Use read_table for files"):
        as_table("table.csv")


@pytest.mark.parametrize("series", [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])], ids=["pandas", "polars"])
def test_a_single_column_is_not_a_table(series):
    with pytest.raises(InputError, match=r"X is a Series of (pandas|polars), a single column.*to_frame"):
        as_table(series)
