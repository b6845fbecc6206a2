"""Print what ``--model auto`` tried and chose, and why, and what a search of C and γ tried and found."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from margrove.app.choose import in_digits
from margrove.app.choose.candidates import CANDIDATES
from margrove.app.estimate.classes import NEARLY_PERFECT
from margrove.app.estimate.learning_curve import Point, verdict_on_rows
from margrove.app.estimate.task import Task
from margrove.app.screen.console import Screen, bare_grid
from margrove.explanation import counted
from margrove.run.progress import in_short
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.app.choose.contest import Result
    from margrove.app.choose.held_out import Chosen
    from margrove.app.choose.search import SearchResult, SearchSpace
    from margrove.app.options.training import Training


def tell_plan(screen: Screen, training: Training, seconds: float, *, is_sampled: bool) -> None:
    """Print, before it begins, the plan and its time."""
    ways = {"best": "learner with the best", "simple": "simplest learner within one standard error of the best"}
    limit = "without a time limit" if math.isinf(seconds) else f"in at most {in_short(seconds)} (--budget)"
    screen.say(f"Trying {len(CANDIDATES[training.kind.name])} learners {limit}; --model trains a single one", indent=2)
    score = f"cross-validated {training.kind.measure}"
    screen.say(f"The {ways[training.prefer]} {score} is chosen (--prefer {training.prefer})", indent=2)
    tell_metric(screen, training)
    if is_sampled:
        text = "The table is large: all learners are scored on a sample first, the best also on more rows."
        screen.say(text, indent=2)


def tell_metric(screen: Screen, training: Training) -> None:
    """Print why the metric is not accuracy, and whether classes are weighted."""
    if training.reason:
        words = f"{training.reason}: models are judged by balanced accuracy (--metric accuracy judges by accuracy)"
        screen.say(words, indent=2)
    if training.is_balanced:
        screen.say("All classes have the same weight in training, however few rows they have", indent=2)


def tell_contest(screen: Screen, chosen: Chosen) -> None:
    """Print the leaderboard, the choice, and why it was made."""
    result = chosen.result
    screen.heading("Learners tried")
    if chosen.is_interrupted:
        screen.say("Interrupted: the best learner so far is chosen and fitted.", style="yellow", indent=2)
    if result.best is not None:
        screen.say(subsample_words(result), indent=2)
        screen.say(leaderboard_grid(result), indent=2)
    for note in notes_of(result):
        screen.say(note, style="dim", indent=2)
    screen.say(Text(choice_words(chosen), style="bold"), indent=2)
    if chosen.estimate.method in ("nested", "hold-out"):
        text = "These scores were used to choose it, so they are too optimistic; the estimate below is not."
        screen.say(text, indent=2)


def subsample_words(result: Result) -> str:
    """Return on how many rows and folds learners were scored, as far as it came."""
    scored = [trial for trial in result.trials if trial.is_scored]
    if not scored:
        return "No learner was scored."
    n_folds = max(result.n_folds, *(len(trial.scores) for trial in scored))
    sizes = sorted({trial.n_rows for trial in scored})
    rows = f"{result.n_rows:,} rows"
    if sizes[0] < result.n_rows:
        rows = f"a sample of {sizes[0]:,} of {rows}"
    if len(scored) == 1:
        n_done = len(scored[0].scores)
        return f"Scored on {n_folds if n_done == n_folds else f'{n_done} of {n_folds}'} folds of {rows}:"
    text = f"Each scored on the same {n_folds} folds of {rows}"
    again = sum(trial.n_rows > sizes[0] for trial in scored)
    if again:
        more = f"all {result.n_rows:,}" if sizes[-1] == result.n_rows else f"{sizes[-1]:,}"
        text += f", {again} of them then on {more}"
    elif sizes[0] < result.n_rows:
        text += ", and none on more rows"
    short = [trial.title for trial in scored if len(trial.scores) < n_folds]
    if short:
        text += f" ({', '.join(short)} on fewer folds, for lack of time)"
    return f"{text}:"


def leaderboard_grid(result: Result) -> Grid:
    """Return one line for each learner that was scored, the best first."""
    is_sampled = result.n_first < result.n_rows
    numbers = (result.task.measure, *(["rows"] if is_sampled else []), "time")
    grid = bare_grid("", "learner", *numbers, right=numbers)
    decimals = 2 if any(NEARLY_PERFECT <= trial.mean < 1 for trial in result.trials) else 1
    for trial in (trial for trial in result.trials if trial.is_scored):
        is_taken = trial is result.chosen
        style = "bold" if is_taken else ""
        title = Text(trial.title, style=style)
        mean = result.task.number(trial.mean, decimals).removesuffix(" %")
        score = Text(f"{mean} ± {result.task.spread(trial.error, decimals)}", style=style)
        rows = [f"{trial.n_rows:,}"] if is_sampled else []
        grid.add_row("→" if is_taken else "", title, score, *rows, in_short(trial.seconds))
    return grid


def notes_of(result: Result) -> list[str]:
    """Return the notes on candidates that were not scored on everything, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in (trial for trial in result.trials if trial.note):
        name = trial.candidate.titled({}) if not trial.is_scored else trial.title
        verdict = "" if trial.is_scored else "not scored: " if trial.seconds else "not tried: "
        reasons.setdefault(verdict + trial.note.rstrip("."), []).append(name)
    return [f"{', '.join(titles)}: {reason}" for reason, titles in reasons.items()]


