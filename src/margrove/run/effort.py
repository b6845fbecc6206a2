"""How much a solve may cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from margrove.errors import ParameterError, check_number, check_whole


@dataclass(frozen=True)
class Effort:
    """How much a solve may cost, and who is called while it runs."""

    time_limit: float | None = None  # seconds
    n_jobs: int | None = None  # threads; None means all
    # Called between slices with a function that returns the present state without disturbing the solve: α of each
    # machine, for duals. A search passes a function that returns None: its units are handed over as they end.
    look_around: Callable[[Callable[[], Any]], None] | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not (isinstance(self.time_limit, float) and self.time_limit == math.inf):
            check_number("time_limit", self.time_limit, above=0, cure="It is in seconds; None is no limit.")
        if self.n_jobs is not None:
            check_whole("n_jobs", self.n_jobs, least=-(2**31), cure="-1 means all threads, as does None.")
        if self.n_jobs == 0:
            raise ParameterError("n_jobs is 0; it must be a number of threads, -1 for all of them, or None.")
