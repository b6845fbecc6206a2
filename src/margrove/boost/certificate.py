"""Certificates of AdaBoost and AdaBoost.R2: the rounds repeated from the data, in float64.

Nothing here imports the reference, an engine or the core. The learners and their votes determine the rounds: the rows
that a learner gets wrong give its error, the error its vote, the vote the next weights.

All rounds are repeated. The trees are certified by `margrove.tree`, split by split, on the weights of their round.
Searching one tree again costs about rows × columns × depth, and something for each search, so above VISIT_LIMIT cells
only a sample of the rounds is searched, always the same one, the first and the last in it, and the claim reports
how many of how many. Other Margrove learners have certificates of their own. Of other libraries' learners only the
predictions for the training rows are checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, inf, log, log1p, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margrove.boost import r2
from margrove.boost.model import BoostModel, Rounds
from margrove.boost.problem import (
    LEAST_WEIGHT,
    BoostProblem,
    HeldOut,
    cast,
    factors,
    is_overflow,
    judged,
    normaliser,
    vote,
)
from margrove.certificate import Certificate, Claim, Source, certify
from margrove.run.progress import Progress, as_one_of, report
from margrove.status import Status
from margrove.tree.certificate import (
    ROUNDING,
    Deviations,
    affordable,
    certify_tree_problem,
    fits,
    n_arrays_that_differ,
    refuse_foreign,
)
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem

VISIT_LIMIT = 2_000_000  # cells that are visited to search trees; a second or so
_PER_SEARCH = 1_000  # cells: what it costs to search a column at a node, however few rows are there
_LARGEST_VOTE = 1400.0  # its exponential, halved, is a number still; LEAST_WEIGHT and the largest rate allow less
_COUNTED = re.compile(r"(\d+) of (\d+) (?=splits|leaves)")  # as the claims of one tree begin
_GOLDEN = (sqrt(5) - 1) / 2

# Claims
_WEIGHTS = "weights of every round"
_ERROR = "weighted error of each learner"
_LOSS = "average loss of each learner"
_VOTE = "vote of each learner"
_TRAINING = "training error after each round"
_PRODUCT = "exponential loss is the product of Z"
_LEAST_LOSS = "every vote minimises the loss"
_FORMULA = "Z of each round is 2 √(ε (1 − ε))"

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]  # (n,): the class that a learner gives to each row, -1 for none of them


class FittedBoost(Protocol):
    """A fitted ensemble."""

    model_: BoostModel | None
    estimator_: Any
    estimator_errors_: Floats
    estimator_weights_: Floats
    status_: Status
    learning_rate: float
    n_estimators: int
    n_estimators_: int
    n_rows_: int
    n_features_in_: int


class FittedMedian(FittedBoost, Protocol):
    """A fitted `AdaBoostRegressor`."""

    loss: r2.Loss

    def _seed(self) -> int: ...

    def _tree_problem(self, learner: Any, cells: Cells, target: Floats, drawn: NDArray[np.intp]) -> TreeProblem: ...


def certify_boost(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Certify a fitted `AdaBoostClassifier`."""
    refuse_foreign(model, "rounds")
    asked, rows, rows_held_out = model._problem_of(X, y, sample_weight)
    problem, rounds = asked.problem, model.rounds_.first(model.n_estimators_)
    is_plain = len(problem.learner.cells.columns) > 0
    fault = _fault_of_classes(model) or _fault_of_copies(model, rounds.vote, is_plain=is_plain)
    fault = fault or _fault_of_rounds(model.rounds_, model.n_estimators_)
    if not (asked.rows_held_out is None or np.array_equal(model.validation_rows_, asked.rows_held_out)):
        fault = fault or "validation_rows_ are not the held-out rows"
    if fault is not None:
        claims: tuple[Claim, ...] = (Claim("stored copies that differ", (1.0,), (ROUNDING,), False, fault),)
    elif is_plain:
        claims = certify_boost_problem(problem, model.model_, rounds)
    else:
        label, failed = asked.classes[problem.learner.target], list[bool]()
        own = _own_rounds(model, len(label))

        def look(t: int, weight: Floats) -> None:
            if t in own:  # with the weights of the fit
                failed.append(not certify(model.estimators_[t], rows, label, weight * len(label)).holds)

        claims = (*certify_rounds(problem, rounds, model._by_round(rows), look), _own_claim(failed))
        if problem.held_out is not None:
            labels = model._by_round(rows_held_out)
            claims = (*claims, _of_rows_held_out(problem.held_out, labels, rounds))
    return _certificate(
        model, "recomputed", len(problem.learner.target), (*claims, *_information(model.rounds_, rounds))
    )


