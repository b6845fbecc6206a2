"""The status of a solve: why it ended. Only `converged` means converged."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from margrove.advice import Advice, InPython, Parameter, Part, Setting


class Status(StrEnum):
    """The named reason for stopping, kept in ``model.status_``.

    Examples
    --------
    >>> from margrove.status import Status
    >>> Status.MAX_ITER.advice
    'raise max_iter, or accept the model as it is'
    """

    CONVERGED = "converged"
    TIME_LIMIT = "time_limit"
    MAX_ITER = "max_iter"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    NONFINITE = "nonfinite"
    PERFECT_LEARNER = "perfect_learner"
    NO_BETTER_THAN_CHANCE = "no_better_than_chance"
    BOUND_REACHED = "bound_reached"
    EARLY_STOPPED = "early_stopped"
    IMPORTED = "imported"

    @property
    def advice(self) -> str:
        """Advice to the user."""
        return self.advice_on("model")

    def advice_on(self, result: str = "model", limit: str = "max_iter") -> str:
        """Return advice about a result with this status; ``limit`` is the parameter that limits iterations."""
        if self in _ADVICE:
            return _ADVICE[self]
        cures: dict[Status, Part] = {
            Status.TIME_LIMIT: Advice("raise ", Parameter("time_limit")),
            Status.MAX_ITER: InPython(f"raise {limit}", "train with more: ", Setting(limit, ...)),
            Status.INTERRUPTED: "fit again",
        }
        return Advice(cures[self], f", or accept the {result} as it is")


_ADVICE = {
    Status.CONVERGED: "nothing to do",
    Status.STALLED: "no more progress is possible: check the scale of the columns",
    Status.NONFINITE: "numbers overflowed: check the scale of the columns",
    Status.PERFECT_LEARNER: "one learner classifies every row correctly: use it alone, or boost a weaker one",
    Status.NO_BETTER_THAN_CHANCE: "a further learner would not improve the model: use a stronger one, or fewer rounds",
    Status.BOUND_REACHED: "nothing to do: the bound on the training error is as low as requested",
    Status.EARLY_STOPPED: "nothing to do: further rounds did not help on rows held out",
    Status.IMPORTED: "another program solved it: certify(model, X, y) shows how well",
}


# Boosting that ended by itself, perhaps before all rounds were done.
_ENDED = (
    Status.CONVERGED,
    Status.PERFECT_LEARNER,
    Status.NO_BETTER_THAN_CHANCE,
    Status.BOUND_REACHED,
    Status.EARLY_STOPPED,
)


def of_all(statuses: Iterable[Status]) -> Status:
    """Return the first status of machines that did not end by themselves, ``converged`` if there is none."""
    return worst(status for status in statuses if status not in _ENDED)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the first status that is not ``converged``, or ``converged`` if all are."""
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)
