"""One suite for every engine and every problem type: an engine that is added to `margrove.engine` is tested here.

`problems.py` has the cases of each problem type and says what is unique in a solution. An engine may refuse a problem
(`Engine.solves` is False, or `EngineError`); each case must be solved by an engine other than the reference.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.engine.kind import Kind, assert_same
from tests.engine.problems import KINDS
from tests.engine.search_problems import SEARCHES
from tests.engine.svm_problems import DUALS
from tests.engine.tree_problems import TREES

import margrove
from margrove.boost.problem import SpreadBoostProblem, SpreadR2Problem
from margrove.engine import Capability, Effort, Engine, names
from margrove.engine.registry import named
from margrove.errors import EngineError, MissingExtraError
from margrove.forest.problem import SpreadForestProblem
from margrove.problem import Problem
from margrove.run import slices
from margrove.run.progress import watched
from margrove.status import Status
from margrove.svm.kernels import NATIVE_KERNELS, Kernel
from margrove.tree.problem import Cells, SpreadTreeProblem

REFERENCE = "reference"
ONE_THREAD, TWO_THREADS = Effort(n_jobs=1), Effort(n_jobs=2)
LONGEST = 30.0  # seconds within which a solve must stop; not a measurement, only that it does


def _engine(name: str) -> Engine | str:
    """The engine, or why it is not here."""
    try:
        return named(name)
    except MissingExtraError as error:
        return str(error)


# The Dask engine needs a cluster, and has a suite of its own: test_dask_parity.py and test_dask_svm.py.
ENGINES = {name: _engine(name) for name in names() if name != "dask"}


def _solves(name: str, kind: str) -> bool:
    engine = ENGINES[name]
    return not isinstance(engine, str) and any(engine.solves(problem_of(kind, case)) for case in KINDS[kind].cases)


@cache
def problem_of(kind: str, case: str) -> Any:
    return KINDS[kind].cases[case]()


@cache
def solution_of(name: str, kind: str, case: str) -> Any:
    return solve(name, kind, problem_of(kind, case))


def solve(name: str, kind: str, problem: Any, effort: Effort = TWO_THREADS) -> Any:
    """Solve the problem, or skip the test if the engine refuses it."""
    engine = ENGINES[name]
    assert not isinstance(engine, str)
    try:
        if engine.solves(problem):
            return KINDS[kind].solve(engine, problem, effort)
    except EngineError as error:
        pytest.skip(str(error))
    pytest.skip(f"{name} does not solve this {kind}")


@cache
def expected_of(kind: str, case: str) -> Any:
    """The reference's solution; None if it has none."""
    problem = problem_of(kind, case)
    oracle = KINDS[kind].oracle(problem)
    try:
        if oracle is problem:
            return solution_of(REFERENCE, kind, case)
        return None if oracle is None else named(REFERENCE).solve(oracle, Effort())
    except pytest.skip.Exception:
        return None


def can(name: str, capability: Capability) -> bool:
    engine = ENGINES[name]
    return not isinstance(engine, str) and capability in engine.can


def has_clock(name: str) -> bool:
    return can(name, Capability.TIME_LIMIT)


def has_checkpoints(name: str) -> bool:
    return can(name, Capability.CHECKPOINT)


ALL = [(name, kind) for name in ENGINES for kind in KINDS]
SOLVED = [(name, kind) for name, kind in ALL if _solves(name, kind)]


def on_each_case(
    has: Callable[[Kind], Any] = lambda kind: True, *, of_reference: int | None = None
) -> pytest.MarkDecorator:
    """Each engine with each case that it may solve; with the first ``of_reference`` cases of a type for the reference,
    which is slow."""
    cases = [
        (name, kind, case)
        for name, kind in SOLVED
        if has(KINDS[kind])
        for case in list(KINDS[kind].cases)[: of_reference if name == REFERENCE else None]
    ]
    return pytest.mark.parametrize(("engine", "kind", "case"), cases)


def on_each_kind(
    has: Callable[[Kind], Any] = lambda kind: True, where: Callable[[str], bool] = lambda name: True
) -> pytest.MarkDecorator:
    """Each engine with each problem type that it solves, where both have what the test needs."""
    pairs = [(name, kind) for name, kind in SOLVED if has(KINDS[kind]) and where(name)]
    return pytest.mark.parametrize(("engine", "kind"), pairs)


# ------------------------------------------------------------------------------------------------ nothing is left out


