"""The base class of the linear SVMs: parameters, the step from problem to solution, and the model that is kept."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate, keep_certificate
from margrove.data.rows import Matrix
from margrove.data.sample import read_points
from margrove.engine import Engine, choose
from margrove.engine.estimator import RunsOnEngine
from margrove.engine.registry import partitioning
from margrove.errors import ParameterError, check_choice, check_flag, check_number, check_seed, check_whole, warn_early
from margrove.estimator import checked, estimator, fitted, fixed
from margrove.linear.classifier import seeds_for
from margrove.linear_svm.certificate import certify_problem, solver_certificate
from margrove.linear_svm.layout import scale_of_intercept, stated_problem, weights_of
from margrove.linear_svm.path import DEFAULT_CS, LinearPath, fit_path
from margrove.linear_svm.problem import (
    ROUNDING_OF_SUMS,
    SOLVERS,
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearProblem,
    LinearSvmProblem,
    LinearSvmSolution,
    LinearSvmSolutions,
    Loss,
    Penalty,
    Solver,
    bounds_of,
    is_squared,
)
from margrove.linear_svm.stream_problem import StreamSolution
from margrove.problem import Problem
from margrove.run.effort import check_time_limit
from margrove.status import Status, worst
from margrove.svm.problem import HARD_MARGIN, MOST_BOUND, penalties

_GRAM_COLUMNS = 2000  # up to this many dual=False takes Newton's method with its d × d matrix
_PRIMAL = ("newton", "row_newton", "conjugate_gradients")
# A recomputation takes about as long as ten passes of a solver. Small tables always get it, in a few milliseconds;
# large ones where it costs less than a tenth of the fit: by counting, so that the choice is always the same.
_SMALL_CELLS = 1 << 18
_CELLS_PER_ROW = 8  # what a row costs besides its numbers, in numbers
_CHEAP_BESIDE_PASSES = 100
_USUALLY_LARGEST = 1e9  # of |x|; only where that would matter is X searched for its largest

S = TypeVar("S")
Solutions: TypeAlias = Sequence[LinearSvmSolution] | Sequence[CrammerSingerSolution] | Sequence[StreamSolution]


@estimator
class LinearSvmParameters(RunsOnEngine):
    """Parameters of the linear SVMs and of the searches for their C. Base class."""

    tol: float = checked(check_number, above=0, cure="It limits the relative duality gap, (P − D)/P.", default=1e-4)
    fit_intercept: bool = checked(check_flag, default=True)
    intercept_scaling: float = 1.0
    dual: str | bool = checked(check_choice, allowed=("auto", True, False), default="auto")
    verbose: int = checked(check_whole, least=0, cure="True and False are allowed too.", also=(True, False), default=0)
    random_state: int | np.random.RandomState | None = checked(check_seed, default=None)
    max_iter: int = checked(check_whole, least=1, default=1000)
    regularize_intercept: bool = checked(check_flag, default=True)
    solver: Solver = checked(check_choice, allowed=SOLVERS, default="auto")
    time_limit: float | None = checked(check_time_limit, default=None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@estimator
class LinearSupportVectorMachine(LinearSvmParameters):
    """Parameters and methods of every linear SVM. Base class."""

    penalty: Penalty = fixed("l2")
    loss: Loss = "squared_hinge"
    C: float = checked(check_number, above=0, most=MOST_BOUND, beyond=HARD_MARGIN, default=1.0)
    epsilon: float = fixed(0.0)
    multi_class: str = fixed("ovr")
    warm_start: bool = checked(check_flag, default=False)

    coef_: Matrix = fitted()
    intercept_: NDArray[np.float64] = fitted()
    n_iter_: int = fitted()
    gap_: NDArray[np.float64] = fitted()
    primal_: NDArray[np.float64] = fitted()
    dual_: NDArray[np.float64] = fitted()
    dual_coef_: NDArray[np.float64] = fitted()
    solver_: str = fitted()
    certificate_: Certificate = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find w and b. ``sample_weight`` multiplies C of each row."""
        self._check()
        if (engine := partitioning(self.engine, X)) is not None:
            return self._fit_partitions(engine, X, y, sample_weight)
        problem, labels = self._posed(X, y, sample_weight)
        asked: Problem[LinearSvmSolutions] = problem
        solution = self._solve(asked)
        self.__dict__.update(labels)  # only now: a fit that fails leaves the model as it was
        self._keep(solution)
        self._keep_certificate(problem)
        return self

    def path(
        self, X: ArrayLike, y: ArrayLike, Cs: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> LinearPath:
        """Fit the models along C, each with its certificate: every one begins where the last one ended.

        As `SVC.path`; without ``Cs``, C is 0.001 … 100 in 20 steps.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import LinearSVC
        >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
        >>> path = LinearSVC(loss="hinge").path(X, y, [0.1, 10])
        >>> path.margins.round(2).tolist()
        [[4.0], [2.0]]
        """
        self._check()
        values = DEFAULT_CS if Cs is None else penalties(Cs)
        reader = clone(self).set_params(C=1.0)
        problem, labels = reader._posed(X, y, sample_weight)
        reader.__dict__.update(labels)
        return fit_path(reader, problem, values, self._effort())

    @abstractmethod
    def _fit_partitions(self, engine: Engine, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit a table in partitions on the workers of an engine."""

    @abstractmethod
    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[LinearProblem, dict[str, Any]]:
        """Return the problem of these data, and what a classifier keeps of their labels."""

    @property
    @abstractmethod
    def _names(self) -> tuple[str, ...]:
        """Names of the machines: the classes that each one separates."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return w·x + b of each row and machine, shape (n, machines)."""
        check_is_fitted(self)
        points = read_points(self, X)
        coef = self.coef_ if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        return np.asarray(safe_sparse_dot(points, coef.T, dense_output=True) + self.intercept_, dtype=np.float64)

    def _check(self) -> None:
        super()._check()
        if self.fit_intercept:
            check_number(
                "intercept_scaling", self.intercept_scaling, above=0, cure="Use fit_intercept=False for no intercept."
            )

    def _settled_solver(self, d: int) -> Solver:
        """Return ``solver``, as far as ``dual`` settles it."""
        if self.penalty == "l1":
            if not isinstance(self.dual, str) and self.dual:
                raise self._unsupported("penalty='l1' does not support dual=True. Use dual='auto', or penalty='l2'")
            if self.solver != "auto":
                raise ParameterError(f"solver is {self.solver!r}; penalty='l1' requires solver='auto'.")
        if isinstance(self.dual, str):
            return self.solver
        if self.dual:
            if self.solver in _PRIMAL:
                raise ParameterError(f"dual is True, but solver={self.solver!r} solves the primal. Use dual='auto'.")
            return "descent"
        if not is_squared(self.loss):
            words = f"dual is False, but loss={self.loss!r} is not differentiable"
            raise self._unsupported(f"{words}. Use dual='auto', or the squared loss")
        if self.solver == "descent":
            raise ParameterError("dual is False, but solver='descent' solves the dual. Use dual='auto'.")
        if self.solver != "auto" or self.penalty == "l1":
            return self.solver
        return "newton" if d <= _GRAM_COLUMNS else "conjugate_gradients"

    def _unsupported(self, words: str) -> ParameterError:
        """Return the error about a ``dual`` that does not suit penalty and loss, with scikit-learn's first words."""
        found = f"penalty={self.penalty!r}, loss={self.loss!r}, dual={self.dual!r}"
        return ParameterError(f"Unsupported set of arguments: {found}. {words}.")

    @property
    def _seed(self) -> int:
        """Seed of the order of coordinates; 0 for None."""
        return 0 if self.random_state is None else seeds_for(self.random_state, 1)[0]

    def _stated(
        self, X: Matrix, targets: Sequence[NDArray[np.float64]], costs: Sequence[NDArray[np.float64]]
    ) -> LinearSvmProblem:
        """Return machines with these targets and costs as one problem."""
        problem = stated_problem(self, X, targets, costs)
        return replace(problem, solver=self._settled_solver(X.shape[1]), seed=self._seed)

    def _warmed(self, problem: LinearSvmProblem, names: Sequence[str]) -> LinearSvmProblem:
        """Return the problem with each machine started where the last fit left that of its name; row i is taken for its
        row i."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return problem
        coef, places = weights_of(self), self._left_machines()
        if coef.shape[1] != problem.rows.d:
            return problem
        machines = list(problem.machines)
        for number, (machine, name) in enumerate(zip(machines, names, strict=True)):
            if name not in places:
                continue
            place, beta = places[name], None
            if hasattr(self, "dual_coef_"):
                low, high = bounds_of(problem.loss, machine.target, machine.cost)
                beta = np.clip(carried(self.dual_coef_[place], len(low)), low, high)
            machines[number] = replace(machine, w=coef[place].copy(), b=float(self.intercept_[place]), beta=beta)
        return replace(problem, machines=tuple(machines))

    def _left_machines(self) -> dict[str, int]:
        """Return the places of the machines that the last fit left, by name."""
        return {name: place for place, name in enumerate(self._names)}

    def _solve(self, problem: Problem[S]) -> S:
        name, start = type(self).__name__, time.perf_counter()
        if self.verbose:
            print_problem(name, problem, choose(self.engine, problem, self._effort()))
        found = super()._solve(problem)
        if self.verbose:
            solutions: Any = found if isinstance(found, tuple) else (found,)
            print_solutions(name, solutions, time.perf_counter() - start)
        return found

    def _forget_rows(self) -> None:
        """Drop what earlier fits kept of their rows."""
        for name in ("dual_coef_", "dual_steps_", "n_seen_"):
            self.__dict__.pop(name, None)

    def _set_weights(self, coef: NDArray[np.float64], intercept: list[float]) -> None:
        self.coef_, self.intercept_ = coef, np.array(intercept)

    def _keep(self, solutions: Any) -> None:
        """Keep the weights, and β where the gap cannot be proved without."""
        self._forget_rows()
        self._set_weights(np.array([each.w for each in solutions]), [each.b for each in solutions])
        # A free intercept requires Σ β = 0; the β that w implies violates this, and scaling it weakens the proof.
        is_proved = is_squared(self.loss) and all(each.is_proved_by_w for each in solutions)
        if not is_proved or math.isinf(scale_of_intercept(self)):
            only = len(solutions) == 1  # then its β need not be copied, and that of millions of rows is large
            self.dual_coef_ = solutions[0].beta[None] if only else np.array([each.beta for each in solutions])
        self._keep_values(solutions)

    def _keep_values(self, solutions: Solutions, limit: str = "max_iter") -> None:
        """Keep the values of the machines, and how they ended. ``limit`` is the parameter that ends a solve with status
        max_iter."""
        self.gap_ = np.array([solution.gap for solution in solutions])
        self.primal_ = np.array([solution.primal for solution in solutions])
        self.dual_ = np.array([solution.dual for solution in solutions])
        self.n_iter_ = max(int(solution.n_iter) for solution in solutions)
        self.solver_ = ", ".join(dict.fromkeys(solution.solver for solution in solutions))
        self.status_ = worst(solution.status for solution in solutions)
        if self.status_ is Status.CONVERGED:
            return
        largest = int(np.argmax(np.nan_to_num(self.gap_, nan=np.inf)))
        where = f" in {self._names[largest]}" if len(self._names) > 1 else ""
        reached = self.gap_[largest]
        gap = f"relative gap {reached:.3g}" if np.isfinite(reached) else "the gap is unknown"
        what = f": {gap}{where}, tol is {self.tol:g}"
        warn_early(type(self).__name__, self.status_, what, self.status_.advice_on(limit=limit))

    def _keep_certificate(self, problem: LinearProblem) -> None:
        """Recompute the certificate where `_is_proof_due`; otherwise keep the solver's numbers."""
        X, names = problem.X, self._names
        n, d = X.shape
        stored = X.nnz if sp.issparse(X) else n * d
        is_due = self._is_proof_due(n, d, stored, lambda: max(float(X.max()), -float(X.min())))
        keep_certificate(self, certify_problem(self, problem, names) if is_due else solver_certificate(self, n, names))

    def _is_proof_due(self, n: int, d: int, stored: int, largest: Callable[[], float]) -> bool:
        """Return whether recomputing the certificate is cheap beside the fit, or the rounding of f may exceed tol;
        ``stored`` counts the numbers of X, and ``largest`` gives the largest |x|."""
        cells = (stored + _CELLS_PER_ROW * n) * len(self.intercept_)
        # A step of Newton's method with its d × d matrix costs as much as d/64 passes: BLAS is fast.
        passes = self.n_iter_ * (max(1, d // 64) if self.solver_ == "newton" else 1)
        if cells <= _SMALL_CELLS or (passes >= _CHEAP_BESIDE_PASSES and self.time_limit is None):
            return True
        rounding = ROUNDING_OF_SUMS * float(self.C) * n * np.abs(weights_of(self)).sum(axis=1).max()  # for |x| of 1
        share = rounding / (float(self.tol) * max(self.primal_.min(), np.finfo(np.float64).tiny))
        return bool(share * _USUALLY_LARGEST > 1 and share * largest() > 1)


def carried(beta: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return β for n rows: those at the end are new, or gone."""
    found = np.zeros(n)
    common = min(n, len(beta))
    found[:common] = beta[:common]
    return found


def print_problem(name: str, problem: Any, engine: Engine) -> None:
    """Print the problem in a line; and which solver takes it up, and why, in another."""
    if isinstance(problem, CrammerSingerProblem):
        asked = f"{problem.n_classes} classes in one machine (Crammer and Singer)"
    else:
        count = len(problem.machines)
        asked = f"loss {problem.loss}, penalty {problem.penalty}, {count} machine{'s' if count > 1 else ''}"
    rows, kind = problem.rows, "sparse" if problem.rows.is_sparse else "dense"
    print(f"[{name}] {rows.n} rows, {rows.d} columns, {kind} {problem.X.dtype}; {asked}")
    plan = engine.plan(problem)
    if plan:
        print(f"[{name}] solver {plan}")


def print_solutions(name: str, solutions: Solutions, elapsed: float) -> None:
    """Print how the solve ended, in a line."""
    status = worst(solution.status for solution in solutions)
    by = ", ".join(dict.fromkeys(solution.solver for solution in solutions))
    steps, gap = max(each.n_iter for each in solutions), max(each.gap for each in solutions)
    print(f"[{name}] {status} by {by} after {steps} steps in {elapsed:.2f} s; relative gap {gap:.3g}")
