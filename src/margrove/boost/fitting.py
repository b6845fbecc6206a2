"""The two ways to boost a classifier: plain trees by an engine, as one `BoostProblem`; any other learner round by
round, by its own ``fit`` and ``predict``."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from margrove.advice import Advice, Setting
from margrove.boost.base import codes_of, is_plain_tree, seeded, take_note, taken_rows
from margrove.boost.model import BoostModel, R2Solution, Rounds
from margrove.boost.problem import LEAST_WEIGHT, BoostProblem, HeldOut, SpreadBoostProblem, SpreadR2Problem
from margrove.boost.rounds import Boosting, Learned
from margrove.data.sample import settle_weights
from margrove.engine import Effort, Engine, choose, name_of
from margrove.errors import InputError, ParameterError, shown
from margrove.estimator import check_parameters
from margrove.run.effort import on_interrupt
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.estimator import DecisionTree
from margrove.tree.grove import Grove
from margrove.tree.held_out import drawn_rows
from margrove.tree.partitions import SpreadSample, read_spread
from margrove.tree.problem import Cells, TreeProblem
from margrove.tree.reading import LARGEST, TreeSample, check_same_classes, read_cells, read_classes

if TYPE_CHECKING:
    from margrove.boost.classifier import AdaBoostClassifier
    from margrove.boost.ensemble import Ensemble
    from margrove.boost.regressor import AdaBoostRegressor


@dataclass(frozen=True)
class Boosted:
    """The result of a fit. ``model`` is None where the learners are not Margrove's trees."""

    rounds: Rounds
    status: Status
    engine: str
    model: BoostModel | None
    estimators: list[Any] | None  # None: they are the trees of the model


@dataclass(frozen=True)
class Asked:
    """A problem with the labels of its classes, and the positions of its rows in the given table."""

    problem: BoostProblem
    classes: NDArray[Any]
    rows: NDArray[np.intp] | None  # None: all
    rows_held_out: NDArray[np.intp] | None


def boost_any(owner: AdaBoostClassifier, learner: Any, asked: Asked, X: Any, before: list[Any]) -> Boosted:
    """Boost any learner that takes weights, by its own ``fit`` and ``predict``."""
    classes, problem = asked.classes, asked.problem
    X_rows = taken_rows(X, asked.rows)
    X_held_out = None if problem.held_out is None else taken_rows(X, asked.rows_held_out)
    label = classes[problem.learner.target]
    # Margrove's complexity and significance tests count rows, so the weights of its learners sum to the number of rows;
    # scikit-learn gives its own learners weights that sum to one.
    scale = len(label) if type(learner).__module__.startswith("margrove.") else 1
    generator = np.random.RandomState(owner._seed())

    def learn(weight: NDArray[np.float64], t: int) -> Learned[Any]:
        fitted = seeded(learner, generator)  # drawn for earlier rounds too, so that later ones get the same seeds
        if t < len(before):
            fitted = before[t]
        else:
            with on_interrupt("raise"):  # an interrupted learner is discarded
                fitted.fit(X_rows, label, sample_weight=weight * scale)
        held_out = None if X_held_out is None else codes_of(fitted, X_held_out, classes)
        return fitted, codes_of(fitted, X_rows, classes), held_out

    boosting = Boosting(problem, learn)

    def advance(seconds: float) -> Status | None:
        status = boosting.step()
        n_done = len(boosting.learners)
        report(Progress("boost", n_done, problem.n_rounds, boosting.loss, "exponential loss"))
        return status

    # Rounds of an earlier fit are repeated whatever the time limit: there must not be fewer than before.
    status = None
    while status is None and len(boosting.learners) < len(before):
        status = boosting.step()
    if status is None:
        status = run_in_slices(advance, owner._effort())
    rounds, estimators = boosting.rounds, boosting.learners
    model = None
    # A tree for which all rows of a class have weight 0 has fewer classes; such trees cannot form one Grove.
    if estimators and all(isinstance(each, DecisionTree) and each.n_classes_ == len(classes) for each in estimators):
        trees = [estimator.nodes_ for estimator in estimators]
        model = BoostModel(Grove.of(trees[0].columns, trees), rounds.vote, problem.n_classes)
    by = getattr(estimators[0] if estimators else learner, "engine_", None) or name_of(owner.engine)
    return Boosted(rounds, status, by, model, estimators)