def _certificate(model: FittedBoost, source: Source, n_rows: int, claims: tuple[Claim, ...]) -> Certificate:
    return Certificate(type(model).__name__, str(model.status_), source, n_rows, ("vote",), claims)


def _fault_of_classes(model: Any) -> str | None:
    """Return which number of classes, or class of a node, differs from what it is made of, or None."""
    voting = [] if model.model_ is None else [model.model_]
    if {model.n_classes_, *(each.n_classes for each in (model.rounds_, *voting))} != {len(model.classes_)}:
        return "n_classes_, rounds_.n_classes or model_.n_classes is not the number of classes_"
    if any(not np.array_equal(each.grove.label, np.argmax(each.grove.value, axis=1)) for each in voting):
        return "model_.grove.label differs from the classes that the nodes predict"
    return None


def _fault_of_copies(model: FittedBoost, vote: Floats, *, is_plain: bool) -> str | None:
    """Return which stored copies differ (votes, trees of the learners), or None."""
    learners = vars(model).get("estimators_", ())  # those of plain trees are made on first use
    if model.model_ is None:
        return None
    if not np.array_equal(model.model_.vote, vote):
        return "model_.vote differs from the votes of the rounds"
    for t, learner in enumerate(learners):
        trees = (learner.nodes_, learner.grown_) if is_plain else (learner.nodes_,)
        is_same = not any(n_arrays_that_differ(tree, model.model_.grove.tree(t)) for tree in trees)
        if not is_same or not np.array_equal(getattr(learner, "classes_", 0), getattr(model, "classes_", 0)):
            return f"round {t + 1}: the learner in estimators_ differs from that in model_"
    return None


def _fault_of_rounds(rounds: Rounds, n_kept: int) -> str | None:
    """Return why these rounds cannot be those of a fit that kept so many of them."""
    seen = (rounds.vote, rounds.training_error, rounds.validation_error)
    if any(array is not None and len(array) != rounds.n_rounds for array in seen):
        return "the arrays of rounds_ have different lengths"
    return None if rounds.best_round == n_kept else "n_estimators_ is not the round with the smallest validation error"


def _own_rounds(model: FittedBoost, n_rows: int) -> list[int]:
    """Return the rounds whose learners are certified on the rows and weights of their round: Margrove's that converged
    and are not coded; of many the first and the last; none of a model file, which keeps no trees before pruning."""
    learners = enumerate(vars(model).get("estimators_", ()))
    ours = [(t, each) for t, each in learners if type(each).__module__.startswith("margrove.")]
    rounds = [t for t, each in ours if not hasattr(each, "_machines") and str(each.status_) == "converged"]
    is_cheap = n_rows * model.n_features_in_ * len(rounds) <= VISIT_LIMIT
    return rounds if is_cheap else [rounds[0], rounds[-1]]


def _own_claim(failed: list[bool]) -> Claim:
    words = f"{len(failed)} certified on the rows and weights of their round, the others were not checked"
    return Claim("learners whose own certificate fails", (float(sum(failed)),), (0.0,), not any(failed), words)


def solver_certificate(model: Any) -> Certificate:
    """Return the certificate of a fitted ensemble with nothing recomputed."""
    if not hasattr(model, "rounds_"):
        return _certificate(model, "solver", int(model.n_rows_), _information_of_numbers(model))
    rounds = model.rounds_.first(model.n_estimators_)
    claims = [
        Claim("training error", (float(rounds.training_error[-1]),), words="weighted share of misclassified rows"),
        Claim("exponential loss", (float(rounds.loss[-1]),), words="the product of the Z of all rounds"),
    ]
    return _certificate(model, "solver", int(model.n_rows_), (*claims, *_information(model.rounds_, rounds)))


def _information(all_rounds: Rounds, rounds: Rounds) -> tuple[Claim, ...]:
    """Return the claims that only inform; ``rounds`` are those that were kept."""
    claims = [Claim("rounds", (float(rounds.n_rounds),), words=f"kept of {all_rounds.n_rounds}")]
    if rounds.validation_error is not None:
        held_out = float(rounds.validation_error[-1])
        words = "optimistic: it was used to choose the number of rounds"
        claims.append(Claim("smallest error on held-out rows", (held_out,), words=words))
    return tuple(claims)