def _problem_types() -> set[type[Problem[Any]]]:
    """Every type of problem that is no base of others: those of the families, and all that the engines know."""
    for file in Path(margrove.__file__).parent.glob("*/*problem.py"):
        import_module(f"margrove.{file.parent.name}.{file.stem}")
    found, waiting = set(), [Problem]
    while waiting:
        parts = waiting.pop().__subclasses__()
        waiting += parts
        found |= {part for part in parts if not part.__subclasses__() and _is_of_margrove(part)}
    # Those of the Dask engine alone.
    return found - {SpreadTreeProblem, SpreadForestProblem, SpreadBoostProblem, SpreadR2Problem}


def _is_of_margrove(kind: type) -> bool:
    """Not of a test, nor of an example in a docstring."""
    is_inside = kind.__module__.startswith("margrove.")
    return is_inside and getattr(import_module(kind.__module__), kind.__name__, None) is kind


def test_every_problem_type_has_cases():
    assert {kind.problem for kind in KINDS.values()} == _problem_types()


@pytest.mark.parametrize(("engine", "kind"), ALL)
def test_an_engine_solves_a_problem_type_or_raises(engine, kind):
    if isinstance(ENGINES[engine], str):
        pytest.skip(ENGINES[engine])
    if (engine, kind) not in SOLVED:
        problem = problem_of(kind, next(iter(KINDS[kind].cases)))
        with pytest.raises(EngineError, match=f"engine='{engine}' cannot solve a {kind}"):
            KINDS[kind].solve(ENGINES[engine], problem, Effort())
        pytest.skip(f"{engine} solves no {kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_each_case_is_solved_by_an_engine_other_than_the_reference(kind):
    def is_solved(name: str, case: str) -> bool:
        try:
            solution_of(name, kind, case)
        except pytest.skip.Exception:
            return False
        return True

    able = [name for name, of in SOLVED if of == kind and name != REFERENCE]
    assert [case for case in KINDS[kind].cases if not any(is_solved(name, case) for name in able)] == []


# ---------------------------------------------------------------------------------------------------- right solutions


@on_each_case()
def test_the_solution_is_right(engine, kind, case):
    KINDS[kind].check(problem_of(kind, case), solution_of(engine, kind, case))


@on_each_case(of_reference=0)
def test_the_solution_agrees_with_the_reference(engine, kind, case):
    solution, expected = solution_of(engine, kind, case), expected_of(kind, case)
    if expected is None:
        pytest.skip("the reference has no solution to compare with")
    KINDS[kind].compare(problem_of(kind, case), solution, expected)


@on_each_kind(lambda kind: kind.twins)
def test_a_whole_weight_is_a_repeated_row(engine, kind):
    twins = KINDS[kind].twins()
    one, other = (twins.values(solve(engine, kind, twin)) for twin in (twins.weighted, twins.repeated))
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=twins.rtol, atol=1e-12, err_msg=name)


LEARNERS = [(name, kind, learner) for name, kind in SOLVED for learner in KINDS[kind].learners or ()]


@pytest.mark.parametrize(("engine", "kind", "learner"), LEARNERS)
def test_a_fit_is_certified(engine, kind, learner):
    """The certificate is recomputed from data and model alone."""
    learner = KINDS[kind].learners[learner]
    model = learner.fit(engine)
    certificate = learner.certify(model)
    assert (certificate.holds, certificate.source, certificate.status) == (True, "recomputed", "converged")
    for each in getattr(model, "models", (model,)):
        assert each.engine_ == engine


# -------------------------------------------------------------------------------------------------------- determinism


@on_each_case(of_reference=1)
def test_threads_and_slices_change_nothing(engine, kind, case, monkeypatch):
    problem, once = problem_of(kind, case), solution_of(engine, kind, case)
    assert_same(once, solve(engine, kind, problem, ONE_THREAD))
    if has_clock(engine):
        monkeypatch.setattr(slices, "SLICE", 1e-5)
        assert_same(once, solve(engine, kind, problem, Effort(time_limit=math.inf, n_jobs=1)))


@on_each_kind(lambda kind: kind.large, where=lambda name: name != REFERENCE)  # which is for few rows
def test_threads_and_slices_change_nothing_of_many_rows(engine, kind, monkeypatch):
    problem = KINDS[kind].large()
    once = solve(engine, kind, problem)
    monkeypatch.setattr(slices, "SLICE", 1e-3)
    assert_same(once, solve(engine, kind, problem, ONE_THREAD))


# ------------------------------------------------------------------------------------------- statuses, stops, resuming


@on_each_kind(lambda kind: kind.cut and kind.cut_case)
def test_too_few_steps_are_reported(engine, kind):
    problem = KINDS[kind].cut(problem_of(kind, KINDS[kind].cut_case))
    solution = solve(engine, kind, problem)
    assert Status.MAX_ITER in KINDS[kind].statuses(solution)
    KINDS[kind].check(problem, solution)


