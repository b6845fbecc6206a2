"""The progress bar: the share that is done, and the solver's objective."""

from __future__ import annotations

import io
import math
import time

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from margrove import SVC
from margrove.app.options.budget import Budget
from margrove.app.screen.progress import Countdown, Meter, in_words
from margrove.run.progress import Progress, watched


@pytest.fixture
def bar() -> Bar:
    return Bar(disable=True)


def falling(violation: float, done: float = 0, total: float = 1) -> Progress:
    return Progress("svm", done, total, violation, "violation", goal=1e-3)


def test_a_bar_follows_the_digits_that_the_objective_has_fallen(bar: Bar) -> None:
    meter = Meter(bar, "fit", 1)
    for violation, completed in ((10.0, 0.0), (1.0, 0.25), (0.1, 0.5), (1.0, 0.5), (1e-3, 1.0), (0.0, 1.0)):
        meter.watch(falling(violation))
        assert bar.tasks[0].completed == pytest.approx(completed)  # and never back


def test_machines_that_have_ended_count_whole(bar: Bar) -> None:
    meter = Meter(bar, "fit", 1)
    meter.watch(falling(1.0, done=0, total=4))
    meter.watch(falling(1.0, done=2, total=4))
    assert bar.tasks[0].completed == pytest.approx(0.5)
    meter.watch(falling(1e-3, done=4, total=4))
    assert bar.tasks[0].completed == 1


def test_each_step_starts_again(bar: Bar) -> None:
    meter = Meter(bar, "fold 1", 2)
    meter.watch(falling(1.0))
    meter.watch(falling(0.1))
    meter.advance()
    meter.begin("fold 2")
    assert bar.tasks[0].completed == 1
    meter.watch(falling(0.5))
    assert bar.tasks[0].completed == 1


@pytest.mark.parametrize("violation", [math.inf, math.nan])
def test_unknown_objective_is_not_shown(bar: Bar, violation: float) -> None:
    meter = Meter(bar, "fit", 1)
    meter.watch(falling(violation))
    assert (bar.tasks[0].completed, bar.tasks[0].fields["objective"]) == (0, "")


def test_an_objective_without_a_goal_is_shown_as_it_is(bar: Bar) -> None:
    meter = Meter(bar, "fit", 1)
    meter.watch(Progress("perceptron", 3, 12, 7, "mistakes in the pass"))
    assert bar.tasks[0].completed == 0.25
    assert bar.tasks[0].fields["objective"] == "7 mistakes in the pass"
    assert in_words(Progress("reading", 1)) == ""
    assert in_words(Progress("pictures", 1600, 2000)) == "1,600 of 2,000 pictures"
    assert in_words(Progress("fine-tuning", 2.5, 10, 0.4321, "loss")) == "2.5 of 10 epochs, loss 0.432"


def test_a_goal_that_is_met_from_the_start_is_no_trouble(bar: Bar) -> None:
    meter = Meter(bar, "fit", 1)
    meter.watch(falling(1e-4))
    assert bar.tasks[0].completed == 1
    meter.watch(falling(1e-2))
    assert bar.tasks[0].completed == 1


def test_progress_shows_the_target_of_the_violation() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 1)), rng.integers(0, 2, 900)
    seen: list[Progress] = []
    with watched(seen.append), pytest.warns(UserWarning, match="time_limit"):
        SVC(C=1e9, tol=0.01, time_limit=0.5, max_iter=2_000_000_000).fit(X, y)
    assert seen
    assert {(progress.goal, progress.total) for progress in seen} == {(0.01, 1.0)}


def test_search_shows_the_time_left(bar: Bar, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    meter = Meter(bar, "search", 2)
    meter.begin("round 1")
    for now, done, words in (
        (0.5, 30, ""),  # too soon to say
        (4.0, 40, "about 21 s left in this search"),  # the last ten took 3.5 s
        (8.0, 80, "about 2 s left in this search"),
    ):
        clock[0] = now
        meter.watch(Progress("search", done, 100))
        assert bar.tasks[0].fields["objective"] == words
    assert bar.tasks[0].completed == pytest.approx(0.8)
    meter.advance()
    meter.begin("round 2")
    meter.watch(Progress("search", 10, 100))
    assert bar.tasks[0].fields["objective"] == ""


def test_a_countdown_draws_the_time_left_what_runs_and_below_it_the_best() -> None:
    meter = Countdown(Budget(60.0), "tree")
    meter.enter("round 2 of 5")
    meter.begin("[red]svm")
    meter.best("perceptron, 90.0 %")
    meter.advance()
    meter.watch(falling(1.0))
    screen = Console(file=io.StringIO(), width=100)
    screen.print(meter.bar.get_renderable())
    first, second = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.rstrip().endswith("left [red]svm")
    assert second.rstrip() == "  round 2 of 5; best so far: perceptron, 90.0 %"
