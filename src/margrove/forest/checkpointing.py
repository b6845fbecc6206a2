"""The checkpoint of a forest: the trees grown so far, written to a file at intervals."""

from __future__ import annotations

import time
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from margrove.engine import Effort, Engine
from margrove.forest.model import ForestModel, ForestSolution, joined
from margrove.forest.packed import PackedForest
from margrove.forest.problem import ForestProblem
from margrove.run.checkpoint import Arrays, Checkpoint, Record, fingerprint
from margrove.run.progress import part_of
from margrove.status import Status
from margrove.tree.grove import Grove

_AT_ONCE = 8  # trees between two occasions to write: their columns are sorted once


def solve_with_checkpoint(
    engine: Engine, problem: ForestProblem, effort: Effort, checkpoint: Checkpoint
) -> ForestSolution:
    """Grow the trees that the file of an earlier process does not have. The file is removed when all are grown."""
    record, started = Record(checkpoint, _fingerprint(problem)), time.monotonic()
    arrays = record.read()
    parts = [] if arrays is None else [_trees_of(arrays, problem, record)]
    status = Status.CONVERGED
    while (n_left := problem.n_trees - sum(part.n_trees for part in parts)) > 0:
        n_done, n_next = problem.n_trees - n_left, min(n_left, _AT_ONCE)
        piece = replace(problem, n_trees=n_next, first=problem.first + n_done)
        with part_of(n_done, n_left - n_next):
            solution = engine.solve(piece, effort.left(started))
        parts.append(solution.model.trees)
        status = solution.status
        if status is not Status.CONVERGED or record.is_due:
            record.write(_arrays(joined(parts, problem.root)))
        if status is not Status.CONVERGED:
            break
    else:
        record.remove()
    model = joined(parts, problem.root)
    return ForestSolution(model.first(min(model.n_trees, problem.n_trees)), status)


def _fingerprint(problem: ForestProblem) -> str:
    """Return what identifies the trees; their number may change."""
    root, cells = problem.root, problem.root.cells
    table = list(cells.values) if cells.sparse is None else [cells.sparse]
    weight = [] if root.weight is None else [root.weight]
    drawn = [problem.seed, problem.first, problem.n_drawn or 0, problem.is_balanced, problem.min_weight_share]
    how = {name: str(value) for name, value in asdict(root.growth).items() if name != "seed"}
    return fingerprint([str(column) for column in cells.columns], table, root.target, weight, how, drawn)


def _arrays(model: ForestModel) -> Arrays:
    return {
        each.name: array
        for each in fields(model.trees)
        if isinstance(array := getattr(model.trees, each.name), np.ndarray)
    }


def _trees_of(arrays: Arrays, problem: ForestProblem, record: Record) -> Grove | PackedForest:
    is_packed = PackedForest.holds(problem.root)
    kind: Any = PackedForest if is_packed else Grove
    if not arrays.keys() <= {each.name for each in fields(kind)}:
        raise record.damaged()
    others = {"criterion": problem.root.growth.criterion} if is_packed else {}
    return kind(columns=problem.root.cells.columns, **others, **arrays)  # type: ignore[no-any-return]