# ------------------------------------------------------------------------------------------------- trees that vote


def certify_boost_problem(
    problem: BoostProblem, model: BoostModel, rounds: Rounds, *, visit_limit: int = VISIT_LIMIT
) -> tuple[Claim, ...]:
    """Return the claims of boosted trees that solve this problem, made again from data and parameters."""
    trees = model.grove.trees
    for t, tree in enumerate(trees):  # before any row goes down a tree
        if unfit := _unfit(problem.learner, tree, t):
            return (unfit,)
    if not (len(trees) == rounds.n_rounds and np.array_equal(model.vote, rounds.vote)):
        return (Claim("votes of the model", (inf,), (0.0,), False, "they differ from the votes of its rounds"),)
    cells = problem.learner.cells
    searched = _Searched(trees, visit_limit, is_sparse=cells.sparse is not None)

    def look(t: int, weight: Floats) -> None:
        searched.look(t, replace(problem.learner, weight=weight))

    claims = [*certify_rounds(problem, rounds, _labels(trees, cells), look), *searched.claims()]
    if problem.held_out is not None:
        claims.append(_of_rows_held_out(problem.held_out, _labels(trees, problem.held_out.cells), rounds))
    return tuple(claims)


def _unfit(problem: TreeProblem, tree: TreeModel, t: int) -> Claim | None:
    """Return what is wrong with the arrays of a tree, or None."""
    claim = fits(problem, tree)
    return None if claim.holds else replace(claim, words=f"round {t + 1}: {claim.words}")


def _labels(trees: list[TreeModel], cells: Cells) -> Iterator[Labels]:
    return (np.argmax(tree.value, axis=1)[tree.apply(cells)] for tree in trees)


def _of_rows_held_out(held_out: HeldOut, labels: Iterator[Labels], rounds: Rounds) -> Claim:
    """Check the recorded validation error of every round."""
    name, found = "error on held-out rows", Deviations()
    votes = np.zeros((len(held_out.target), rounds.n_classes))
    for t, label in enumerate(labels):
        cast(votes, label, float(rounds.vote[t]))
        error = float(np.average(judged(votes) != held_out.target, weights=held_out.weight))
        kept = inf if rounds.validation_error is None else float(rounds.validation_error[t])
        found.note(name, abs(error - kept))
    return found.claim(name, f"{len(votes)} rows: largest difference")


