"""What a search tried and found, as a person reads it."""

from __future__ import annotations

from rich.text import Text

from margrove.app.choose import in_digits
from margrove.app.choose.search import Found, Question
from margrove.app.estimate.task import Task
from margrove.app.screen.console import Screen
from margrove.run.progress import in_short
from margrove.status import Status


def tell_question(screen: Screen, question: Question, seconds: float, n_rows: int) -> None:
    """Print, before it begins, what is searched and for how long."""
    names, most = " and ".join(question.names), question.most_rows
    sample = f", on a sample of {most:,} rows{question.task.sampled}" if n_rows > most else ""
    screen.say(f"Searching {names} for at most {in_short(seconds)} (--budget){sample}", indent=2)


def tell_search(screen: Screen, found: Found, *, is_interrupted: bool) -> None:
    """Print the grid, how much of it was scored, the best cell beside the runner-up, and where it lies."""
    screen.heading(f"Search of {' and '.join(found.names)}" if found.names else "Search")
    if is_interrupted:
        screen.say("Interrupted: the best so far is kept, and fitted.", style="yellow", indent=2)
    if found.why_not:
        screen.say(f"Not searched: {found.why_not}.", indent=2)
        return
    rows = f"{found.n_rows:,} rows" + ("" if found.n_rows == found.of_rows else f" drawn from {found.of_rows:,}")
    n_cells, n_scored = len(found.cells), len(found.scored)
    how_many = "1 cell" if n_cells == 1 else f"{n_cells:,} cells"
    screen.say(f"{how_many}, each scored on {found.folds} folds of {rows}: {_grid_words(found)}", indent=2)
    best, second = found.best, found.runner_up
    if n_scored < n_cells:
        cure = "" if found.status is Status.INTERRUPTED else "; a larger --budget allows more"
        screen.say(f"{n_scored:,} of them were scored in {in_short(found.seconds)}{cure}", indent=2)
    if best is None:
        verb = "stays as it is" if len(found.names) == 1 else "stay as they are"
        screen.say(f"So {' and '.join(found.names)} {verb}.", indent=2)
        return
    if found.widened:
        text = f"The best was at the edge ({' and '.join(found.widened)}), so the grid was widened there once"
        screen.say(f"{text}, by {found.n_added:,} of these cells.", indent=2)
    width = len("runner-up") + 2
    score, other = _scores(found.task, best.score, None if second is None else second.score)
    line = Text.assemble("best".ljust(width), (f"{best.words}: {score}", "bold"))
    n_others = len(found.tops) - 1
    if n_others:
        line.append(f"  ({n_others:,} other{'s' if n_others > 1 else ''} the same)")
    screen.say(line, indent=2)
    if second is not None:
        screen.say(f"{'runner-up'.ljust(width)}{second.words}: {other}", indent=2)
    if found.edges:
        still = "still lies" if found.widened else "lies"
        why = "" if found.widened or found.status is not Status.CONVERGED else "; the budget left no time to widen it"
        screen.say(f"The best {still} at the edge of the grid ({' and '.join(found.edges)}){why}.", indent=2)
    screen.say(f"These scores chose the cell, and so flatter it; the {found.task.not_below}.", indent=2)


def _scores(task: Task, best: float, second: float | None) -> tuple[str, str]:
    """Both, to so many digits that they differ; of no runner-up nothing."""
    if second is None:
        return task.named(best), ""
    decimals = 1 + (task.named(best) == task.named(second))  # a difference that one decimal would hide
    return task.named(best, decimals), task.named(second, decimals)


def search_words(found: Found) -> str:
    """What was chosen, in a few words."""
    best = found.best
    if best is None:
        return "nothing searched" if found.why_not else "no cell scored in time"
    return f"{best.words}, the best of {len(found.scored):,} cells"


def _grid_words(found: Found) -> str:
    parts = []
    for name in ("C", "gamma"):
        values = found.values_of(name)
        if len(values) > 1:
            parts.append(f"{name} {in_digits(values[0])} … {in_digits(values[-1])} ({len(values)} values)")
        elif values:
            parts.append(f"{name} {in_digits(values[0])}")
    return ", ".join(parts)