@on_each_case(lambda kind: kind.resume, of_reference=1)
def test_a_solve_goes_on_from_where_another_ended(engine, kind, case):
    how, problem = KINDS[kind], problem_of(kind, case)
    whole = solution_of(engine, kind, case)
    begun = solve(engine, kind, how.cut(problem))
    again = solve(engine, kind, how.resume(problem, begun))
    how.check(problem, again)
    how.compare(problem, again, whole)
    assert how.statuses(again) == how.statuses(whole)


@on_each_kind(lambda kind: kind.long, where=has_clock)
def test_a_time_limit_ends_the_solve(engine, kind):
    how = KINDS[kind]
    problem = how.long()
    for seconds in (1e-9, 0.02):
        started = time.monotonic()
        solution = solve(engine, kind, problem, Effort(time_limit=seconds))
        assert time.monotonic() - started < LONGEST
        assert Status.TIME_LIMIT in how.statuses(solution)
        (how.check_stopped or how.check)(problem, solution)


@on_each_kind(lambda kind: kind.long, where=has_clock)
@pytest.mark.parametrize("policy", ["keep", "raise"])
def test_ctrl_c_ends_the_solve(engine, kind, policy, monkeypatch):
    """With the policy "keep" the solution so far is returned, with the status ``interrupted``."""
    how, effort = KINDS[kind], Effort(on_interrupt=policy)
    monkeypatch.setattr(slices, "SLICE", 1e-3)
    problem = how.long()

    def press(progress: Any) -> None:
        raise KeyboardInterrupt

    with watched(press):
        if policy == "raise":
            with pytest.raises(KeyboardInterrupt):
                how.solve(ENGINES[engine], problem, effort)
            return
        solution = how.solve(ENGINES[engine], problem, effort)
    assert Status.INTERRUPTED in how.statuses(solution)
    (how.check_stopped or how.check)(problem, solution)


@on_each_kind(where=lambda name: not has_clock(name))
def test_an_engine_without_a_clock_refuses_a_time_limit(engine, kind):
    problem = problem_of(kind, next(iter(KINDS[kind].cases)))
    with pytest.raises(EngineError, match=f"engine='{engine}' does not support time_limit"):
        KINDS[kind].solve(ENGINES[engine], problem, Effort(time_limit=1.0))


@on_each_kind(where=lambda name: not has_checkpoints(name))
def test_an_engine_without_checkpoints_refuses_to_look_around(engine, kind):
    problem = problem_of(kind, next(iter(KINDS[kind].cases)))
    with pytest.raises(EngineError, match=f"engine='{engine}' does not support checkpoint"):
        KINDS[kind].solve(ENGINES[engine], problem, Effort(look_around=lambda state: None))


