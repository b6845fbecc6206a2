"""`margrove compare`: all learners side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from margrove.app.compare import Entry, best_of, decimals_for, rivals_of
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.task import Estimate
from margrove.app.options.menu import choices
from margrove.app.proving import BudgetOverError

Run = Callable[..., Result]


def test_every_learner_has_its_line_and_the_best_is_named(run: Run, folder: Path) -> None:
    result = run("compare", "--folds", "3")
    assert result.exit_code == 0
    lines = re.findall(r"^(→?) +([\w-]+) +([\d.]+) \(", result.stdout, re.MULTILINE)
    assert {name for _, name, _ in lines} == set(choices())
    assert [float(score) for *_, score in lines] == sorted((float(score) for *_, score in lines), reverse=True)
    assert [mark for mark, *_ in lines] == ["→"] + [""] * (len(lines) - 1)
    assert result.stdout.count("holds") == len(choices())
    assert "Best: " in result.stdout
    assert list(folder.iterdir()) == []


def test_json_gives_every_number(run: Run, flowers: str) -> None:
    record = json.loads(run("compare", flowers, "--folds", "2", "--json").stdout)
    assert [entry["learner"] for entry in record["learners"]] == list(choices())
    assert record["best"] in choices()
    for entry in record["learners"]:
        assert entry["certificate"]["source"] == "recomputed"
        assert entry["seconds"] > 0
        assert entry["failure"] is None


def test_learner_that_does_not_separate_is_reported(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n3,a\n3,b\n")
    text = " ".join(run("compare", "mixed.csv", "--folds", "2").stdout.split())
    assert "The certificate of kernel-perceptron fails: the rows are not separated" in text


def test_without_folds_there_is_no_best(run: Run, flowers: str) -> None:
    result = run("compare", flowers, "--folds", "0")
    assert result.exit_code == 0
    assert "Best" not in result.stdout
    assert "not estimated, as requested" in result.stdout


def test_quiet_is_the_table_and_the_winner(run: Run, flowers: str) -> None:
    lines = run("compare", flowers, "--folds", "2", "--quiet").stdout.splitlines()
    assert len(lines) == len(choices()) + 4


def test_learners_that_do_not_fit_into_the_budget_are_named(run: Run, flowers: str) -> None:
    result = run("compare", flowers, "--folds", "2", "--budget", "0.001s")
    assert result.exit_code == 0
    assert f"Not in time: {', '.join(choices())}; a larger --budget allows more." in result.stdout


def test_certificates_that_do_not_fit_into_the_budget_are_named(
    run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*given: object) -> None:
        raise BudgetOverError

    monkeypatch.setattr("margrove.app.compare.certify", too_long)
    result = run("compare", flowers, "--folds", "2", "--budget", "1h")
    assert result.stdout.count("not checked") == len(choices())
    assert "Certificates that did not fit into the budget: basic," in result.stdout
    told = json.loads(run("compare", flowers, "--folds", "2", "--budget", "1h", "--json").stdout)
    assert not any(line["is_certified"] for line in told["learners"])


def _contenders(*accuracies: tuple[float, ...]) -> list[Entry]:
    """The first learners, with these accuracies of their folds."""
    learners = list(choices())[: len(accuracies)]
    return [
        Entry(x, estimate=Estimate(CLASSES, folds, float(np.mean(folds)), (min(folds), max(folds)), 0.5))
        for x, folds in zip(learners, accuracies, strict=True)
    ]


@pytest.mark.parametrize(
    ("means", "decimals"),
    [
        ((0.9, 0.8), 1),
        ((0.9, 0.9), 1),  # they do not differ
        ((0.9001, 0.9), 2),  # one decimal would hide it
        ((0.9991, 0.8), 2),
        ((1.0, 0.9996), 2),
    ],
)
def test_decimals_are_as_many_as_are_needed(means: tuple[float, float], decimals: int) -> None:
    assert decimals_for(_contenders(*((mean, mean) for mean in means))) == decimals


def test_learners_that_tie_are_as_good_and_those_below_the_interval_are_not() -> None:
    # The means of the same accuracies in another order may differ in the last digit.
    tied = _contenders((0.7, 0.7, 0.7), (0.7, 0.7, 0.7 + 2e-16), (0.6, 0.6, 0.6))
    best = best_of(tied)
    assert best is tied[0]
    assert rivals_of(best, tied) == ["least-squares"]


def test_a_learner_that_failed_is_never_the_best() -> None:
    failed = Entry("none", failure="no")
    assert best_of([failed]) is None
    good, better = _contenders((0.8, 0.9), (0.9, 1.0))
    assert best_of([failed, good, better]) is better


def test_perfect_learners_are_all_listed(run: Run, folder: Path) -> None:
    rows = "".join(f"{x},{'ab'[x > 9]}\n" for x in range(20) if x not in (8, 9, 10, 11))
    (folder / "easy.csv").write_text(f"x,y\n{rows}")
    said = run("compare", "easy.csv", "--folds", "2").stdout
    assert "Best: basic, 100.0 %, 95 % interval " in said
    assert "and possibly as good: least-squares, " in said
