"""The linear learners as the textbook has them: plain NumPy, slow, exact, readable in one sitting.

This is the specification. The native engine must agree with it, and the tests hold it to that. The perceptrons
can pass a `Correction` for every mistake to ``trace``, to show each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    KernelPerceptronSolution,
    LeastSquaresProblem,
    LinearSolution,
    PerceptronProblem,
    PerceptronSolution,
    Variant,
    Walk,
    column_sizes,
)
from margrove.status import Status, worst

_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Correction:
    """One mistake that a perceptron corrects."""

    machine: int
    visit: int  # how many rows had been visited, this one included
    row: int
    decision: float  # f(x_row) before
    state: NDArray[np.float64]  # (w, b) of the perceptron, α of the dual one, before


Trace = Callable[[Correction], None]


def visit_order(n: int, seed: int, shuffle: bool) -> Iterator[list[int]]:
    """Yield the rows in the order each pass visits them, without end: SplitMix64 and Fisher–Yates, as in
    core/linear/order.hpp, so that a seed means the same order everywhere."""
    rows = list(range(n))
    state = seed & _WORD
    while True:
        if shuffle:
            for left in range(n, 1, -1):
                state = (state + 0x9E3779B97F4A7C15) & _WORD
                z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
                z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
                z ^= z >> 31
                other = ((z >> 32) * left) >> 32
                rows[left - 1], rows[other] = rows[other], rows[left - 1]
        yield rows


def basic_linear(problem: CentroidProblem) -> LinearSolution:
    """w = mean(positive) − mean(negative); the boundary runs through the middle of the two means."""
    X = _dense(problem.X)
    s = np.ones(len(X)) if problem.weight is None else problem.weight
    positives = [1] if problem.n_classes == 2 else range(problem.n_classes)
    coef, intercept = [], []
    for positive in positives:
        is_positive = problem.codes == positive
        mean_of_positive = np.average(X[is_positive], axis=0, weights=s[is_positive])
        mean_of_negative = np.average(X[~is_positive], axis=0, weights=s[~is_positive])
        w = mean_of_positive - mean_of_negative
        coef.append(w)
        intercept.append(-w @ (mean_of_positive + mean_of_negative) / 2)
    return LinearSolution(np.array(coef), np.array(intercept))


def least_squares(problem: LeastSquaresProblem) -> LinearSolution:
    """min Σ s_i (w·x_i + b − y_i)², the shortest w of many: pseudo-inverse of the weighted, centred points."""
    X = _dense(problem.X)
    n, d = X.shape
    s = np.ones(n) if problem.weight is None else problem.weight
    Y = problem.sign.T.astype(np.float64)  # (n, machines)
    x_mean, y_mean = np.zeros(d), np.zeros(Y.shape[1])
    if problem.fit_intercept:
        x_mean, y_mean = np.average(X, axis=0, weights=s), np.average(Y, axis=0, weights=s)
    root = np.sqrt(s)[:, None]
    centred = root * (X - x_mean)
    size = column_sizes(centred, x_mean, s.sum())
    coef = (np.linalg.pinv(centred / size, rcond=max(n, d) * np.finfo(np.float64).eps) @ (root * (Y - y_mean))).T / size
    return LinearSolution(coef, y_mean - coef @ x_mean)


def perceptron(problem: PerceptronProblem, trace: Trace | None = None) -> PerceptronSolution:
    """Visit the rows; at each mistake y_i (w·x_i + b) ≤ 0 add η s_i y_i (x_i, 1) to (w, b); stop after a clean pass.

    With a penalty as in scikit-learn's stochastic gradient descent: at every step w ← (1 − η α (1 − ρ)) w; a mistake
    adds its correction; then each w_j pays what it owes of the l1 penalty, which grows by η α ρ with every step, but
    not beyond 0 (Tsuruoka, Tsujii and Ananiadou, 2009). A w_j that has become 0 owes nothing until a correction moves
    it. The machine has converged when after a clean pass the shrunken w separates the rows.
    """
    machines = [_perceptron_machine(problem, machine, trace) for machine in range(len(problem.sign))]
    is_finite = all(np.isfinite(m.v).all() for m in machines)
    return PerceptronSolution(
        coef=np.array([m.v[:-1] for m in machines]),
        intercept=np.array([m.v[-1] for m in machines]),
        status=worst(m.status for m in machines) if is_finite else Status.NONFINITE,
        n_iter=max(m.passes for m in machines),
        alpha=np.array([m.alpha[: 0 if problem.is_penalised else None] for m in machines]),
        mistakes=np.array([len(m.makers) for m in machines], np.int64),
        last_pass=np.array([m.pass_mistakes for m in machines], np.int64),
        walks=() if problem.variant == "last" else tuple(m.walk(problem.variant) for m in machines),
    )


@dataclass
class _Machine:
    v: NDArray[np.float64]  # (w, b)
    alpha: NDArray[np.float64]
    prototypes: list[NDArray[np.float64]] = field(default_factory=list)
    makers: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    steps: int = 0
    passes: int = 0
    pass_mistakes: int = 0
    status: Status = Status.MAX_ITER

    def walk(self, variant: Variant) -> Walk:
        kept = self.prototypes if variant == "voted" else []
        prototypes = np.array(kept).reshape(-1, len(self.v))
        return Walk(np.array(self.makers, np.int64), np.array(self.times, np.int64), self.steps, prototypes)


def _perceptron_machine(problem: PerceptronProblem, machine: int, trace: Trace | None) -> _Machine:
    X = _dense(problem.X)
    n, d = X.shape
    s = np.ones(n) if problem.weight is None else problem.weight
    y = problem.sign[machine]
    x = np.hstack([X, np.ones((n, 1))])  # homogeneous coordinates
    corrections = x * np.append(np.ones(d), float(problem.fit_intercept))  # b stays where it starts if it is not fitted
    m = _Machine(np.zeros(d + 1), np.zeros(n))
    if problem.start is not None:
        m.v = np.append(problem.start[0][machine], problem.start[1][machine])
    shrinks = np.arange(d + 1) < d  # not b
    kept = np.where(shrinks, max(0.0, 1 - (1 - problem.l1_ratio) * problem.eta * problem.alpha), 1.0)
    toll = np.where(shrinks, problem.l1_ratio * problem.eta * problem.alpha, 0.0)
    owed, paid = np.zeros(d + 1), np.zeros(d + 1)  # of the l1 penalty: in all, and what each has paid, signed
    sum_v = np.zeros(d + 1)  # over every step, for the average
    best_pass, waited = np.inf, 0
    orders = visit_order(n, problem.seeds[machine], problem.shuffle)
    while m.passes < problem.max_iter and m.status is Status.MAX_ITER:
        m.pass_mistakes = 0
        for i in next(orders):
            m.steps += 1
            is_mistake = y[i] != 0 and not y[i] * (x[i] @ m.v) > 0
            if is_mistake and trace is not None:
                trace(Correction(machine, m.steps, i, float(x[i] @ m.v), m.v.copy()))
            if y[i] != 0:
                m.v = kept * m.v
            if is_mistake:
                m.v = m.v + problem.eta * s[i] * y[i] * corrections[i]
                m.alpha[i] += 1
                m.pass_mistakes += 1
                m.prototypes.append(m.v)
                m.makers.append(i)
                m.times.append(m.steps)
            if y[i] != 0 and toll.any():
                owed += toll
                before, sign = m.v, np.sign(m.v)
                m.v = np.where(shrinks, sign * np.maximum(0.0, np.abs(before) - (owed + sign * paid)), before)
                paid += m.v - before
            sum_v += m.v
        m.passes += 1
        if m.pass_mistakes == 0 and (not problem.is_penalised or (y * (x @ m.v) > 0)[y != 0].all()):
            m.status = Status.CONVERGED
        elif problem.tol is not None:
            fell = m.pass_mistakes < best_pass - problem.tol * n
            best_pass, waited = (m.pass_mistakes, 0) if fell else (best_pass, waited + 1)
            if waited >= problem.n_iter_no_change:
                m.status = Status.STALLED
    if problem.variant == "averaged" and m.steps:
        m.v = sum_v / m.steps
    return m


def kernel_perceptron(problem: KernelPerceptronProblem, trace: Trace | None = None) -> KernelPerceptronSolution:
    """The same passes with f(x_i) = η Σ_j α_j s_j y_j (G_ij + 1), the Gram matrix G computed once."""
    X = problem.X
    G = X.astype(np.float64) if problem.kernel.name == "precomputed" else problem.kernel.matrix(X, X)
    n = len(G)
    s = np.ones(n) if problem.weight is None else problem.weight
    if problem.fit_intercept:
        G = G + 1
    found = []
    for machine, y in enumerate(problem.sign):
        alpha = np.zeros(n)
        mistakes = passes = visits = 0
        status = Status.MAX_ITER
        for order in visit_order(n, problem.seeds[machine], problem.shuffle):
            if passes == problem.max_iter:
                break
            pass_mistakes = 0
            for i in order:
                visits += 1
                decision = problem.eta * (G[i] @ (alpha * s * y))
                if y[i] != 0 and not y[i] * decision > 0:
                    if trace is not None:
                        trace(Correction(machine, visits, i, float(decision), alpha.copy()))
                    alpha[i] += 1
                    pass_mistakes += 1
            passes += 1
            mistakes += pass_mistakes
            if pass_mistakes == 0:
                status = Status.CONVERGED
                break
        found.append((alpha, problem.eta * (G @ (alpha * s * y)), mistakes, passes, status))
    alphas, decisions, mistake_counts, passes_made, statuses = zip(*found, strict=True)
    counts = np.array(mistake_counts, np.int64)
    return KernelPerceptronSolution(np.array(alphas), np.array(decisions), counts, worst(statuses), max(passes_made))


def _dense(X: object) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)  # type: ignore[attr-defined]
