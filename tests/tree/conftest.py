"""Tables and problems that the tests of the trees share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem


def _problem_of(
    columns: dict[str, Any], target: Any, weight: Any = None, tests: dict[str, Any] | None = None, **growth: Any
) -> TreeProblem:
    """Lists of strings (None: missing) become categories, tested as ``tests`` says (a name, or cut points, or +1 or −1
    for a monotone number); lists of numbers thresholds; a target of strings becomes classes."""
    tests = tests or {}
    described, values = [], []
    for name, cells in columns.items():
        asked = tests.get(name)
        if any(isinstance(cell, str) for cell in cells):
            levels = tuple(sorted({cell for cell in cells if cell is not None}))
            described.append(TreeColumn(name, asked or "multiway", levels))
            values.append(np.array([-1 if cell is None else levels.index(cell) for cell in cells], dtype=np.int32))
        else:
            cuts = asked if isinstance(asked, tuple) else ()
            monotone = asked if isinstance(asked, int) else 0
            described.append(TreeColumn(name, "intervals" if cuts else "threshold", cuts=cuts, monotone=monotone))
            values.append(np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64))
    target = np.asarray(target)
    n_classes = 0
    if target.dtype.kind != "f":
        classes, target = np.unique(target, return_inverse=True)
        target, n_classes = target.astype(np.int32), len(classes)
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    growth.setdefault("criterion", "gini" if n_classes else "squared_error")
    return TreeProblem(Cells(tuple(described), len(target), tuple(values)), target, n_classes, weight, Growth(**growth))


@pytest.fixture(scope="session")
def problem_of() -> Callable[..., TreeProblem]:
    return _problem_of


def _ugly_column(rng: np.random.Generator, name: str, n: int) -> tuple[TreeColumn, np.ndarray]:
    """Ties, constants, missing cells, tiny and huge numbers; categories of one to six levels; intervals."""
    kind = rng.integers(0, 7)
    is_missing = rng.random(n) < rng.choice([0.0, 0.0, 0.2, 0.6, 1.0])
    if kind < 4:
        scale = rng.choice([1e-9, 1.0, 1e9])
        offset = rng.choice([0.0, 1e6])
        pool = [rng.normal(size=n), rng.integers(0, 4, n), np.zeros(n), rng.integers(0, 2, n)][kind]
        values = (offset + scale * pool).astype(rng.choice([np.float32, np.float64]))
        values[is_missing] = np.nan
        return TreeColumn(name), values
    if kind == 4:
        values = rng.integers(-1, 7, n).astype(np.float64)
        values[is_missing] = np.nan
        return TreeColumn(name, "intervals", cuts=(1.0, 3.0, 5.0)), values
    levels = tuple("abcdef"[: rng.integers(1, 7)])
    codes = rng.integers(0, len(levels), n).astype(np.int32)
    codes[is_missing] = -1
    return TreeColumn(name, str(rng.choice(["multiway", "subset", "one_vs_rest"])), levels), codes  # type: ignore[arg-type]


def _ugly_problem(number: int, criterion: str, max_rows: int = 24, **growth: Any) -> TreeProblem:
    """Any table at all, the same for the same number."""
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(1, max_rows + 1)), int(rng.integers(1, 4))
    columns, values = zip(*(_ugly_column(rng, f"c{j}", n) for j in range(d)), strict=True)
    if criterion in ("squared_error", "gaussian_entropy", "absolute_error"):
        target: Any = rng.choice([0.0, 1e5]) + rng.choice([rng.normal(size=n), rng.integers(0, 3, n)])
        n_classes = 0
    else:
        n_classes = int(rng.integers(1, 5))
        target = rng.integers(0, n_classes, n).astype(np.int32)
    weight = [None, rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 3, n)][rng.integers(0, 3)]
    return TreeProblem(Cells(columns, n, values), target, n_classes, weight, Growth(criterion, **growth))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def ugly_problem() -> Callable[..., TreeProblem]:
    return _ugly_problem


@pytest.fixture(scope="session")
def outings() -> dict[str, list[Any]]:
    """Fourteen days, and whether people went out to play: two classes, four categories."""
    text = """
        clear    warm  damp  still  stay
        clear    warm  damp  windy  stay
        cloudy   warm  damp  still  go
        wet      mild  damp  still  go
        wet      cool  dry   still  go
        wet      cool  dry   windy  stay
        cloudy   cool  dry   windy  go
        clear    mild  damp  still  stay
        clear    cool  dry   still  go
        wet      mild  dry   still  go
        clear    mild  dry   windy  go
        cloudy   mild  damp  windy  go
        cloudy   warm  dry   still  go
        wet      mild  damp  windy  stay
    """
    rows = [line.split() for line in text.strip().splitlines()]
    return dict(zip(["sky", "air", "ground", "wind", "out"], map(list, zip(*rows, strict=True)), strict=True))


@pytest.fixture(scope="session")
def tables_for_two() -> dict[str, list[Any]]:
    """Twelve evenings before a full or empty eating house, and whether the guests waited."""
    text = """
        some  no   soup    20  wait
        full  yes  curry   45  leave
        some  no   grill   15  wait
        full  yes  curry   25  wait
        full  no   soup    60  leave
        some  yes  pasta   20  wait
        none  no   grill   10  leave
        some  yes  curry   30  wait
        full  no   grill   50  leave
        full  yes  pasta   55  leave
        none  no   curry   12  leave
        full  yes  grill   28  wait
    """
    rows: list[list[Any]] = [line.split() for line in text.strip().splitlines()]
    for row in rows:
        row[3] = float(row[3])
    return dict(zip(["guests", "hungry", "dish", "minutes", "answer"], map(list, zip(*rows, strict=True)), strict=True))
