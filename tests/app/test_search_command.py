"""The search of `margrove train`: its parameters, its output, and its unbiased estimate."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.choose import nested_search as rounds
from margrove.app.choose import search as searching
from margrove.app.choose.search import GridCell, SearchResult
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.intervals import wilson
from margrove.status import Status

Run = Callable[..., Result]


@pytest.fixture
def run(run: Run) -> Run:
    """Type a command; the learner is the support vector machine, unless another is named."""

    def typed(*words: str) -> Result:
        is_named = words[0] != "train" or "--model" in words
        return run(*words) if is_named else run(*words, "--model", "svm")

    return typed


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_search_on_the_penguins_is_printed(run: Run) -> None:
    said = said_by(run("train"))
    assert "Searching C and gamma by accuracy for at most 1 min (--budget)" in said
    assert "48 cells, each scored on 5 folds of 344 rows: C 0.1 … 316 (8 values), gamma " in said
    assert "best C=" in said
    assert "runner-up C=" in said
    assert "These scores were used to choose the cell, so they are too optimistic" in said
    assert "(nested cross-validation, 5 rounds: each searches and trains on the other rows" in said
    model = margrove.load("penguins.margrove")[-1]
    assert f"best C={model.C:.3g}, gamma={model.gamma:.3g}: " in said


def test_document_contains_the_search(run: Run, flowers: str) -> None:
    record = document(run("train", flowers, "--folds", "2", "--json"))
    found = record["search"]
    assert found["searched"] == ["C", "gamma"]
    assert found["budget"] == 60
    assert (found["n_cells"], found["n_scored"]) == (len(found["cells"]), len(found["cells"]))
    assert found["n_cells"] == len(found["Cs"]) * len(found["gammas"])
    assert (found["rows"], found["of_rows"], found["folds"], found["status"]) == (8, 8, 4, "converged")
    assert found["best"]["score"] == max(cell["score"] for cell in found["cells"])
    assert {name: record["parameters"][name] for name in ("C", "gamma")} == {
        name: found["best"][name] for name in ("C", "gamma")
    }
    assert len(found["rounds"]) == 2
    assert record["estimate"]["method"] == "nested"


def test_quiet_names_the_method_and_the_cell(run: Run, flowers: str) -> None:
    last = run("train", flowers, "--folds", "2", "--quiet").stdout.splitlines()[-1]
    assert last.startswith("svm: accuracy ")
    assert " % (nested); C=" in last
    assert last.endswith(" cells; flowers.margrove")


def test_the_estimate_is_that_of_searches_that_did_not_see_the_rows(run: Run) -> None:
    record = document(run("train", "--folds", "3", "--json"))
    table = margrove.load_penguins()
    y = table.labels()
    accuracies = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        rows = table.take(train)
        X = margrove.TableEncoder().fit_transform(rows)
        inner = StratifiedKFold(5, shuffle=True, random_state=0)
        best = margrove.SVCCV(cv=inner, refit=False).fit(X, y[train]).best_params_
        if best in record["search"]["rounds"]:  # else it was widened, and another cell is the best
            model = make_pipeline(margrove.TableEncoder(), margrove.SVC(**best)).fit(rows, y[train])
            accuracies.append(float(np.mean(model.predict(table.take(test)) == y[test])))
    assert len(accuracies) >= 2
    assert set(accuracies) <= set(record["estimate"]["scores"])


def test_random_labels_are_estimated_as_not_learnable(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(3)
    rows = "".join(f"{u:.3f},{v:.3f},{w:.3f},{'ab'[k]}\n" for (u, v, w), k in zip(
        rng.normal(size=(80, 3)), rng.permutation(np.arange(80) % 2), strict=True))  # fmt: skip
    (folder / "noise.csv").write_text(f"u,v,w,kind\n{rows}")
    record = document(run("train", "noise.csv", "--json"))
    best, estimate = record["search"]["best"]["score"], record["estimate"]
    assert best > 0.55  # the largest of many
    assert estimate["mean"] < best
    assert abs(estimate["mean"] - 0.5) < 0.15


@pytest.mark.parametrize(
    ("params", "searched", "fixed"),
    [
        (["C=10"], ["gamma"], {"Cs": [10]}),
        (["gamma=0.5"], ["C"], {"gammas": [0.5]}),
        (["sigma=2"], ["C"], {"gammas": [0.125]}),
        (["kernel=linear"], ["C"], {"gammas": []}),
        (["kernel=poly", "degree=2", "coef0=1"], ["C", "gamma"], {}),
        (["class_weight=balanced", "multiclass=ovr", "tol=0.01"], ["C", "gamma"], {}),
    ],
    ids=str,
)
def test_what_is_typed_is_fixed_and_the_rest_is_searched(
    run: Run, flowers: str, params: list[str], searched: list[str], fixed: dict[str, Any]
) -> None:
    given = [word for param in params for word in ("--param", param)]
    record = document(run("train", flowers, "--folds", "2", "--json", *given))
    assert record["search"]["searched"] == searched
    assert {name: record["search"][name] for name in fixed} == fixed
    for param in params:
        name, _, value = param.partition("=")
        assert str(record["parameters"][name]) == value
    if "sigma=2" in params:
        assert record["parameters"]["gamma"] == "scale"


@pytest.mark.parametrize(
    "words",
    [
        ["--param", "C=10", "--param", "gamma=0.5"],
        ["--param", "C=10", "--param", "sigma=1"],
        ["--param", "C=10", "--param", "kernel=linear"],
        ["--param", "C=inf"],
        ["--budget", "0"],
        ["--model", "perceptron"],
    ],
    ids=str,
)
def test_nothing_is_searched_if_all_parameters_are_set(run: Run, flowers: str, words: list[str]) -> None:
    record = document(run("train", flowers, "--folds", "2", "--json", *words))
    assert record["search"] is None
    assert record["estimate"]["method"] == "cross-validation"
    assert "Search" not in run("train", flowers, "--folds", "2", *words).stdout


def test_without_folds_all_rows_are_searched_and_nothing_is_estimated(run: Run, flowers: str) -> None:
    record = document(run("train", flowers, "--folds", "0", "--json"))
    assert (record["search"]["rows"], record["search"]["rounds"]) == (8, [])
    assert (record["estimate"]["method"], record["estimate"]["mean"]) == ("none", None)


def test_too_small_a_budget_for_rounds_holds_rows_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_SPARE", 1e4)
    record = document(run("train", "--json"))
    estimate = record["estimate"]
    assert (estimate["method"], estimate["folds"]) == ("hold-out", 1)
    assert record["search"]["rows"] == 275  # the other four fifths
    assert record["certificate"]["n_rows"] == 344
    p = estimate["mean"]
    assert (estimate["low"], estimate["high"]) == pytest.approx(wilson(69 * p, 69))
    said = said_by(run("train"))
    assert "(a final hold-out of 69 rows that neither the search nor the fit has seen)" in said
    assert "a nested estimate, with a search in each of 5 rounds: --budget " in said


def test_very_many_rows_are_sampled_and_the_model_learns_from_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ROWS", 60)
    record = document(run("train", "--json", "--folds", "2"))
    assert record["search"]["of_rows"] == 344
    assert abs(record["search"]["rows"] - 60) <= 2
    assert record["certificate"]["n_rows"] == 344
    assert "rows drawn from 344" in said_by(run("train", "--folds", "2"))


def test_a_sample_holds_each_class_in_its_proportion() -> None:
    labels = np.repeat(["a", "b", "c", "d"], [900, 90, 9, 1])
    rows = CLASSES.sample(labels, 100, seed=0)
    assert [int((labels[rows] == label).sum()) for label in "abcd"] == [90, 9, 2, 1]
    assert len(np.unique(rows)) == len(rows)
    np.testing.assert_array_equal(rows, np.sort(rows))
    np.testing.assert_array_equal(CLASSES.sample(labels, 1000, seed=0), np.arange(1000))


def found(scores: dict[tuple[float, float], float]) -> SearchResult:
    return SearchResult(
        CLASSES, ("C", "gamma"), tuple(GridCell(C, gamma, score) for (C, gamma), score in scores.items()), n_rows=100
    )


def test_of_equals_the_smallest_c_then_the_smallest_gamma_is_best() -> None:
    table = found({(1, 1): 0.5, (1, 2): 0.9, (10, 1): 0.9, (10, 2): 0.8, (2, 1): math.nan})
    assert table.best == GridCell(1, 2, 0.9)
    assert table.runner_up == GridCell(10, 2, 0.8)
    assert (len(table.tops), len(table.scored)) == (2, 4)
    assert found({(1, 1): 0.8999, (10, 1): 0.9, (1, 2): 0.89}).best == GridCell(1, 1, 0.8999)  # less than half a row
    assert found({(1, 1): math.nan}).best is None
    assert found({(1, 1): math.nan}).params == {}


def test_an_edge_is_one_only_if_nothing_inside_is_as_good() -> None:
    assert found({(1, 1): 0.5, (10, 1): 0.6, (1, 2): 0.5, (10, 2): 0.7}).edges == ("largest C", "largest gamma")
    assert found({(1, 1): 0.7, (10, 1): 0.7, (1, 2): 0.5, (10, 2): 0.6}).edges == ("smallest gamma",)
    assert found({(1, 1): 0.7}).edges == ()


class Pretended(margrove.SVCCV):
    """A search whose score is a formula, and which ends as it is told."""

    def score(self, C: float, gamma: float) -> float:
        raise NotImplementedError

    status = Status.CONVERGED

    def fit(self, X: Any, y: Any) -> Pretended:
        grid = [(C, gamma) for C in self.Cs or [0.1, 1.0, 10.0] for gamma in self.gammas or [0.1, 1.0]]
        self.cv_results_ = {
            "params": [{"C": C, "gamma": gamma} for C, gamma in grid],
            "mean_test_score": np.array([self.score(C, gamma) for C, gamma in grid]),
        }
        self.status_ = self.status
        return self


def pretend(monkeypatch: pytest.MonkeyPatch, score: Callable[[float, float], float], **more: Any) -> None:
    members = {"score": lambda _, C, gamma: score(C, gamma), **more}
    monkeypatch.setattr("margrove.svm.search.SVCCV", type("Pretended", (Pretended,), members))


def test_a_best_cell_at_the_edge_widens_the_grid_there_once(
    run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, lambda C, gamma: 100 / (1 + abs(math.log(C / 300)) + abs(math.log(gamma / 0.02))))
    words = ["train", flowers, "--folds", "0"]
    record = document(run(*words, "--json"))["search"]
    assert record["widened"] == ["largest C", "smallest gamma"]
    cells = {(cell["C"], cell["gamma"]) for cell in record["cells"]}
    assert len(cells) == len(record["cells"]) == (3 + 4) * (2 + 3)
    np.testing.assert_allclose(record["Cs"][3:], 10 * np.sqrt(10) ** np.arange(1, 5))
    np.testing.assert_allclose(record["gammas"][:3], 0.1 / 4.0 ** np.arange(3, 0, -1))
    assert record["best"]["C"] == pytest.approx(316.2, rel=1e-3)
    assert record["edges"] == []
    said = said_by(run(*words))
    assert "was at the edge (largest C and smallest gamma), so the grid was widened there once, by 29 of these" in said


def test_best_cell_at_the_edge_is_reported(run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda C, gamma: math.log(C))
    assert "is still at the edge of the grid (largest C)." in said_by(run("train", flowers, "--folds", "0"))
    monkeypatch.setattr(searching, "_SLOWER", 1e9)
    said = said_by(run("train", flowers, "--folds", "0"))
    assert "is at the edge of the grid (largest C); the budget left no time to widen it." in said


def test_cells_that_were_not_reached_are_counted(run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda C, gamma: math.nan if C > 1 else 0.5, status=Status.TIME_LIMIT)
    said = said_by(run("train", flowers))
    assert "4 of them were scored in " in said
    assert "--budget allows more" in said
    assert "a final hold-out" in said  # no time for rounds
    pretend(monkeypatch, lambda C, gamma: math.nan, status=Status.TIME_LIMIT)
    result = run("train", flowers)
    assert "C and gamma keep their default values." in said_by(result)
    assert margrove.load("flowers.margrove")[-1].get_params()["gamma"] == "scale"
    assert "no cell scored in time" in run("train", flowers, "--quiet").stdout


def test_ctrl_c_keeps_the_best_so_far(run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda C, gamma: 0.5 if C == 1 else math.nan, status=Status.INTERRUPTED)
    record = document(run("train", flowers, "--json"))
    assert record["search"]["is_interrupted"] is True
    assert record["parameters"]["C"] == 1
    assert record["estimate"]["method"] == "hold-out"
    assert record["certificate"]["holds"] is True
    assert "Interrupted: the best cell so far is kept" in run("train", flowers).stdout


def test_ctrl_c_in_a_later_round_shortens_the_estimate(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([Status.CONVERGED] * 3 + [Status.INTERRUPTED])  # a round, all rows, a round, a round
    pretend(monkeypatch, lambda C, gamma: 0.5, status=property(lambda _: next(ends)))
    record = document(run("train", "--json"))
    assert (record["estimate"]["method"], record["estimate"]["folds"]) == ("nested", 2)
    assert record["estimate"]["notes"] == ["interrupted after 2 of 5 rounds"]
    assert record["search"]["rows"] == 344


def test_ctrl_c_in_the_search_on_all_rows_falls_back_on_the_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([Status.CONVERGED, Status.INTERRUPTED])
    pretend(monkeypatch, lambda C, gamma: 0.5, status=property(lambda _: next(ends)))
    record = document(run("train", "--json"))
    assert (record["estimate"]["method"], record["search"]["rows"]) == ("hold-out", 275)
    assert record["estimate"]["notes"] == ["interrupted after 1 of 5 rounds"]


def test_a_class_of_one_row_leaves_nothing_to_search_by(run: Run, folder: Path) -> None:
    (folder / "one.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n")
    assert "Not searched: at least two classes need two or more rows each." in run("train", "one.csv").stdout
    (folder / "few.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n8,b\n9,c\n")
    assert "2 of the rounds could not score any cell" in run("train", "few.csv").stdout
