"""What a training record tells, as ``margrove show`` prints it. The record comes from a file and may say anything: what
is not as it should be is passed over."""

from __future__ import annotations

import math
from typing import Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Task
from margrove.app.screen.console import Screen

MOST_LINES = 20
_LONG = ("rows", "truth", "predicted", "scores")
_LONGEST = 300  # letters of a text that somebody else wrote


def history_of(model: Any) -> dict[str, Any] | None:
    """The training record of a model; None where it has none."""
    record = getattr(model, "training_record_", None)
    return record if isinstance(record, dict) else None


def in_short(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The record without its long lists: the rows that were asked about, and the course of the fit."""
    if record is None:
        return None
    short = {name: part for name, part in record.items() if name != "course"}
    estimate = _object(record.get("estimate"))
    return short | {"estimate": {name: part for name, part in estimate.items() if name not in _LONG}}


def tell_history(screen: Screen, record: dict[str, Any] | None) -> None:
    """Print how the model was chosen, and what it is worth, as the record has it."""
    if record is None:
        return
    estimate, choice = _object(record.get("estimate")), _object(record.get("choice"))
    task = _task(estimate)
    lines = [_object(line) for line in _list(record.get("leaderboard"))]
    scored = [line for line in lines if _number(line.get("score")) is not None][:MOST_LINES]
    if scored:
        screen.heading("What was tried, as saved when it was trained")
        screen.say(_grid(scored, task), indent=2)
        if choice.get("words"):
            screen.say(_text(choice["words"]), indent=2)
    value, error, ends = _value_words(estimate)
    if not value:
        return
    screen.heading("What it is worth on rows it had not seen, as saved when it was trained")
    how = f" ({_text(estimate.get('method', ''))})" if estimate.get("method") else ""
    screen.say(f"{value}{ends and f', {ends}'}{error and f'; {error}'}{how}", indent=2)


def expectation_words(record: dict[str, Any]) -> str:
    """What somebody should know who sees predictions of the rows that a model learned from."""
    value, error, ends = _value_words(_object(record.get("estimate")))
    if not value:
        return "These are the rows it learned from: on new rows expect less."
    expected = f"{value}{error and f', {error}'} ({ends and f'{ends}, '}on rows held out when it was trained)"
    return f"These are the rows it learned from: on new rows expect {expected}."


def _value_words(estimate: dict[str, Any]) -> tuple[str, str, str]:
    """The value, of numbers the mean absolute error, and the interval; each empty where it is not there."""
    value, low, high, off = (_number(estimate.get(name)) for name in ("value", "low", "high", "mean_absolute_error"))
    if value is None:
        return "", "", ""
    task = _task(estimate)
    error = "" if off is None or not task.is_number else f"mean absolute error {off:.4g}"
    ends = "" if low is None or high is None else f"95 % interval {task.number(low)} … {task.number(high)}"
    return task.named(value), error, ends


def _task(estimate: dict[str, Any]) -> Task:
    return NUMBERS if estimate.get("measure") == NUMBERS.measure else CLASSES


def _grid(lines: list[dict[str, Any]], task: Task) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    grid.add_column("")
    grid.add_column("learner")
    grid.add_column("score", justify="right", no_wrap=True)
    for line in lines:
        error = _number(line.get("error"))
        score = task.named(line["score"]) + ("" if error is None else f" ± {task.number(error)}")
        is_taken = line.get("is_chosen") is True
        grid.add_row("→" if is_taken else "", Text(_text(line.get("title") or line.get("learner"))), score)
    return grid


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    is_one = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if is_one and math.isfinite(value) else None


def _text(value: Any) -> str:
    """In one line, without control characters."""
    return "".join(letter for letter in " ".join(str(value)[:_LONGEST].split()) if letter.isprintable())
