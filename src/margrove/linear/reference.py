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
    PenalisedPerceptronProblem,
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
    """Visit the rows; at each mistake y_i (w·x_i + b) ≤ 0 add η s_i y_i (x_i, 1) to (w, b); stop after a clean pass."""
    machines = [_perceptron_machine(problem, machine, trace) for machine in range(len(problem.sign))]
    return PerceptronSolution(
        coef=np.array([m.v[:-1] for m in machines]),
        intercept=np.array([m.v[-1] for m in machines]),
        status=worst(m.status for m in machines),
        n_iter=max(m.passes for m in machines),
        alpha=np.array([m.alpha for m in machines]),
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
    x = np.hstack([X, np.full((n, 1), float(problem.fit_intercept))])  # homogeneous coordinates
    m = _Machine(np.zeros(d + 1), np.zeros(n))
    if problem.start is not None:
        m.v = np.append(problem.start[0][machine], problem.start[1][machine])
    sum_v = np.zeros(d + 1)  # over every step, for the average
    best_pass, waited = np.inf, 0
    orders = visit_order(n, problem.seeds[machine], problem.shuffle)
    while m.passes < problem.max_iter and m.status is Status.MAX_ITER:
        m.pass_mistakes = 0
        for i in next(orders):
            m.steps += 1
            if y[i] != 0 and not y[i] * (x[i] @ m.v) > 0:
                if trace is not None:
                    trace(Correction(machine, m.steps, i, float(x[i] @ m.v), m.v.copy()))
                m.v = m.v + problem.eta * s[i] * y[i] * x[i]
                m.alpha[i] += 1
                m.pass_mistakes += 1
                m.prototypes.append(m.v)
                m.makers.append(i)
                m.times.append(m.steps)
            sum_v += m.v
        m.passes += 1
        if m.pass_mistakes == 0:
            m.status = Status.CONVERGED
        elif problem.tol is not None:
            fell = m.pass_mistakes < best_pass - problem.tol * n
            best_pass, waited = (m.pass_mistakes, 0) if fell else (best_pass, waited + 1)
            if waited >= problem.n_iter_no_change:
                m.status = Status.STALLED
    if problem.variant == "averaged" and m.steps:
        m.v = sum_v / m.steps
    return m


class PenalisedMachine:
    """One machine of the perceptron with a penalty, as scikit-learn's stochastic gradient descent has it.

    At every step w ← (1 − η α (1 − ρ)) w; a mistake adds η s_i y_i x_i; then each w_j pays what it owes of the l1
    penalty, which grows by η α ρ with every step, but not beyond 0 (Tsuruoka, Tsujii and Ananiadou, 2009). A w_j that
    has become 0 owes nothing until a correction moves it. The machine has converged when after a pass without a mistake
    the shrunken w separates the rows.
    """

    def __init__(self, problem: PenalisedPerceptronProblem, machine: int) -> None:
        self.problem, self.y = problem, problem.sign[machine].astype(np.float64)
        n, d = problem.X.shape
        self.w, self.b = np.zeros(d), 0.0
        if problem.start is not None:
            self.w, self.b = problem.start[0][machine].copy(), float(problem.start[1][machine])
        self.owed, self.paid = 0.0, np.zeros(d)  # of the l1 penalty: of each w_j in all, and what it has paid, signed
        self.orders = visit_order(n, problem.seeds[machine], problem.shuffle)
        self.mistakes = self.pass_mistakes = self.passes = self.waited = 0
        self.best_pass = np.inf
        self.status: Status | None = None

    def run_pass(self) -> None:
        """Visit every row once, and decide whether to go on."""
        problem, X = self.problem, self.problem.X
        kept = max(0.0, 1 - (1 - problem.l1_ratio) * problem.eta * problem.alpha)
        toll = problem.l1_ratio * problem.eta * problem.alpha
        self.pass_mistakes = 0
        for i in next(self.orders):
            y = self.y[i]
            if y == 0:
                continue
            x = X[[i]].toarray()[0] if sp.issparse(X) else X[i]
            is_mistake = not y * (x @ self.w + self.b) > 0
            self.w *= kept
            if is_mistake:
                step = problem.eta * y * (1.0 if problem.weight is None else problem.weight[i])
                self.w += step * x
                self.b += step * problem.fit_intercept
                self.pass_mistakes += 1
            if toll:
                self.owed += toll
                before = self.w
                due = self.owed + np.sign(before) * self.paid
                self.w = np.sign(before) * np.maximum(0.0, np.abs(before) - due)
                self.paid += self.w - before
        self.passes += 1
        self.mistakes += self.pass_mistakes
        if self.pass_mistakes == 0 and (self.y * (X @ self.w + self.b) > 0)[self.y != 0].all():
            self.status = Status.CONVERGED
        elif problem.tol is not None:
            fell = self.pass_mistakes < self.best_pass - problem.tol * len(self.y)
            self.best_pass, self.waited = (self.pass_mistakes, 0) if fell else (self.best_pass, self.waited + 1)
            self.status = Status.STALLED if self.waited >= problem.n_iter_no_change else None
        if self.status is None and self.passes == problem.max_iter:
            self.status = Status.MAX_ITER


def penalised_perceptron(problem: PenalisedPerceptronProblem) -> PerceptronSolution:
    """Let each machine make its passes one after another. The solution has no α: w is not a sum of the corrections."""
    machines = [PenalisedMachine(problem, machine) for machine in range(len(problem.sign))]
    for machine in machines:
        while machine.status is None:
            machine.run_pass()
    is_finite = all(np.isfinite(m.w).all() and np.isfinite(m.b) for m in machines)
    return PerceptronSolution(
        coef=np.array([m.w for m in machines]),
        intercept=np.array([m.b for m in machines]),
        status=worst(m.status or Status.CONVERGED for m in machines) if is_finite else Status.NONFINITE,
        n_iter=max(m.passes for m in machines),
        mistakes=np.array([m.mistakes for m in machines], np.int64),
        last_pass=np.array([m.pass_mistakes for m in machines], np.int64),
    )


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