class _Searched:
    """Trees grown on the rows and weights of their round, of which a sample is searched again."""

    def __init__(self, trees: list[TreeModel], visit_limit: int, *, is_sparse: bool) -> None:
        self.trees, self.visit_limit = trees, visit_limit
        ends = {0, len(trees) - 1}
        # The cells that are visited to search each tree; in sparse ones every node costs the making of whole columns.
        n_rows = [tree.n_nodes * int(tree.n_rows[0]) if is_sparse else int(tree.n_rows.sum()) for tree in trees]
        n_tests = [tree.n_nodes - tree.n_leaves for tree in trees]
        cost = (np.array(n_rows) + _PER_SEARCH * np.array(n_tests)) * len(trees[0].columns)
        self.rounds = affordable(cost, ends, visit_limit - int(cost[list(ends)].sum()))
        self.worst: dict[str, Claim] = {}
        self.counted: dict[str, tuple[int, int]] = {}

    def look(self, t: int, problem: TreeProblem) -> None:
        """Search the tree of this round, which solves this problem. Keep the worst of each claim, and add up counts."""
        if t not in self.rounds:
            return
        tree = self.trees[t]
        limit = max(1, self.visit_limit // len(self.rounds))
        for claim in certify_tree_problem(problem, tree, tree, visit_limit=limit):
            if found := _COUNTED.match(claim.words):
                n_searched, n_all = self.counted.get(claim.name, (0, 0))
                self.counted[claim.name] = (n_searched + int(found[1]), n_all + int(found[2]))
            known = self.worst.get(claim.name)
            if known is None or _badness(claim) > _badness(known):
                words = f"round {t + 1}: {claim.words}" if claim.holds is False else claim.words
                self.worst[claim.name] = replace(claim, words=words)

    def claims(self) -> Iterator[Claim]:
        """Yield the worst of each claim, with the counts of all searched trees; one that fails keeps its own."""
        words = "nodes recounted and splits searched again, on the rows and weights of their round"
        yield Claim("trees searched again", (float(len(self.rounds)),), words=f"of {len(self.trees)}: {words}")
        for name, claim in self.worst.items():
            if claim.holds is False or name not in self.counted:
                yield claim
            else:
                n_searched, n_all = self.counted[name]
                yield replace(claim, words=_COUNTED.sub(f"{n_searched:,} of {n_all:,} ", claim.words, count=1))


def _badness(claim: Claim) -> tuple[bool, float]:
    return claim.holds is False, claim.values[0] if claim.values else 0.0


# ---------------------------------------------------------------------------------------------------- the rounds


def certify_rounds(
    problem: BoostProblem,
    rounds: Rounds,
    labels: Iterator[Labels],
    look: Callable[[int, Floats], None],
) -> tuple[Claim, ...]:
    """Return the claims of the rounds of any learner. ``look`` is called with the weights of each round."""
    is_error = (rounds.error >= 0) & (rounds.error < 1)
    is_last = np.arange(rounds.n_rounds) == rounds.n_rounds - 1
    overflows = np.array([is_overflow(a, problem.learning_rate) for a in rounds.vote.tolist()], dtype=bool)
    is_vote = (rounds.vote > 0) & np.where(overflows, is_last & np.isfinite(rounds.vote), rounds.vote <= _LARGEST_VOTE)
    if not (rounds.n_rounds > 0 and is_error.all() and is_vote.all()):  # the formulas cannot be applied
        return (Claim("errors and votes", (inf,), (0.0,), False, "some are outside their valid range"),)
    repeated = _Repeated(problem, rounds)
    n_seen = 0
    for t, label in enumerate(labels):
        with as_one_of("certificate", t, rounds.n_rounds):
            look(t, repeated.weight)
        repeated.step(t, label)
        n_seen = t + 1
        report(Progress("certificate", n_seen, rounds.n_rounds))
    if n_seen != rounds.n_rounds:
        return (Claim("rounds", (float(n_seen),), (float(rounds.n_rounds),), False, "some learners are missing"),)
    return tuple(repeated.claims())


class _Repeated(Deviations):
    """The rounds, repeated."""

    def __init__(self, problem: BoostProblem, rounds: Rounds) -> None:
        super().__init__()
        self.problem, self.rounds = problem, rounds
        self.target = problem.learner.target
        n = len(self.target)
        given = np.ones(n) if problem.learner.weight is None else problem.learner.weight
        self.first = self.weight = given / given.sum()
        self.votes = np.zeros((n, problem.n_classes), order="F")  # summed and compared class by class, not row by row
        # From the first round that leaves some row less than LEAST_WEIGHT, weights no longer follow from the votes, and
        # the product of the Z is no longer the loss. None: no such round so far.
        self.n_exact: int | None = None
        self.log_loss_exact = 0.0

    def step(self, t: int, label: Labels) -> None:
        """Repeat one round and compare it with the record."""
        n_classes = self.problem.n_classes
        error, a = float(self.rounds.error[t]), float(self.rounds.vote[t])
        is_wrong = label != self.target
        found = float(self.weight[is_wrong].sum())
        self.note(_ERROR, abs(error - found))
        expected = vote(error, n_classes, self.problem.learning_rate)
        self.note(_VOTE, abs(a - expected) / max(1.0, abs(expected)))
        weight = self.weight
        if is_overflow(a, self.problem.learning_rate):  # the last round
            self._end_of_product(t)
        else:
            # Divided by the Z that error and vote come to, not by what would mend any sum.
            right, wrong = factors(a, n_classes)
            weight = weight * np.where(is_wrong, wrong, right) / normaliser(error, a, n_classes)
            self.note(_WEIGHTS, abs(float(weight.sum()) - 1))
        if self.problem.learning_rate == 1 and 0 < found < 1:
            least = _least_loss(found, a, n_classes)
            self.note(_LEAST_LOSS, _z(a, found, n_classes) / least - 1)
        is_lifted, weight = bool(weight.min() < LEAST_WEIGHT), np.maximum(weight, LEAST_WEIGHT)
        self.weight = weight / weight.sum()
        cast(self.votes, label, a)
        if is_lifted or t == self.rounds.n_rounds - 1:
            self._end_of_product(t + 1)
        self.error = float(self.first[judged(self.votes) != self.target].sum())
        self.note(_TRAINING, abs(self.error - float(self.rounds.training_error[t])))

    def claims(self) -> Iterator[Claim]:
        """Yield the claims."""
        yield self.claim(_WEIGHTS, "largest deviation of their sum from 1")
        yield self.claim(_ERROR, "largest difference from the value for these rows")
        yield self.claim(_VOTE, "largest difference from the value for its error")
        yield self.claim(_TRAINING, "largest difference")
        chance = 1 - 1 / self.problem.n_classes
        weakest = float(self.rounds.error.max())
        is_better = weakest < chance or weakest == 0  # of one class, guessing is right
        yield Claim("error of the weakest learner", (weakest,), (chance,), is_better, "below that of guessing")
        yield from self._of_the_loss()
        yield from self._of_the_bound()

    def _end_of_product(self, n_rounds: int) -> None:
        if self.n_exact is None:
            self.n_exact, self.log_loss_exact = n_rounds, self._log_loss(n_rounds)

    def _log_loss(self, n_rounds: int) -> float:
        """Return log Σ w exp(−y·f/K), whose exponent is Σ_t a_t/K − (votes for the class): see `problem.factors`."""
        all_votes = float(self.rounds.vote[:n_rounds].sum())
        exponent = all_votes / self.problem.n_classes - self.votes[np.arange(len(self.target)), self.target]
        largest = float(exponent.max())
        return largest + log(float((self.first * np.exp(exponent - largest)).sum()))

    def _of_the_loss(self) -> Iterator[Claim]:
        """Claim that Σ w exp(−y·f/K) is Π Z."""
        self.log_loss = self._log_loss(self.rounds.n_rounds)
        assert self.n_exact is not None
        of_rounds = float(np.log(self.rounds.first(self.n_exact).normaliser).sum())
        self.note(_PRODUCT, abs(self.log_loss_exact - of_rounds) / max(1.0, abs(of_rounds)))
        words = "difference of their logarithms"
        if self.n_exact < self.rounds.n_rounds:
            words += f" after {self.n_exact} rounds; then some row has the smallest weight allowed"
        yield self.claim(_PRODUCT, words)
        if self.problem.learning_rate == 1:
            yield self.claim(_LEAST_LOSS, "largest relative decrease that a line search finds")

    def _of_the_bound(self) -> Iterator[Claim]:
        loss = exp(min(self.log_loss, 700.0))
        if self.problem.n_classes > 2:
            words = "weighted share of misclassified rows; the bound is for two classes only"
            yield Claim("training error", (self.error,), words=words)
            yield Claim("exponential loss", (loss,), words="of SAMME; it bounds the error of two classes only")
            return
        words = "weighted share of misclassified rows, at most the exponential loss"
        yield Claim("training error", (self.error,), (loss,), self.error <= loss + ROUNDING, words)
        if self.problem.learning_rate == 1:
            is_usual = self.rounds.error > 0  # a perfect learner's vote is set to 1, not a minimum
            error, z = self.rounds.error[is_usual], self.rounds.normaliser[is_usual]
            self.note(_FORMULA, *np.abs(z - 2 * np.sqrt(error * (1 - error))))
            yield self.claim(_FORMULA, "largest difference")


def _least_loss(error: float, around: float, n_classes: int) -> float:
    """Return the least Z of a learner with this error over all votes near one, by golden section: by no formula."""
    low, high = around - 5, around + 5
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    z = [_z(a, error, n_classes) for a in inner]
    while high - low > 1e-7:
        if z[0] <= z[1]:  # the minimum lies left of the second
            high, inner[1], z[1] = inner[1], inner[0], z[0]
            inner[0] = high - _GOLDEN * (high - low)
            z[0] = _z(inner[0], error, n_classes)
        else:
            low, inner[0], z[0] = inner[0], inner[1], z[1]
            inner[1] = low + _GOLDEN * (high - low)
            z[1] = _z(inner[1], error, n_classes)
    return min(z)


def _z(a: float, error: float, n_classes: int) -> float:
    """Return the sum of w exp(…) over the correctly classified rows, and over the others."""
    return exp(log1p(-error) - (n_classes - 1) / n_classes * a) + exp(log(error) + a / n_classes)


# ---------------------------------------------------------------------------------------------------- numbers


def certify_boost_of_numbers(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Certify a fitted `AdaBoostRegressor`."""
    refuse_foreign(model, "rounds")
    cells, target, first = model._problem_of(X, y, sample_weight)
    is_plain = len(cells.columns) > 0
    fault = _fault_of_copies(model, model.estimator_weights_, is_plain=is_plain)
    if fault is not None:
        claims: tuple[Claim, ...] = (Claim("stored copies that differ", (1.0,), (ROUNDING,), False, fault),)
    elif is_plain:
        claims = _claims_of_drawn_trees(model, cells, target, first)
    else:
        own, failed = _own_rounds(model, len(target)), list[bool]()
        predictions, generator = model._predictions(X), np.random.RandomState(model._seed())

        def predicted(t: int, weight: Floats) -> Floats:
            _, *drawn = model._drawn(model.estimator_, X, target, weight, generator)
            if t in own:
                failed.append(not certify(model.estimators_[t], *drawn).holds)
            return np.asarray(predictions[:, t])

        claims = (*_claims_of_numbers(model, target, first, predicted), _own_claim(failed))
    return _certificate(model, "recomputed", len(target), (*claims, *_information_of_numbers(model)))


def _information_of_numbers(model: FittedMedian) -> tuple[Claim, ...]:
    weakest = float(model.estimator_errors_.max())
    return (
        Claim("rounds", (float(model.n_estimators_),), words=f"of {model.n_estimators} requested"),
        Claim("average loss of the weakest learner", (weakest,), words="as a share of the largest loss; ½ is chance"),
    )


def _claims_of_drawn_trees(model: FittedMedian, cells: Cells, target: Floats, first: Floats) -> tuple[Claim, ...]:
    """Return the claims of plain trees: the same seed draws the same rows, so the trees can be searched again."""
    assert model.model_ is not None
    trees, generator = model.model_.grove.trees, np.random.RandomState(model._seed())
    searched = _Searched(trees, VISIT_LIMIT, is_sparse=cells.sparse is not None)
    unfit: list[Claim] = []

    def predicted(t: int, weight: Floats) -> Floats:
        r2.next_seed(generator)
        problem = model._tree_problem(model.estimator_, cells, target, r2.drawn_rows(weight, generator))
        if claim := _unfit(problem, trees[t], t):
            unfit.append(claim)
            return np.full(len(target), np.nan)
        searched.look(t, problem)
        return np.asarray(trees[t].value[trees[t].apply(cells), 0])

    claims = _claims_of_numbers(model, target, first, predicted)
    return (*claims, *unfit[:1], *searched.claims())


def _claims_of_numbers(
    model: FittedMedian,
    target: Floats,
    first: Floats,
    predicted: Callable[[int, Floats], Floats],
) -> tuple[Claim, ...]:
    """Return the claims of the rounds: ``predicted`` gives the predictions of round t, drawn with these weights."""
    found, weight = Deviations(), first
    n_rounds = len(model.estimator_errors_)
    if not n_rounds == len(model.estimator_weights_) == model.n_estimators_:
        return (Claim("rounds", (float(n_rounds),), (float(model.n_estimators_),), False, "errors or votes missing"),)
    for t in range(n_rounds):
        weight = r2.lifted(weight, first)
        with as_one_of("certificate", t, n_rounds):
            loss = r2.losses(predicted(t, weight), target, weight, model.loss)
        report(Progress("certificate", t + 1, n_rounds))
        error = r2.average(loss, weight)
        found.note(_LOSS, abs(error - float(model.estimator_errors_[t])))
        expected = r2.vote(error, model.learning_rate)
        found.note(_VOTE, abs(expected - float(model.estimator_weights_[t])) / max(1.0, expected))
        changed = r2.next_weights(weight, loss, error, model.learning_rate) if 0 < error < r2.CHANCE else None
        if changed is None:
            break
        weight = changed
    is_last = t == n_rounds - 1
    words = "it stops at a learner without loss or no better than chance, or if all weights become zero"
    return (
        found.claim(_LOSS, "largest difference from the value for these rows"),
        found.claim(_VOTE, "largest difference from the value for its loss"),
        Claim("rounds after boosting must stop", (float(n_rounds - 1 - t),), (0.0,), is_last, words),
    )
