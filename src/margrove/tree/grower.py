"""The trees of one fit, grown on one engine within one time limit."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margrove.engine import Effort, Engine
from margrove.status import Status
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem


class Grower:
    """Grows the trees of one fit on one engine within one time limit. ``status`` says why growing ended."""

    def __init__(self, engine: Engine, effort: Effort) -> None:
        self.engine, self.effort, self.status = engine, effort, Status.CONVERGED
        self._left, self._started = effort, time.monotonic()

    def has_time(self) -> bool:
        """Return whether another tree may be grown: the time is not over, and none was stopped early."""
        if self.effort.time_limit is not None:
            left = self.effort.time_limit - (time.monotonic() - self._started)
            if left > 0:
                self._left = replace(self.effort, time_limit=left)
            else:
                self.status = Status.TIME_LIMIT
        return self.status is Status.CONVERGED

    def grow(self, problem: TreeProblem) -> TreeModel:
        """Grow a tree in the time that was left when `has_time` was last called."""
        solution = self.engine.solve(problem, self._left)
        self.status = solution.status
        return solution.model

    def leaves(self, tree: TreeModel, cells: Cells) -> NDArray[np.int32]:
        """Return the leaf of each row."""
        return self.engine.apply_trees(tree, cells, self.effort)
