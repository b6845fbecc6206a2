"""What the linear SVMs share: parameters, the solve, and what is kept of it. Not a learner itself."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate, keep_certificate
from margrove.data.sample import read_points
from margrove.engine import Effort, Engine, check_engine, choose
from margrove.errors import (
    ConvergenceWarning,
    ParameterError,
    check_choice,
    check_flag,
    check_number,
    check_whole,
    level_of_caller,
)
from margrove.linear.classifier import seeds_for
from margrove.linear_svm.certificate import solver_certificate
from margrove.linear_svm.layout import scale_of_intercept, weights_of
from margrove.linear_svm.problem import (
    ROUNDING_OF_SUMS,
    SOLVERS,
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearMachine,
    LinearSvmProblem,
    LinearSvmSolution,
    Loss,
    Penalty,
    Solver,
    bounds_of,
    is_squared,
)
from margrove.linear_svm.stream_problem import StreamSolution
from margrove.run.effort import Interruptible
from margrove.run.progress import towards
from margrove.status import Status, worst
from margrove.svm.problem import HARD_MARGIN, MOST_BOUND

_GRAM_COLUMNS = 2000  # up to this many dual=False takes Newton's method with its d × d matrix
_PRIMAL = ("newton", "row_newton", "conjugate_gradients")
# A recomputation takes about as long as ten passes of a solver. Small tables always get it, in a few milliseconds;
# large ones where it costs less than a tenth of the fit: by counting, so that the answer is the same every time.
_SMALL_CELLS = 1 << 18
_CELLS_PER_ROW = 8  # what a row costs besides its numbers, in numbers
_CHEAP_BESIDE_PASSES = 100
_USUALLY_LARGEST = 1e9  # of |x|; only where that would matter is X searched for its largest

Problem: TypeAlias = LinearSvmProblem | CrammerSingerProblem
Solutions: TypeAlias = Sequence[LinearSvmSolution] | Sequence[CrammerSingerSolution] | Sequence[StreamSolution]


class LinearSupportVectorMachine(Interruptible, BaseEstimator):
    """What every linear SVM here has. Not a learner by itself."""

    coef_: Any
    intercept_: NDArray[np.float64]
    n_iter_: int
    gap_: NDArray[np.float64]
    primal_: NDArray[np.float64]
    dual_: NDArray[np.float64]
    dual_coef_: NDArray[np.float64]
    solver_: str
    status_: Status
    engine_: str
    certificate_: Certificate

    loss: Loss
    C: float
    tol: float
    dual: Any
    fit_intercept: bool
    intercept_scaling: float
    regularize_intercept: bool
    solver: Solver
    max_iter: int
    random_state: Any
    verbose: Any
    warm_start: bool
    time_limit: float | None
    n_jobs: int | None
    engine: str

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """w·x + b of each row and machine, shape (n, machines)."""
        check_is_fitted(self)
        points = read_points(self, X)
        coef = self.coef_ if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        return np.asarray(safe_sparse_dot(points, coef.T, dense_output=True) + self.intercept_, dtype=np.float64)

    def _check_shared(self, losses: tuple[Loss, ...]) -> Effort:
        """The parameters that all have; the effort they allow."""
        check_number("C", self.C, above=0, most=MOST_BOUND, beyond=HARD_MARGIN)
        check_number("tol", self.tol, above=0, cure="It is the relative duality gap, P − D relative to P.")
        check_whole("max_iter", self.max_iter, least=1)
        for name in ("fit_intercept", "regularize_intercept", "warm_start"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.verbose, bool | np.bool_):
            check_whole("verbose", self.verbose, least=0, cure="True and False will do.")
        if self.fit_intercept:
            check_number(
                "intercept_scaling", self.intercept_scaling, above=0, cure="fit_intercept=False is no intercept."
            )
        check_choice("loss", self.loss, losses)
        check_choice("solver", self.solver, SOLVERS)
        check_choice("dual", self.dual, ("auto", True, False))
        check_engine(self.engine)
        return Effort(self.time_limit, self.n_jobs, on_interrupt=self._on_interrupt)

    def _settled_solver(self, penalty: Penalty, d: int) -> Solver:
        """``solver``, as far as ``dual`` settles it."""
        if penalty == "l1":
            if not isinstance(self.dual, str) and self.dual:
                raise ParameterError("penalty is 'l1', which has no dual=True. Use dual='auto', or penalty='l2'.")
            if self.solver != "auto":
                raise ParameterError(f"penalty is 'l1', and solver is {self.solver!r}; l1 has its own: use 'auto'.")
        if isinstance(self.dual, str):
            return self.solver
        if self.dual:
            if self.solver in _PRIMAL:
                raise ParameterError(f"dual is True, and solver={self.solver!r} works on the primal. Use dual='auto'.")
            return "descent"
        if not is_squared(self.loss):
            raise ParameterError(
                f"dual is False, and loss={self.loss!r} has no gradient. Use dual='auto', or the squared loss."
            )
        if self.solver == "descent":
            raise ParameterError("dual is False, and solver='descent' works on the dual. Use dual='auto'.")
        if self.solver != "auto" or penalty == "l1":
            return self.solver
        return "newton" if d <= _GRAM_COLUMNS else "conjugate_gradients"

    @property
    def _seed(self) -> int:
        """Of the order of coordinates; None is 0."""
        return 0 if self.random_state is None else seeds_for(self.random_state, 1)[0]

    def _stated(
        self,
        X: Any,
        targets: Sequence[NDArray[np.float64]],
        prices: Sequence[NDArray[np.float64]],
        *,
        penalty: Penalty,
        epsilon: float,
    ) -> LinearSvmProblem:
        """The machines as one problem."""
        machines = tuple(LinearMachine(target, cost) for target, cost in zip(targets, prices, strict=True))
        return LinearSvmProblem(
            X,
            machines,
            loss=self.loss,
            penalty=penalty,
            intercept=scale_of_intercept(self),
            epsilon=epsilon,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            solver=self._settled_solver(penalty, X.shape[1]),
            seed=self._seed,
        )

    def _warmed(self, problem: LinearSvmProblem, places: Sequence[int | None]) -> LinearSvmProblem:
        """The machines from where the last fit left those in ``places``: row i is taken for its row i."""
        coef = weights_of(self)
        if coef.shape[1] != problem.X.shape[1]:
            return problem
        machines = []
        for machine, place in zip(problem.machines, places, strict=True):
            if place is None:
                machines.append(machine)
                continue
            beta = None
            if hasattr(self, "dual_coef_"):
                low, high = bounds_of(problem.loss, machine.target, machine.cost)
                beta = np.clip(carried(self.dual_coef_[place], len(low)), low, high)
            machines.append(replace(machine, w=coef[place].copy(), b=float(self.intercept_[place]), beta=beta))
        return replace(problem, machines=tuple(machines))

    def _solved(self, problem: Problem, effort: Effort) -> Any:
        """The engine's answer; told about, if ``verbose``."""
        engine, name = choose(self.engine, problem), type(self).__name__
        if self.verbose:
            tell_problem(name, problem, engine)
        start = time.perf_counter()
        with towards(problem.tol):
            found = engine.solve(problem, effort)
        self.engine_ = engine.name
        if self.verbose:
            tell_solutions(name, found if isinstance(found, tuple) else (found,), time.perf_counter() - start)
        return found

    def _forget_rows(self) -> None:
        """What earlier fits kept of their rows is not of these."""
        for name in ("dual_coef_", "dual_steps_", "n_seen_"):
            self.__dict__.pop(name, None)

    def _keep_solutions(self, solutions: Solutions, names: Sequence[str], limit: str = "max_iter") -> None:
        """The numbers of the machines, and how they ended; weights and β are the learner's. ``limit`` is the
        parameter that ends a solve with status max_iter."""
        self.gap_ = np.array([solution.gap for solution in solutions])
        self.primal_ = np.array([solution.primal for solution in solutions])
        self.dual_ = np.array([solution.dual for solution in solutions])
        self.n_iter_ = max(int(solution.n_iter) for solution in solutions)
        self.solver_ = ", ".join(dict.fromkeys(solution.solver for solution in solutions))
        self.status_ = worst(solution.status for solution in solutions)
        self._warn_unless_converged(names, limit)

    def _warn_unless_converged(self, names: Sequence[str], limit: str) -> None:
        if self.status_ is Status.CONVERGED:
            return
        largest = int(np.argmax(np.nan_to_num(self.gap_, nan=np.inf)))
        where = f" in {names[largest]}" if len(names) > 1 else ""
        reached = self.gap_[largest]
        gap = f"relative gap {reached:.3g}" if np.isfinite(reached) else "no gap is known"
        message = (
            f"{type(self).__name__} ended with status {str(self.status_)!r}: {gap}{where}, tol is {self.tol:g}; "
            f"{self.status_.advice.replace('max_iter', limit)}."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def _keep_certificate(
        self,
        certify: Callable[[Any, Any, Any, Any], Certificate],
        given: tuple[Any, Any, Any],
        X: Any,
        names: tuple[str, ...],
    ) -> None:
        """Recompute from what was ``given`` where that is cheap beside the fit, or where the rounding of f may exceed
        tol; else the solver's numbers stand."""
        n, d = X.shape
        cells = ((X.nnz if sp.issparse(X) else n * d) + _CELLS_PER_ROW * n) * len(self.intercept_)
        # A step of Newton's method with its d × d matrix costs as much as d/64 passes: BLAS is fast.
        passes = self.n_iter_ * (max(1, d // 64) if self.solver_ == "newton" else 1)
        is_due = cells <= _SMALL_CELLS or (passes >= _CHEAP_BESIDE_PASSES and self.time_limit is None)
        if not is_due:
            rounding = ROUNDING_OF_SUMS * float(self.C) * n * np.abs(weights_of(self)).sum(axis=1).max()  # for |x| of 1
            share = rounding / (float(self.tol) * max(self.primal_.min(), np.finfo(np.float64).tiny))
            is_due = share * _USUALLY_LARGEST > 1 and share * max(float(X.max()), -float(X.min())) > 1
        keep_certificate(self, certify(self, *given) if is_due else solver_certificate(self, n, names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def needs_pulls(model: LinearSupportVectorMachine, solutions: Sequence[LinearSvmSolution]) -> bool:
    """Return whether the model must keep β to prove its gap. A free intercept requires Σ β = 0; the β that w implies
    violates this, and scaling it weakens the proof."""
    is_proved = is_squared(model.loss) and all(solution.is_proved_by_w for solution in solutions)
    return not is_proved or math.isinf(scale_of_intercept(model))


def carried(beta: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """β of another number of rows: those at the end are new, or gone."""
    found = np.zeros(n)
    common = min(n, len(beta))
    found[:common] = beta[:common]
    return found


def tell_problem(name: str, problem: Problem, engine: Engine) -> None:
    """What is asked, in a line; and which solver takes it up, and why, in another."""
    n, d = problem.X.shape
    kind = "sparse" if sp.issparse(problem.X) else "dense"
    if isinstance(problem, CrammerSingerProblem):
        asked = f"{problem.n_classes} classes in one machine (Crammer and Singer)"
    else:
        count = len(problem.machines)
        asked = f"loss {problem.loss}, penalty {problem.penalty}, {count} machine{'s' if count > 1 else ''}"
    print(f"[{name}] {n} rows, {d} columns, {kind} {problem.X.dtype}; {asked}")
    plan = engine.plan(problem)
    if plan:
        print(f"[{name}] solver {plan}")


def tell_solutions(name: str, solutions: Solutions, elapsed: float) -> None:
    """What became of it, in a line."""
    status = worst(solution.status for solution in solutions)
    by = ", ".join(dict.fromkeys(solution.solver for solution in solutions))
    steps, gap = max(each.n_iter for each in solutions), max(each.gap for each in solutions)
    print(f"[{name}] {status} by {by} after {steps} steps in {elapsed:.2f} s; relative gap {gap:.3g}")
