"""The target: which column it is, and whether it can be learned as classes."""

from __future__ import annotations

import numpy as np
import pytest

from margrove.data import Column, Table, as_table, read_table
from margrove.data.target import check_target
from margrove.errors import InputError, ParameterError


def labelled(y: np.ndarray | list) -> Table:
    return as_table(np.c_[np.arange(len(y)), y], target=1)


def test_the_last_column_is_the_target_and_noted_as_such(write):
    table = read_table(write("a,b,kind\n1,2,x\n3,4,y\n"))
    assert table.target.name == "kind"
    assert table.names == ("a", "b")
    assert table.notes[-1] == "The target is 'kind' (it is the last column)."


@pytest.mark.parametrize("target", ["a", 0, -3])
def test_a_named_or_counted_target_is_taken(write, target):
    table = read_table(write("a,b,kind\n1,2,x\n3,4,y\n"), target=target)
    assert table.target.name == "a"
    assert table.names == ("b", "kind")
    assert table.notes[-1] == "The target is 'a' (as requested)."


def test_false_means_no_target(write):
    table = read_table(write("a,b\n1,2\n"), target=False)
    assert table.target is None
    assert table.names == ("a", "b")
    with pytest.raises(InputError, match="the table has no target"):
        table.labels()


def test_an_unknown_target_lists_near_matches_and_columns(write):
    with pytest.raises(
        InputError,
        match=r"the target 'specie' is not a column. Did you mean 'species'\? The columns are",
    ):
        read_table(write("species,b\n1,2\n"), target="specie")


def test_a_position_out_of_range_is_refused(write):
    with pytest.raises(InputError, match="the target is column 2, but the table has 2 columns, counted from 0"):
        read_table(write("a,b\n1,2\n"), target=2)


@pytest.mark.parametrize("target", [True, 1.5, ["a"]])
def test_a_target_of_another_type_is_refused(write, target):
    with pytest.raises(ParameterError, match="it must be a column's name or position, None or False"):
        read_table(write("a,b\n1,2\n"), target=target)


def test_missing_labels_name_the_first_line_and_the_count(write):
    path = write("a,y\n1,x\n\n2,\n3,NA\n4,y\n")
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert str(caught.value) == (
        f"{path}, line 4, column 'y': 2 of 4 target cells are missing. "
        "Fill them in, or leave these rows out with drop_unlabelled=True (--drop-unlabelled)."
    )


def test_one_missing_label_is_one_row(write):
    with pytest.raises(InputError, match=r"1 of 2 target cells is missing\. Fill it in, or leave this row out with"):
        read_table(write("a,y\n1,x\n2,\n"))


def test_unlabelled_rows_are_dropped_on_request(write):
    table = read_table(write("a,y\n1,x\n2,\n4,y\n"), drop_unlabelled=True)
    assert table["a"].values.tolist() == [1.0, 4.0]
    assert table.notes[-1] == "1 row without a target left out."


def test_a_target_without_any_label_is_refused(write):
    with pytest.raises(InputError, match=r"every target cell is missing. Choose another target"):
        read_table(write("a,y\n1,\n2,\n"), drop_unlabelled=True)


def test_a_frame_with_missing_labels_names_the_row():
    with pytest.raises(InputError, match="1 of 3 target cells is missing, the first in row 2"):
        as_table([[1, "x"], [2, "y"], [3, None]], target=1)


def test_one_class_is_refused(write):
    table = read_table(write("a,y\n1,x\n2,x\n"))
    with pytest.raises(InputError, match=r"column 'y': the target has one class: every row is 'x'. A classifier needs"):
        check_target(table)


def test_a_quantity_is_refused():
    with pytest.raises(InputError, match=r"the target is a quantity \(0.5 is not a whole number\), not a class"):
        check_target(labelled([0.5, 1.0, 2.0]))
    with pytest.raises(InputError, match=r"a quantity \(50 different numbers in 50 rows\), not a class"):
        check_target(labelled(np.arange(50)))


def test_an_identifier_is_refused():
    labels = Column("y", "category", np.arange(30, dtype=np.int32), tuple(f"id{k:02d}" for k in range(30)))
    with pytest.raises(InputError, match="the target is an identifier: 30 labels are all different"):
        check_target(Table(block=np.zeros((30, 1)), names=["a"], target=labels))


def test_a_near_identifier_is_refused():
    codes = np.minimum(np.arange(30), 28).astype(np.int32)
    labels = Column("y", "category", codes, tuple(f"id{k:02d}" for k in range(29)))
    with pytest.raises(InputError, match=r"an identifier: nearly every label differs \(29 in 30 rows\)\. Choose"):
        check_target(Table(block=np.zeros((30, 1)), names=["a"], target=labels))


@pytest.mark.parametrize("y", [[0, 1, 2], [-1, 1, 1], np.arange(40) % 20, np.repeat(np.arange(30), 3)])
def test_classes_are_accepted(y):
    check_target(labelled(y))


def test_no_target_is_refused():
    with pytest.raises(InputError, match=r"the table has no target. Name one"):
        check_target(as_table(np.zeros((2, 2))))
