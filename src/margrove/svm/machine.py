"""What the five support vector machines share: parameters, the solve, and what is kept of it. Not a learner itself.

problem → solver → model → certificate, for each of them: `fit` reads the data and states its `Dual`s; `_solve` answers
them all in one call, because they share the kernel; a `Solved` is one answer as the model keeps it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate, keep_certificate
from margrove.data.memory import free_memory
from margrove.data.sample import read_points
from margrove.engine import Capability, Effort, Engine, check_engine, choose
from margrove.engine.protocol import cache_bytes
from margrove.errors import (
    ConvergenceWarning,
    InfeasibleError,
    InputError,
    ParameterError,
    check_choice,
    check_flag,
    check_number,
    check_whole,
    level_of_caller,
)
from margrove.run.checkpoint import CheckpointLike, Record, settle_checkpoint
from margrove.run.progress import towards, watched
from margrove.status import Status, worst
from margrove.svm.certificate import solver_certificate
from margrove.svm.checkpointing import keep, keeper, resumed, solve_fingerprint
from margrove.svm.decision import check_points, linear_sums, matched, weighted_sums
from margrove.svm.fitted import Ground, Solved, settled, shows_margin
from margrove.svm.kernels import Kernel, Matrix, called, check_symmetric, kernel_of, settle_kernel
from margrove.svm.kkt import HARD, NU_CLASSIFICATION, WORDS, Form, row_grades
from margrove.svm.problem import HARD_MARGIN, MOST_BOUND, Dual, DualProblem, DualSolution, started, tolerance_unit
from margrove.svm.scaling import warn_of_unscaled

PRECISIONS = ("auto", "single", "double")
_MIB = 1 << 20
_KEPT_WEIGHTS = 1 << 24  # numbers of coef_
_FEW_MACHINES, _FEW_CELLS = 16, 1 << 22  # a certificate is recomputed in fit up to these: some milliseconds
_SCALE_FREE = ("precomputed", "callable", "chi2", "intersection")


@dataclass(frozen=True, eq=False)
class _Weights:
    """w of a linear machine, and what it was made of."""

    dual: NDArray[np.float64]
    support: Any
    coef: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Weights)  # it follows from what a model has besides

    __hash__ = None  # type: ignore[assignment]


class SupportVectorMachine(BaseEstimator):
    """What every support vector machine here has. Not a learner by itself."""

    _form: Form

    support_: NDArray[np.int32]
    support_vectors_: Any
    dual_coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_support_: NDArray[np.int32]
    gamma_: float
    n_rows_: int
    norm_: NDArray[np.float64]
    status_: Status
    engine_: str
    certificate_: Certificate

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any],
        degree: float,
        gamma: str | float,
        coef0: float,
        sigma: float | None,
        tol: float,
        shrinking: bool,
        cache_size: str | float,
        verbose: bool,
        max_iter: int,
        time_limit: float | None,
        n_jobs: int | None,
        engine: str,
        precision: str,
        checkpoint: CheckpointLike | None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.sigma = sigma
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.engine = engine
        self.precision = precision
        self.checkpoint = checkpoint

    @property
    def coef_(self) -> NDArray[np.float64]:
        """w of each machine, shape (machines, d), dense whatever X was. Only for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        known = self.__dict__.get("_known_weights")
        if known is not None and known.dual is self.dual_coef_ and known.support is self.support_vectors_:
            remembered: NDArray[np.float64] = known.coef
            return remembered
        coef = np.asarray(self._weights(), dtype=np.float64)
        coef.flags.writeable = False
        return coef

    def _remember_weights(self) -> None:
        """Keep w of a linear machine with what it was made of: rows that come one at a time would each make it anew."""
        self.__dict__.pop("_known_weights", None)
        if self.kernel == "linear" and len(self.intercept_) * self.n_features_in_ <= _KEPT_WEIGHTS:
            self._known_weights = _Weights(self.dual_coef_, self.support_vectors_, self.coef_)

    @property
    def kkt_(self) -> NDArray[np.str_]:
        """The word of each training row: "easy" (α = 0), "marginal" (0 < α < C) or "hard" (α = C)."""
        words = np.asarray(WORDS[self._grades])
        return words[:, 0] if words.shape[1] == 1 else words

    @property
    def fit_status_(self) -> int:
        """0 if converged, as scikit-learn has it."""
        return int(self.status_ is not Status.CONVERGED)

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The shape of X in ``fit``."""
        return self.n_rows_, self.n_features_in_

    @property
    def _gamma(self) -> float:
        return self.gamma_

    def _weights(self) -> Any:
        return self.dual_coef_ @ self.support_vectors_

    def _check_shared(self) -> Effort:
        """The parameters all five have; the effort they allow."""
        check_number("tol", self.tol, above=0)
        check_flag("shrinking", self.shrinking)
        check_whole("max_iter", self.max_iter, least=-1, cure="-1 leaves it at ten million or more.")
        if not isinstance(self.cache_size, str):
            check_number("cache_size", self.cache_size, above=0, cure="It is in MiB.")
        else:
            check_choice("cache_size", self.cache_size, ("auto",), also="a number of MiB")
        check_choice("precision", self.precision, PRECISIONS)
        is_kept = settle_checkpoint(self.checkpoint) is not None
        check_engine(self.engine, *([Capability.CHECKPOINT] if is_kept else []))
        return Effort(self.time_limit, self.n_jobs)

    def _ground(self, X: Matrix) -> Ground:
        """The kernel settled on the points; a callable becomes its Gram matrix."""
        kernel = settle_kernel(self.kernel, X, gamma=self.gamma, sigma=self.sigma, degree=self.degree, coef0=self.coef0)
        if kernel.name not in _SCALE_FREE:
            warn_of_unscaled(X, getattr(self, "feature_names_in_", None))
        if kernel.function is None:
            return Ground(X, kernel, X, kernel)
        needed, free = 8 * X.shape[0] ** 2, free_memory()
        if needed > free // 2:
            raise InputError(
                f"a callable kernel needs its whole Gram matrix, {needed / 2**30:.1f} GiB for {X.shape[0]} rows, and "
                f"{free / 2**30:.1f} GiB of memory are free",
                cure="Use a kernel by name, or fewer rows.",
            )
        gram = called(kernel.function, X, X)
        check_symmetric(gram)
        return Ground(X, kernel, gram, Kernel("precomputed"))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _solve(self, ground: Ground, duals: Sequence[Dual], names: Sequence[str], effort: Effort) -> list[Solved]:
        """Answer all duals in one call; keep why it ended, and say so if it was too early."""
        record, begun = self._record(ground, duals), duals
        if record is not None:
            begun, effort = resumed(duals, record), replace(effort, look_around=keeper(record))
            if self.verbose and begun is not duals:
                print(f"[{type(self).__name__}] goes on from its checkpoint")
        ground, problem = self._problem(ground, begun)
        engine = choose(self.engine, problem)
        if self.verbose:
            _tell_problem(type(self).__name__, ground, problem, engine)
        start = time.perf_counter()
        with towards(problem.tol):
            solutions = engine.solve(problem, effort)
        if self.verbose:
            _tell_solutions(type(self).__name__, solutions, time.perf_counter() - start)
        if record is not None and worst(solution.status for solution in solutions) is not Status.CONVERGED:
            keep(record, [solution.alpha for solution in solutions])
        try:
            return self._settle(ground, duals, names, solutions, engine.name)
        except InfeasibleError:
            if record is not None:
                record.remove()  # there is nothing to go on to
            raise

    def _record(self, ground: Ground, duals: Sequence[Dual]) -> Record | None:
        checkpoint = settle_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        return Record(checkpoint, solve_fingerprint(ground.points, ground.solved, duals))

    def _finish_checkpoint(self) -> None:
        """The last act of a fit: a checkpoint that nobody will go on from is removed."""
        checkpoint = settle_checkpoint(self.checkpoint)
        if checkpoint is not None and self.status_ in (Status.CONVERGED, Status.NONFINITE):
            checkpoint.remove()

    def _problem(self, ground: Ground, duals: Sequence[Dual]) -> tuple[Ground, DualProblem]:
        """The duals as one problem, and the ground as it is solved on."""
        precision = self.precision
        if any(dual.hulls for dual in duals):
            ground = _about_its_mean(ground)
            precision = "double" if precision == "auto" else precision  # whether hulls meet, float cannot tell
        problem = DualProblem(
            ground.points,
            ground.solved,
            tuple(duals),
            tol=float(self.tol) * min(tolerance_unit(dual, ground.diagonal[dual.point]) for dual in duals),
            max_iter=int(self.max_iter),
            cache_bytes=self._cache_bytes(),
            precision=precision,
            shrinking=bool(self.shrinking),
        )
        return ground, problem

    def _settle(
        self,
        ground: Ground,
        duals: Sequence[Dual],
        names: Sequence[str],
        solutions: Sequence[DualSolution],
        engine: str,
    ) -> list[Solved]:
        solved = [
            settled(name, dual, solution, ground, self._form)
            for name, dual, solution in zip(names, duals, solutions, strict=True)
        ]
        # Only now: a problem without a solution leaves nothing behind.
        self.engine_, self.status_ = engine, worst(solution.status for solution in solutions)
        self._warn(solved)
        return solved

    def _started(self, dual: Dual, beta: NDArray[np.float64], machine: int, n: int) -> Dual:
        """``dual`` on n rows from where one machine of the last fit ended: row i is taken for its row i."""
        carried, was_bound = np.zeros(n), np.zeros(n, np.bool_)
        still, common = self.support_ < n, min(n, self.n_rows_)
        carried[self.support_[still]] = beta[still]
        was_bound[:common] = self._grades[:common, machine] == HARD
        return started(dual, carried, was_bound)

    def _cache_bytes(self) -> int | None:
        """The bytes for kernel values; None leaves them to the engine."""
        if isinstance(self.cache_size, str):
            return None
        return int(min(self.cache_size * _MIB, 2.0**62))

    def _warn(self, solved: list[Solved]) -> None:
        """A solve that ended early, or (ν-SVC) a margin that tol is too coarse to show."""
        name = type(self).__name__
        if self.status_ is not Status.CONVERGED:
            violations = np.array([each.solution.violation for each in solved])
            worst_one = solved[int(np.argmax(np.nan_to_num(violations, nan=np.inf)))]
            where = f" in {worst_one.machine.name}" if len(solved) > 1 else ""
            reached = worst_one.solution.violation
            violation = f"violation {reached:.3g}" if np.isfinite(reached) else "no violation is known"
            advice = self.status_.advice
            if self.status_ is Status.MAX_ITER and self.max_iter == -1:
                steps = max(each.solution.n_iter for each in solved)
                lower = "lower C, " if hasattr(self, "C") else ""
                advice = f"{steps:,} steps were not enough: check the scale of the columns, {lower}or raise tol"
            message = (
                f"{name} ended with status {str(self.status_)!r}: {violation}{where}, tol is {self.tol:g}; {advice}."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
            return
        for each in solved:
            machine = each.machine
            if self._form is NU_CLASSIFICATION and not shows_margin(machine, each.finding):
                message = (
                    f"{name}: the margin of {machine.name} is below what tol={self.tol:g} can tell from 0; raise nu, "
                    "or lower tol."
                )
                warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
                return

    def _keep(self, ground: Ground, solved: list[Solved], support: NDArray[np.int64]) -> None:
        """What all five keep; ``dual_coef_`` and ``n_support_`` are theirs."""
        self.n_rows_ = ground.X.shape[0]
        self.support_ = support.astype(np.int32)
        is_given = ground.kernel.name == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if is_given else ground.X[support]
        self.intercept_ = np.array([each.b for each in solved])
        self.norm_ = np.array([each.norm for each in solved])
        self.gamma_ = ground.kernel.gamma
        grades = [row_grades(each.machine, each.finding.grade, self.n_rows_) for each in solved]
        self._grades = np.stack(grades, axis=1)  # (n, machines)

    def _keep_certificate(
        self,
        certify: Callable[[Any, Any, Any, Any], Certificate],
        given: tuple[Any, Any, Any],
        ground: Ground,
        solved: list[Solved],
    ) -> None:
        """Recompute from what was ``given`` where that is cheap beside the fit; else the solver's numbers stand."""
        d = 1 if ground.kernel.name == "precomputed" else ground.X.shape[1]
        cells = d * sum(len(each.beta) * int(np.count_nonzero(each.beta)) for each in solved)
        if len(solved) <= _FEW_MACHINES and cells <= _FEW_CELLS:
            with watched(None):  # a tenth of the fit at most: whoever watches that need not hear of this
                certificate = certify(self, *given)
        else:
            machines, findings = [each.machine for each in solved], [each.finding for each in solved]
            certificate = solver_certificate(self, ground.X.shape[0], machines, findings, self._form)
        keep_certificate(self, certificate)

    def _read_points(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        points = read_points(self, X)
        check_points(kernel_of(self), points)
        return points

    def _sums(self, points: Matrix) -> NDArray[np.float64]:
        """Σ β K(x_i, x) for each row of ``dual_coef_``, shape (n, rows)."""
        kernel = kernel_of(self)
        if kernel.name == "precomputed":
            return np.asarray(points[:, self.support_] @ self.dual_coef_.T, dtype=np.float64)
        if kernel.name == "linear":
            return linear_sums(points, self.coef_)
        return weighted_sums(self, kernel, *matched(points, self.support_vectors_), self.dual_coef_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "intersection")
        return tags


def rows_that_count(weight: NDArray[np.float64] | None, n: int) -> NDArray[np.int64]:
    """Rows of weight 0 take no part."""
    return np.arange(n) if weight is None else np.flatnonzero(weight > 0)


def bounds(C: float, weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """C times the weight of each of the rows."""
    if weight is None:
        check_number("C", C, most=MOST_BOUND, beyond=HARD_MARGIN)
        return np.full(len(rows), float(C))
    with np.errstate(over="ignore"):
        upper = np.asarray(float(C) * weight[rows])
    check_weighted(upper.max(initial=0))
    return upper


def check_weighted(largest: float) -> None:
    """Refuse rows whose C is beyond reckoning."""
    if not largest <= MOST_BOUND:
        raise ParameterError(
            f"C times the weight of a row is {largest:g}; it must be {MOST_BOUND:g} at most. Lower C or the weights, "
            "or scale y of a regression."
        )


def check_nu(nu: Any) -> None:
    """ν is a share of the rows."""
    check_number("nu", nu, above=0)
    if nu > 1:
        raise ParameterError(f"nu is {nu}; it must be a number > 0 and ≤ 1.")


def _about_its_mean(ground: Ground) -> Ground:
    """Far from the origin products have no digits left for how far two hulls are apart, and distances need none of
    them: dense points under the linear kernel are moved to their mean."""
    if ground.solved.name != "linear" or sp.issparse(ground.points):
        return ground
    points = ground.points.astype(np.float64)
    centre = points.mean(axis=0)
    points -= centre
    return replace(ground, points=points, centre=centre)


def _tell_problem(name: str, ground: Ground, problem: DualProblem, engine: Engine) -> None:
    kernel, (n, d) = ground.kernel, ground.X.shape
    gamma = f" (gamma {kernel.gamma:.6g})" if kernel.name in ("rbf", "poly", "sigmoid", "laplacian", "chi2") else ""
    machines = f"{len(problem.machines)} machine{'s' if len(problem.machines) > 1 else ''}"
    print(
        f"[{name}] {n} rows, {d} columns, kernel {kernel.name}{gamma}, {machines}, precision {problem.precision}, "
        f"kernel rows in at most {cache_bytes(engine, problem.cache_bytes) / _MIB:.0f} MiB"
    )


def _tell_solutions(name: str, solutions: Sequence[DualSolution], elapsed: float) -> None:
    status = worst(solution.status for solution in solutions)
    steps, violation = sum(each.n_iter for each in solutions), max(each.violation for each in solutions)
    if any(each.solver == "newton" for each in solutions):
        print(f"[{name}] the kernel is linear and columns are few: sought as w itself, by Newton's method")
    print(f"[{name}] {status} after {steps} steps in {elapsed:.2f} s; violation {violation:.3g}")