def choice_words(chosen: Chosen) -> str:
    result, trial = chosen.result, chosen.trial
    best = result.best
    if trial is None or best is None:
        return "No learner could be scored, so the simplest is chosen."
    others = [other for other in result.rivals if other is not best]
    simpler = [other for other in others if other.candidate.complexity < best.candidate.complexity]
    if trial is not best:
        return (
            f"Chosen: {trial.title}. It is the simplest within one standard error of the best, {best.title} "
            f"(--prefer simple)."
        )
    ties = [other for other in others if abs(other.mean - best.mean) < best.resolution]
    scored = [other for other in result.trials if other.is_scored]
    why = "its score is the best"
    if len(scored) == 1:
        why = "no other learner was scored"
    elif ties:
        top = max(other.mean for other in ties)
        if result.task.named(top) == result.task.named(best.mean):
            why = "it is the simplest of those with the best score"
        elif top > best.mean:
            is_share = result.task.metric.is_share
            within = f"{100 * best.resolution:.1g} points" if is_share else f"{best.resolution:.1g}"
            why = f"its score equals the best ({result.task.named(top)}) to within {within}, and it is simpler"
    elif not others:
        why = "its score is the best, by more than one standard error"
    hint = ""
    slower = max((t for t in scored if t.is_too_slow), key=lambda t: t.mean, default=None)
    if slower is not None and not best.is_too_slow and slower.mean > best.mean:
        why = "its score is the best that the budget allows"
        hint = f" A larger --budget would allow {slower.title}, whose score is better."
    elif simpler and not ties:
        first = min(simpler, key=lambda other: other.candidate.complexity)
        hint = f" Simpler and within one standard error: {first.title} (--prefer simple)."
    n_done = len(trial.scores)
    folds = f" (on {n_done} of {result.n_folds} folds)" if n_done < result.n_folds else ""
    return f"Chosen: {trial.title}, because {why}{folds}.{hint}"


def picks_words(chosen: Chosen) -> list[Text]:
    """Return in a line what the rounds chose, if they differ."""
    if len(set(chosen.picks)) < 2:
        return []
    picks = ", ".join(f"{pick} ({n})" if n > 1 else pick for pick, n in Counter(chosen.picks).most_common())
    return [Text(f"chosen in the rounds: {picks}", style="dim")]


