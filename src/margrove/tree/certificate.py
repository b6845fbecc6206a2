"""Certificates of trees: every node recounted on the rows that reach it, every split searched again by `split.py`.

Nothing here imports the reference, an engine or the core. The claim is that of greedy growth, split by split: on the
rows of its node each test is the best of those it was allowed, up to rounding, and no rule allowed a leaf to be split.
The pruning rules are then applied again to the grown tree and must give the tree that predicts; without a rule that is
the grown tree itself. Two choices that the rules leave open are not compared: which of two branches is the heaviest
where sums of weights differ by rounding only, and the α that cross-validation has chosen.

Rows are streamed: one path of the tree at a time. All nodes are recounted. Searching all of them costs about rows ×
columns × depth, so above VISIT_LIMIT cells only a sample is searched, always the same one, the root in it, and the
claim reports how many of how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.certificate import Certificate, Claim, per_machine
from margrove.data.lazy import is_files, kind_of_collection
from margrove.data.regrouped import on_one_worker
from margrove.errors import InputError
from margrove.run.progress import Progress, report
from margrove.store.adoption import from_sklearn
from margrove.tree.bounds import ROUNDING_OF_BOUNDS, gain_bounds
from margrove.tree.description import description_length
from margrove.tree.draws import child_key
from margrove.tree.groups import Groups
from margrove.tree.model import TreeModel, fault_of
from margrove.tree.problem import Criterion, TreeProblem
from margrove.tree.significance import split_p_values
from margrove.tree.split import FREE, Bounds, Node, Split, SplitSearch

VISIT_LIMIT = 2_000_000  # cells that are visited to search splits; a second or so
ROUNDING = 1e-9  # of sums in another order, relative to the impurity of the node
_ROUNDING_OF_LOGARITHMS = 1e-6  # of the Gaussian entropy: a variance near its floor has lost that many digits
_ROUNDING_OF_FITS = 1e-6  # of fitted thresholds, relative to the spread of the column
_ROUNDING_OF_LEFTOVERS = 1e-13  # of a level's weight as a difference, relative to the node's
_ROUNDING_OF_THRESHOLDS = 2.0**-51  # of a midpoint, relative to its neighbours
_ROUNDING_OF_ADOPTED = 2.0**-22  # the same in a tree that was grown elsewhere, which rounds cells to float32

_COST_OF_A_MEDIAN = 8  # of keeping it, in visits of a cell


def certify_tree(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Certificate:
    """Certify a fitted tree or stump, scikit-learn's too. A table in partitions is fetched by one worker."""
    if kind_of_collection(X) is not None or is_files(X):
        found: Certificate = on_one_worker(partial(certify_tree, model), X, y, sample_weight)
        return found
    if not hasattr(model, "_problem_of"):
        model = from_sklearn(model)
    problem, held_out = model._problem_of(X, y, sample_weight)
    pruned = partial(model._pruned, held_out)
    claims = certify_tree_problem(problem, model.nodes_, model.grown_, pruned=pruned)
    claims += _information(model) if claims[0].holds else ()  # an invalid tree cannot be traversed
    status, n_rows = str(getattr(model, "status_", "unknown")), problem.cells.n_rows
    return Certificate(type(model).__name__, status, "recomputed", n_rows, ("tree",), claims)


def solver_certificate(model: Any) -> Certificate:
    """Return the certificate of a fitted tree with nothing recomputed."""
    n_rows = int(model.nodes_.n_rows[0])
    return Certificate(type(model).__name__, str(model.status_), "solver", n_rows, ("tree",), _information(model))


def refuse_foreign(model: object, what: str) -> None:
    """Raise `InputError` for an estimator of another library."""
    package = type(model).__module__.split(".")[0]
    if not hasattr(model, "_problem_of"):
        raise InputError(
            f"{type(model).__name__} is an estimator of {package}; its {what} cannot be certified",
            cure="Fit Margrove's estimator of the same name.",
        )


