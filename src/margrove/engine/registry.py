"""Engines and their solvers: the base class, the registry, and the choice of an engine for a problem.

Every folder of `margrove.engine` is an engine: its name is the folder's, and its ``__init__`` defines a class of the
same name, capitalised, whose instances are engines. A folder is imported when its engine is first asked for.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum, auto
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

import margrove.engine
from margrove.advice import Advice, Setting
from margrove.data.lazy import kind_of_collection
from margrove.data.memory import free_memory
from margrove.data.partitions import Partitions
from margrove.data.rows import Home
from margrove.errors import EngineError, MissingExtraError, ParameterError, check_choice, shown
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.svm.kernels import Kernel, Matrix, sums_by_blocks

if TYPE_CHECKING:
    from margrove.boost.model import BoostModel
    from margrove.forest.model import ForestModel
    from margrove.tree.model import TreeModel
    from margrove.tree.problem import Cells

S = TypeVar("S")
P = TypeVar("P", bound=Problem[Any])
E = TypeVar("E")
F = TypeVar("F", bound=Callable[..., Any])


class Capability(Enum):
    """Abilities of an engine beyond solving a problem in memory from beginning to end."""

    TIME_LIMIT = auto()  # stop at `Effort.time_limit`
    CHECKPOINT = auto()  # call `Effort.look_around` between slices of a dual, a path or a search
    CHUNKED = auto()  # read rows that come in chunks
    PARTITIONED = auto()  # leave rows where they are, in partitions on workers


# What an engine needs to read rows that are not in memory.
_READS = {Home.CHUNKS: Capability.CHUNKED, Home.PARTITIONS: Capability.PARTITIONED}

_MOST_CACHE = 4 << 30  # bytes: default upper limit of the kernel cache
_SMALL_CACHE = 1 << 26  # bytes: assumed to be free; a query takes about a millisecond

_ANNOUNCED = {"gpu": "the GPU engine"}
_DEFAULT, _LAST = "native", "reference"
_FOR_PARTITIONS = "dask"  # solves nothing else, and loading it takes a while
_added: dict[str, Engine] = {}

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

    own = _solvers.setdefault(engine if isinstance(engine, str) else _own_name(engine), {})

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
    """Return the capabilities that an effort needs."""
    wanted = {Capability.TIME_LIMIT: effort.time_limit, Capability.CHECKPOINT: effort.look_around}
    return frozenset(capability for capability, value in wanted.items() if value is not None)


def check_capabilities(engine: Engine, needed: Iterable[Capability]) -> None:
    """Raise `EngineError` if the engine lacks a capability."""
    for capability in needed:
        if capability in engine.can:
            continue
        name = capability.name.lower()  # also that of the parameter
        words = f" does not support {name}. Omit {name}, or use "
        raise EngineError(Advice(Setting("engine", engine.name), words, Setting("engine", "native"), "."))


def cannot_solve(engine: Engine, problem: Problem[Any]) -> EngineError:
    """Return the error about an engine without a solver for a problem."""
    words = f" cannot solve a {type(problem).__name__}. Use "
    return EngineError(Advice(Setting("engine", engine.name), words, Setting("engine", "auto"), "."))


def cache_bytes(engine: Engine, given: int | None, needed: int) -> int:
    """Return the bytes for kernel values: those given, or half of what is free, at most 4 GiB."""
    if given is not None:
        return given
    return _SMALL_CACHE if needed <= _SMALL_CACHE else min(engine.memory() // 2, _MOST_CACHE)


class Engine:
    """Base class of engines, which solve problems and evaluate models.

    Its solvers are registered with `register`, and it evaluates models in NumPy unless a subclass overrides that. An
    engine is made of plain values, so that `sklearn.base.clone` and pickle copy it, and two of the same values are
    equal.
    """

    name: ClassVar[str]  # a model keeps it as ``engine_``
    can: ClassVar[frozenset[Capability]] = frozenset()

    def _solver(self, problem: Problem[Any]) -> Callable[..., Any] | None:
        home = _home(problem)
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
        """Estimate how long the solve takes; only ``engine="auto"`` uses it. Without an estimate an engine is chosen
        only if no other engine can solve the problem."""
        return math.inf

    def plan(self, problem: Problem[Any]) -> str:
        """Return how the problem will be solved, in a line for a verbose fit; nothing if there is only one way."""
        return ""

    def solve(self, problem: Problem[S], effort: Effort) -> S:
        """Solve the problem by the solver registered for its type."""
        solver = self._solver(problem)
        if solver is None:
            raise cannot_solve(self, problem)
        check_capabilities(self, needs(effort))
        solution: S = solver(self, problem, effort)
        return solution

    def partitions(self, X: Any, y: Any, sample_weight: Any) -> AbstractContextManager[Partitions]:
        """Give a table as partitions on workers, for an engine that leaves rows there."""
        check_capabilities(self, [Capability.PARTITIONED])
        raise NotImplementedError(f"the engine {self.name!r} makes no partitions")

    def kernel_sums(
        self, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64], effort: Effort
    ) -> NDArray[np.float64]:
        """Return Σ_j β_mj K(x_i, s_j), shape (points, rows of ``beta``), by blocks of rows."""
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

    def leaves(self, model: ForestModel, cells: Cells, effort: Effort) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, as its place in `ForestModel.leaf_values`, shape (n, T)."""
        found = np.empty((cells.n_rows, model.n_trees), dtype=np.int32)
        for t in range(model.n_trees):
            tree, leaves = model.tree(t), model.leaf_nodes(t)
            place = np.zeros(tree.n_nodes, dtype=np.int32)
            place[leaves] = np.arange(len(leaves))
            found[:, t] = place[self.apply_trees(tree, cells, effort)]
        return found

    def mean_of_trees(self, model: ForestModel, cells: Cells, effort: Effort) -> NDArray[np.float64]:
        """Return the mean of what the trees predict, shape (n, K) or (n, targets)."""
        total = np.zeros((cells.n_rows, model.leaf_values(0).shape[1]))
        for rows in model.blocks(cells.n_rows):
            places = self.leaves(model, cells.take(np.arange(cells.n_rows)[rows]), effort)
            for t in range(model.n_trees):
                total[rows] += model.leaf_values(t)[places[:, t]]
        return total / model.n_trees

    def memory(self) -> int:
        """Return the bytes that are free where the engine works: of main memory."""
        return free_memory()


