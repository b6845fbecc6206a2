"""Linear SVMs of more rows than memory holds: `fit_stream` over chunks that come again, `partial_fit` over pieces that
do not."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine
from margrove.data.rows import Chunked
from margrove.engine import Effort, choose
from margrove.errors import ConvergenceWarning, ParameterError, check_whole, level_of_caller
from margrove.linear_svm.certificate import solver_certificate
from margrove.linear_svm.chunks import ChunkedSample
from margrove.linear_svm.layout import scale_of_intercept, weights_of
from margrove.linear_svm.machine import LinearSupportVectorMachine, tell_solutions
from margrove.linear_svm.problem import is_of_signs, is_squared, losses
from margrove.linear_svm.stream_problem import Block, StreamProblem, StreamSolution
from margrove.run.progress import Progress, overheard
from margrove.status import Status, worst

_LEAST_SECONDS = 1e-9  # of a solve whose time is over
_MOST_PASSES_PER_PIECE = 1000  # the piece is in memory, so a pass costs little


def learns_pieces(model: Streaming) -> bool:
    """Whether ``partial_fit`` is there; what it is missing for is told as the cause of the AttributeError."""
    model._check_pieces()
    return True


class Streaming(LinearSupportVectorMachine):
    """What linear SVMs can do with rows that come in chunks. Not a learner by itself."""

    dual_steps_: NDArray[np.float64]
    n_seen_: int

    def _solve_stream(
        self, sample: ChunkedSample, epsilon: float, max_passes: int, effort: Effort, began: float
    ) -> tuple[StreamSolution, ...]:
        problem = StreamProblem(
            sample.rows,
            sample.primal_at_centre,
            sample.spread,
            loss=self.loss,
            intercept=scale_of_intercept(self),
            epsilon=epsilon,
            tol=float(self.tol),
            max_passes=max_passes,
            centre=sample.centre,
        )
        if effort.time_limit is not None:  # the first look counts
            left = effort.time_limit - (time.monotonic() - began)
            effort = replace(effort, time_limit=max(left, _LEAST_SECONDS))
        engine = choose(self.engine, problem, or_any=True)  # rows in chunks are not for every engine
        self.engine_ = engine.name
        if not self.verbose:
            return engine.solve(problem, effort)
        name, start = type(self).__name__, time.perf_counter()
        print(f"[{name}] {sample.rows.n} rows in chunks, {sample.rows.d} columns; loss {self.loss}")

        def tell(progress: Progress) -> None:
            gap = "" if progress.objective is None else f", relative gap {progress.objective:.3g}"
            print(f"[{name}] {progress.done:g} passes{gap}, {time.perf_counter() - start:.1f} s", flush=True)

        with overheard(tell):
            solutions = engine.solve(problem, effort)
        tell_solutions(name, solutions, time.perf_counter() - start)
        return solutions

    def _keep_stream(self, solutions: Sequence[StreamSolution], n: int, names: tuple[str, ...]) -> None:
        """Weights, numbers, the steps that tell β, and the solver's word on them."""
        self._forget_rows()
        self.coef_ = np.array([solution.w for solution in solutions])
        self.intercept_ = np.array([solution.b for solution in solutions])
        if not is_squared(self.loss):
            self._keep_pulls(solutions)
        self._keep_solutions(solutions, names, limit="max_passes")
        self.certificate_ = solver_certificate(self, n, names)

    def _keep_pulls(self, solutions: Sequence[StreamSolution]) -> None:
        """What tells β, so that the gap can be proved later: the steps that led to it, or β itself, or, of very many
        rows of very many columns, neither."""
        steps = [solution.steps for solution in solutions if solution.steps is not None]
        pulls = [solution.beta for solution in solutions if solution.beta is not None]
        if steps:
            self.dual_steps_ = np.zeros((len(steps), max(map(len, steps)), steps[0].shape[1]))
            for own, given in zip(self.dual_steps_, steps, strict=True):
                own[: len(given)] = given
        elif pulls:
            self.dual_coef_ = np.array(pulls)

    def _check_streamed(self, max_passes: int) -> None:
        check_whole("max_passes", max_passes, least=1)
        if getattr(self, "penalty", "l2") == "l1":
            raise ParameterError("penalty is 'l1', which fit_stream and partial_fit do not have. Use penalty='l2'.")
        if getattr(self, "multi_class", "ovr") == "crammer_singer":
            raise ParameterError(
                f"multi_class is {self.multi_class!r}, which fit_stream and partial_fit do not have. Use 'ovr'."
            )

    # Pieces

    def _check_pieces(self) -> None:
        """Refuse parameters with which rows cannot be learnt piece by piece."""
        self._check_streamed(1)
        if self.fit_intercept and not self.regularize_intercept:
            raise ParameterError(
                "regularize_intercept is False, and partial_fit needs a penalised intercept: a piece may hold one "
                "class only. Use regularize_intercept=True, with a large intercept_scaling perhaps, or fit_stream."
            )

    def _learn_piece(
        self,
        X: Any,
        targets: NDArray[np.float64],
        prices: NDArray[np.float64],
        epsilon: float,
        names: tuple[str, ...],
        effort: Effort,
    ) -> None:
        """One step of block minimisation; see `margrove.linear_svm.stream_problem`."""
        n, d = X.shape
        machines = len(targets)
        centre = np.zeros((machines, d + 1))
        if hasattr(self, "coef_"):
            centre[:, :d], centre[:, d] = weights_of(self), self.intercept_
        values = np.asarray(X @ centre[:, :d].T + centre[:, d]).T
        at_centre = (prices * losses(self.loss, targets, values, epsilon)).sum(axis=1)
        spread = np.sqrt((targets**2).mean(axis=1)) if not is_of_signs(self.loss) else np.ones(machines)
        problem = StreamProblem(
            Chunked(n, d, sp.issparse(X), lambda: iter([Block(X, targets, prices)])),
            at_centre,
            np.where(spread > 0, spread, 1.0),
            loss=self.loss,
            intercept=scale_of_intercept(self),
            epsilon=epsilon,
            tol=float(self.tol),
            max_passes=_MOST_PASSES_PER_PIECE,
            centre=centre,
        )
        engine = choose(self.engine, problem, or_any=True)
        solutions = engine.solve(problem, effort)
        self.engine_ = engine.name
        self._keep_piece(solutions, n, names)

    def _keep_piece(self, solutions: Sequence[StreamSolution], n: int, names: tuple[str, ...]) -> None:
        # w of a fit need not be the sum of any pulls whose dual value is known, so its rows cannot be counted.
        seen, dual = (self.n_seen_, self.dual_) if hasattr(self, "n_seen_") else (0, np.zeros(len(solutions)))
        self._forget_rows()
        self.gap_ = self.primal_ = np.full(len(solutions), np.nan)  # of all rows seen nobody knows them
        self.n_seen_ = seen + n
        self.coef_ = np.array([solution.w_dual for solution in solutions])
        self.intercept_ = np.array([solution.b_dual for solution in solutions])
        self.dual_ = dual + np.array([solution.dual for solution in solutions])
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self.solver_ = ", ".join(dict.fromkeys(solution.solver for solution in solutions))
        self.status_ = worst(solution.status for solution in solutions)
        self.certificate_ = self._certificate_of_pieces(names)
        if self.status_ is not Status.CONVERGED:
            message = f"{type(self).__name__} ended a piece with status {str(self.status_)!r}; {self.status_.advice}."
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def _certificate_of_pieces(self, names: tuple[str, ...]) -> Certificate:
        """What is known of all rows seen, and how more can be."""
        cure = (
            "certify(model, chunks) over all rows seen tells it"
            if is_squared(self.loss)
            else f"nor can it be, for w alone does not tell the pulls of loss {self.loss}: see fit_stream"
        )
        claims = (
            Claim(
                "relative duality gap", per_machine(self.gap_), words=f"not known of rows that are forgotten; {cure}"
            ),
            Claim(
                "dual value",
                per_machine(self.dual_),
                words="D of the rows seen by partial_fit, w and b counted from where it began: no others have a P "
                "below it",
            ),
        )
        status = f"{self.status_} on the last piece"
        return Certificate(type(self).__name__, status, "solver", self.n_seen_, names, claims)
