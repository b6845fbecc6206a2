"""What ``verbose=True`` of a search prints, and the pace that it judges by."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from margrove import SVCCV
from margrove.run.progress import Pace, Progress, overheard, part_of, report, watched
from margrove.search import live_line
from margrove.search.live_line import LiveLine
from margrove.search.table import ScoreTable
from margrove.status import Status

X, Y = load_iris(return_X_y=True)
GRID = {"Cs": [0.1, 1.0], "gammas": [0.1, 1.0]}


def table() -> ScoreTable:
    grid = {"C": np.array([1.0, 2.0]), "epsilon": np.zeros(1), "gamma": np.ones(1)}
    return ScoreTable(grid, 2, {})


def test_the_time_left_is_shown_only_once_it_can_be_estimated():
    pace = Pace()
    assert pace.left(100) is None
    pace.see(0, 10.0)
    pace.see(40, 10.5)
    assert pace.left(100) is None  # too soon
    pace = Pace()
    pace.see(0, 0.0)
    pace.see(1, 30.0)
    assert pace.left(100) is None  # too little
    pace.see(10, 60.0)
    assert pace.left(100) == pytest.approx(90 * 30 / 9)


def test_the_recent_pace_counts():
    pace = Pace()
    for second in range(11):  # ten a second, and then one
        pace.see(10 * second, float(second))
    for second in range(1, 21):
        pace.see(100 + second, 10.0 + second)
    assert pace.left(140) == pytest.approx(20)
    assert pace.left(100) == 0
    assert pace.elapsed == 30


def test_progress_of_a_part_is_reported_as_a_part():
    inner, outer = [], []
    with watched(outer.append), overheard(inner.append), part_of(before=10, after=5):
        report(Progress("search", 1, 4))
        report(Progress("search", 1))
    assert inner == outer
    assert [(each.done, each.total) for each in inner] == [(11, 19), (11, None)]


def test_a_search_is_silent_unless_verbose(capsys):
    SVCCV(**GRID).fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("drop_early", [False, True])
def test_plain_lines_where_there_is_no_terminal(capsys, monkeypatch, drop_early):
    monkeypatch.setattr(live_line, "_SELDOM", 0.0)
    # The reference engine tells of each unit, however quick it is.
    search = SVCCV(**GRID, verbose=True, engine="reference", cv=3, refit=False, drop_early=drop_early).fit(X, Y)
    *lines, last = capsys.readouterr().out.splitlines()
    assert "\r" not in "".join(lines)
    assert lines[0].startswith("[SVCCV] ")
    assert " % of 36 machines, " in lines[0]
    assert " elapsed" in lines[0]
    shares = [int(line.split()[1]) for line in lines]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert last.startswith("[SVCCV] ")
    assert "4 cells scored in " in last
    assert last.endswith(f"best score {search.best_score_:.4g}")


def test_one_line_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(live_line, "_OFTEN", 0.0)
    line = LiveLine("SVCCV", table())
    for done in (1, 2, 4):
        line.watch(Progress("search", done, 4))
    line.watch(Progress("svm", 1, 1))  # of something else
    line.end(Status.INTERRUPTED)
    text = screen.getvalue()
    assert text.count("\n") == 1
    assert text.count("\r\x1b[K[SVCCV] ") == 4
    assert "[SVCCV] 50 % of 4 machines, 0.0 s elapsed\r" in text
    assert text.endswith("0 of 2 cells scored in 0.0 s (interrupted)\n")


def test_the_best_so_far_is_of_cells_whose_folds_are_all_scored(monkeypatch):
    monkeypatch.setattr(live_line.time, "monotonic", lambda: 0.0)
    scores = table()
    line = LiveLine("SVCCV", scores)
    line.watch(Progress("search", 1, 4))
    scores.score[0, 0, 0] = [0.5, np.nan]
    assert "best" not in line.words(0.0)
    scores.score[0, 0, 0] = [0.5, 0.7]
    assert line.words(0.0) == "25 % of 4 machines, best score 0.6 so far, 0.0 s elapsed"