def _home(problem: Problem[Any]) -> Home:
    home: Home = getattr(getattr(problem, "rows", None), "home", Home.MEMORY)
    return home


@cache
def folders() -> tuple[str, ...]:
    """Return the names of Margrove's own engines."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(margrove.engine.__path__) if found.ispkg))


def names() -> tuple[str, ...]:
    """Return the names of all engines, those added from outside included."""
    return tuple(dict.fromkeys((*folders(), *_added)))  # one that is added may take the place of another


def add(engine: Engine) -> None:
    """Register an engine under its name, for ``engine="name"`` and ``engine="auto"``."""
    if _given(engine) is None or isinstance(engine, str) or engine.name == "auto":
        raise ParameterError(f"engine is {shown(engine)}; it must be an Engine with a name of its own.")
    _added[engine.name] = engine


@cache
def _load(name: str) -> Engine:
    engine: Engine = getattr(import_module(f"margrove.engine.{name}"), name.capitalize())()
    return engine


def named(name: str) -> Engine:
    """Return the engine of this name, with its default values. Raise `ParameterError` if no engine has the name,
    `MissingExtraError` if it needs a package that is not installed."""
    if name in _added:
        return _added[name]
    if name in folders():
        return _load(name)
    if name in _ANNOUNCED:
        words = f": {_ANNOUNCED[name]} is not part of this version. Use 'auto' or 'native'."
        raise EngineError(Advice(Setting("engine", name), words))
    check_choice("engine", name, ("auto", *names()))
    raise EngineError(Advice(Setting("engine", "auto"), " needs a problem to choose an engine for."))


def check_engine(given: str | Engine, *needs: Capability) -> None:
    """Raise an error unless the parameter ``engine`` names an engine, or is one, that has the capabilities needed."""
    engine = _given(given)
    if engine is not None:
        check_capabilities(engine, needs)


def _given(given: str | Engine) -> Engine | None:
    """Return the engine that a parameter names or is; None for "auto"."""
    if isinstance(given, str):
        return None if given == "auto" else named(given)
    if isinstance(given, type) or not isinstance(given, Engine):
        known = ", ".join(map(repr, ("auto", *names())))
        raise ParameterError(f"engine is {shown(given)}; it must be one of {known}, or an Engine.")
    _own_name(given)
    return given


def _own_name(engine: Engine) -> str:
    """Return the name of an engine; raise an error if it has none."""
    name = getattr(engine, "name", None)
    if not isinstance(name, str) or not name:
        raise ParameterError(f"the name of the engine {shown(engine)} is {shown(name)}; it must be a word.")
    return name


def choose(given: str | Engine, problem: Problem[Any], effort: Effort | None = None, *, or_any: bool = False) -> Engine:
    """Return the engine that solves the problem: the one given, or for "auto" the fastest of those that can, with what
    the effort asks for. With ``or_any`` an engine that cannot solve the problem leaves it to one that can, as for
    "auto". Raise `EngineError` if the engine that is given cannot solve the problem, or none can."""
    engine, kind = _given(given), type(problem).__name__
    wanted = frozenset() if effort is None else needs(effort)
    if engine is not None and engine.solves(problem):
        check_capabilities(engine, wanted)
        return engine
    if engine is not None and not or_any:
        raise cannot_solve(engine, problem)
    is_known = False
    left_out = () if _home(problem) is Home.PARTITIONS else (_FOR_PARTITIONS,)
    for group in (
        [name for name in names() if name not in (_LAST, *left_out)],
        [_LAST],
    ):  # the reference is loaded if no other can
        present = [found for name in group if (found := _present(name)) is not None]
        engines = [each for each in present if each.solves(problem)]
        able = [each for each in engines if wanted <= each.can]
        if able:
            return able[0] if len(able) == 1 else min(able, key=lambda each: each.seconds(problem))
        is_known |= bool(engines)
    lack = " with " + " and ".join(each.name.lower() for each in wanted) if is_known else ""
    raise EngineError(f"no engine solves a {kind}{lack}.")


def _present(name: str) -> Engine | None:
    """Return the engine of this name, None if a package that it needs is not installed."""
    try:
        return named(name)
    except MissingExtraError:
        return None


def solve(problem: Problem[S], engine: str | Engine = "auto", effort: Effort | None = None) -> S:
    """Solve the problem on the engine that is given or chosen."""
    effort = effort or Effort()
    return choose(engine, problem, effort).solve(problem, effort)


def fitted_by(model: Any) -> Engine:
    """Return the engine that a fitted model predicts with: the one that fitted it if it is here, the native one
    otherwise, and for rows in memory after a fit over partitions. All give the same predictions."""
    given, name = model.engine, model.engine_
    if isinstance(given, Engine) and given.name == name:
        found: Engine | None = given
    else:
        found = _present(name) if name in folders() or name in _added else None
    return named(_DEFAULT) if found is None or Capability.PARTITIONED in found.can else found


def partitioning(given: str | Engine, X: Any) -> Engine | None:
    """Return the engine that fits X in partitions: the one given if it does that, for "auto" one that does if X is a
    Dask collection; None if X is in memory and stays here. Raise `EngineError` for a collection on another engine."""
    engine, kind = _given(given), kind_of_collection(X)
    if engine is not None and Capability.PARTITIONED in engine.can:
        return engine
    if kind is None:
        return None
    if engine is not None:
        words = f" reads rows in memory, and X is {kind}. Use "
        raise EngineError(Advice(Setting("engine", engine.name), words, Setting("engine", "dask"), ", or X.compute()."))
    return next(each for each in map(named, names()) if Capability.PARTITIONED in each.can)


def name_of(given: str | Engine) -> str:
    """Return the name of the engine that a parameter asks for; "auto" without a problem is the native one."""
    if isinstance(given, str):
        return _DEFAULT if given == "auto" else given
    return given.name


def default() -> Engine:
    """Return the engine that is always present: the native one."""
    return named(_DEFAULT)
