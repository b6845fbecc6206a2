"""What a training record tells, as ``margrove show`` and ``margrove predict`` print it."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Task
from margrove.app.history import Contender, Estimate, History
from margrove.app.screen.console import Screen

MOST_LINES = 20
_LONG = ("rows", "truth", "predicted", "scores")
_LONGEST = 300  # letters of a text that somebody else wrote


def history_of(model: Any) -> dict[str, Any] | None:
    """The training record of a model; None where it has none."""
    record = getattr(model, "training_record_", None)
    return record if isinstance(record, dict) else None


def in_short(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The record without its long lists: the rows that were tested, and the course of the fit."""
    if record is None:
        return None
    short, estimate = {name: part for name, part in record.items() if name != "course"}, record.get("estimate")
    kept = estimate.items() if isinstance(estimate, dict) else ()
    return short | {"estimate": {name: part for name, part in kept if name not in _LONG}}


def tell_history(screen: Screen, record: dict[str, Any] | None) -> None:
    """Print how the model was chosen, and what it is worth, as the record has it."""
    history = History(record)
    estimate = history.estimate
    scored = [line for line in history.leaderboard if line.score is not None][:MOST_LINES]
    if scored:
        screen.heading("What was tried, as saved when it was trained")
        screen.say(_grid(scored, _task(estimate)), indent=2)
        if history.choice:
            screen.say(_line(history.choice), indent=2)
    if estimate is None:
        return
    value, error, ends = _value_words(estimate)
    screen.heading("What it is worth on rows it had not seen, as saved when it was trained")
    how = f" ({_line(estimate.method)})" if estimate.method else ""
    screen.say(f"{value}{ends and f', {ends}'}{error and f'; {error}'}{how}", indent=2)


def expectation_words(record: dict[str, Any]) -> str:
    """What somebody should know who sees predictions of the rows that a model learned from."""
    estimate = History(record).estimate
    if estimate is None:
        return "These are the rows it learned from: on new rows expect less."
    value, error, ends = _value_words(estimate)
    expected = f"{value}{error and f', {error}'} ({ends and f'{ends}, '}on rows held out when it was trained)"
    return f"These are the rows it learned from: on new rows expect {expected}."


def _value_words(estimate: Estimate) -> tuple[str, str, str]:
    """The value, of numbers the mean absolute error, and the interval; the last two empty where they are not there."""
    task, low, high, off = _task(estimate), estimate.low, estimate.high, estimate.mean_absolute_error
    error = "" if off is None or not task.is_number else f"mean absolute error {off:.4g}"
    ends = "" if low is None or high is None else f"95 % interval {task.number(low)} … {task.number(high)}"
    return task.named(estimate.value), error, ends


def _task(estimate: Estimate | None) -> Task:
    return NUMBERS if estimate is not None and estimate.measure == NUMBERS.measure else CLASSES


def _grid(lines: list[Contender], task: Task) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    grid.add_column("")
    grid.add_column("learner")
    grid.add_column("score", justify="right", no_wrap=True)
    for line in lines:
        score = task.named(line.score or 0.0) + ("" if line.error is None else f" ± {task.number(line.error)}")
        grid.add_row("→" if line.is_chosen else "", Text(_line(line.title)), score)
    return grid


def _line(text: str) -> str:
    """In one line, without control characters."""
    return "".join(letter for letter in " ".join(text[:_LONGEST].split()) if letter.isprintable())
