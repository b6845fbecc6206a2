"""The search for C and γ that ``margrove train`` makes: the grid, the scores, the best cell and its neighbours. A
linear machine has no γ, and its grid is a line.

The score of the best cell is the largest of many, so it is too high. It only chooses the cell:
`margrove.app.choose.nested_search` estimates the choice on rows that the search has not seen.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from margrove.app.choose import in_digits
from margrove.app.estimate.metrics import as_scorer
from margrove.app.estimate.task import Task
from margrove.app.options.budget import Budget
from margrove.app.options.menu import Choice
from margrove.app.options.table import AS_USUAL, TablePreparation
from margrove.data import Table
from margrove.learner import loaded
from margrove.run.effort import on_interrupt
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.app.screen.progress import Meter

# The grid takes 7 s on 3,000 rows of magic04 and 21 s on 6,000 (two slow cores): of more rows it would not fit into the
# usual budget. The best cell still moves with the rows there (C = 100, then 316), and messages name the sample.
MOST_ROWS = 6000
# A linear machine's time grows with the rows alone.
MOST_ROWS_LINEAR = 50_000
FOLDS = 5
_WITHOUT_GAMMA = ("linear", "intersection")
_OF_THE_FIT = {"verbose", "time_limit", "checkpoint"}  # if typed
C_STEP, GAMMA_STEP = math.sqrt(10.0), 4.0  # those of the grids of SVCCV and LinearSVCCV
_C_MORE, _GAMMA_MORE = 4, 3  # values that widening adds
_SLOWER = 3.0  # how much a cell beyond the edge may cost: a larger C takes more steps
_LEAST = 1e-3  # seconds: a time limit must be above 0


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are searched, and those that are fixed."""

    names: tuple[str, ...]  # "C", "gamma" or both
    search: Any  # unfitted, with the machine's other parameters
    task: Task
    Cs: tuple[Any, ...] | None = None  # the values there are, often one that is fixed; None: the usual ones
    gammas: tuple[Any, ...] | None = None  # or a kernel without γ
    preparation: TablePreparation = AS_USUAL
    limit: int | None = None  # of more rows a sample is searched; None: as many as the usual budget takes

    @property
    def is_linear(self) -> bool:
        """The machine is linear, with w explicit."""
        return "gammas" not in self.search.get_params()

    @property
    def most_rows(self) -> int:
        if self.limit is not None:
            return self.limit
        return MOST_ROWS_LINEAR if self.is_linear else MOST_ROWS


@dataclass(frozen=True)
class GridCell:
    """One C and one γ, and the mean score over the folds; NaN where not all of them were scored."""

    C: float
    gamma: float | None
    score: float

    @property
    def is_scored(self) -> bool:
        return not math.isnan(self.score)

    @property
    def words(self) -> str:
        """The parameters as they could be typed, to three digits."""
        return f"C={in_digits(self.C)}" + ("" if self.gamma is None else f", gamma={in_digits(self.gamma)}")

    def to_dict(self) -> dict[str, Any]:
        return {"C": self.C, "gamma": self.gamma, "score": self.score if self.is_scored else None}


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    task: Task
    names: tuple[str, ...] = ()
    cells: tuple[GridCell, ...] = ()
    n_rows: int = 0  # searched
    of_rows: int = 0  # there were
    folds: int = 0
    seconds: float = 0.0
    status: Status = Status.CONVERGED
    widened: tuple[str, ...] = ()  # edges that the grid was widened at
    n_added: int = 0  # cells that widening added
    why_not: str = ""  # searched

    @property
    def scored(self) -> list[GridCell]:
        """The cells whose folds were all scored, the best first; of one score the smallest C, then the smallest γ."""
        done = [cell for cell in self.cells if cell.is_scored]
        return sorted(done, key=lambda cell: (-cell.score, cell.C, cell.gamma or 0.0))

    @property
    def tops(self) -> list[GridCell]:
        """The cells that score as the best one does, the smallest C first, then the smallest γ."""
        scored, apart = self.scored, self.task.resolution(self.n_rows)
        near = [cell for cell in scored if scored[0].score - cell.score < apart]
        return sorted(near, key=lambda cell: (cell.C, cell.gamma or 0.0))

    @property
    def best(self) -> GridCell | None:
        """The first of equals; None where no cell was scored."""
        return next(iter(self.tops), None)

    @property
    def runner_up(self) -> GridCell | None:
        """The best of those that score less than the best."""
        return next(iter(self.scored[len(self.tops) :]), None)

    @property
    def edges(self) -> tuple[str, ...]:
        """The edges of the grid at which all best cells lie: beyond there may be better ones."""
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
        """Return the values in ascending order; none where the kernel has no γ."""
        return sorted({getattr(cell, name) for cell in self.cells} - {None})

    @property
    def params(self) -> dict[str, float]:
        """The parameters of the best cell; empty where no cell was scored."""
        best = self.best
        return {} if best is None else {name: getattr(best, name) for name in self.names}

    def to_dict(self) -> dict[str, Any]:
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


