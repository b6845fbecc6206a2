"""Columns and tables: kinds, missing cells, labels, selection without copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from margrove.data import Column, Table, as_table, read_table
from margrove.data.columns import category_column, text_column
from margrove.errors import InputError


def test_missing_cells_are_counted_in_every_kind():
    assert Column("a", "numeric", np.array([1.0, np.nan])).n_missing == 1
    assert Column("b", "category", np.array([0, -1, -1], dtype=np.int32), ("x",)).n_missing == 2
    assert Column("c", "boolean", np.array([0, 1, -1], dtype=np.int8)).n_missing == 1


def test_levels_are_sorted_trimmed_and_merged():
    column = category_column("c", np.array([0, 1, 2, 3, -1]), ["b", " a", "a ", "c"])
    assert column.levels == ("a", "b", "c")
    assert column.values.tolist() == [1, 0, 0, 2, -1]
    assert column.values.dtype == np.int32


def test_levels_of_numbers_stay_numbers_and_mixed_ones_become_text():
    assert category_column("c", np.array([0, 1]), [3, 1]).levels == (1, 3)
    assert category_column("c", np.array([0, 1]), [3, "x"]).levels == ("3", "x")


def test_empty_strings_of_a_text_array_are_missing():
    column = text_column("c", np.array(["b", "", "a"]))
    assert column.levels == ("a", "b")
    assert column.values.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("column", "labels", "kind"),
    [
        (Column("y", "numeric", np.array([1.0, -1.0])), [1, -1], "i"),
        (Column("y", "numeric", np.array([0.5, 1.0])), [0.5, 1.0], "f"),
        (Column("y", "boolean", np.array([1, 0], dtype=np.int8)), [True, False], "b"),
        (Column("y", "category", np.array([1, 0], dtype=np.int32), ("no", "yes")), ["yes", "no"], "U"),
        (Column("y", "category", np.array([1, 0], dtype=np.int32), (3, 7)), [7, 3], "i"),
    ],
)
def test_labels_are_as_they_were_written(column, labels, kind):
    assert column.labels().tolist() == labels
    assert column.labels().dtype.kind == kind


def test_labels_with_missing_cells_are_refused():
    with pytest.raises(InputError, match="column 'y': 1 cell is missing"):
        Column("y", "numeric", np.array([1.0, np.nan])).labels()


def test_a_block_is_neither_copied_nor_split():
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    table = as_table(X)
    assert table.block is X
    assert np.shares_memory(table["x1"].values, X)
    assert np.shares_memory(table.select(["x1", "x2"]).block, X)
    assert np.shares_memory(table.without("x2").block, X)
    assert np.shares_memory(table.take(slice(1, 3)).block, X)
    assert table.take(slice(1, 3)).block.dtype == np.float32


def test_select_gathers_what_is_not_side_by_side():
    table = as_table(np.arange(6.0).reshape(2, 3))
    assert table.select(["x2", "x0"]).block.tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert table.select([]).n_columns == 0


def test_a_table_of_different_lengths_is_refused():
    short, long = (Column(name, "numeric", np.zeros(n)) for name, n in (("a", 2), ("b", 3)))
    with pytest.raises(InputError, match=r"different lengths: \[2, 3\]"):
        Table([short, long])
    with pytest.raises(InputError, match=r"different lengths: \[2, 3\]"):
        Table([short], target=long)


def test_names_must_fit_the_block():
    with pytest.raises(InputError, match="1 names for 2 columns"):
        Table(block=np.zeros((3, 2)), names=["a"])


def test_an_unknown_column_names_the_known_ones():
    with pytest.raises(InputError, match=r"no column 'z'. The columns are 'x0', 'x1'"):
        as_table(np.zeros((2, 2)))["z"]
    with pytest.raises(InputError, match="no column 'z'"):
        as_table(np.zeros((2, 2))).select(["z"])


def test_take_keeps_rows_and_target_together(write):
    table = read_table(write("a,c,y\n1,x,no\n2,,yes\n3,z,no\n")).take([2, 0])
    assert table["a"].values.tolist() == [3.0, 1.0]
    assert table["c"].labels().tolist() == ["z", "x"]
    assert table.labels().tolist() == ["no", "no"]


def test_sparse_columns_come_on_demand():
    matrix = scipy.sparse.csr_matrix(np.array([[0.0, 2.0], [1.0, 0.0]]))
    table = as_table(matrix)
    assert table.sparse is not None
    assert table.block is None
    assert table["x1"].values.tolist() == [2.0, 0.0]
    assert table.take([1]).sparse.toarray().tolist() == [[1.0, 0.0]]
    assert table.select(["x1"]).sparse.shape == (2, 1)


def test_summary_has_kind_missing_distinct_and_range(write):
    table = read_table(write("a,b,c,d,y\n1.5,True,x,w,0\n,False,y,v,1\n3,,z,u,0\n3,,q,,1\n"))
    assert table.summary() == [
        {"name": "a", "kind": "numeric", "missing": 1, "distinct": 2, "example": "1.5 … 3"},
        {"name": "b", "kind": "boolean", "missing": 2, "distinct": 2, "example": "False, True"},
        {"name": "c", "kind": "category", "missing": 0, "distinct": 4, "example": "q, x, y, …"},
        {"name": "d", "kind": "category", "missing": 1, "distinct": 3, "example": "u, v, w"},
    ]
    assert repr(table) == f"Table(4 × 4 from {table.source!r}, target='y': a, b, c, d)"
    assert len(table) == 4


def test_a_notebook_shows_the_table_with_its_text_escaped():
    evil = "<script>alert(1)</script>"
    column = category_column("<script>", np.array([0, 1, 1]), [evil, "b & c"])
    html = Table([column], target=Column("<i>y", "numeric", np.zeros(3)), source="<b>.csv")._repr_html_()
    assert "<script" not in html
    assert "<i>y" not in html
    assert "<b>.csv" not in html
    for said in (
        "&lt;b&gt;.csv",
        "3 rows × 1 columns",
        "&lt;i&gt;y",
        "&lt;script&gt;",
        "b &amp; c",
        "<td>category</td>",
    ):
        assert said in html


def test_a_notebook_shows_the_first_of_many_columns():
    html = as_table(scipy.sparse.csr_matrix((2, 1000)))._repr_html_()
    assert html.count("<tr>") == 31
    assert "and 970 more columns" in html
    assert "<table" not in Table(target=Column("y", "numeric", np.zeros(3)))._repr_html_()
