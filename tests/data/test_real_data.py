"""The sets people really use, where they are at hand: shapes, kinds and missing cells as their list says."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from margrove.data import TableEncoder, read_table
from margrove.data.spelling import fold
from margrove.data.target import check_target

SMALL_CSV = [
    "adult", "bank_marketing", "car", "connect4", "credit_approval", "german_credit", "hypothyroid",
    "kr_vs_kp", "mushroom", "nursery", "soybean", "splice", "tic_tac_toe", "titanic", "vote", "zoo",
]  # fmt: skip
NPZ = [
    "a9a", "banana", "breast_cancer", "covtype_sample", "digits", "dna", "iris", "letter", "madelon",
    "news20_counts", "sonar", "wine",
]  # fmt: skip


def listed(real_data: Path, name: str) -> list[str]:
    """The set's row in the list: name, train rows, test rows, features, kind, classes, missing cells."""
    for line in (real_data / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == name:
            return cells
    pytest.skip(f"{name} is not in the list of real sets")


def file_of(real_data: Path, name: str) -> Path:
    for path in (real_data / f"{name}.csv.gz", real_data / f"{name}.npz"):
        if path.exists():
            return path
    pytest.skip(f"{name} is not among the real sets here")


@pytest.mark.parametrize("name", SMALL_CSV)
def test_csv_sets_are_as_listed(real_data, name):
    _, train, test, features, _, classes, missing, *_ = listed(real_data, name)
    table = read_table(file_of(real_data, name))
    names = [name for name in table.names if name != "split"]
    table = table.select(names)
    assert table.n_rows == int(train) + (int(test) if test.isdigit() else 0)
    assert table.n_columns == int(features)
    assert len(set(table.labels().tolist())) == int(classes)
    assert sum(column.n_missing for column in table) == int(missing)
    check_target(table)


@pytest.mark.parametrize("name", SMALL_CSV)
def test_csv_sets_are_as_pandas_reads_them(real_data, name):
    path = file_of(real_data, name)
    table = read_table(path, target=False)
    codes = {column.name: str for column in table if column.kind == "category"}  # 00202 is one
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=codes)
    for column in table:
        theirs = frame[column.name]
        if column.kind == "numeric":
            np.testing.assert_array_equal(column.values, theirs.to_numpy(dtype=np.float64))
        elif column.kind == "category":
            ours = [None if code < 0 else fold(column.levels[code]) for code in column.values]
            assert ours == [None if pd.isna(cell) else fold(cell) for cell in theirs]


@pytest.mark.parametrize("name", NPZ)
def test_npz_sets_are_as_listed(real_data, name):
    _, train, _, features, kind, classes, *_ = listed(real_data, name)
    table = read_table(file_of(real_data, name))
    assert table.shape == (int(train), int(features))
    assert len(set(table.labels().tolist())) == int(classes)
    assert (table.sparse is not None) == ("sparse" in kind)
    if re.search("float32|sparse", kind) and name != "news20_counts":
        cells = table.sparse.data if table.sparse is not None else table.block
        assert cells.dtype == np.float32
    check_target(table)


@pytest.mark.parametrize("name", ["adult", "mushroom", "titanic", "a9a", "letter"])
def test_real_sets_are_encoded_without_a_hole(real_data, name):
    table = read_table(file_of(real_data, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constants and identifiers are told elsewhere
        Z = TableEncoder().fit_transform(table)
    assert Z.shape[0] == table.n_rows
    assert np.isfinite(Z.data if hasattr(Z, "indptr") else Z).all()
