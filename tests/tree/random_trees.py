"""Trees of any shape for property tests: as `by_hand` takes them."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def written_trees(n_classes: int = 3, most_rows: int = 12) -> st.SearchStrategy:
    """Splits of two or three branches over leaves of class counts, none of them empty."""
    counts = st.lists(st.integers(0, most_rows), min_size=n_classes, max_size=n_classes)
    return _of(counts.filter(any))


def written_trees_of_numbers() -> st.SearchStrategy:
    """The same over leaves of target values, with many ties."""
    return _of(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=6))


def _of(leaves: st.SearchStrategy) -> st.SearchStrategy:
    return st.recursive(leaves, lambda below: st.lists(below, min_size=2, max_size=3).map(tuple), max_leaves=12)