@np.errstate(all="ignore")  # forged numbers may overflow
def _information(model: Any) -> tuple[Claim, ...]:
    """Return the claims that only inform: size, p-values, description length."""
    tree: TreeModel = model.nodes_
    grown: TreeModel = model.grown_
    criterion: Criterion = model._settled_criterion()
    deep = f"{tree.max_depth:,} level{'' if tree.max_depth == 1 else 's'} deep"
    claims = [Claim("leaves", (float(tree.n_leaves),), words=f"of a tree that is {deep}")]
    if getattr(model, "n_outputs_", 1) > 1:
        return tuple(claims)
    p = split_p_values(tree, criterion=criterion, correct=model.correct_significance, small="chi2")
    by_chance = "probability of such a split by chance (χ² or F test)"
    claims.append(Claim("p-value of each split", per_machine(p[~tree.is_leaf]), words=by_chance))
    if not tree.tells_tests or criterion == "poisson":
        return tuple(claims)  # the bits of a test, or of a target, are not known
    bits = sum(description_length(tree, criterion=criterion))
    if tree is not grown:
        before = sum(description_length(grown, criterion=criterion))
        claims.append(Claim("description length as grown", (before,), words="bits that encode tree and target"))
    claims.append(Claim("description length", (bits,), words="bits that encode the tree and, given it, the target"))
    return tuple(claims)


def certify_tree_problem(
    problem: TreeProblem,
    tree: TreeModel,
    grown: TreeModel | None = None,
    *,
    pruned: Callable[[], TreeModel] | None = None,
    visit_limit: int = VISIT_LIMIT,
    is_ours: bool | None = None,
) -> tuple[Claim, ...]:
    """Return the claims of a tree that solves this problem.

    ``grown`` is the tree before pruning: ``tree`` itself if it was not pruned; if it is None, leaves are not checked.
    ``pruned`` applies the pruning rules to the grown tree again; None: there is no rule. At most ``visit_limit`` cells
    are visited to search splits. ``is_ours``: Margrove grew it; None: it did if the tree records how many tests there
    were.
    """
    # Copies, whose cached parents and depths are those of the arrays as they are now.
    whole = replace(tree if grown is None else grown)
    tree = whole if grown is None or grown is tree else replace(tree)
    foundations = [fits(problem, whole), *([] if tree is whole else [fits(problem, tree)])]
    if not all(claim.holds for claim in foundations):
        return tuple(claim for claim in foundations if not claim.holds)
    audit = _Audit(problem, whole, visit_limit, whole.tells_tests if is_ours is None else is_ours)
    for i, node in audit.walk():
        audit.recount(i, node)
        audit.n_done += 1
        audit.report()
    claims = [foundations[0], *audit.claims(are_leaves_grown=grown is not None)]
    if tree is not whole or pruned is not None:
        n_changed = n_arrays_that_differ(tree, whole if pruned is None else pruned())
        name = "pruning the grown tree gives this tree"
        words = f"pruned again from {whole.n_leaves} to {tree.n_leaves} leaves: arrays that differ"
        claims.append(Claim(name, (float(n_changed),), (0.0,), n_changed == 0, words))
    return tuple(claims)


class Deviations:
    """The largest deviation from each claim, or the number of violations."""

    def __init__(self) -> None:
        self.off: dict[str, float] = {}

    def note(self, name: str, *off: float) -> None:
        """Keep the largest deviation; what is no number is infinitely far off."""
        for value in off:
            self.off[name] = max(self.off.get(name, 0.0), inf if np.isnan(value) else float(value))

    def count(self, name: str) -> None:
        """Count what should not be."""
        self.off[name] = self.off.get(name, 0.0) + 1

    def claim(self, name: str, words: str, limit: float = ROUNDING) -> Claim:
        """Claim that the deviation is at most the limit."""
        off = self.off.get(name, 0.0)
        return Claim(name, (off,), (limit,), off <= limit, words)


def affordable(cost: NDArray[np.integer], always: set[int], room: int) -> set[int]:
    """Return ``always``, the first and perhaps the last, and of the others, shuffled, those whose costs find room."""
    chosen = set(always)
    for i in (np.random.default_rng(0).permutation(len(cost) - len(always)) + 1).tolist():
        if cost[i] <= room:
            room -= int(cost[i])
            chosen.add(i)
    return chosen