def search_space_of(learner: Choice, params: Mapping[str, Any], estimator: Any, task: Task) -> SearchSpace | None:
    """Return what there is to search, with these parameters typed; None where there is nothing.

    A value that the learner will refuse is left to the learner, whose message is better."""
    if not learner.is_searched:
        return None
    kind: Any = loaded(learner.described.search)
    known = kind().get_params().keys() - _OF_THE_FIT
    search = kind(**{name: value for name, value in estimator.get_params().items() if name in known})
    if "gammas" not in known:
        return None if "C" in params else SearchSpace(("C",), search, task)
    C, sigma, kernel = params.get("C"), params.get("sigma"), params.get("kernel", "rbf")
    is_hard = "C" in params and (not isinstance(C, int | float) or isinstance(C, bool) or not 0 < C < math.inf)
    is_odd = sigma is not None and (not isinstance(sigma, int | float) or sigma <= 0 or "gamma" in params)
    if is_hard or is_odd or kernel == "precomputed":
        return None
    has_gamma = kernel not in _WITHOUT_GAMMA
    gammas: tuple[Any, ...] | None = None
    if has_gamma and sigma is not None:
        gammas = (1.0 / (2.0 * sigma**2),)
    elif has_gamma and "gamma" in params:
        gammas = (params["gamma"],)
    is_open = {"C": "C" not in params, "gamma": has_gamma and gammas is None}
    names = tuple(name for name, is_wanted in is_open.items() if is_wanted)
    return SearchSpace(names, search, task, (C,) if "C" in params else None, gammas) if names else None


def search(space: SearchSpace, table: Table, *, seed: int, seconds: float, meter: Meter, title: str) -> SearchResult:
    """Score the grid on the rows of a table, or on a sample of very many; widen it once where the best is at an edge.

    The encoder is fitted once, to all rows of this table: the folds share a column's mean and levels. That may tilt the
    choice of a cell; rows outside the table take no part in it."""
    task, labels = space.task.for_search, table.labels()
    rows = task.sample(labels, space.most_rows, seed)
    y = labels[rows]
    n_folds = min(FOLDS, task.most_folds(y))
    if n_folds < 2:
        return SearchResult(task, why_not=task.too_few)
    meter.begin(title)
    budget, started = Budget(seconds), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
        X = space.preparation.encoder().fit(table).transform(table.take(rows))
        splits = task.split(y, n_folds, seed)

        def scored(Cs: Iterable[Any] | None, gammas: Iterable[Any] | None) -> SearchResult:
            grid = {"Cs": Cs} if space.is_linear else {"Cs": Cs, "gammas": gammas}
            settings = {name: None if values is None else list(values) for name, values in grid.items()}
            limit = max(_LEAST, budget.left)
            machine = clone(space.search).set_params(**settings, cv=splits, refit=False, time_limit=limit)
            machine.set_params(scoring=as_scorer(task.metric))
            with on_interrupt("keep"):  # a clone would let Ctrl-C through
                results = machine.fit(X, y).cv_results_
            scores = zip(results["params"], results["mean_test_score"].tolist(), strict=True)
            cells = tuple(GridCell(params["C"], params.get("gamma"), score) for params, score in scores)
            return SearchResult(task, space.names, cells, len(y), len(labels), n_folds, status=machine.status_)

        found = scored(space.Cs, space.gammas)
        blocks = _beyond(found)
        cost = _SLOWER * (time.monotonic() - started) * len(blocks) / max(1, len(found.cells))
        if blocks and cost <= budget.left:
            meter.begin(f"{title}, widened")
            more = [scored(Cs, gammas) for Cs, gammas in blocks]
            cells = sum((each.cells for each in more), ())
            status = next((each.status for each in more if each.status is not Status.CONVERGED), found.status)
            widened, n_added = found.edges, len(cells)
            found = replace(found, cells=found.cells + cells, status=status, widened=widened, n_added=n_added)
    return replace(found, seconds=time.monotonic() - started)


def _beyond(found: SearchResult) -> list[tuple[list[float], list[float] | None]]:
    """Return the grids by which the grid is widened: all γ at the new C, and the new γ at the old C; none of a search
    that was stopped."""
    more: dict[str, list[float]] = {}
    for edge in found.edges if found.status is Status.CONVERGED else ():
        word, name = edge.split()
        step, count = (C_STEP, _C_MORE) if name == "C" else (GAMMA_STEP, _GAMMA_MORE)
        values = found.values_of(name)
        start, factor = (values[-1], step) if word == "largest" else (values[0], 1 / step)
        more[name] = [start * factor**k for k in range(1, count + 1)]
    blocks: list[tuple[list[float], list[float] | None]] = []
    if "C" in more:
        blocks.append((more["C"], [*found.values_of("gamma"), *more.get("gamma", [])] or None))
    if "gamma" in more:
        blocks.append((found.values_of("C"), more["gamma"]))
    return blocks
