"""The significance of splits.

A split sends the rows of a node into branches b = 1 … B. Where the branch is independent of the class, the counts
O_bk of class k in branch b are E_bk = n_b n_k / n but for chance, given their sums n_b and n_k, and

    X² = Σ_bk (O_bk − E_bk)² / E_bk

follows χ² with (B − 1)(K − 1) degrees of freedom, K the classes present in the node; p is the probability of an
X² as large as the observed one. χ² is the limit of many rows. Where some E_bk is below `SMALL_EXPECTED`:

- a 2 × 2 table gets Fisher's exact test: the probability of all tables with the same sums that are no more probable
  than the one found.
- a larger table gets the permutation test: the share of tables, drawn at random with the same sums, whose X² is as
  large: (1 + how many) / (1 + `DRAWS`). The draws start from a fixed seed and depend on the sums alone, so the same
  table has the same p in every node.
- draws cannot resolve a p below `LEAST_OF_DRAWS`. There, and in tables of more than `MOST_ROWS` rows or
  `MOST_CELLS` cells, p comes from the gamma distribution that has the exact mean and variance of X² under permutation,
  n/(n−1) (B−1)(K−1) and Dawson's formula (J. E. Dawson, Biometrika 41, 1954; also J. B. S. Haldane, 1940), which of
  each margin only needs the number of sums and Σ 1/sum. In the limit of many rows it is χ².

The test is the best of the c that the node chose from. The best of c independent tests has a p this small by chance
with probability 1 − (1 − p)^c (Šidák), the corrected p. Candidates are not independent, so it is conservative.

There are 2^(L−1) − 1 subsets of L levels, and correcting for that many would leave nothing significant: with 30 levels
p would have to be below 1e-10. Nor were they tried one by one. The p of a subset is therefore that of the whole table,
all L levels that occur in the node by the classes, X² with (L − 1)(K − 1) degrees of freedom: merging levels never
increases X², so under independence the X² of the best subset exceeds some x no more often than that of the whole table
(`association.py`). This accounts for the choice among the levels, and the column counts as one candidate in c. The p
shows that the column is associated with the classes, not that this subset is the right one; where a limit on leaves
forbade the best subset, the one taken may be a weak part of a strong table. Levels often have few rows, so the
permutation distribution of X² replaces χ² (unless weights are not integers): the gamma above, whose moments only need
the sums of the table. A column that identifies the rows has the same X² for every permutation, and p = 1. With two
levels the whole table is the split itself, tested as above.

Counts are weights: with sample or class weights, p is that of rows repeated so often. Where weights are not integers
there is nothing to permute, and every p is that of χ². Under monotone constraints a node keeps the class weights that
it predicts, held within bounds; p is then that of the predictions of the branches.

Regression uses the F test of one-way analysis of variance, from the node's and its branches' sums of squares
(criteria squared_error and gaussian_entropy); for a subset test that of all its levels. The other criteria do not give
them: for absolute_error and poisson p is NaN.

F assumes a normal distribution, and p falls with the spread within the branches: four rows 1, 1 | 5, 5 would have
p = 0. But a random permutation puts four rows into the same branches in one of n!/Π n_b! = 6 cases, so a permutation
test has p ≥ 1/6. That is the least p where no spread is left in the branches (then, but for equal values, it is the
exact p of the permutation test) and in a node of fewer than `FEW_ROWS` rows, which are too few to recognise a normal
distribution. Of all levels of a subset test only their number L is kept: there n!/((n/L)!)^L replaces it, which is
never less.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from margrove.advice import Advice, Setting
from margrove.errors import ParameterError, check_choice, check_share
from margrove.tree.model import TreeModel
from margrove.tree.problem import VALUE_CRITERIA, Criterion

SMALL_EXPECTED = 5.0  # the usual rule of thumb for χ²
LEAST_OF_DRAWS = 0.01  # ten of the draws: fewer are too few to count
MOST_FOURFOLD = 1e9  # largest total weight for Fisher's exact test; it then sums about 70,000 tables
MOST_ROWS = 100  # there, measured on random tables, gamma's p is 0.01 off on average; χ²'s twice that with 7 classes
MOST_CELLS = 200  # what keeps a draw cheap
FEW_ROWS = 20.0  # below, the p of the F test is at least that of one permutation
_WITHOUT_TEST = ("absolute_error", "poisson")  # criteria from which no p-value follows
DRAWS = 999
SEED = 20261115
EQUAL_TABLES = 1e-7  # tables whose probability differs by less are equally probable: rounding
_NO_SPREAD = 1e-12  # of the sum of squares: what rounding leaves of none

SmallCounts = Literal["exact", "chi2"]


def split_p_values(
    model: TreeModel, *, criterion: Criterion = "gini", correct: bool = True, small: SmallCounts = "exact"
) -> NDArray[np.float64]:
    """Return the p-value of each node's split, (m,); NaN at leaves, and everywhere for absolute_error and poisson.
    ``correct``: for the tests that the node chose from; ``small``: the test of tables with small expected counts."""
    check_choice("small", small, ("exact", "chi2"))
    p = np.full(model.n_nodes, np.nan)
    inner = np.flatnonzero(~model.is_leaf)
    if len(inner) == 0:
        return p
    p[inner] = _p_of_numbers(model, inner, criterion) if criterion in VALUE_CRITERIA else _p_of_classes(model, inner)
    if small == "exact" and criterion not in VALUE_CRITERIA:
        _test_small_tables(model, inner, p)
    _test_all_levels(model, criterion, small, p)
    return corrected(p, model.n_candidates) if correct else p


def corrected(p: NDArray[np.float64], n_tests: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 − (1 − p)^c for the best of c tests, exact for tiny p and for huge c."""
    chance = p.copy()
    between = (p > 0) & (p < 1)  # at the ends it stays what it is, for any c
    chance[between] = -np.expm1(np.maximum(n_tests[between], 1) * np.log1p(-p[between]))
    return chance


