"""``margrove compare --schemes``: one learner, its own way with many classes, and the ways to make many of its two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from margrove.app.compare import Contender, Judged, grid_of, judge
from margrove.app.estimate.classes import CLASSES, decimals_of
from margrove.app.models import learner_of
from margrove.app.options.menu import Choice
from margrove.app.options.preparation import AS_USUAL, Preparation, table_for
from margrove.app.options.table import Reading, facts_of, tell_facts
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Meter, metered
from margrove.errors import InputError, MargroveError
from margrove.multiclass.classifiers import BitStringClassifier, OneVsOneClassifier, OneVsRestClassifier
from margrove.multiclass.codes import code_for, most_bits

MORE_BITS = 15  # of the code that is drawn
MOST_EXHAUSTIVE_HERE = 7  # classes: 63 machines
_NO_FACTS = {"machines": 0, "min_distance": None, "errors_corrected": None}


def schemes_for(classes: NDArray[Any], seed: int) -> dict[str, Any]:
    """One-vs-rest, one-vs-one, and the bit strings that are different for so many classes: each by its name, without
    its estimator."""
    found: dict[str, Any] = {"one-vs-rest": OneVsRestClassifier(), "one-vs-one": OneVsOneClassifier()}
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
            found[f"{code.shape[1]}-bit{word}"] = BitStringClassifier(code=code)
    return found


def compare_schemes(
    screen: Screen,
    reading: Reading,
    learner: Choice,
    *,
    folds: int,
    seed: int,
    time_limit: float | None,
    preparation: Preparation = AS_USUAL,
) -> None:
    """Cross-validate, fit and certify one learner by itself and by every scheme, on the same folds."""
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
    schemes = {f"{learner.name} itself": None, **schemes_for(classes, seed)}
    base, taken = learner.estimator({}, seed=seed, time_limit=time_limit), table_for(learner, table)
    prepared = preparation.for_table(learner, table)

    def contend(name: str, scheme: Any, meter: Meter) -> Contender:
        def make() -> Any:
            own = clone(base)
            return prepared.in_front_of(learner, own if scheme is None else clone(scheme).set_params(estimator=own))

        try:
            return _contender(name, judge(CLASSES, make, taken, rounds, meter, name))
        except (MargroveError, MemoryError) as error:  # told in the table: the others may still do
            return Contender(name, facts=_NO_FACTS, failure=error_in_shell(error) or type(error).__name__)

    with metered(screen, "comparing", total=len(schemes) * (len(rounds.tests) + 1)) as meter:
        contenders = [contend(name, scheme, meter) for name, scheme in schemes.items()]
    screen.say()
    best = best_of(contenders)
    screen.essential(grid_of("scheme", ["machines", "distance", *CLASSES.columns], [], contenders, best, _cells))
    if best is not None and best.estimate is not None:
        screen.say()
        whose = f" of {learner.name}" if best.facts["min_distance"] is not None else ""
        estimate = f"{CLASSES.words(best.estimate)}{CLASSES.baseline_words(best.estimate)}"
        screen.essential(f"Best: {best.name}{whose}, {estimate}.")
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learner": learner.name,
            "schemes": [{"scheme": contender.name, **contender.to_dict()} for contender in contenders],
            "best": None if best is None else best.name,
        }
    )


def best_of(contenders: Sequence[Contender]) -> Contender | None:
    """Return the highest mean accuracy; of equals the one with the fewest machines, of these the first."""
    scored = [(CLASSES.rank(c.estimate), -c.facts["machines"], c) for c in contenders if c.estimate is not None]
    return max(scored, key=lambda entry: entry[:2], default=(None,))[-1]


def _contender(name: str, judged: Judged) -> Contender:
    """The code's distance and the errors that it corrects are not there of a learner by itself."""
    fitted = learner_of(judged.model)
    code = {fact: getattr(fitted, f"{fact}_", None) for fact in ("min_distance", "errors_corrected")}
    return Contender(name, judged, {"machines": len(judged.certificate.machines), **code})


def _cells(contender: Contender, judged: Judged) -> tuple[list[str], list[str]]:
    distance = contender.facts["min_distance"]
    accuracy = CLASSES.cells(judged.estimate, decimals_of(judged.estimate))
    return [f"{contender.facts['machines']:,}", "-" if distance is None else f"{distance:g}", *accuracy], []
