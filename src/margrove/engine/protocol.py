"""The engine protocol: an engine solves problems and evaluates models."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.data.memory import free_memory
from margrove.data.rows import Home
from margrove.errors import EngineError
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.svm.kernels import Kernel, Matrix, sums_by_blocks

if TYPE_CHECKING:
    from margrove.boost.model import BoostModel
    from margrove.tree.model import TreeModel
    from margrove.tree.problem import Cells

S = TypeVar("S")
P = TypeVar("P", bound=Problem[Any])
E = TypeVar("E")
F = TypeVar("F", bound=Callable[..., Any])


class Capability(Enum):
    """What an engine can do beyond solving a problem in memory from beginning to end."""

    TIME_LIMIT = auto()  # stop at `Effort.time_limit`
    CHECKPOINT = auto()  # call `Effort.look_around` between slices of a dual, a path or a search
    CHUNKED = auto()  # read rows that come in chunks
    PARTITIONED = auto()  # leave rows where they are, in partitions on workers


# How an engine that lacks a capability is refused; ``capability: (what it lacks, what to leave out)``.
_LACKS = {
    Capability.TIME_LIMIT: ("keeps no clock", "time_limit"),
    Capability.CHECKPOINT: ("writes no checkpoint", "checkpoint"),
}

# What an engine needs to read rows that are not in memory.
_READS = {Home.CHUNKS: Capability.CHUNKED, Home.PARTITIONS: Capability.PARTITIONED}

_MOST_CACHE = 4 << 30  # bytes: default upper limit of the kernel cache
_SMALL_CACHE = 1 << 26  # bytes: assumed to be free; a query takes about a millisecond


@runtime_checkable
class Engine(Protocol):
    """Where problems are solved and models evaluated.

    An engine is made of plain values, so that `sklearn.base.clone` and pickle copy it, and two of the same values are
    equal.
    """

    @property
    def name(self) -> str:
        """The name that a model keeps as ``engine_``."""
        ...

    @property
    def can(self) -> frozenset[Capability]:
        """The engine's capabilities."""
        ...

    def solves(self, problem: Problem[Any]) -> bool:
        """Return whether the engine is present and can solve this problem."""
        ...

    def seconds(self, problem: Problem[Any]) -> float:
        """Estimate how long the solve takes. Only ``engine="auto"`` asks, to compare engines."""
        ...

    def plan(self, problem: Problem[Any]) -> str:
        """Return how the problem will be solved, in a line for a verbose fit, or nothing if there is only one way."""
        ...

    def solve(self, problem: Problem[S], effort: Effort) -> S:
        """Solve the problem."""
        ...

    def kernel_sums(
        self, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64], effort: Effort
    ) -> NDArray[np.float64]:
        """Return Σ_j β_mj K(x_i, s_j), shape (points, rows of ``beta``)."""
        ...

    def apply_trees(self, tree: TreeModel, cells: Cells, effort: Effort) -> NDArray[np.int32]:
        """Return the leaf that each row reaches, shape (n,)."""
        ...

    def sum_votes(self, model: BoostModel, cells: Cells, effort: Effort) -> NDArray[np.float64]:
        """Return the sum of the trees' votes for each class, shape (n, K)."""
        ...

    def memory(self) -> int:
        """Return the bytes that are free where the engine works."""
        ...


Solver = Callable[[E, P, Effort], Any]
_solvers: dict[str, dict[type[Problem[Any]], Callable[..., Any]]] = {}
_derived: dict[type[Problem[Any]], tuple[type[Problem[Any]], Callable[..., Any]]] = {}


def register(engine: str | Engine, problem: type[P]) -> Callable[[Solver[E, P]], Solver[E, P]]:
    """Return a decorator that makes a function the solver of a problem type on one engine.

    The function takes the engine, the problem and the effort, and returns the solution. A subclass of the problem is
    solved by the same function unless it has one of its own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from margrove.engine import Effort, choose, register
    >>> from margrove.problem import Problem
    >>> @dataclass(frozen=True)
    ... class Mean(Problem[float]):
    ...     values: tuple[float, ...]
    >>> @register("reference", Mean)
    ... def mean(engine, problem, effort):
    ...     return sum(problem.values) / len(problem.values)
    >>> asked = Mean((1.0, 2.0, 6.0))
    >>> choose("auto", asked).solve(asked, Effort())
    3.0
    """

    own = _solvers.setdefault(engine if isinstance(engine, str) else engine.name, {})

    def keep(solver: Solver[E, P]) -> Solver[E, P]:
        if problem not in own or not solver.__module__.startswith("margrove.engine."):
            own[problem] = solver  # a user's solver is not replaced when Margrove's own is loaded later
        return solver

    return keep


