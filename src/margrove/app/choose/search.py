"""The search for C and γ that ``margrove train`` makes: the grid, what was scored, the best cell and its neighbours. A
linear machine has no γ, and its grid is a line.

The score of the best cell is the largest of many, so it is too high. It only chooses the cell:
`margrove.app.choose.nested_search` estimates the choice on rows that the search has not seen.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.options.budget import Budget
from margrove.app.options.menu import Learner
from margrove.app.options.preparation import AS_USUAL, Preparation
from margrove.app.screen.progress import Meter
from margrove.data import Table
from margrove.linear_svm.search import LinearSVCCV, LinearSVRCV
from margrove.status import Status
from margrove.svm.search import SVCCV

# The grid takes 7 s on 3,000 rows of magic04 and 21 s on 6,000 (two slow cores): of more rows it would not fit into the
# usual budget. The best cell still moves with the rows there (C = 100, then 316), so it is said that this is a sample.
MOST_ROWS = 6000
# A linear machine's time grows with the rows alone.
MOST_ROWS_LINEAR = 50_000
FOLDS = 5
_LEAST_NUMBERS = 2  # rows of a fold of numbers: one alone has no R²
_WITHOUT_GAMMA = ("linear", "intersection")
_OF_THE_FIT = {"verbose", "time_limit", "checkpoint"}  # if typed
_OF_THE_SEARCH = set(SVCCV().get_params()) - _OF_THE_FIT
_OF_THE_LINEAR_SEARCH = set(LinearSVCCV().get_params()) - _OF_THE_FIT
_OF_THE_NUMBER_SEARCH = set(LinearSVRCV().get_params()) - _OF_THE_FIT
_C_STEP, _GAMMA_STEP = math.sqrt(10.0), 4.0  # those of the grids of SVCCV and LinearSVCCV
_C_MORE, _GAMMA_MORE = 4, 3  # values that widening adds
_DEARER = 3.0  # how much a cell beyond the edge may cost: a larger C takes more steps
_SAME_R2 = 5e-4  # R² are told to three digits
_LEAST = 1e-3  # seconds: a time limit must be above 0


@dataclass(frozen=True)
class Question:
    """What is searched, and what is fixed.

    Parameters
    ----------
    names : tuple of str
        "C", "gamma" or both.
    Cs, gammas : tuple, optional
        The values there are, often one that is fixed. None: the usual ones, or a kernel without γ.
    settings : mapping
        The machine's other parameters.
    preparation : Preparation
        How the table becomes numbers.
    is_linear : bool
        Whether the machine is linear, with w explicit.
    limit : int, optional
        Of more rows than these a sample is searched; None: as many as the usual budget takes.
    is_of_numbers : bool
        Whether it is a regression, scored by R².
    """

    names: tuple[str, ...]
    Cs: tuple[Any, ...] | None
    gammas: tuple[Any, ...] | None
    settings: Mapping[str, Any]
    preparation: Preparation = AS_USUAL
    is_linear: bool = False
    limit: int | None = None
    is_of_numbers: bool = False

    @property
    def most_rows(self) -> int:
        """More are not searched, but a sample of them."""
        if self.limit is not None:
            return self.limit
        return MOST_ROWS_LINEAR if self.is_linear else MOST_ROWS


@dataclass(frozen=True)
class Cell:
    """One C and one γ, and the mean score over the folds; NaN where not all of them were scored."""

    C: float
    gamma: float | None
    score: float

    @property
    def is_scored(self) -> bool:
        """Whether all its folds were."""
        return not math.isnan(self.score)

    @property
    def words(self) -> str:
        """As it could be typed, to three digits."""
        return f"C={in_digits(self.C)}" + ("" if self.gamma is None else f", gamma={in_digits(self.gamma)}")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"C": self.C, "gamma": self.gamma, "score": self.score if self.is_scored else None}


def in_digits(value: float) -> str:
    """Three of them, as people write them.

    Examples
    --------
    >>> from margrove.app.choose.search import in_digits
    >>> [in_digits(value) for value in (0.1, 3.1623, 31623.0, 5.49e-7)]
    ['0.1', '3.16', '31600', '5.49e-07']
    """
    return f"{float(f'{value:.3g}'):.10g}"


@dataclass(frozen=True)
class Found:
    """What a search found."""

    names: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    n_rows: int = 0  # searched
    of_rows: int = 0  # there were
    folds: int = 0
    seconds: float = 0.0
    status: Status = Status.CONVERGED
    widened: tuple[str, ...] = ()  # edges that the grid was widened at
    n_added: int = 0  # cells that widening added
    is_of_numbers: bool = False  # scored by R²
    why_not: str = ""  # searched

    @property
    def scored(self) -> list[Cell]:
        """Those whose folds were all scored, the best first; of one score the smallest C, then the smallest γ."""
        done = [cell for cell in self.cells if cell.is_scored]
        return sorted(done, key=lambda cell: (-cell.score, cell.C, cell.gamma or 0.0))

    @property
    def tops(self) -> list[Cell]:
        """Those that score as the best one does, the smallest C first, then the smallest γ.

        Scores within half a row are equal: folds differ in size by a row, so that the same number of mistakes gives
        means that differ a little. So are R² that read the same.
        """
        scored = self.scored
        apart = _SAME_R2 if self.is_of_numbers else 0.5 / max(1, self.n_rows)
        near = [cell for cell in scored if scored[0].score - cell.score < apart]
        return sorted(near, key=lambda cell: (cell.C, cell.gamma or 0.0))

    @property
    def best(self) -> Cell | None:
        """The first of equals; None where no cell was scored."""
        return next(iter(self.tops), None)

    @property
    def runner_up(self) -> Cell | None:
        """The best of those that score less than the best."""
        return next(iter(self.scored[len(self.tops) :]), None)

    @property
    def edges(self) -> tuple[str, ...]:
        """At which edges of the grid all cells lie that score best: beyond there may be better ones."""
        tops, found = self.tops, []
        for name in self.names:
            values = self.values_of(name)
            if len(values) < 2 or not tops:
                continue
            for word, end in (("smallest", values[0]), ("largest", values[-1])):
                if all(getattr(cell, name) == end for cell in tops):
                    found.append(f"{word} {name}")
        return tuple(found)

    def values_of(self, name: str) -> list[float]:
        """Ascending; none where the kernel has no γ."""
        return sorted({getattr(cell, name) for cell in self.cells} - {None})

    @property
    def params(self) -> dict[str, float]:
        """What the learner is to be given; nothing where no cell was scored."""
        best = self.best
        return {} if best is None else {name: getattr(best, name) for name in self.names}

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        best, second = self.best, self.runner_up
        return {
            "searched": list(self.names),
            "Cs": self.values_of("C"),
            "gammas": self.values_of("gamma"),
            "n_cells": len(self.cells),
            "n_scored": len(self.scored),
            "folds": self.folds,
            "rows": self.n_rows,
            "of_rows": self.of_rows,
            "seconds": self.seconds,
            "status": str(self.status),
            "best": None if best is None else best.to_dict(),
            "n_equals": len(self.tops),
            "runner_up": None if second is None else second.to_dict(),
            "edges": list(self.edges),
            "widened": list(self.widened),
            "why_not": self.why_not or None,
            "cells": [cell.to_dict() for cell in self.cells],
        }


def question_of(learner: Learner, params: Mapping[str, Any], estimator: Any) -> Question | None:
    """What there is to search, with these parameters typed; None where there is nothing.

    A value that the learner will refuse is none of ours: its own words are better.
    """
    if learner.class_name in ("LinearSVC", "LinearSVR"):
        if "C" in params:
            return None
        is_of_numbers = learner.class_name == "LinearSVR"
        known = _OF_THE_NUMBER_SEARCH if is_of_numbers else _OF_THE_LINEAR_SEARCH
        settings = _settings(estimator, known)
        return Question(("C",), None, None, settings, is_linear=True, is_of_numbers=is_of_numbers)
    C, sigma, kernel = params.get("C"), params.get("sigma"), params.get("kernel", "rbf")
    is_hard = "C" in params and (not isinstance(C, int | float) or isinstance(C, bool) or not 0 < C < math.inf)
    is_odd = sigma is not None and (not isinstance(sigma, int | float) or sigma <= 0 or "gamma" in params)
    if not learner.is_searched or is_hard or is_odd or kernel == "precomputed":
        return None
    gammas: tuple[Any, ...] | None = None
    if kernel not in _WITHOUT_GAMMA and sigma is not None:
        gammas = (1.0 / (2.0 * sigma**2),)
    elif kernel not in _WITHOUT_GAMMA and "gamma" in params:
        gammas = (params["gamma"],)
    is_open = {"C": "C" not in params, "gamma": kernel not in _WITHOUT_GAMMA and gammas is None}
    names = tuple(name for name, is_wanted in is_open.items() if is_wanted)
    if not names:
        return None
    return Question(names, (C,) if "C" in params else None, gammas, _settings(estimator, _OF_THE_SEARCH))


def _settings(estimator: Any, known: set[str]) -> dict[str, Any]:
    """The parameters of the machine that its search has, too."""
    return {name: value for name, value in estimator.get_params().items() if name in known}


def search(question: Question, table: Table, *, seed: int, seconds: float, meter: Meter, title: str) -> Found:
    """Score the grid on the rows of a table, or on a sample of very many; widen it once where the best is at an edge.

    The encoder is learned from all rows of this table, once: its folds share what a column's mean and levels are. That
    may tilt the choice of a cell; rows outside the table take no part in it.
    """
    labels = table.labels()
    rows = sample_rows(labels, question.most_rows, seed, is_of_classes=not question.is_of_numbers)
    y = labels[rows]
    n_folds = min(FOLDS, len(y) // _LEAST_NUMBERS if question.is_of_numbers else _second_largest(y))
    if n_folds < 2:
        why_not = "there are too few rows" if question.is_of_numbers else "all classes but one have a single row"
        return Found(why_not=why_not)
    meter.begin(title)
    budget, started = Budget(seconds), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
        X = question.preparation.encoder().fit(table).transform(table.take(rows))
        splits = _splits(y, n_folds, seed, is_of_classes=not question.is_of_numbers)
        run = _Run(question, X, y, splits, budget)
        found = run.scored(question.Cs, question.gammas)
        added = _beyond(found)
        cost = _DEARER * (time.monotonic() - started) * len(added) / max(1, len(found.cells))
        if added and cost <= budget.left:
            meter.begin(f"{title}, widened")
            wider = _merged(found, *(run.scored(Cs, gammas) for Cs, gammas in _blocks(found, added)))
            found = replace(wider, widened=found.edges, n_added=len(wider.cells) - len(found.cells))
    seconds = time.monotonic() - started
    return replace(found, of_rows=len(labels), folds=n_folds, seconds=seconds)


@dataclass(frozen=True)
class _Run:
    """The rows and folds that every cell is scored on."""

    question: Question
    X: Any
    y: NDArray[Any]
    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    budget: Budget

    def scored(self, Cs: Iterable[Any] | None, gammas: Iterable[Any] | None) -> Found:
        grid: dict[str, Any] = {"Cs": None if Cs is None else list(Cs)}
        if not self.question.is_linear:
            grid["gammas"] = None if gammas is None else list(gammas)
        search_of: Any = LinearSVCCV if self.question.is_linear else SVCCV
        if self.question.is_of_numbers:
            search_of = LinearSVRCV
        machine = search_of(
            **grid,
            cv=self.splits,
            refit=False,
            time_limit=max(_LEAST, self.budget.left),
            **self.question.settings,
        ).fit(self.X, self.y)
        results = machine.cv_results_
        scores = zip(results["params"], results["mean_test_score"].tolist(), strict=True)
        cells = tuple(Cell(params["C"], params.get("gamma"), score) for params, score in scores)
        is_of_numbers = self.question.is_of_numbers
        return Found(
            self.question.names, cells, n_rows=len(self.y), status=machine.status_, is_of_numbers=is_of_numbers
        )


def _merged(first: Found, *others: Found) -> Found:
    cells = sum((other.cells for other in others), first.cells)
    status = next((other.status for other in others if other.status is not Status.CONVERGED), first.status)
    return replace(first, cells=cells, status=status)


def _beyond(found: Found) -> dict[str, list[float]]:
    """The values of C and γ by which the grid is widened; of a search that was broken off, none."""
    more: dict[str, list[float]] = {}
    for edge in found.edges if found.status is Status.CONVERGED else ():
        word, name = edge.split()
        step, count = (_C_STEP, _C_MORE) if name == "C" else (_GAMMA_STEP, _GAMMA_MORE)
        values = found.values_of(name)
        start, factor = (values[-1], step) if word == "largest" else (values[0], 1 / step)
        more[name] = [start * factor**k for k in range(1, count + 1)]
    return more


def _blocks(found: Found, more: dict[str, list[float]]) -> list[tuple[list[float], list[float] | None]]:
    """The added cells as grids: all γ at the new C, and the new γ at the old C."""
    Cs, gammas = found.values_of("C"), found.values_of("gamma")
    blocks: list[tuple[list[float], list[float] | None]] = []
    if "C" in more:
        blocks.append((more["C"], [*gammas, *more.get("gamma", [])] or None))
    if "gamma" in more:
        blocks.append((Cs, more["gamma"]))
    return blocks


def sample_rows(labels: NDArray[Any], most: int, seed: int, *, is_of_classes: bool = True) -> NDArray[np.int64]:
    """All rows, in order; of more than ``most`` about that many, drawn at random, from each class in its proportion.

    Of each class at least two rows, if it has them: one to learn from, one to ask.
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    if not is_of_classes:
        return np.sort(rng.choice(n, most, replace=False))
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        count = min(len(own), max(2, round(most * len(own) / n)))
        chosen.append(rng.choice(own, count, replace=False))
    return np.sort(np.concatenate(chosen))


def _second_largest(labels: NDArray[Any]) -> int:
    sizes = sorted(Counter(labels.tolist()).values(), reverse=True)
    return sizes[1] if len(sizes) > 1 else 0


def _splits(
    y: NDArray[Any], n_folds: int, seed: int, *, is_of_classes: bool = True
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    splitter = StratifiedKFold if is_of_classes else KFold
    return list(splitter(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
