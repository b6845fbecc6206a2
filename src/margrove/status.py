"""Why a solve ended. `stalled` is not `converged`, and neither is anything else but `converged`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


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

    @property
    def advice(self) -> str:
        """What a user can do about it."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "nothing to do",
    Status.TIME_LIMIT: "raise time_limit, or accept the model as it is",
    Status.MAX_ITER: "raise max_iter, or accept the model as it is",
    Status.INTERRUPTED: "fit again, or accept the model as it is",
    Status.STALLED: "no further progress was possible: check the scale of the columns",
    Status.NONFINITE: "numbers overflowed: check the scale of the columns",
}


def worst(statuses: Iterable[Status]) -> Status:
    """Several machines have converged only if each has; otherwise the first that has not speaks for all."""
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)
