"""Where a problem is solved. The same call and the same answer on every engine; what ran is said by name.

============  =====================================================================
native        the C++ core: several threads, GIL released, in slices of time
reference     ``reference.py`` of the family: plain NumPy, for checking and for learning
auto          the fastest that is here (today always native)
============  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from margrove.errors import EngineError, ParameterError, check_choice, check_number, check_whole

ENGINES = ("auto", "native", "reference")
_ANNOUNCED = {"gpu": "the GPU engine", "dask": "the Dask engine"}


@dataclass(frozen=True)
class Effort:
    """How much a solve may cost."""

    time_limit: float | None = None  # seconds
    n_jobs: int | None = None  # threads; None means all
    # Called between slices, with what gives the state of that moment without a trace on the solve: α of each machine,
    # for duals. A search has nothing to say: its units are handed over as they end.
    look_around: Callable[[Callable[[], Any]], None] | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not (isinstance(self.time_limit, float) and self.time_limit == math.inf):
            check_number("time_limit", self.time_limit, above=0, cure="It is in seconds; None is no limit.")
        if self.n_jobs is not None:
            check_whole("n_jobs", self.n_jobs, least=-(2**31), cure="-1 means all threads, as does None.")
        if self.n_jobs == 0:
            raise ParameterError("n_jobs is 0; it must be a number of threads, -1 for all of them, or None.")


def settle_engine(name: str) -> str:
    """The engine that will run, by name."""
    if isinstance(name, str) and name in _ANNOUNCED:
        raise EngineError(f"engine={name!r}: {_ANNOUNCED[name]} is not part of this version. Use 'auto' or 'native'.")
    check_choice("engine", name, ENGINES)
    return "native" if name == "auto" else name


def solve(problem: Any, engine: str, effort: Effort | None = None) -> Any:
    """Solve ``problem`` on ``engine`` (a name that `settle_engine` gave)."""
    if engine == "reference":
        from margrove.engine.reference import solve as solve_by_reference

        return solve_by_reference(problem, effort or Effort())
    from margrove.engine.native import solve as solve_natively

    return solve_natively(problem, effort or Effort())