def read_training(
    owner: AdaBoostClassifier, learner: Any, X: Any, y: Any, sample_weight: ArrayLike | None
) -> TreeSample:
    """Return the rows of a fit, with cells only for a plain tree, and record columns and names."""
    cells = take_note(owner, learner, X, is_plain=is_plain_tree(learner, owner.engine))
    return read_classes(cells, y, _scaled(cells, sample_weight), owner.class_weight)


def read_again(owner: AdaBoostClassifier, learner: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> TreeSample:
    """Return the rows of an earlier fit, for its certificate."""
    if is_plain_tree(learner, owner.engine):
        assert owner.model_ is not None
        cells = read_cells(owner, X, owner.model_.grove.columns)
    else:
        cells = Cells((), _num_samples(X))
    sample = read_classes(cells, y, _scaled(cells, sample_weight), owner.class_weight)
    check_same_classes(owner, sample)
    return sample


def _scaled(cells: Cells, sample_weight: ArrayLike | None) -> NDArray[np.float64] | None:
    """Return the weights with a largest of about one if it is outside the range of the trees, since boosting divides
    by their sum. A power of two changes no digit."""
    if sample_weight is None:
        return None
    weight = settle_weights(np.empty((cells.n_rows, 0)), None, sample_weight, None)
    assert weight is not None
    largest = float(weight.max())
    is_usual = 1 / LARGEST <= largest <= LARGEST
    return weight if is_usual else np.ldexp(weight, -math.frexp(largest)[1])


def _check_bound(owner: AdaBoostClassifier, n_classes: int) -> None:
    if owner.stop_at_bound > 0 and n_classes > 2:
        raise ParameterError(
            f"stop_at_bound is {owner.stop_at_bound}, and there are {n_classes} classes: the exponential loss bounds "
            "the training error of two classes only. Use stop_at_bound=0."
        )


def _check_spread(owner: Ensemble, learner: Any) -> None:
    """Raise `ParameterError` for learners that are not boosted over partitions."""
    if not is_plain_tree(learner, owner.engine):
        raise ParameterError(
            f"estimator is {shown(learner)}, which engine='dask' does not boost: it grows trees without pruning, "
            "significance, constraints, class weights and randomness. Use such a tree, or fit rows in memory."
        )
    check_parameters(learner)
    learner._check_spread()


def _spread_tree(learner: Any, sample: SpreadSample, weight: float) -> TreeProblem:
    """Return the problem of each round, without cells and target; its rows weigh so much in all."""
    n, columns = sample.n_rows, sample.columns
    tree: TreeProblem = learner._problem(TreeSample(Cells(columns, n), np.empty(0), sample.classes, None, None))
    return replace(tree, growth=learner._growth(tree.growth.criterion, n, len(columns), weight))


def boost_numbers_spread(
    owner: AdaBoostRegressor, learner: Any, engine: Engine, X: Any, y: Any, sample_weight: Any, effort: Effort
) -> tuple[R2Solution, int, Engine]:
    """Boost a plain tree of numbers over a table in partitions; return also the number of rows, and the engine."""
    _check_spread(owner, learner)
    if (learner.min_samples_leaf, learner.min_samples_split) != (1, 2):
        raise ParameterError(
            f"estimator is {shown(learner)}, which counts rows; engine='dask' weighs the rows that are drawn. Leave "
            "out min_samples_leaf and min_samples_split, or fit rows in memory."
        )
    started = time.monotonic()
    with engine.partitions(X, y, sample_weight) as parts:
        sample = read_spread(learner, parts, learner._wishes(), owner)
        learner._note_categories(owner, sample.columns)
        n = sample.n_rows
        tree = _spread_tree(learner, sample, float(n))  # as many rows are drawn as there are
        rounds = int(owner.n_estimators), float(owner.learning_rate), owner.loss
        asked = SpreadR2Problem(sample.rows, tree, *rounds, owner._seed())
        effort = effort.left(started)
        chosen = choose(engine, asked, effort)
        return chosen.solve(asked, effort), n, chosen


def boost_spread(
    owner: AdaBoostClassifier, learner: Any, engine: Engine, X: Any, y: Any, sample_weight: Any, effort: Effort
) -> tuple[Asked, Boosted]:
    """Boost a plain tree over a table in partitions on the workers of an engine."""
    for name in ("early_stopping", "warm_start"):
        if getattr(owner, name):
            found = f"{name} is True, which engine='dask' does not support"
            raise ParameterError(f"{found}. Leave it out, or fit rows in memory.")
    _check_spread(owner, learner)
    started = time.monotonic()
    with engine.partitions(X, y, sample_weight) as parts:
        reader = clone(learner).set_params(class_weight=owner.class_weight)
        sample = read_spread(reader, parts, learner._wishes(), owner)
        learner._note_categories(owner, sample.columns)
        _check_bound(owner, len(sample.classes))
        tree = _spread_tree(learner, sample, 1.0)  # the weights of boosting sum to one
        bound = float(owner.stop_at_bound)
        problem = BoostProblem(tree, int(owner.n_estimators), float(owner.learning_rate), bound)
        asked = SpreadBoostProblem(sample.rows, problem)
        effort = effort.left(started)
        chosen = choose(engine, asked, effort)
        solution = chosen.solve(asked, effort)
    boosted = Boosted(solution.rounds, solution.status, chosen.name, solution.model, None)
    return Asked(problem, sample.classes, None, None), boosted


def ask(owner: AdaBoostClassifier, learner: Any, sample: TreeSample, before: BoostModel | None = None) -> Asked:
    """Return the problem: rows held out, weights that sum to one, and the number of rounds."""
    assert sample.classes is not None
    classes, n_classes = sample.classes, len(sample.classes)
    _check_bound(owner, n_classes)
    n = sample.cells.n_rows
    weight = np.ones(n) if sample.weight is None else sample.weight
    rows = np.arange(n) if sample.rows is None else sample.rows
    learning, held_out, rows_held_out = np.arange(n), None, None
    if owner.early_stopping:
        is_held_out = drawn_rows(sample.target, owner.validation_fraction, owner._seed())
        if not is_held_out.any() or len(np.unique(sample.target[~is_held_out])) < len(np.unique(sample.target)):
            raise InputError(
                f"validation_fraction={owner.validation_fraction} of {n} rows leaves none to validate on, or no row "
                "of some class to learn from",
                cure=Advice("Use more rows, another share, or ", Setting("early_stopping", False), "."),
            )
        learning, others = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        held_out = HeldOut(sample.cells.take(others), sample.target[others], weight[others], owner.n_iter_no_change)
        rows_held_out = rows[others]
        sample = replace(sample, cells=sample.cells.take(learning), target=sample.target[learning])
    weight = np.maximum(weight[learning] / weight[learning].sum(), LEAST_WEIGHT)
    if is_plain_tree(learner, owner.engine):
        tree = learner._problem(replace(sample, weight=weight))
        # The complexity is per row, and here the weights of all rows sum to one.
        tree = replace(tree, growth=replace(tree.growth, complexity=tree.growth.complexity / len(weight)))
    else:
        tree = TreeProblem(sample.cells, sample.target, n_classes, weight)
    problem = BoostProblem(
        tree, int(owner.n_estimators), float(owner.learning_rate), float(owner.stop_at_bound), held_out, before
    )
    is_all = sample.rows is None and held_out is None
    return Asked(problem, classes, None if is_all else rows[learning], rows_held_out)