class _Audit(Deviations):
    """The deviations found in a tree, node by node."""

    def __init__(self, problem: TreeProblem, tree: TreeModel, visit_limit: int, is_ours: bool) -> None:
        super().__init__()
        self.problem, self.tree = problem, tree
        self.rounding = _ROUNDING_OF_LOGARITHMS if problem.growth.criterion == "gaussian_entropy" else ROUNDING
        self.search = SplitSearch(problem, slack=self.rounding)
        self.strict = SplitSearch(problem, slack=-self.rounding)  # finds only tests that no rounding forbids
        self.searched = self._sample(visit_limit)
        self.tells_tests, self.is_ours = tree.tells_tests, is_ours
        is_drawn = problem.growth.max_features is not None or problem.growth.thresholds == "random"
        self.is_drawn_elsewhere = is_drawn and not is_ours  # by another generator
        self.root_unit, self.n_done = 0.0, 0
        self.size, self.spread = float(np.abs(problem.target).max()), float(np.ptp(problem.target))  # of numbers
        self.pending: dict[int, tuple[Bounds, ...]] = {}
        self.priority: dict[int, tuple[float, int]] = {}  # w(S) · gain and branches, where known

    def _sample(self, visit_limit: int) -> set[int]:
        """Return the nodes to search: the root, and the others in a shuffled order while the limit allows."""
        is_sparse = self.problem.cells.sparse is not None  # then every node costs the making of whole columns
        rows = np.full(self.tree.n_nodes, self.problem.cells.n_rows) if is_sparse else self.tree.n_rows
        each = _COST_OF_A_MEDIAN if self.problem.growth.criterion == "absolute_error" else 1
        return affordable(each * rows * len(self.problem.cells.columns), {0}, visit_limit)

    def walk(self) -> Iterator[tuple[int, Node | None]]:
        """Yield the number of each node, depth first, and the node itself, made from the rows that reach it and the
        bounds it inherits; None if no row does."""
        root = self.search.node(np.arange(self.problem.cells.n_rows))
        stack: list[tuple[int, NDArray[np.intp], Bounds, int]] = [(0, root.rows, FREE, root.key)]
        while stack:
            i, rows, bounds, key = stack.pop()
            yield i, self.search.node(rows, bounds, key) if len(rows) else None
            children = self.tree.children(i)
            if len(children) > 0:
                branch = self.tree.branches(i, self.problem.cells, rows)
                inherited = self.pending.pop(i, (bounds,) * len(children))
                below = enumerate(children.tolist())
                stack += [(each, rows[branch == b], inherited[b], child_key(key, b)) for b, each in below][::-1]

    def report(self) -> None:
        """Report the share of the nodes that are done."""
        report(Progress("certificate", self.n_done, self.tree.n_nodes))

    def recount(self, i: int, node: Node | None) -> None:
        """Check all claims about node i."""
        tree, n_rows = self.tree, 0 if node is None else len(node.rows)
        self.note("rows in each node", abs(float(tree.n_rows[i]) - n_rows))
        if node is None:
            self.count("splits that violate the rules")
            return
        if i == 0:
            self.root_unit = node.gain_unit
        value = self.search.held_value(node)
        value_off = float(np.abs(tree.value[i] - value).max()) / self._value_unit(node)
        self.note("weight and value of each node", abs(tree.weight[i] - node.weight) / node.weight, value_off)
        self.note("impurity of each node", abs(tree.impurity[i] - node.impurity) / self._unit(node))
        if tree.feature[i] < 0:
            if i in self.searched:
                self._judge_leaf(i, node)
        else:
            self._judge_split(i, node)

    def _judge_split(self, i: int, node: Node) -> None:
        tree, j = self.tree, int(self.tree.feature[i])
        branch = tree.branches(i, self.problem.cells, node.rows)
        n_branches = len(tree.children(i))
        groups = self.search.groups(node, j)
        if n_branches < 2 or groups.n_groups < 2 or set(np.unique(branch)) != set(range(n_branches)):
            self.count("splits that violate the rules")
            return
        split = self.search.describe(node, j, groups, branch, float(tree.threshold[i]))
        self.pending[i] = split.bounds
        self.priority[i] = node.weight * split.charged_gain, n_branches
        self.note("gain of each split", abs(tree.gain[i] - split.gain) / self._unit(node))
        is_due = not self.strict.is_final(node, int(tree.depth[i])) and self.search.is_worthwhile(node, split)
        is_paid = self.problem.growth.complexity == 0 or split.charged_gain > -self.rounding * self._unit(node)
        is_asked = self._is_candidate(node, groups, split)
        if not (is_due and is_paid and is_asked and self.search.is_allowed(node, split)):
            self.count("splits that violate the rules")
        # Of branches of equal counts the first is the heaviest; sums of weights are equal only up to rounding.
        heaviest = split.branches.weight >= split.branches.weight.max() * (1 - ROUNDING)
        if self.problem.weight is None and self.is_ours:
            heaviest = np.arange(n_branches) == split.default_branch
        if not self.is_ours:  # scikit-learn counts rows, whatever they weigh
            rows = np.bincount(branch, minlength=n_branches)
            heaviest |= rows == rows.max()
        unmet = [int(tree.default_branch[i]), *([] if groups.has_missing else [int(tree.missing_branch[i])])]
        is_led_astray = any(not 0 <= b < n_branches or not heaviest[b] for b in unmet)
        if is_led_astray or not np.array_equal(tree.levels(i), split.level_branch):
            self.count("splits that send unknown cells elsewhere than to the heaviest branch")
        if i in self.searched:
            self._search_again(i, node, split, groups)

    def _is_candidate(self, node: Node, groups: Groups, split: Split) -> bool:
        """Return whether its column offers the test: θ is a candidate, levels are grouped as it requires."""
        column = self.problem.cells.columns[split.column]
        n_branches = len(split.branches.weight)
        if column.test == "threshold":
            if split.threshold == inf:
                return groups.has_missing
            if n_branches != 2 or len(groups.thresholds) == 0:
                return False
            x = self.problem.cells.column(split.column)[node.rows].astype(np.float64)
            below, above = x[x <= split.threshold], x[x > split.threshold]
            if len(below) == 0 or len(above) == 0:
                return False
            if self.is_drawn_elsewhere and self.problem.growth.thresholds == "random":
                return True
            low, high = below.max(), above.min()
            largest = max(abs(low), abs(high))
            near = (_ROUNDING_OF_THRESHOLDS if self.is_ours else _ROUNDING_OF_ADOPTED) / 2 * largest
            if self.problem.growth.thresholds in ("gaussian", "logistic"):
                near += _ROUNDING_OF_FITS * float(np.nanmax(x) / 2 - np.nanmin(x) / 2)
            # Halves: the difference of two numbers may be more than the largest.
            return bool(np.abs(groups.thresholds / 2 - split.threshold / 2).min() <= near)
        if column.test in ("intervals", "multiway"):
            return n_branches == groups.n_groups
        sizes = [len(np.unique(groups.group[split.branch == b])) for b in range(n_branches)]
        return n_branches == 2 and (column.test == "subset" or 1 in sizes)

    def _search_again(self, i: int, node: Node, split: Split, groups: Groups) -> None:
        unit = self._unit(node)
        best = self.strict.best_test(node, split.column, groups)
        if best is not None and not (self.is_drawn_elsewhere and self.problem.growth.thresholds == "random"):
            self.note("a better test of the same column", (best.gain - split.gain) / unit)
        if self.tells_tests:
            self.note("number of candidate tests", abs(self.tree.n_tests[i] / split.n_tests - 1))
        self._recount_levels(i, node, split)
        columns = self._columns(node)
        if columns is None:
            return
        if split.column not in columns:
            self.count("splits that violate the rules")
        worse = self._worse_columns(node, split)
        offers = self._offers(node, [j for j in columns if j not in worse], {split.column: groups})
        if self.tells_tests:
            is_of_old = self.tree.n_levels is None  # the first files counted each subset
            n_candidates = sum(offer.n_tests if is_of_old else offer.n_choices for offer in offers.values())
            n_candidates += sum(worse[j] for j in columns if j in worse)
            self.note("number of candidate tests", abs(self.tree.n_candidates[i] / n_candidates - 1))
        least_mean, mean = self._mean_gains(node, offers)
        if isfinite(least_mean):
            self.note("a better column", (least_mean - split.charged_gain) / unit)
        score, is_of_gain = self.search.score(node, split), self.problem.growth.split_score == "gain"
        for j, offer in offers.items():
            least = split.charged_gain - self.rounding * unit
            sure = best if j == split.column else self.strict.best_test(node, j, offer, least if is_of_gain else -inf)
            rival = self._sure_score(node, j, offer, mean, sure)
            if rival is not None:
                self.note("a better column", (rival - score) / max(unit, abs(rival), abs(score)))

    def _worse_columns(self, node: Node, split: Split) -> dict[int, int]:
        """Return the numbers of tests of columns that surely gain less than this split; not all such columns."""
        if self.problem.growth.split_score != "gain":
            return {}
        least = split.charged_gain - ROUNDING_OF_BOUNDS * self._unit(node)
        bounds = gain_bounds(self.problem, node).items()
        return {j: n_tests for j, (n_tests, bound) in bounds if bound < least and j != split.column}

    def _columns(self, node: Node) -> Sequence[int] | None:
        """Return the columns that the node looks at; None if that is not known, or if rounding decides it."""
        n_columns = len(self.problem.cells.columns)
        if (self.problem.growth.max_features or n_columns) >= n_columns:  # all of them, in whatever order
            return None if self.is_drawn_elsewhere else range(n_columns)
        columns = None if self.is_drawn_elsewhere else self.search.looked_at(node)
        return columns if columns == self.strict.looked_at(node) else None

    def _offers(self, node: Node, columns: Sequence[int], known: dict[int, Groups]) -> dict[int, Groups]:
        """Return the groups of these columns. Of many rows each takes its time, so a watcher may end it in between."""
        offers = {}
        for j in columns:
            offers[j] = known[j] if j in known else self.search.groups(node, j)
            self.report()
        return offers

    def _recount_levels(self, i: int, node: Node, split: Split) -> None:
        """Check the table of all levels of a subset test, from which its p-value comes."""
        tree, levels, claim = self.tree, split.levels, "level statistics of each subset test"
        if tree.n_levels is None or tree.association is None or tree.inverse_weight is None:
            return
        self.note(claim, abs(tree.n_levels[i] - levels.n_levels))
        if levels.n_levels == 0:
            return
        # The core subtracts the other levels from the node's weight to get that of one level: a thin one loses digits.
        rounding = _ROUNDING_OF_LEFTOVERS * node.weight * levels.inverse_weight
        if isfinite(levels.association):
            off = abs(tree.association[i] - levels.association) / (1 + levels.association)
            self.note(claim, max(off - rounding, 0.0))
        self.note(claim, max(abs(tree.inverse_weight[i] / levels.inverse_weight - 1) - rounding, 0.0))

    def _mean_gains(self, node: Node, offers: dict[int, Groups]) -> tuple[float, float]:
        """Return the least and largest mean gain that a gain ratio may need, by rounding; −∞ for the other scores."""
        if self.problem.growth.split_score != "gain_ratio":
            return -inf, -inf
        means = []
        for search in (self.search, self.strict):
            offered = [best for j, offer in offers.items() if (best := search.best_test(node, j, offer)) is not None]
            if offered:
                means.append(sum(best.charged_gain for best in offered) / len(offered))
        return min(means, default=-inf), max(means, default=0.0)

    def _sure_score(self, node: Node, j: int, offer: Groups, mean: float, sure: Split | None) -> float | None:
        """Return the score that column j competes with, whatever rounding does; None if it might not compete.

        A column competes with its test of largest gain, ``sure``. If rounding decides which test that is, the scores of
        the tests may differ (but for the score "gain"): then the smallest of them counts.
        """
        if sure is None or self.problem.growth.split_score == "gain":
            return None if sure is None else sure.charged_gain
        rounding = self.rounding * self._unit(node)
        possible = list(self.search.best_tests(node, j, offer, rounding))
        if sure.gain < max(test.gain for test in possible) - rounding or sure.charged_gain < mean + rounding:
            return None
        return min(self.search.score(node, test) for test in possible)

    def _possible_choices(self, node: Node) -> list[Split]:
        """Return every test that the rules might choose, whatever rounding does; none if it might be none."""
        columns = self._columns(node)
        if columns is None:
            return []
        offers = self._offers(node, columns, {})
        least_mean, mean = self._mean_gains(node, offers)
        found = (
            self._sure_score(node, j, offer, mean, self.strict.best_test(node, j, offer)) for j, offer in offers.items()
        )
        sure = max((score for score in found if score is not None), default=None)
        if sure is None:
            return []
        rounding = self.rounding * max(self._unit(node), abs(sure))
        # A charge makes a gain smaller; the other scores are not bounded by it.
        least = sure - 2 * rounding if self.problem.growth.split_score == "gain" else -inf
        tests = [self.search.best_tests(node, j, offer, rounding, least) for j, offer in offers.items()]
        return [
            test
            for test in chain.from_iterable(tests)
            if test.charged_gain >= least_mean - rounding and self.search.score(node, test) >= sure - rounding
        ]

    def _judge_leaf(self, i: int, node: Node) -> None:
        growth = self.problem.growth
        if self.search.is_final(node, int(self.tree.depth[i])):
            return
        choices = self._possible_choices(node)
        # Where no gain is required, none is too small: not even one that rounding made negative.
        asks_nothing = growth.min_gain <= 0 and growth.min_impurity_decrease <= 0
        is_never_negative = growth.complexity == 0 and growth.criterion != "gaussian_entropy"
        is_due = all(self.strict.is_worthwhile(node, choice) for choice in choices)
        if choices and (is_due or (asks_nothing and is_never_negative)):
            gain = min(choice.charged_gain for choice in choices)
            self.priority[i] = node.weight * gain, max(len(choice.bounds) for choice in choices)

    def _n_leaves_to_split(self) -> int:
        """Return the number of leaves that the rules would have split: with `max_leaf_nodes`, those that come first.

        The growth is repeated in the order of w(S) · gain. At each split, a leaf still open that would have fitted and
        gains more should have been split instead. Of splits of equal gain, those with such a leaf below them come last,
        so their order does not matter.
        """
        limit = self.problem.growth.max_leaf_nodes
        if limit is None:
            return sum(bool(self.tree.is_leaf[i]) for i in self.priority)
        tolerance = max(self.rounding * self.root_unit * float(self.tree.weight[0]), float(np.finfo(np.float64).tiny))
        inner: list[tuple[int, bool, int]] = []  # w(S) · gain in tolerances, so that equal ones are
        leaves: list[tuple[float, int]] = []

        def open_node(i: int) -> None:
            if i not in self.priority:
                return
            gain = self.priority[i][0]
            if self.tree.is_leaf[i]:
                heappush(leaves, (-gain, i))
            else:
                heappush(inner, (-round(gain / tolerance), self._brings_a_better_leaf(i, tolerance), i))

        open_node(0)
        n_leaves, n_found = 1, 0
        while inner or leaves:
            if leaves and n_leaves + self.priority[leaves[0][1]][1] - 1 > limit:
                heappop(leaves)  # does not fit, and never will again
            elif leaves and (not inner or -leaves[0][0] > self.priority[inner[0][2]][0] + 2 * tolerance):
                heappop(leaves)
                n_found += 1
            else:
                i = heappop(inner)[2]
                n_leaves += self.priority[i][1] - 1
                for child in self.tree.children(i):
                    open_node(int(child))
        return n_found

    def _brings_a_better_leaf(self, i: int, tolerance: float) -> bool:
        """Return whether a leaf of more gain than node i lies below it, with no node of less gain in between."""
        gain = self.priority[i][0]
        waiting = self.tree.children(i).tolist()
        while waiting:
            below = waiting.pop()
            own = self.priority[below][0] if below in self.priority else -inf
            if self.tree.is_leaf[below]:
                if own > gain + tolerance:
                    return True
            elif own >= gain - tolerance:
                waiting += self.tree.children(below).tolist()
        return False

    def _unit(self, node: Node) -> float:
        """Return the unit in which gains of the node are compared. In a node that is almost pure the rounding of larger
        numbers counts too: that of the root's gain; of classes that of 1, from which shares are subtracted; of numbers
        that of their squares, which sum up to a small variance where one row outweighs all others, and of their means,
        which have the digits of the largest targets."""
        if not self.problem.is_regression:
            return max(node.gain_unit, 1e-6 * max(1.0, self.root_unit))
        squares = 4 * float(np.finfo(np.float64).eps) / ROUNDING * self.spread * max(self.spread, self.size)
        return max(node.gain_unit, 1e-6 * self.root_unit, squares, float(np.finfo(np.float64).tiny))

    def _value_unit(self, node: Node) -> float:
        """Return the unit in which values of the node are compared: its weight, or the size of its targets. A mean near
        zero has the rounding of the largest targets, so the largest of all rows counts too."""
        if not self.problem.is_regression:
            return node.weight
        size = float(np.abs(node.target).max()) + 1e-5 * self.size
        return max(size, float(np.finfo(np.float64).tiny))

    def claims(self, *, are_leaves_grown: bool) -> list[Claim]:
        """Return the claims."""
        n_splits, n_leaves = self.tree.n_nodes - self.tree.n_leaves, self.tree.n_leaves
        n_searched = np.count_nonzero(~self.tree.is_leaf[list(self.searched)])
        of_splits = f"{n_searched} of {n_splits} splits searched again"
        of_leaves = f"{len(self.searched) - n_searched} of {n_leaves} leaves searched"
        unsplit, drawn = "leaves that should be split", "not checked: drawn at random by another library"
        gains = "largest difference, in units of the node's impurity"
        against = "invalid test, too small a branch or gain, or against a monotone constraint"
        claims = [
            self.claim("rows in each node", "largest difference", 0.0),
            self.claim("weight and value of each node", "largest relative difference"),
            self.claim("impurity of each node", gains, self.rounding),
            self.claim("gain of each split", gains, self.rounding),
            self.claim("splits that violate the rules", against, 0.0),
            self.claim("splits that send unknown cells elsewhere than to the heaviest branch", "", 0.0),
            self.claim("number of candidate tests", "largest relative difference")
            if self.tells_tests
            else Claim("number of candidate tests", (), words="not checked: it is not recorded"),
            self.claim("a better test of the same column", f"{of_splits}: largest gain missed", self.rounding),
        ]
        if any(column.test == "subset" for column in self.problem.cells.columns):
            words = "largest relative difference in the statistics behind their p-values"
            claims.append(self.claim("level statistics of each subset test", words))
        if self.is_drawn_elsewhere:
            return [*claims, Claim("a better column", (), words=drawn), Claim(unsplit, (), words=drawn)]
        claims.append(self.claim("a better column", f"{of_splits}: largest score missed", self.rounding))
        if not are_leaves_grown:
            return [*claims, Claim(unsplit, (), words="not checked: the tree before pruning is not stored")]
        self.note(unsplit, self._n_leaves_to_split())
        return [*claims, self.claim(unsplit, f"{of_leaves}: number that the rules allow to split", 0.0)]