def tell_curve(screen: Screen, task: Task, points: list[Point]) -> None:
    """Print whether more rows would help, judging by the learning curve."""
    if points:
        shown = ", ".join(f"{point.rows:,} rows {task.value_text(point.score)}" for point in points)
        screen.say(f"Learning curve: {shown}; {verdict_on_rows(points)}.", indent=2)


def tell_search_space(screen: Screen, space: SearchSpace, seconds: float, n_rows: int) -> None:
    """Print, before it begins, the parameters that are searched and the time."""
    names, most = " and ".join(space.names), space.most_rows
    sample = f", on a sample of {most:,} rows{space.task.sampled}" if n_rows > most else ""
    screen.say(
        f"Searching {names} by {space.task.for_search.measure} for at most {in_short(seconds)} (--budget){sample}",
        indent=2,
    )


def tell_search(screen: Screen, found: SearchResult, *, is_interrupted: bool) -> None:
    """Print the grid, how much of it was scored, the best cell beside the runner-up, and where it lies."""
    screen.heading(f"Search for {' and '.join(found.names)}" if found.names else "Search")
    if is_interrupted:
        screen.say("Interrupted: the best cell so far is kept and fitted.", style="yellow", indent=2)
    if found.why_not:
        screen.say(f"Not searched: {found.why_not}.", indent=2)
        return
    rows = f"{found.n_rows:,} rows" + ("" if found.n_rows == found.of_rows else f" drawn from {found.of_rows:,}")
    n_cells, n_scored = len(found.cells), len(found.scored)
    grid = []
    for name, values in ((name, found.values_of(name)) for name in ("C", "gamma")):
        if len(values) > 1:
            grid.append(f"{name} {in_digits(values[0])} … {in_digits(values[-1])} ({len(values)} values)")
        elif values:
            grid.append(f"{name} {in_digits(values[0])}")
    screen.say(f"{counted(n_cells, 'cell')}, each scored on {found.folds} folds of {rows}: {', '.join(grid)}", indent=2)
    best, second = found.best, found.runner_up
    if n_scored < n_cells:
        cure = "" if found.status is Status.INTERRUPTED else "; a larger --budget allows more"
        screen.say(f"{n_scored:,} of them were scored in {in_short(found.seconds)}{cure}", indent=2)
    if best is None:
        verb = "keeps its default value" if len(found.names) == 1 else "keep their default values"
        screen.say(f"{' and '.join(found.names)} {verb}.", indent=2)
        return
    if found.widened:
        text = f"The best was at the edge ({' and '.join(found.widened)}), so the grid was widened there once"
        screen.say(f"{text}, by {found.n_added:,} of these cells.", indent=2)
    width = len("runner-up") + 2
    named, is_close = (
        found.task.named,
        second is not None and found.task.named(second.score) == found.task.named(best.score),
    )
    decimals = 2 if is_close else 1  # a difference that one decimal would hide
    line = Text.assemble("best".ljust(width), (f"{best.words}: {named(best.score, decimals)}", "bold"))
    n_others = len(found.tops) - 1
    if n_others:
        line.append(f"  (tied with {counted(n_others, 'other')})")
    screen.say(line, indent=2)
    if second is not None:
        screen.say(f"{'runner-up'.ljust(width)}{second.words}: {named(second.score, decimals)}", indent=2)
    if found.edges:
        still = "is still" if found.widened else "is"
        why = "" if found.widened or found.status is not Status.CONVERGED else "; the budget left no time to widen it"
        screen.say(f"The best {still} at the edge of the grid ({' and '.join(found.edges)}){why}.", indent=2)
    text = "These scores were used to choose the cell, so they are too optimistic"
    screen.say(f"{text}; the {found.task.not_below}.", indent=2)


def search_words(found: SearchResult) -> str:
    best = found.best
    if best is None:
        return "nothing searched" if found.why_not else "no cell scored in time"
    return f"{best.words}, the best of {len(found.scored):,} cells"
