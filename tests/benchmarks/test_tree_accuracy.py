"""The benchmark of accuracies cuts its folds as files, runs our settings, and names a peer that is not there."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import arff
import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
N_FOLDS = 3


@pytest.fixture
def benchmark(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("tree_accuracy")


@pytest.fixture
def folds(benchmark, tmp_path):
    """A class that two columns tell; words that ARFF has to quote; missing cells of both kinds."""
    rng = np.random.RandomState(0)
    cells = pd.DataFrame(
        {
            "a number": rng.normal(size=60),
            "a word": rng.choice(["it's", "back\\slash", "a, b", "{?}"], size=60),
            "code": rng.choice(["1", "2"], size=60),
        }
    )
    classes = pd.Series(np.where((cells["a number"] > 0) & (cells["code"] == "1"), "yes", "no"), name="class")
    cells.loc[[3, 5], "a number"] = np.nan
    cells.loc[[7, 8], "a word"] = np.nan
    return benchmark.cut("made up", cells, classes, tmp_path, n_folds=N_FOLDS)


def test_every_row_is_tested_once_and_never_trained_on(folds):
    n = len(folds.cells)
    assert sorted(np.concatenate([test for _, test in folds.parts])) == [*range(n)]
    assert all(sorted([*train, *test]) == [*range(n)] for train, test in folds.parts)


@pytest.mark.parametrize("role", ["train", "test"])
def test_files_hold_the_rows_of_their_fold(folds, role):
    whole = folds.cells.assign(**{"class": folds.classes})
    for k, (train, test) in enumerate(folds.parts):
        rows = whole.iloc[train if role == "train" else test].reset_index(drop=True)
        kinds = {"a number": float, "a word": str, "code": str, "class": str}
        pd.testing.assert_frame_equal(pd.read_csv(folds.folder / f"{role}{k}.csv", dtype=kinds), rows)
        told = arff.loads((folds.folder / f"{role}{k}.arff").read_text())
        assert [name for name, _ in told["attributes"]] == [*whole]
        assert told["attributes"][2][1] == ["1", "2"]  # numbers that are codes are categories
        found = pd.DataFrame(told["data"], columns=[*whole]).astype(rows.dtypes)
        pd.testing.assert_frame_equal(found, rows)
    assert (folds.folder / "kinds.txt").read_text().split() == ["numeric", "character", "character", "character"]


def test_our_settings_and_scikit_learn_separate_simple_classes(benchmark, folds):
    sides = ["default", "command_line", "cart", "c45", "sklearn", "c45_filled"]
    found = benchmark.measured(folds, sides)
    assert [*found] == sides
    for side in found.values():
        assert side["accuracy"] > 0.85
        assert side["leaves"] >= 3
        assert len(side["folds"]) == N_FOLDS


def test_missing_cells_are_not_mentioned_if_there_are_none(benchmark, folds, tmp_path):
    whole = benchmark.cut("whole", folds.cells[["code"]], folds.classes, tmp_path, n_folds=N_FOLDS)
    assert benchmark.measured(whole, benchmark.OF_MISSING_CELLS) == {}


@pytest.mark.parametrize(
    ("side", "why"),
    [
        ("rpart", "Rscript is not installed"),
        ("ctree", "Rscript is not installed"),
        ("j48", "weka.jar"),
        ("j48_level", "weka.jar"),
    ],
)
def test_a_peer_that_is_not_there_is_named_and_left_out(benchmark, folds, side, why, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(benchmark, "WEKA", folds.folder / "weka.jar")
    found = benchmark.measured(folds, [side])[side]
    assert why in found["absent"]
    assert "apt-get install" in found["absent"]
    assert f"{side}  left out: " in capsys.readouterr().out
    assert "absent" in benchmark.versions()["Weka"]