@on_each_kind(lambda kind: kind is DUALS, where=has_checkpoints)
def test_a_dual_goes_on_from_a_checkpoint(engine, kind, monkeypatch):
    """Looking changes nothing; α at any look is feasible, and begins a solve that ends where the whole one does."""
    monkeypatch.setattr(slices, "SLICE", 1e-3)
    problem = DUALS.large()
    seen: list[list[np.ndarray]] = []
    whole = solve(engine, kind, problem, Effort(n_jobs=1, look_around=lambda state: seen.append(state())))
    assert_same(whole, solve(engine, kind, problem))
    assert len(seen) > 1
    machines = [replace(m, alpha=alpha) for m, alpha in zip(problem.machines, seen[len(seen) // 2], strict=True)]
    for begun, machine in zip(machines, problem.machines, strict=True):
        assert ((begun.alpha >= 0) & (begun.alpha <= machine.upper)).all()
        assert abs(machine.y @ begun.alpha) <= 1e-9 * begun.alpha.sum()
    rest = solve(engine, kind, replace(problem, machines=tuple(machines)))
    end = solve(engine, kind, DUALS.resume(problem, whole))
    for mine, last, theirs in zip(rest, end, whole, strict=True):
        assert mine.status is last.status is Status.CONVERGED
        np.testing.assert_allclose([mine.objective, last.objective], theirs.objective, rtol=1e-4)
        assert last.n_iter < theirs.n_iter / 10


@on_each_kind(lambda kind: kind is SEARCHES, where=has_checkpoints)
def test_a_search_looks_around_between_its_units(engine, kind, monkeypatch):
    monkeypatch.setattr(slices, "SLICE", 1e-4)
    seen: list[Any] = []
    solve(engine, kind, SEARCHES.large(), Effort(n_jobs=1, look_around=lambda state: seen.append(state())))
    assert seen
    assert set(seen) == {None}


# ----------------------------------------------------------------------------------------------------- what models ask


class Plain(Engine):
    """NumPy's evaluation of models."""

    name = "plain"


PRESENT = [name for name, engine in ENGINES.items() if not isinstance(engine, str)]
on_each_engine = pytest.mark.parametrize("engine", PRESENT)
POINTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
    "one row": lambda X: X[:1],
    "no rows": lambda X: X[:0],
}


@on_each_engine
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("kernel", [*NATIVE_KERNELS, "callable"])
def test_kernel_sums_are_those_of_numpy(engine, points, kernel):
    if kernel == "callable" and points == "sparse":
        pytest.skip("the function is for arrays")
    rng = np.random.default_rng(1)
    X = rng.exponential(size=(300, 7)) * (rng.random((300, 7)) < 0.7)  # chi2 and intersection are for counts
    function = (lambda X, Z: (X @ Z.T + 1) ** 2) if kernel == "callable" else None
    asked = Kernel(kernel, gamma=0.3, coef0=0.5, degree=3.0, function=function)
    X, support, beta = POINTS[points](X), X[:40], rng.normal(size=(3, 40))
    support = POINTS[points](support) if points in ("float32", "sparse") else support
    expected = Plain().kernel_sums(asked, X, support, beta, Effort())
    one, two = (ENGINES[engine].kernel_sums(asked, X, support, beta, Effort(n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    digits = 1e-5 if points == "float32" else 1e-10
    size = np.abs(expected).max(initial=0)
    assert two.shape == expected.shape == (X.shape[0], 3)
    np.testing.assert_allclose(two, expected, rtol=digits, atol=digits * size)


def _new_cells(cells: Cells) -> Cells:
    """Other rows of the same columns: numbers between the old ones, more missing cells, other pairs of cells."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, cells.n_rows, 500)
    if cells.sparse is not None:
        return cells.take(rows)
    values = []
    for column in cells.values:
        new = column[rows]
        if new.dtype.kind == "f":
            new = (new + column[rng.permutation(rows)]) / 2
        new[rng.random(500) < 0.1] = -1 if new.dtype.kind == "i" else np.nan
        values.append(new)
    return Cells(cells.columns, 500, tuple(values))


def _as_block(cells: Cells) -> Cells:
    """The same cells as columns of one array."""
    block = np.ascontiguousarray(np.column_stack(cells.values))
    return Cells(cells.columns, cells.n_rows, tuple(block.T), block=block)


FORESTS = ("weighted", "several classes", "sparse", "single", "no better than chance")


@on_each_engine
@pytest.mark.parametrize("case", [case for case in TREES.cases if "random" not in case])
def test_leaves_are_those_of_numpy(engine, case):
    problem = problem_of("TreeProblem", case)
    tree = expected_of("TreeProblem", case).model
    cells = _new_cells(problem.cells)
    expected = Plain().apply_trees(tree, cells, Effort())
    found = [ENGINES[engine].apply_trees(tree, cells, Effort(n_jobs=n)) for n in (1, 2)]
    if all(column.test == "threshold" for column in cells.columns) and cells.sparse is None:
        found.append(ENGINES[engine].apply_trees(tree, _as_block(cells), TWO_THREADS))
    for leaves in found:
        np.testing.assert_array_equal(leaves, expected)


@on_each_engine
@pytest.mark.parametrize("case", FORESTS)
def test_votes_are_those_of_numpy(engine, case):
    problem = problem_of("BoostProblem", case)
    model = expected_of("BoostProblem", case).model
    cells = _new_cells(problem.learner.cells)
    expected = Plain().sum_votes(model, cells, Effort())
    one, two = (ENGINES[engine].sum_votes(model, cells, Effort(n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(two, expected, rtol=1e-12, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------- as a value


@on_each_engine
def test_an_engine_is_made_of_plain_values(engine):
    one = ENGINES[engine]
    assert isinstance(one, Engine)
    assert one.name == engine
    for other in (type(one)(), pickle.loads(pickle.dumps(one)), clone(one, safe=False)):
        assert other == one
        assert hash(other) == hash(one)
    assert isinstance(one.can, frozenset)
    assert one.can <= set(Capability)
    assert one.memory() > 0


@on_each_kind()
def test_estimates_and_plans_need_no_solve(engine, kind):
    problem = problem_of(kind, next(iter(KINDS[kind].cases)))
    assert ENGINES[engine].seconds(problem) > 0
    assert isinstance(ENGINES[engine].plan(problem), str)
