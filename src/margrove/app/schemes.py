"""``margrove compare --schemes``: one learner, its own way with many classes, and the ways to make many of its two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table as Grid
from rich.text import Text
from sklearn.base import clone

from margrove.app.compare import NOT_JUDGED, Judged, failed_cells, judge, new_grid
from margrove.app.estimate.classes import CLASSES, decimals_of
from margrove.app.estimate.task import Folds
from margrove.app.models import learner_of
from margrove.app.options.menu import Learner
from margrove.app.options.preparation import AS_USUAL, Preparation, table_for
from margrove.app.options.table import Reading, facts_of, tell_facts
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Meter, metered
from margrove.data import Table
from margrove.errors import InputError, MargroveError
from margrove.multiclass.bit_string import BitStringClassifier
from margrove.multiclass.codes import code_for, most_bits
from margrove.multiclass.one_vs_one import OneVsOneClassifier
from margrove.multiclass.one_vs_rest import OneVsRestClassifier

MORE_BITS = 15  # of the code that is drawn
MOST_EXHAUSTIVE_HERE = 7  # classes: 63 machines


@dataclass(frozen=True)
class Scheme:
    """A way to tell many classes apart."""

    name: str
    unfitted: Any  # without its estimator; None: the learner's own way


@dataclass(frozen=True)
class Showing:
    """How one scheme did, or why it could not."""

    name: str
    judged: Judged | None = None
    n_machines: int = 0
    min_distance: float | None = None  # of the code; the learner by itself has none
    errors_corrected: int | None = None
    failure: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "scheme": self.name,
            **(NOT_JUDGED if self.judged is None else self.judged.to_dict()),
            "machines": self.n_machines,
            "min_distance": self.min_distance,
            "errors_corrected": self.errors_corrected,
            "failure": self.failure,
        }


def schemes_for(classes: NDArray[Any], seed: int) -> list[Scheme]:
    """One-vs-rest, one-vs-one, and the bit strings that are different for so many classes."""
    found = [Scheme("one-vs-rest", OneVsRestClassifier()), Scheme("one-vs-one", OneVsOneClassifier())]
    n_bits = min(MORE_BITS, most_bits(len(classes)))
    codes = {"": code_for("binary", classes), " hadamard": code_for("hadamard", classes)}
    if len(classes) <= MOST_EXHAUSTIVE_HERE:
        codes[" exhaustive"] = code_for("exhaustive", classes)
    codes[" max-min"] = code_for("max_min", classes, n_bits, seed)
    seen = set()
    for word, code in codes.items():
        columns = frozenset((column * column[0]).tobytes() for column in code.T)  # whatever their order and sign
        if columns not in seen:
            seen.add(columns)
            # The matrix itself: a code that has to be drawn is drawn once.
            found.append(Scheme(f"{code.shape[1]}-bit{word}", BitStringClassifier(code=code)))
    return found


def compare_schemes(
    screen: Screen,
    reading: Reading,
    learner: Learner,
    *,
    folds: int,
    seed: int,
    time_limit: float | None,
    preparation: Preparation = AS_USUAL,
) -> None:
    """Cross-validate, fit and certify one learner by itself and by every scheme, on the same folds.

    Raises
    ------
    InputError
        If there are two classes only.
    """
    preparation.check_learner(learner)
    with metered(screen, "reading"):
        table = reading.labelled()
        preparation.check_table(table, reading.without)
        facts = facts_of(table, text=preparation.text)
    classes = np.unique(table.labels())
    if len(classes) < 3:
        raise InputError(
            f"--schemes compares ways to tell many classes apart, and there are {len(classes)}",
            file=table.source,
            cure="Leave --schemes out.",
        )
    tell_facts(screen, facts, reading, gaps="taken as they are" if learner.takes_tables else "filled in")
    rounds = CLASSES.folds(table.labels(), folds, seed)
    schemes = [Scheme(f"{learner.name} itself", None), *schemes_for(classes, seed)]
    base = learner.estimator({}, seed=seed, time_limit=time_limit)
    with metered(screen, "comparing", total=len(schemes) * (len(rounds.tests) + 1)) as meter:
        taken, prepared = table_for(learner, table), preparation.for_table(learner, table)
        showings = [_shown(scheme, learner, base, taken, rounds, meter, prepared) for scheme in schemes]
    screen.say()
    screen.essential(_grid(showings))
    best = best_of(showings)
    if best is not None and best.judged is not None:
        screen.say()
        estimate = best.judged.estimate
        whose = f" of {learner.name}" if best.min_distance is not None else ""
        screen.essential(f"Best: {best.name}{whose}, {CLASSES.words(estimate)}{CLASSES.baseline_words(estimate)}.")
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learner": learner.name,
            "schemes": [showing.to_dict() for showing in showings],
            "best": None if best is None else best.name,
        }
    )


def best_of(showings: list[Showing]) -> Showing | None:
    """The highest mean accuracy; of equals the one with the fewest machines, of these the first."""
    judged = [(each.judged.estimate, each) for each in showings if each.judged is not None]
    scored = [(CLASSES.rank(estimate), -each.n_machines, each) for estimate, each in judged if estimate.rounds]
    return max(scored, key=lambda entry: entry[:2], default=(None,))[-1]


def _shown(
    scheme: Scheme, learner: Learner, base: Any, table: Table, rounds: Folds, meter: Meter, preparation: Preparation
) -> Showing:
    def make() -> Any:
        own = clone(base)
        fitting = own if scheme.unfitted is None else clone(scheme.unfitted).set_params(estimator=own)
        return preparation.in_front_of(learner, fitting)

    try:
        judged = judge(CLASSES, make, table, rounds, meter, scheme.name)
    except (MargroveError, MemoryError) as error:  # told in the table: the others may still do
        return Showing(scheme.name, failure=error_in_shell(error) or type(error).__name__)
    fitted = learner_of(judged.model)
    return Showing(
        scheme.name,
        judged,
        len(judged.certificate.machines),
        getattr(fitted, "min_distance_", None),
        getattr(fitted, "errors_corrected_", None),
    )


def _grid(showings: list[Showing]) -> Grid:
    best = best_of(showings)
    numbers = ["machines", "distance", *CLASSES.columns, "fit"]
    grid = new_grid("scheme", numbers, "certificate")
    for showing in showings:
        judged = showing.judged
        if judged is None:
            grid.add_row(showing.name, *failed_cells(len(numbers), showing.failure))
            continue
        distance = "-" if showing.min_distance is None else f"{showing.min_distance:g}"
        accuracy = CLASSES.cells(judged.estimate, decimals_of(judged.estimate))
        cells = [f"{showing.n_machines:,}", distance, *accuracy, *judged.cells]
        grid.add_row(Text(showing.name), *cells, style="bold" if showing is best else "")
    return grid
