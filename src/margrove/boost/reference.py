"""AdaBoost over trees as in textbooks: `tree.reference` grows them, `rounds` does the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margrove.boost.model import BoostModel, BoostSolution
from margrove.boost.problem import BoostProblem
from margrove.boost.rounds import Boosting, Learned
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeProblem
from margrove.tree.reference import grow


def _to_the_end(step: Callable[[], Status | None]) -> Status:
    while (status := step()) is None:
        continue
    return status


def boost(
    problem: BoostProblem,
    grow: Callable[[TreeProblem], TreeModel] = grow,
    run: Callable[[Callable[[], Status | None]], Status] = _to_the_end,
) -> BoostSolution:
    """Boost the trees of a problem. ``grow`` grows a tree, ``run`` calls its argument until that returns a status.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.boost.problem import BoostProblem
    >>> from margrove.boost.reference import boost
    >>> from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem
    >>> x, y = np.array([1.0, 2, 3]), np.array([0, 1, 0], dtype=np.int32)
    >>> stump = TreeProblem(Cells((TreeColumn("x"),), 3, (x,)), y, n_classes=2, growth=Growth(max_depth=1))
    >>> solution = boost(BoostProblem(stump, n_rounds=3))
    >>> solution.rounds.error, solution.rounds.training_error[-1]
    (array([0.33333333, 0.25      , 0.16666667]), np.float64(0.0))
    """
    learner, held_out, before = problem.learner, problem.held_out, problem.before

    def learn(weight: NDArray[np.float64], t: int) -> Learned[TreeModel]:
        is_done = before is not None and t < before.grove.n_trees
        tree = before.grove.tree(t) if before is not None and is_done else grow(replace(learner, weight=weight))
        label = np.argmax(tree.value, axis=1)
        label_held_out = None if held_out is None else label[tree.apply(held_out.cells)]
        return tree, label[tree.apply(learner.cells)], label_held_out

    boosting = Boosting(problem, learn)
    status = run(boosting.step)
    grove = Grove.of(learner.cells.columns, boosting.learners)
    rounds = boosting.rounds
    return BoostSolution(BoostModel(grove, rounds.vote, problem.n_classes), rounds, status)
