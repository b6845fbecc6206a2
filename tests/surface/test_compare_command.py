"""`margrove compare`: all learners side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from margrove.surface.learners import LEARNERS

Run = Callable[..., Result]


def test_every_learner_has_its_line_and_the_best_is_named(run: Run, folder: Path) -> None:
    result = run("compare", "--folds", "3")
    assert result.exit_code == 0
    for name in LEARNERS:
        assert f"\n{name}" in result.stdout
    assert result.stdout.count("holds") == len(LEARNERS)
    assert "Best: " in result.stdout
    assert list(folder.iterdir()) == []


def test_json_gives_every_number(run: Run, flowers: str) -> None:
    record = json.loads(run("compare", flowers, "--folds", "2", "--json").stdout)
    assert [entry["learner"] for entry in record["learners"]] == list(LEARNERS)
    assert record["best"] in LEARNERS
    for entry in record["learners"]:
        assert entry["certificate"]["source"] == "recomputed"
        assert entry["seconds"] > 0
        assert entry["failure"] is None


def test_a_learner_that_does_not_separate_says_so(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n3,a\n3,b\n")
    assert "does not separate" in " ".join(run("compare", "mixed.csv", "--folds", "2").stdout.split())


def test_without_folds_there_is_no_best(run: Run, flowers: str) -> None:
    result = run("compare", flowers, "--folds", "0")
    assert result.exit_code == 0
    assert "Best" not in result.stdout
    assert "not estimated, as asked" in result.stdout


def test_quiet_is_the_table_and_the_winner(run: Run, flowers: str) -> None:
    lines = run("compare", flowers, "--folds", "2", "--quiet").stdout.splitlines()
    assert len(lines) == len(LEARNERS) + 3
