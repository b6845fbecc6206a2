"""What the suite of the engines knows of one problem type, and the tables that the problems are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.engine.registry import Engine
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.status import Status


def _solve(engine: Engine, problem: Any, effort: Effort) -> Any:
    return engine.solve(problem, effort)


@dataclass(frozen=True)
class Twins:
    """Two ways to state one problem: rows with whole weights, and each row as often as its weight says.

    ``values`` returns what both solutions have in common, as arrays.
    """

    weighted: Problem[Any]
    repeated: Problem[Any]
    values: Callable[[Any], dict[str, Any]]
    rtol: float


@dataclass(frozen=True)
class Learner:
    """An estimator whose fit solves a problem of the type: `fit` trains it, `certify` returns its certificate."""

    fit: Callable[[str], Any]  # takes the engine
    certify: Callable[[Any], Any]


@dataclass(frozen=True)
class Kind:
    """One problem type.

    Attributes
    ----------
    problem : type
    cases : dict
        Functions that make small problems, the same each time.
    check : callable
        ``check(problem, solution)`` raises unless the solution is right, judged by NumPy alone. A solution that did
        not converge need not be optimal, but it must be feasible and its numbers must be its own.
    compare : callable
        ``compare(problem, solution, expected)`` raises unless both agree in all that is unique.
    statuses : callable
        Returns the status of every part of a solution.
    solve : callable
        ``solve(engine, problem, effort)`` returns the solution; other than `Engine.solve` where parts are handed over.
    oracle : callable
        Returns the problem that the reference solves instead, or None if there is none.
    long : callable or None
        Makes a problem that takes many seconds; None for what is computed in one go.
    check_stopped : callable or None
        What is checked of the long problem when it was stopped; None is ``check``.
    large : callable or None
        Makes a problem of enough rows for several threads and slices, solved in about a second.
    cut : callable or None
        Returns the problem with one step allowed, which some machine of ``cut_case`` needs more than.
    resume : callable or None
        ``resume(problem, solution)`` returns the problem that begins where the solution ended.
    twins : callable or None
    learners : dict
    """

    problem: type[Problem[Any]]
    cases: dict[str, Callable[[], Any]]
    check: Callable[[Any, Any], None]
    compare: Callable[[Any, Any, Any], None]
    statuses: Callable[[Any], list[Status]]
    solve: Callable[[Engine, Any, Effort], Any] = _solve
    oracle: Callable[[Any], Any] = lambda problem: problem
    long: Callable[[], Any] | None = None
    check_stopped: Callable[[Any, Any], None] | None = None
    large: Callable[[], Any] | None = None
    cut: Callable[[Any], Any] | None = None
    cut_case: str = "weighted"
    resume: Callable[[Any, Any], Any] | None = None
    twins: Callable[[], Twins] | None = None
    learners: dict[str, Learner] | None = None


@dataclass(frozen=True)
class Table:
    """Rows with every kind of target."""

    X: Any  # (n, d)
    codes: np.ndarray  # (n,), classes 0, 1, 2
    sign: np.ndarray  # (n,), ±1
    z: np.ndarray  # (n,), numbers
    weight: np.ndarray  # (n,), > 0

    @property
    def n(self) -> int:
        return len(self.z)

    def first(self, n: int) -> Table:
        """The first rows alone."""
        return Table(self.X[:n], self.codes[:n], self.sign[:n], self.z[:n], self.weight[:n])


def table(seed: int, n: int, d: int) -> Table:
    """Targets that columns tell in part, of the weight 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return _with_targets(rng, X)


def _with_targets(rng: np.random.Generator, X: Any) -> Table:
    n = X.shape[0]
    dense = X.toarray() if sp.issparse(X) else X.astype(np.float64)
    score = dense[:, 0] + dense[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    codes = np.searchsorted(np.quantile(score, [1 / 3, 2 / 3]), score).astype(np.int32)
    sign = np.where(score > np.median(score), 1, -1).astype(np.int8)
    return Table(X, codes, sign, score, np.ones(n))


def _dense() -> Table:
    return table(1, 40, 3)


def _weighted() -> Table:
    plain = table(2, 40, 3)
    return Table(plain.X, plain.codes, plain.sign, plain.z, np.random.default_rng(2).uniform(0.3, 3, 40))


def _single() -> Table:
    plain = table(3, 40, 3)
    return Table(plain.X.astype(np.float32), plain.codes, plain.sign, plain.z, plain.weight)


def _sparse() -> Table:
    rng = np.random.default_rng(4)
    return _with_targets(rng, sp.csr_matrix(rng.normal(size=(50, 10)) * (rng.random((50, 10)) < 0.4)))


def _wide() -> Table:
    return table(5, 15, 40)


def _ugly() -> Table:
    """Duplicate rows with contradictory targets, ties, a constant column, a row of zeros."""
    rng = np.random.default_rng(6)
    X = rng.integers(-1, 2, size=(36, 4)).astype(np.float64)
    X[:, 3] = 2.0
    X[7] = X[8] = X[9]
    X[0] = 0.0
    codes = rng.integers(0, 3, size=36).astype(np.int32)
    codes[:3] = [0, 1, 2]
    sign = np.where(rng.random(36) < 0.4, 1, -1).astype(np.int8)
    sign[:2] = [1, -1]
    return Table(X, codes, sign, rng.integers(-2, 3, size=36).astype(np.float64), rng.integers(1, 4, 36).astype(float))


TABLES: dict[str, Callable[[], Table]] = {
    "dense": _dense,
    "weighted": _weighted,
    "single": _single,
    "sparse": _sparse,
    "wide": _wide,
    "ugly": _ugly,
}


def whole_weights(seed: int, n: int = 30, d: int = 3) -> tuple[Table, np.ndarray]:
    """A table, and how often each row counts."""
    return table(seed, n, d), np.random.default_rng(seed).integers(1, 4, size=n)


def dense(X: Any) -> np.ndarray:
    """X as an array of float64."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def assert_same(one: Any, other: Any, where: str = "solution") -> None:
    """Raise unless two solutions are the same to the last bit, but for the seconds they took."""
    assert type(one) is type(other), where
    if is_dataclass(one):
        for part in fields(one):
            if part.name != "seconds":
                assert_same(getattr(one, part.name), getattr(other, part.name), f"{where}.{part.name}")
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, theirs, f"{where}[{number}]")
    elif isinstance(one, dict):
        assert sorted(one) == sorted(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    else:
        np.testing.assert_array_equal(one, other, err_msg=where)
