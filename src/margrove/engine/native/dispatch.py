"""One call for every problem; each family registers how the core solves its own."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from margrove.engine import Effort
from margrove.errors import EngineError


@singledispatch
def solve(problem: Any, effort: Effort) -> Any:
    """Solve ``problem`` in the core."""
    raise EngineError(f"engine='native' cannot solve a {type(problem).__name__}.")
