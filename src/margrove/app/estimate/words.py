"""Print estimates."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from margrove.app.estimate.intervals import MAYBE_NO_BETTER, WIDENED
from margrove.app.estimate.task import Estimate
from margrove.app.screen.console import Screen
from margrove.data.columns import some

_PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 8: "eighth", 10: "tenth"}


def tell_estimate(
    screen: Screen,
    estimate: Estimate,
    noun: str = "row",
    *,
    how: str = "",
    remarks: Sequence[str | Text] = (),
    advice: str = "",
) -> None:
    """Print the estimate of what was learned from ``noun``, how it was made, notes and remarks, the baseline, and
    whether it is, or may be, no better than that; ``advice`` is for one no better."""
    task, value, ends = estimate.task, estimate.value, estimate.interval
    screen.heading(task.heading.format(noun))
    if estimate.never:
        screen.warn(never_words(estimate.never, f"unseen {noun}s"))
    if estimate.rounds:
        how = how or how_words(estimate, noun)
        screen.say(Text.assemble((task.words(estimate), "bold"), f"  ({how})"), indent=2)
    for line in (*estimate.notes, *remarks, *task.context(estimate)):
        screen.say(line, indent=2)
    if ends is not None and value is not None and not task.is_number and ends[0] <= estimate.baseline < value:
        screen.say(MAYBE_NO_BETTER, style="yellow", indent=2)
    useless = task.uselessness(estimate, noun)
    if useless:
        screen.say(advice or useless, style="yellow", indent=2)


def never_words(classes: Sequence[str], rows: str = "unseen rows") -> str:
    """Return that a model predicts none of these classes."""
    names, them = some([repr(name) for name in classes], 5), "this class" if len(classes) == 1 else "these classes"
    return f"This model never predicts {names}: it assigns all {rows} of {them} to others."


def how_words(estimate: Estimate, noun: str = "row") -> str:
    n = len(estimate.rounds)
    if estimate.method == "hold-out":
        rows = f"{estimate.n_tested:,} {noun}{'' if estimate.n_tested == 1 else 's'}"
        who = "neither the search nor the fit has seen" if noun == "row" else "the network has not seen"
        return f"a final hold-out of {rows} that {who}"
    how = f"{n}-fold cross-validation: each round trains on the other {noun}s and tests on its own {part_of(n)}"
    if estimate.method == "nested":
        how = f"nested cross-validation, {n} rounds: each searches and trains on the other rows and tests on its own "
        how += part_of(n)
    return f"{how}; {WIDENED}"


def part_of(n_folds: int) -> str:
    """Return what each fold is of the rows."""
    return _PARTS.get(n_folds, f"{n_folds}th part")
