"""Linear SVMs of more rows than memory holds: `fit_stream` over chunks that are read again for each pass, `partial_fit`
over pieces that are read once."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.advice import Advice
from margrove.certificate import Certificate, Claim, keep_certificate, per_machine
from margrove.data.partitions import Partitions
from margrove.data.rows import Chunked, Matrix
from margrove.engine import Effort, Engine, choose
from margrove.errors import ConvergenceWarning, ParameterError, check_whole, level_of_caller, shown
from margrove.estimator import estimator, fitted
from margrove.linear_svm.certificate import certify_partitioned, solver_certificate
from margrove.linear_svm.chunks import ChunkedSample
from margrove.linear_svm.layout import is_joint, scale_of_intercept, weights_of
from margrove.linear_svm.machine import LinearSupportVectorMachine, print_solutions
from margrove.linear_svm.problem import is_of_signs, is_squared, losses
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem, StreamSolution
from margrove.run.progress import Progress, overheard
from margrove.status import Status, worst

_MOST_PASSES_PER_PIECE = 1000  # the piece is in memory, so a pass costs little


def learns_pieces(model: Streaming) -> bool:
    """Return True where ``partial_fit`` is there; raise an error with the reason where it is not."""
    model._check_streamed(1)
    if model.fit_intercept and not model.regularize_intercept:
        raise ParameterError(
            "regularize_intercept is False, but partial_fit needs a penalised intercept, because a chunk may contain "
            "only one class. Use regularize_intercept=True, perhaps with a large intercept_scaling, or fit_stream."
        )
    return True


@estimator
class Streaming(LinearSupportVectorMachine):
    """Fits of rows that come in chunks. Base class."""

    dual_steps_: NDArray[np.float64] = fitted()
    n_seen_: int = fitted()
    classes_: NDArray[Any] = fitted()

    def _fit_chunks(self, read: Callable[[], ChunkedSample], max_passes: int) -> Self:
        """Fit the chunks that ``read`` looks through."""
        self._check()
        self._check_streamed(max_passes)
        started = time.monotonic()
        sample = read()
        solutions = self._solve_stream(sample, max_passes, started)
        if len(sample.classes):
            self.classes_ = sample.classes
        self._keep_stream(solutions, sample.rows.n)
        return self

    def _fit_partitions(self, engine: Engine, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit a table in partitions, and certify the model there unless it is large: see `_is_proof_due`."""
        self._check_spread()
        started = time.monotonic()
        with engine.partitions(X, y, sample_weight) as parts:
            sample = self._read_partitions(parts)
            solutions = self._solve_stream(sample, self.max_iter, started)
            if len(sample.classes):
                self.classes_ = sample.classes
            self._keep_stream(solutions, sample.rows.n, limit="max_iter")
            n, d = sample.rows.n, sample.rows.d
            if self._is_proof_due(n, d, n * d, lambda: np.inf):
                keep_certificate(self, certify_partitioned(self, sample, self._names))
        return self

    def _check_spread(self) -> None:
        """Raise `ParameterError` for what a linear machine over partitions does not do."""
        self._check_streamed(self.max_iter, "engine='dask' does")
        is_asked = {
            "solver" if self.dual == "auto" else "dual": self._settled_solver(1) not in ("auto", "newton"),
            "warm_start": self.warm_start,
        }
        for name, asked in is_asked.items():
            if asked:
                found = f"{name} is {shown(getattr(self, name))}, which engine='dask' does not support"
                raise ParameterError(f"{found}. Leave it out, or fit rows in memory.")

    @abstractmethod
    def _read_partitions(self, parts: Partitions) -> ChunkedSample:
        """Read a table in partitions once, to check it and to learn its classes and columns."""

    def _solve_stream(self, sample: ChunkedSample, max_passes: int, started: float) -> tuple[StreamSolution, ...]:
        """Solve over all chunks. The first pass counts: it began at ``started``."""
        problem = self._stream_problem(sample, max_passes)
        effort = self._effort().left(started)
        if not self.verbose:
            return self._solve_chunked(problem, effort)
        name, start = type(self).__name__, time.perf_counter()
        print(f"[{name}] {sample.rows.n} rows {sample.rows.home.value}, {sample.rows.d} columns; loss {self.loss}")

        def on_progress(progress: Progress) -> None:
            gap = "" if progress.objective is None else f", relative gap {progress.objective:.3g}"
            print(f"[{name}] {progress.done:g} passes{gap}, {time.perf_counter() - start:.1f} s", flush=True)

        with overheard(on_progress):
            solutions = self._solve_chunked(problem, effort)
        print_solutions(name, solutions, time.perf_counter() - start)
        return solutions

    def _stream_problem(self, sample: ChunkedSample, max_passes: int) -> StreamProblem:
        return StreamProblem(
            sample.rows,
            sample.primal_at_centre,
            sample.spread,
            loss=self.loss,
            intercept=scale_of_intercept(self),
            epsilon=float(self.epsilon),
            tol=float(self.tol),
            max_passes=max_passes,
            centre=sample.centre,
        )

    def _solve_chunked(self, problem: StreamProblem, effort: Effort) -> tuple[StreamSolution, ...]:
        engine = choose(self.engine, problem, effort, or_any=True)  # not every engine reads rows in chunks
        solutions = engine.solve(problem, effort)
        self.engine_ = engine.name
        return solutions

    def _keep_stream(self, solutions: Sequence[StreamSolution], n: int, limit: str = "max_passes") -> None:
        """Keep the weights, the values and what gives β, so that the gap can be proved later: the steps that led to it,
        or β itself, or, of very many rows of very many columns, neither."""
        self._forget_rows()
        self._set_weights(np.array([each.w for each in solutions]), [each.b for each in solutions])
        steps = [each.steps for each in solutions if each.steps is not None]
        betas = [each.beta for each in solutions if each.beta is not None]
        if is_squared(self.loss):
            pass  # w implies β
        elif steps:
            self.dual_steps_ = np.zeros((len(steps), max(map(len, steps)), steps[0].shape[1]))
            for own, given in zip(self.dual_steps_, steps, strict=True):
                own[: len(given)] = given
        elif betas:
            self.dual_coef_ = np.array(betas)
        self._keep_values(solutions, limit=limit)
        self.certificate_ = solver_certificate(self, n, self._names)

    def _check_streamed(self, max_passes: int, which: str = "fit_stream and partial_fit do") -> None:
        check_whole("max_passes", max_passes, least=1)
        if self.penalty == "l1":
            raise ParameterError(f"penalty is 'l1', which {which} not support. Use penalty='l2'.")
        if is_joint(self):
            raise ParameterError(f"multi_class is {self.multi_class!r}, which {which} not support. Use 'ovr'.")

    def _solve_piece(
        self, X: Matrix, targets: NDArray[np.float64], costs: NDArray[np.float64]
    ) -> tuple[StreamSolution, ...]:
        """Take one step of block minimisation; see `margrove.linear_svm.stream_problem`."""
        n, d = X.shape
        centre = np.zeros((len(targets), d + 1))
        if hasattr(self, "coef_"):
            centre[:, :d], centre[:, d] = weights_of(self), self.intercept_
        values = np.asarray(X @ centre[:, :d].T + centre[:, d]).T
        at_centre = (costs * losses(self.loss, targets, values, float(self.epsilon))).sum(axis=1)
        spread = np.ones(len(targets)) if is_of_signs(self.loss) else np.sqrt((targets**2).mean(axis=1))
        rows = Chunked(n, d, sp.issparse(X), lambda: iter([RowBlock(X, targets, costs)]))
        sample = ChunkedSample(rows, at_centre, np.where(spread > 0, spread, 1.0), centre)
        return self._solve_chunked(self._stream_problem(sample, _MOST_PASSES_PER_PIECE), self._effort())

    def _keep_piece(self, solutions: Sequence[StreamSolution], n: int) -> None:
        # w of a fit need not be Σ β x of any β whose dual value is known, so its rows cannot be counted.
        seen, dual = (self.n_seen_, self.dual_) if hasattr(self, "n_seen_") else (0, np.zeros(len(solutions)))
        self._forget_rows()
        self.gap_ = self.primal_ = np.full(len(solutions), np.nan)  # unknown for all rows seen
        self.n_seen_ = seen + n
        self._set_weights(np.array([each.w_dual for each in solutions]), [each.b_dual for each in solutions])
        self.dual_ = dual + np.array([each.dual for each in solutions])
        self.n_iter_ = max(each.n_iter for each in solutions)
        self.solver_ = ", ".join(dict.fromkeys(each.solver for each in solutions))
        self.status_ = worst(each.status for each in solutions)
        cure = (
            "certify(model, chunks) over all these rows computes it"
            if is_squared(self.loss)
            else f"w does not determine the dual coefficients of loss {self.loss}; use fit_stream to obtain it"
        )
        unknown = f"unknown, because partial_fit does not keep the rows; {cure}"
        bound = "D of the rows seen by partial_fit, with w and b relative to its start: a lower bound of P"
        claims = (
            Claim("relative duality gap", per_machine(self.gap_), words=unknown),
            Claim("dual value", per_machine(self.dual_), words=bound),
        )
        status = f"{self.status_} on the last chunk"
        self.certificate_ = Certificate(type(self).__name__, status, "solver", self.n_seen_, self._names, claims)
        if self.status_ is not Status.CONVERGED:
            message = f"{type(self).__name__} stopped on a chunk with status {str(self.status_)!r}; "
            warnings.warn(Advice(message, self.status_.advice, "."), ConvergenceWarning, stacklevel=level_of_caller())
