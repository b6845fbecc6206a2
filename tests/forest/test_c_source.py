"""The C source of a forest predicts as the forest does."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrove import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor, load_penguins
from margrove.errors import InputError, ParameterError
from margrove.tree.reading import read_cells

DOUBLES = ctypes.POINTER(ctypes.c_double)


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def library(source: str) -> Any:
        (tmp_path / "forest.c").write_text(source, encoding="utf-8")
        flags = ["-std=c99", "-pedantic", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "forest.c", "-o", "forest.so"], cwd=tmp_path, check=True)
        return ctypes.CDLL(str(tmp_path / "forest.so"))

    return library


def test_classes_of_a_table_with_text_and_missing_cells(compiled: Any) -> None:
    penguins = load_penguins()
    species = penguins.labels()
    forest = RandomForestClassifier(n_estimators=9, n_jobs=1).fit(penguins, species)
    found = compiled(forest.to_c())
    found.predict_shares.argtypes = [DOUBLES, DOUBLES]
    read = read_cells(forest, penguins, forest.model_.columns)
    cells = [np.where(values == -1, np.nan, values) if values.dtype.kind == "i" else values for values in read.values]
    rows = np.ascontiguousarray(np.column_stack(cells), dtype=np.float64)
    wanted, shares = forest.predict_proba(penguins), np.zeros(3)
    for i, row in enumerate(rows):
        found.predict_shares(row.ctypes.data_as(DOUBLES), shares.ctypes.data_as(DOUBLES))
        assert shares.tolist() == wanted[i].tolist()
        assert found.predict(row.ctypes.data_as(DOUBLES)) == wanted[i].argmax()


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_numbers_to_the_last_bit(compiled: Any, kind: Any) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    forest = kind(n_estimators=7, n_jobs=1).fit(X, X[:, 0] * X[:, 1])
    function = compiled(forest.to_c("of_x")).of_x
    function.restype, function.argtypes = ctypes.c_double, [DOUBLES]
    new = random.normal(size=(50, 3))
    assert [function(row.ctypes.data_as(DOUBLES)) for row in new] == forest.predict(new).tolist()


def test_a_forest_of_leaves_compiles(compiled: Any) -> None:
    forest = RandomForestClassifier(n_estimators=2, n_jobs=1).fit([[0.0], [0.0]], ["a", "b"])
    zero = np.zeros(1)
    assert compiled(forest.to_c()).predict(zero.ctypes.data_as(DOUBLES)) in (0, 1)


def test_what_cannot_be_written_is_refused() -> None:
    forest = RandomForestRegressor(n_estimators=2, n_jobs=1).fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="to_c takes one target"):
        forest.to_c()
    with pytest.raises(ParameterError, match="valid name for a C function"):
        forest.to_c("2b")
