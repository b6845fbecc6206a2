"""The type of a problem: what is asked, as data. An engine solves a ``Problem[S]`` into a solution of type ``S``."""

from __future__ import annotations

from typing import Generic, TypeVar

S = TypeVar("S", covariant=True)


class Problem(Generic[S]):
    """Base class of all problems. A subclass is a frozen dataclass whose module states the formula."""