def stop_by_significance(
    model: TreeModel, level: float, *, criterion: Criterion = "gini", correct: bool = True
) -> NDArray[np.bool_]:
    """Return the splits that are not significant, as a mask for `TreeModel.cut`: as if growth had stopped at the first
    of each path. (With ``max_leaf_nodes`` growth that stops would have spent its leaves elsewhere.)"""
    return ~is_significant(model, level, criterion=criterion, correct=correct) & ~model.is_leaf


def is_significant(
    model: TreeModel, level: float, *, criterion: Criterion = "gini", correct: bool = True
) -> NDArray[np.bool_]:
    """Return which nodes have a split of p ≤ level; no leaf has."""
    check_share("level", level)
    if criterion in _WITHOUT_TEST:
        raise ParameterError(
            Advice(
                f"criterion is {criterion!r}; its splits have no significance test. Use ",
                Setting("criterion", "squared_error"),
                ", or set no significance level.",
            )
        )
    with np.errstate(invalid="ignore"):  # NaN at leaves
        return np.asarray(split_p_values(model, criterion=criterion, correct=correct) <= level)


def branch_chi2(model: TreeModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return X² = Σ_k (O_k − E_k)² / E_k of each branch by itself against its parent, and its p; NaN at the root.

    It tests whether this branch's classes could be a sample with the parent's shares, as lecture notes have it. It
    ignores that the branch is itself a part of the parent, which makes p too large rather than too small.
    """
    statistic, p = np.full(model.n_nodes, np.nan), np.full(model.n_nodes, np.nan)
    counts = _parent_counts(model)
    statistic[model.child] = _terms(model, counts).sum(axis=1)
    freedom = np.count_nonzero(counts[model.parent[model.child]] > 0, axis=1) - 1
    p[model.child] = _chi2_tail(statistic[model.child], freedom)
    return statistic, p


def target_variance(model: TreeModel, criterion: Criterion) -> NDArray[np.float64]:
    """Return the variance of the target in each node, from its impurity; NaN for absolute_error and poisson."""
    if criterion == "squared_error":
        return model.impurity
    if criterion == "gaussian_entropy":  # ½ (1 + ln 2π + ln σ²)
        return np.asarray(np.exp(2 * model.impurity - 1) / (2 * np.pi))
    return np.full(model.n_nodes, np.nan)


def _parent_counts(model: TreeModel) -> NDArray[np.float64]:
    """Return the sum of the branches' class counts, (m, K): the node's own unless a monotone constraint holds them."""
    inner = np.flatnonzero(~model.is_leaf)
    counts = np.zeros_like(model.value)
    if len(inner):
        counts[inner] = np.add.reduceat(model.value[model.child], model.child_start[inner])
    return counts


def _expected(model: TreeModel, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return n_b n_k / n for each child, (m - 1, K), in the order of ``model.child``."""
    parent = model.parent[model.child]
    share = model.value[model.child].sum(axis=1) / counts[parent].sum(axis=1)
    return np.asarray(share[:, None] * counts[parent])


def _terms(model: TreeModel, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (O − E)²/E for each child and class; 0 for a class that the parent does not hold."""
    expected = _expected(model, counts)
    terms = (model.value[model.child] - expected) ** 2
    return np.divide(terms, expected, out=np.zeros_like(terms), where=expected > 0)


def _chi2_tail(statistic: NDArray[np.float64], freedom: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return P(χ² ≥ statistic); 1 without a degree of freedom."""
    return np.where(freedom > 0, special.chdtrc(np.maximum(freedom, 1), statistic), 1.0)


def _p_of_classes(model: TreeModel, inner: NDArray[np.intp]) -> NDArray[np.float64]:
    counts = _parent_counts(model)
    statistic = np.add.reduceat(_terms(model, counts).sum(axis=1), model.child_start[inner])
    branches = np.diff(model.child_start)[inner]
    classes = np.count_nonzero(counts[inner] > 0, axis=1)
    return _chi2_tail(statistic, (branches - 1) * (classes - 1))


def _p_of_numbers(model: TreeModel, inner: NDArray[np.intp], criterion: Criterion) -> NDArray[np.float64]:
    squares = target_variance(model, criterion) * model.weight
    within = np.add.reduceat(squares[model.child], model.child_start[inner])
    between = np.maximum(squares[inner] - within, 0)
    p = _f_tail(between, within, np.diff(model.child_start)[inner], model.weight[inner])
    p[np.isnan(squares[inner])] = np.nan
    in_branches = np.add.reduceat(special.gammaln(model.weight[model.child] + 1), model.child_start[inner])
    log_least = in_branches - special.gammaln(model.weight[inner] + 1)  # Π n_b!/n!
    return _no_surer(p, log_least, model.weight[inner], within <= _NO_SPREAD * squares[inner])


def _f_tail(
    between: NDArray[np.float64], within: NDArray[np.float64], size: NDArray[Any], n: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return P(F ≥ [between / (B − 1)] / [within / (n − B)]) for B = ``size`` branches; 1 with one row in each."""
    rest, p = n - size, np.ones(len(n))
    is_testable = (rest > 0) & (between > 0)
    with np.errstate(divide="ignore", over="ignore"):  # branches without any spread: F = ∞, p = 0
        f = (between / (size - 1))[is_testable] / (within[is_testable] / rest[is_testable])
    p[is_testable] = special.fdtrc((size - 1)[is_testable], rest[is_testable], f)
    return p


def _no_surer(
    p: NDArray[np.float64],
    log_least: NDArray[np.float64],
    n: NDArray[np.float64],
    has_no_spread: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return p, at least that of one permutation where rows are few or their branches have no spread."""
    is_held = (n < FEW_ROWS) | has_no_spread
    return np.where(is_held, np.maximum(p, np.exp(np.minimum(log_least, 0.0))), p)


def _test_small_tables(model: TreeModel, inner: NDArray[np.intp], p: NDArray[np.float64]) -> None:
    """Replace the p of χ² by that of the exact or the permutation test where an expected count is small."""
    counts = _parent_counts(model)
    expected = _expected(model, counts)
    least = np.minimum.reduceat(np.where(expected > 0, expected, np.inf).min(axis=1), model.child_start[inner])
    is_whole = (model.value == np.rint(model.value)).all(axis=1)
    are_whole = np.logical_and.reduceat(is_whole[model.child], model.child_start[inner])
    classes = np.count_nonzero(counts[inner] > 0, axis=1)
    branches = np.diff(model.child_start)[inner]
    is_small = (least < SMALL_EXPECTED) & are_whole & (classes > 1)
    is_fourfold = (branches == 2) & (classes == 2) & (counts[inner].sum(axis=1) <= MOST_FOURFOLD)
    fourfold, larger = inner[is_small & is_fourfold], inner[is_small & ~is_fourfold]
    if len(fourfold):
        p[fourfold] = _fisher(*_fourfold_counts(model, counts, fourfold))
    if len(larger):
        p[larger] = _permutation(model, larger)


def _fourfold_counts(
    model: TreeModel, counts: NDArray[np.float64], nodes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], ...]:
    """Return x, the sum of its row, the sum of its column and the sum of all of 2 × 2 tables [[x, ·], [·, ·]]."""
    first_class = np.argmax(counts[nodes] > 0, axis=1)
    first_branch = model.child[model.child_start[nodes]]
    x = model.value[first_branch, first_class]
    row = model.value[first_branch].sum(axis=1)
    return x, row, counts[nodes, first_class], counts[nodes].sum(axis=1)


def _fisher(
    x: NDArray[np.float64], row: NDArray[np.float64], column: NDArray[np.float64], total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return p of Fisher's exact test, two-sided, for many tables, whose alternatives are in one long array."""
    low = np.maximum(0, row + column - total)
    length = (np.minimum(row, column) - low + 1).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    table = np.repeat(np.arange(len(x)), length)
    y = low[table] + np.arange(len(table)) - start[table]
    # A table's probability is 1 / (y! (row − y)! (column − y)! (total − row − column + y)!) but for a factor.
    log_weight = -(
        special.gammaln(y + 1)
        + special.gammaln((row - low)[table] - (y - low[table]) + 1)
        + special.gammaln((column - low)[table] - (y - low[table]) + 1)
        + special.gammaln((total - row - column)[table] + y + 1)
    )
    log_weight -= np.maximum.reduceat(log_weight, start)[table]
    weight = np.exp(log_weight)
    found = weight[start + (x - low).astype(np.int64)]
    as_rare = weight <= found[table] * (1 + EQUAL_TABLES)
    return np.minimum(np.add.reduceat(weight * as_rare, start) / np.add.reduceat(weight, start), 1.0)


def _permutation(model: TreeModel, nodes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return p of the permutation test of X² by draws, or by gamma: see the head of this module."""
    p = np.empty(len(nodes))
    drawn: dict[tuple[tuple[int, ...], tuple[int, ...]], NDArray[np.float64]] = {}
    for i, node in enumerate(nodes):
        table = model.value[model.children(int(node))]
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        columns = columns[columns > 0]
        found = np.divide(table**2, np.outer(rows, table.sum(axis=0)), out=np.zeros_like(table), where=table > 0)
        statistic = rows.sum() * (found.sum() - 1)  # X² = n (Σ O²/(n_b n_k) − 1)
        p[i] = gamma_tail(statistic, float(rows.sum()), margin_of(rows), margin_of(columns))
        if p[i] >= LEAST_OF_DRAWS and rows.sum() <= MOST_ROWS and len(rows) * len(columns) <= MOST_CELLS:
            sums = tuple(sorted(rows.astype(int).tolist())), tuple(sorted(columns.astype(int).tolist()))
            if sums not in drawn:
                tables = stats.random_table.rvs(*sums, size=DRAWS, method="patefield", random_state=SEED)
                squares = (tables**2 / np.outer(*sums)).sum(axis=(1, 2))
                drawn[sums] = np.sort(sum(sums[0]) * (squares - 1))
            as_large = DRAWS - np.searchsorted(drawn[sums], statistic - EQUAL_TABLES * (1 + statistic))
            p[i] = (1 + as_large) / (1 + DRAWS)
    return p


def _test_all_levels(model: TreeModel, criterion: Criterion, small: SmallCounts, p: NDArray[np.float64]) -> None:
    """Replace p of a subset test by that of all its levels together, where there are more than two."""
    if model.n_levels is None or model.association is None or model.inverse_weight is None:
        return
    nodes = np.flatnonzero(model.n_levels > 2)
    if len(nodes) == 0 or criterion in _WITHOUT_TEST:
        return
    size, association = model.n_levels[nodes], model.association[nodes]
    if criterion in VALUE_CRITERIA:
        n = model.weight[nodes]
        log_least = size * special.gammaln(n / size + 1) - special.gammaln(n + 1)
        f_tail = _f_tail(association, 1 - association, size, n)
        p[nodes] = _no_surer(f_tail, log_least, n, association >= 1 - _NO_SPREAD)
        return
    counts = _parent_counts(model)[nodes]
    statistic, classes = counts.sum(axis=1) * association, np.count_nonzero(counts > 0, axis=1)
    p[nodes] = _chi2_tail(statistic, ((size - 1) * (classes - 1)).astype(np.intp))
    if small == "exact":
        for i in np.flatnonzero((counts == np.rint(counts)).all(axis=1) & (classes > 1)):
            levels = float(size[i]), float(model.inverse_weight[nodes[i]])
            p[nodes[i]] = gamma_tail(statistic[i], counts[i].sum(), levels, margin_of(counts[i][counts[i] > 0]))


# The number of sums of one margin of a table, and Σ 1/sum: all that the moments of X² need.
Margin = tuple[float, float]


def margin_of(sums: NDArray[np.float64]) -> Margin:
    """Return the margin of sums that are all above 0."""
    return float(len(sums)), float((1 / sums).sum())


def gamma_tail(statistic: float, n: float, rows: Margin, columns: Margin) -> float:
    """Return P(G ≥ statistic) for the gamma distribution G with the mean and variance of X² under permutation."""
    if n <= 3:  # larger than 2 × 2, and of three rows: every table with these sums has the same X²
        return 1.0
    mean, variance = permutation_moments(n, rows, columns)
    if variance <= EQUAL_TABLES * mean:
        return 1.0
    return float(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))


def permutation_moments(n: float, rows: Margin, columns: Margin) -> tuple[float, float]:
    """Return the exact mean and variance of X² over all permutations of n > 3 rows."""
    mean = n / (n - 1) * (rows[0] - 1) * (columns[0] - 1)
    (v, w), (v_, w_) = _dawson(n, rows), _dawson(n, columns)
    return mean, 2 * n / (n - 3) * (v - w) * (v_ - w_) + n**2 / (n - 1) * w * w_


def _dawson(n: float, margin: Margin) -> tuple[float, float]:
    """Return the two terms of one margin in Dawson's formula."""
    size, inverse = margin
    return (size - 1) * (n - size) / (n - 1), (n * inverse - size**2) / (n - 2)