def fits(problem: TreeProblem, tree: TreeModel) -> Claim:
    """Claim that the arrays make a tree over these columns, fitted on this many rows."""
    name, n = "the rows are those it was fitted on", problem.cells.n_rows
    width = problem.n_classes or max(1, len(problem.outputs))
    is_of_values = tree.value.shape == (tree.n_nodes, width)
    if not is_of_values or fault_of(tree, is_regression=problem.is_regression):
        return Claim(name, (float(n),), None, False, "its arrays do not form a tree")
    if tree.columns != problem.cells.columns:
        return Claim(name, (float(n),), None, False, "its columns differ from those given")
    fitted_on = int(tree.n_rows[0])
    words = "as many rows as it was fitted on"
    if fitted_on != n:
        words = f"fitted on {fitted_on} rows, given {n}: certify with the rows the model was fitted on"
    return Claim(name, (float(n),), None, fitted_on == n, words)  # neither more nor fewer: there is no limit to show


def n_arrays_that_differ(tree: TreeModel, other: TreeModel) -> int:
    """Return how many arrays of two trees are not equal."""
    pairs = [(getattr(tree, part.name), getattr(other, part.name)) for part in fields(TreeModel)[1:]]
    return sum((a is None) != (b is None) or not np.array_equal(a, b, equal_nan=a is not None) for a, b in pairs)
