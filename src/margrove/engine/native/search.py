"""Searches in the core: every kernel value once, for all folds, machines and values of C."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.advice import Advice, Setting
from margrove.engine.by_steps import search_by_duals
from margrove.engine.native.core import NAME, core, points_of, run_until_done, spec_of, threads_for
from margrove.engine.native.svm import WORKING_SET
from margrove.engine.registry import Engine, cache_bytes, register
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.threads import blas_held_back
from margrove.status import Status
from margrove.svm.kernels import Kernel, squared_norms
from margrove.svm.problem import Dual, LeaveOneOutProblem, LeftOut
from margrove.svm.search_problem import SearchProblem, UnitSolution

_MOST_SHARE = 1e-4  # of the rounding of float32 that C times a kernel value may be
_UNIT = ("rbf", "laplacian", "chi2")  # K(x, x) = 1
_SAMPLED = 16  # rows whose nearest neighbours are searched, in some milliseconds: a sample is enough for most of them
_MOST_ROUNDING = 1e-3  # of an exponent γ‖x − z‖², where it comes from inner products


@register(NAME, SearchProblem)
def _(engine: Engine, problem: SearchProblem, effort: Effort) -> Status:
    threads = threads_for(effort.n_jobs)
    is_double = _is_double(problem)
    needed = (8 if is_double else 4) * values_at_once(problem, threads)
    if needed > cache_bytes(engine, problem.cache_bytes, needed):
        return search_by_duals(engine, problem, effort)
    search = _search(problem, threads, is_double)
    for machine in problem.machines:
        search.add_machine(y=machine.y, p=machine.p, point=machine.point)
    for fold in problem.folds:
        search.add_fold(weight=fold.weight, held_out=fold.held_out)
    for unit in problem.units:
        search.add_unit(kernel=unit.kernel, fold=unit.fold, shift=unit.epsilon, C=unit.Cs)
    waiting = list(range(len(problem.units)))

    def run(seconds: float) -> bool:
        is_done = search.run(seconds)
        for number in waiting.copy():
            found = search.take(number)
            if found is not None:
                waiting.remove(number)
                problem.take(
                    number,
                    UnitSolution(found.values, found.violation, found.support, found.seconds, found.is_converged),
                )
        return is_done

    def on_slice() -> None:
        if effort.look_around is not None:
            effort.look_around(lambda: None)
        report(Progress("search", float(search.solved), float(problem.n_cells)))

    return run_until_done(run, effort, on_slice)


@register(NAME, LeaveOneOutProblem)
def _(engine: Engine, problem: LeaveOneOutProblem, effort: Effort) -> tuple[LeftOut, ...]:
    threads = threads_for(effort.n_jobs)
    gram = problem.X
    bounds = max((float(machine.upper.max()) for machine in problem.machines), default=0.0)
    is_double = _needs_double(problem.X, (problem.kernel,), problem.precision, bounds)
    widest = max((len(machine.y) for machine in problem.machines), default=0)
    needed = (8 if is_double else 4) * (problem.X.shape[0] ** 2 + widest**2)
    room = cache_bytes(engine, problem.cache_bytes, needed)
    if needed > room:
        raise EngineError(
            f"leave_one_out needs all kernel values, {needed / 2**30:.1f} GiB for {problem.X.shape[0]} rows, but "
            f"cache_size allows {room / 2**30:.1f} GiB. Raise cache_size, or cross-validate with SVCCV."
        )
    if problem.kernel.name != "precomputed":
        make = core.gram_matrix_double if is_double else core.gram_matrix_float
        with blas_held_back():
            gram = make(points_of(problem.X), spec_of(problem.kernel), threads)
    gram = np.ascontiguousarray(gram)
    found: list[LeftOut] = []
    total = sum(int((machine.alpha > 0).sum()) for machine in problem.machines)
    started = time.monotonic()
    for machine in problem.machines:
        if found and found[-1].status is not Status.CONVERGED:
            found.append(LeftOut(np.full(len(machine.y), np.nan), False, found[-1].status))
        else:
            found.append(_left_out(problem, machine, gram, effort.left(started), total))
    return tuple(found)


def _left_out(problem: LeaveOneOutProblem, machine: Dual, gram: Any, effort: Effort, total: int) -> LeftOut:
    solver = core.leave_one_out_on_gram(
        gram,
        y=machine.y,
        p=machine.p,
        upper=machine.upper,
        alpha=machine.alpha,
        point=machine.point,
        tol=problem.tol,
        max_steps=problem.max_iter,
        threads=threads_for(effort.n_jobs),
    )

    def on_slice() -> None:
        report(Progress("leave-one-out", float(solver.done), float(total)))

    status = run_until_done(solver.run, effort, on_slice)
    values = np.full(len(machine.y), np.nan)
    values[solver.support()] = solver.values()
    return LeftOut(values, bool(solver.is_converged().all()), status)


def values_at_once(problem: SearchProblem, threads: int) -> int:
    """Return how many kernel values a search holds at once."""
    at_once = min(threads, len(problem.kernels)) + 1  # and the products that they are made of
    held = max((len(fold.held_out) for fold in problem.folds), default=0)
    tile = min(core.TILE, max((len(machine.y) for machine in problem.machines), default=0))
    n = int(problem.X.shape[0])
    return n * n * at_once + threads * (n * held + tile * tile)


def _is_double(problem: SearchProblem) -> bool:
    if problem.kernels[0].name == "precomputed":
        return bool(problem.X.dtype == np.float64)
    largest = max((float(unit.Cs.max()) for unit in problem.units), default=0.0)
    weight = max((float(fold.weight.max(initial=0)) for fold in problem.folds), default=0.0)
    return _needs_double(problem.X, problem.kernels, problem.precision, largest * weight)


def _needs_double(X: Any, kernels: tuple[Kernel, ...], precision: str, largest: float) -> bool:
    """Return whether kernel values in float32 would change the result, which is not checked in double afterwards. Their
    rounding enters f by up to C times, and an exponent γ‖x − z‖² of sparse rows, which are not centred, by γ‖x‖² times.
    Where nearly all values are below it, K is the identity but for values that float32 may not hold, and these
    decide."""
    if precision != "auto" or kernels[0].name == "precomputed":
        return precision == "double"
    rounding = float(np.finfo(np.float32).eps)
    if kernels[0].name == "rbf" and sp.issparse(X):
        exponent = max(kernel.gamma for kernel in kernels) * float(squared_norms(X).max())
        if not rounding * exponent <= _MOST_ROUNDING:
            return True
    if _are_alone(X, max(kernels, key=lambda kernel: kernel.gamma)):
        return True
    values = max(1.0 if kernel.name in _UNIT else float(np.abs(kernel.diagonal(X)).max()) for kernel in kernels)
    return not rounding * largest * values <= _MOST_SHARE


def _are_alone(X: Any, kernel: Kernel) -> bool:
    """Return whether most rows are so far from every other that K(x, z) is below the rounding of K(x, x) in float32,
    judged by some rows, evenly spread."""
    n = int(X.shape[0])
    if kernel.name not in _UNIT or n < 2:
        return False
    rows = np.unique(np.linspace(0, n - 1, min(n, _SAMPLED)).astype(np.int64))
    near = kernel.matrix(X[rows], X)  # (rows, n)
    near[np.arange(len(rows)), rows] = 0.0
    return bool(np.median(near.max(axis=1)) < np.finfo(np.float32).eps)


def _search(problem: SearchProblem, threads: int, is_double: bool) -> core.Search:
    settings: dict[str, Any] = {
        "tol": problem.tol,
        "working_set": WORKING_SET,
        "threads": threads,
        "max_steps": problem.step_limit,
    }
    if problem.kernels[0].name == "precomputed":
        return core.search_on_gram(np.ascontiguousarray(problem.X), **settings)
    if not all(kernel.is_native for kernel in problem.kernels):
        words = f" does not support the {problem.kernels[0].name} kernel for a SearchProblem."
        raise EngineError(Advice(Setting("engine", "native"), words))
    kernels = [spec_of(kernel) for kernel in problem.kernels]
    X = problem.X
    by_products = len(kernels) > 1 and problem.kernels[0].name == "rbf"
    if by_products:
        if not sp.issparse(X):  # about their mean: distances are the same, and products keep more of their digits
            X = np.ascontiguousarray(X - X.mean(axis=0, dtype=np.float64).astype(X.dtype))
        rounding = float(np.finfo(np.float64 if is_double else np.float32).eps)
        largest = max(kernel.gamma for kernel in problem.kernels) * float(squared_norms(X).max())
        by_products = rounding * largest <= _MOST_ROUNDING
    X = X if by_products else problem.X
    return core.search_on_points(
        points_of(X), kernels=kernels, by_products=by_products, is_double=is_double, **settings
    )