def derive(problem: type[Problem[Any]], by: type[Problem[Any]]) -> Callable[[F], F]:
    """Return a decorator that makes a function the solver of a problem type on every engine that solves another type,
    ``by``, and has none of its own for this one."""

    def keep(solver: F) -> F:
        _derived[problem] = by, solver
        return solver

    return keep


def needs(effort: Effort) -> frozenset[Capability]:
    """Return the capabilities that an effort asks for."""
    wanted = {Capability.TIME_LIMIT: effort.time_limit, Capability.CHECKPOINT: effort.look_around}
    return frozenset(capability for capability, value in wanted.items() if value is not None)


def check_capability(engine: Engine, capability: Capability) -> None:
    """Raise `EngineError` if the engine lacks the capability."""
    if capability not in engine.can:
        name = capability.name.lower()
        lack, parameter = _LACKS.get(capability, (f"lacks the capability {name}", "it"))
        words = f" {lack}. Leave {parameter} out, or use "
        raise EngineError(Advice(Setting("engine", engine.name), words, Setting("engine", "native"), "."))


def cannot_solve(engine: Engine, problem: Problem[Any]) -> EngineError:
    """Return the error about an engine without a solver for a problem."""
    words = f" cannot solve a {type(problem).__name__}. Use "
    return EngineError(Advice(Setting("engine", engine.name), words, Setting("engine", "auto"), "."))


def cache_bytes(engine: Engine, asked: int | None, needed: int) -> int:
    """Return the bytes for kernel values: those asked for, or half of what is free, at most 4 GiB. If few are needed,
    the free memory is not queried."""
    if asked is not None:
        return asked
    return _SMALL_CACHE if needed <= _SMALL_CACHE else min(engine.memory() // 2, _MOST_CACHE)


class BaseEngine:
    """An engine whose solvers are registered, and which evaluates models in NumPy unless a subclass overrides it."""

    name: ClassVar[str]
    can: ClassVar[frozenset[Capability]] = frozenset()

    def _solver(self, problem: Problem[Any]) -> Callable[..., Any] | None:
        home = getattr(getattr(problem, "rows", None), "home", Home.MEMORY)
        if home in _READS and _READS[home] not in self.can:
            return None
        own = _solvers.get(self.name, {})
        for kind in type(problem).__mro__:
            if kind in own:
                return own[kind]
            if kind in _derived and _derived[kind][0] in own:
                return _derived[kind][1]
        return None

    def solves(self, problem: Problem[Any]) -> bool:
        """Return whether a solver is registered for this type of problem, and the engine can read its rows."""
        return self._solver(problem) is not None

    def seconds(self, problem: Problem[Any]) -> float:
        """Return 1: no estimate."""
        return 1.0

    def plan(self, problem: Problem[Any]) -> str:
        """Return nothing: there is one way to solve each problem."""
        return ""

    def solve(self, problem: Problem[S], effort: Effort) -> S:
        """Solve the problem by the solver registered for its type."""
        solver = self._solver(problem)
        if solver is None:
            raise cannot_solve(self, problem)
        for capability in needs(effort):
            check_capability(self, capability)
        solution: S = solver(self, problem, effort)
        return solution

    def kernel_sums(
        self, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64], effort: Effort
    ) -> NDArray[np.float64]:
        """Return Σ_j β_mj K(x_i, s_j), shape (points, rows of ``beta``), computed in NumPy by blocks of rows."""
        return sums_by_blocks(kernel, points, support, beta)

    def apply_trees(self, tree: TreeModel, cells: Cells, effort: Effort) -> NDArray[np.int32]:
        """Return the leaf that each row reaches, shape (n,)."""
        return tree.apply(cells)

    def sum_votes(self, model: BoostModel, cells: Cells, effort: Effort) -> NDArray[np.float64]:
        """Return the sum of the trees' votes for each class, shape (n, K)."""
        votes = np.zeros((cells.n_rows, model.n_classes))
        for t in range(model.grove.n_trees):
            tree = model.grove.tree(t)
            label = np.argmax(tree.value, axis=1)[self.apply_trees(tree, cells, effort)]
            votes[np.arange(cells.n_rows), label] += model.vote[t]
        return votes

    def memory(self) -> int:
        """Return the bytes of main memory that are free."""
        return free_memory()
