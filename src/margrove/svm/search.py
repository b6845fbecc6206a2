"""The search for C, γ and ε as one computation: every fold, class and C under one kernel matrix per γ."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.advice import Advice
from margrove.engine import choose
from margrove.errors import (
    ConvergenceWarning,
    DataWarning,
    ParameterError,
    check_flag,
    level_of_caller,
    shown,
)
from margrove.estimator import estimator
from margrove.run.checkpoint import CheckpointLike, Record, fingerprint, settle_checkpoint
from margrove.run.effort import on_interrupt
from margrove.run.progress import overheard, part_of
from margrove.status import Status, worst
from margrove.svm.checkpointing import kernel_words
from margrove.svm.cross_validation import CrossValidatedSearch
from margrove.svm.folds import points_in_order
from margrove.svm.grid import Fold, Ladder, SearchProblem, Unit, UnitSolution, ascending, listed_values
from margrove.svm.kernels import Kernel, KernelFunction, Matrix, settle_kernel
from margrove.svm.live_line import LiveLine
from margrove.svm.machine import SupportVectorMachine
from margrove.svm.scorers import name_of
from margrove.svm.table import ScoreTable
from margrove.svm.training import check_weighted, training_data

_CS = 10.0 ** np.arange(-1, 3, 0.5)  # 0.1 … 316
_GAMMAS = 4.0 ** np.arange(-3, 3)  # times what suits the data
# Parameters that decide a cell's score and are not in its duals.
_JUDGING = ("tol", "max_iter", "precision", "multiclass", "decision_function_shape", "break_ties")
_HAS_NO_GAMMA = ("linear", "intersection", "precomputed")

# The score of each C on a fold, of the machines' values (Cs, machines, held out).
Scorer = Callable[[int, NDArray[np.float64]], NDArray[np.float64]]


@estimator
class SupportVectorSearch(CrossValidatedSearch):
    """What the searches under kernels share. Not a learner by itself."""

    gammas: ArrayLike | None = None
    drop_early: bool = False
    kernel: str | KernelFunction = "rbf"
    degree: float = 3
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: str | float = "auto"
    max_iter: int = -1
    precision: str = "auto"
    checkpoint: CheckpointLike | None = None

    def _check_search(self, template: SupportVectorMachine) -> None:
        template._check()
        check_flag("refit", self.refit)
        check_flag("drop_early", self.drop_early)
        self._check_scoring()

    @property
    def _is_without_gamma(self) -> bool:
        return not isinstance(self.kernel, str) or self.kernel in _HAS_NO_GAMMA

    def _gammas(self, X: Matrix) -> NDArray[np.float64]:
        """γ as numbers, ascending."""
        if self._is_without_gamma:
            if self.gammas is not None:
                raise ParameterError(f"gammas is {shown(self.gammas)}; kernel={self.kernel!r} has no gamma.")
            return np.ones(1)
        if self.gammas is None:
            base = "median" if self.kernel == "rbf" else 1.0 if self.kernel == "chi2" else "scale"
            return np.asarray(self._settled(X, base) * _GAMMAS, dtype=np.float64)
        return ascending("gammas", [self._settled(X, gamma) for gamma in listed_values("gammas", self.gammas)], above=0)

    def _settled(self, X: Matrix, gamma: Any) -> float:
        return settle_kernel(self.kernel, X, gamma=gamma, degree=self.degree, coef0=self.coef0).gamma

    def _fill(
        self,
        template: SupportVectorMachine,
        X: Matrix,
        order: NDArray[np.int64],
        ladders: tuple[Ladder, ...],
        folds: tuple[Fold, ...],
        grid: Mapping[str, NDArray[np.float64]],
        score: Scorer,
        searched: tuple[str, ...],
        weight: Any,
    ) -> None:
        """Fill the table; ``status_`` says whether to its end. Ladders and folds speak of X in ``order``. ``weight``
        is that of the rows in scoring."""
        check_weighted(float(grid["C"].max()) * max(float(fold.weight.max()) for fold in folds))
        data = training_data(template, X)
        points = points_in_order(data, order)
        kernels: tuple[Kernel, ...] = (data.solver_kernel,)
        if data.solver_kernel.name != "precomputed":
            settings = {"degree": self.degree, "coef0": self.coef0}
            kernels = tuple(settle_kernel(self.kernel, X, gamma=float(gamma), **settings) for gamma in grid["gamma"])
        self._forget()
        table = ScoreTable(grid, len(folds))
        record = self._record(table, (points, kernels, ladders, folds), weight)
        started = time.monotonic()
        every_fold = range(len(folds))
        self.status_ = Status.CONVERGED
        line = LiveLine(type(self).__name__, table) if self.verbose else None
        done = 0
        for numbers in [(number,) for number in every_fold] if self.drop_early else [tuple(every_fold)]:
            wanted = table.still_in(before=numbers[0])
            places, units = [], []
            for g, fold, e in product(range(len(kernels)), numbers, range(len(grid["epsilon"]))):
                kept = np.flatnonzero(wanted[:, e, g])
                place = kept, e, g, fold
                if len(kept) and not table.has(place):
                    places.append(place)
                    units.append(Unit(g, fold, grid["C"][kept], float(grid["epsilon"][e])))

            def take(number: int, solution: UnitSolution, places: list[Any] = places) -> None:
                start = time.perf_counter()
                scores = score(places[number][-1], solution.values)
                table.enter(places[number], scores, time.perf_counter() - start, solution)

            problem = SearchProblem(
                points,
                kernels,
                ladders,
                folds,
                tuple(units),
                take,
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                cache_bytes=template._cache_bytes(),
                precision=self.precision,
            )
            effort = replace(self._effort().left(started), look_around=_keeper(record, table))
            engine = choose(self.engine, problem, effort)
            self.engine_ = engine.name
            later = problem.n_cells * (len(folds) - 1 - numbers[-1])  # at most: cells are given up on the way
            if units:
                with overheard(line.watch) if line else nullcontext(), part_of(done, later):
                    self.status_ = engine.solve(problem, effort)
            done += problem.n_cells
            if self.status_ is not Status.CONVERGED:
                break
        if line is not None:
            line.end(self.status_)
        if record is not None and (self.refit or self.status_ is not Status.CONVERGED):
            record.write(table.arrays())
        self._keep_table(table, searched)

    def _record(self, table: ScoreTable, asked: tuple[Any, ...], weight: Any) -> Record | None:
        """The file of the search; the table goes on from it. Cells are kept as they are, so all that they depend on is
        in the fingerprint."""
        checkpoint = settle_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        points, kernels, ladders, folds = asked
        judged = [getattr(self, name, None) for name in ("classes_", *_JUDGING)]
        record = Record(
            checkpoint,
            fingerprint(
                "search",
                points,
                [kernel_words(kernel) for kernel in kernels],
                [(ladder.y, ladder.p, ladder.point) for ladder in ladders],
                [(fold.weight, fold.held_out) for fold in folds],
                table.grid,
                judged,
                name_of(self.scoring),
                None if weight is None else np.asarray(weight, dtype=np.float64),
            ),
        )
        arrays = record.read()
        if arrays is not None:
            table.take_up(arrays)
        return record

    def _keep_table(self, table: ScoreTable, searched: tuple[str, ...]) -> None:
        self.cv_results_ = table.results(searched)
        self.n_splits_ = table.score.shape[-1]
        is_complete = table.is_complete.ravel()
        self._keep_best(is_complete)
        self._warn(is_complete)

    def _warn(self, is_complete: NDArray[np.bool_]) -> None:
        name, early = type(self).__name__, int((is_complete & ~self.cv_results_["is_converged"]).sum())
        if self.status_ is not Status.CONVERGED:
            message = Advice(
                f"{name} ended with status {str(self.status_)!r}: {int(is_complete.sum())} of {len(is_complete)} "
                "cells are scored; ",
                self.status_.advice_on("table"),
                ".",
            )
        elif early:
            message = (
                f"{name}: {early} of {len(is_complete)} cells ended before the violation was within tol={self.tol:g}; "
                "cv_results_['is_converged'] says which."
            )
        elif not is_complete.any():
            message = (
                f"{name}: every score is NaN, so no cell is the best one and there is no model; check scoring and cv."
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def _refit(self, template: SupportVectorMachine, X: Any, y: Any, sample_weight: Any) -> None:
        """The best cell's machine on all rows; not after Ctrl-C, and not without a best cell."""
        if not self.refit or self.status_ is Status.INTERRUPTED or not hasattr(self, "best_params_"):
            return
        start = time.perf_counter()
        checkpoint = settle_checkpoint(self.checkpoint)
        own = None if checkpoint is None else checkpoint.beside(".refit")
        with on_interrupt(self._on_interrupt), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the search has told it
            template.set_params(time_limit=self.time_limit, checkpoint=own, **self.best_params_)
            self.best_estimator_ = template.fit(X, y, sample_weight).set_params(time_limit=None, checkpoint=None)
        self.status_ = worst((self.status_, self.best_estimator_.status_))
        self.refit_time_ = time.perf_counter() - start

    def _finish_checkpoint(self) -> None:
        """The last act of a fit: the table's file is removed when nothing is left to be done."""
        checkpoint = settle_checkpoint(self.checkpoint)
        if checkpoint is not None and self.status_ is Status.CONVERGED:
            checkpoint.remove()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._template().__sklearn_tags__()
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.positive_only = inner.input_tags.positive_only
        return tags


def _keeper(record: Record | None, table: ScoreTable) -> Callable[[Callable[[], Any]], None] | None:
    """What looks around between slices, and writes the table down when the interval is over."""
    if record is None:
        return None

    kept = table.n_entered

    def look(_: Callable[[], Any]) -> None:
        nonlocal kept
        if record.is_due and table.n_entered > kept:
            kept = table.n_entered
            record.write(table.arrays())

    return look


def default_cs() -> NDArray[np.float64]:
    """0.1 … 316, half a decade apart."""
    return _CS.copy()
