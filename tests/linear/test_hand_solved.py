"""Cases solved by hand."""

from __future__ import annotations

import numpy as np

from margrove import BasicLinearClassifier, KernelPerceptron, LeastSquaresClassifier, Perceptron, margins
from margrove.linear.problem import PerceptronProblem
from margrove.linear.reference import Correction, perceptron


def test_basic_linear_runs_halfway_between_the_means():
    # means (1, 0) and (5, 3): w = (4, 3), midpoint (3, 1.5), b = -(12 + 4.5)
    X, y = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0], [6.0, 3.0]]), np.array([0, 0, 1, 1])
    model = BasicLinearClassifier().fit(X, y)
    assert model.coef_.tolist() == [[4.0, 3.0]]
    assert model.intercept_.tolist() == [-16.5]
    # f = -16.5, -8.5, 8.5, 16.5; ‖w‖ = 5
    found = margins(model, X, y)
    assert found.functional.tolist() == [16.5, 8.5, 8.5, 16.5]
    np.testing.assert_allclose(found.geometric, [3.3, 1.7, 1.7, 3.3])
    assert found.smallest == 1.7


def test_perceptron_on_three_points_step_by_step():
    # Rows in order, homogeneous: (1,1)+, (-1,1)-, (2,1)+ . Start (w, b) = (0, 0).
    #  row 0: f = 0, a mistake: (1, 1).  row 1: -(−1+1) = 0, a mistake: (1,1) − (−1,1) = (2, 0).  row 2: 4 > 0.
    #  second pass: row 0: 2 > 0, row 1: 2 > 0, row 2: 4 > 0. Two mistakes, two passes.
    X, sign = np.array([[1.0], [-1.0], [2.0]]), np.array([[1, -1, 1]], np.int8)
    corrections: list[Correction] = []
    solution = perceptron(PerceptronProblem(X, sign, shuffle=False, variant="voted"), trace=corrections.append)
    assert [(step.row, step.decision) for step in corrections] == [(0, 0.0), (1, 0.0)]
    (walk,) = solution.walks
    assert (walk.makers.tolist(), walk.times.tolist(), walk.steps) == ([0, 1], [1, 2], 6)
    assert walk.prototypes.tolist() == [[1.0, 1.0], [2.0, 0.0]]
    assert (solution.coef.tolist(), solution.intercept.tolist()) == ([[2.0]], [0.0])
    assert (solution.mistakes.tolist(), solution.n_iter, solution.alpha.tolist()) == ([2], 2, [[1, 1, 0]])
    # averaged: (1,1), then five times (2,0): ((1 + 10)/6, 1/6)
    averaged = Perceptron(variant="averaged", shuffle=False).fit(X, [1, 0, 1])
    np.testing.assert_allclose([averaged.coef_[0, 0], averaged.intercept_[0]], [11 / 6, 1 / 6])
    # voted: (1,1) lived one step, (2,0) five
    voted = Perceptron(variant="voted", shuffle=False).fit(X, [1, 0, 1])
    assert voted.votes_.tolist() == [1, 5]
    # at x = -0.5: signs of 0.5 and -1: (1 - 5)/6
    np.testing.assert_allclose(voted.decision_function([[-0.5]]), [-4 / 6])


def test_least_squares_on_four_points():
    # slope of y = -1, -1, 1, 1 at 0, 1, 2, 3: Σ(x - 1.5) y / Σ(x - 1.5)² = 4/5, mean of y is 0
    model = LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    np.testing.assert_allclose(model.coef_, [[0.8]])
    np.testing.assert_allclose(model.intercept_, [-1.2])


def test_kernel_perceptron_solves_xor_and_the_linear_one_cannot():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
    model = KernelPerceptron(kernel="poly", degree=2, gamma=1.0, coef0=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    assert model.certificate_.holds


def test_dual_and_primal_perceptron_make_the_same_corrections(rng):
    X = rng.normal(size=(40, 3))
    y = (X @ [1.0, -2.0, 0.5] + 0.3 > 0).astype(int)
    primal = Perceptron(random_state=3).fit(X, y)
    dual = KernelPerceptron(kernel="linear", random_state=3).fit(X, y)
    np.testing.assert_array_equal(primal.n_mistakes_, dual.n_mistakes_)
    np.testing.assert_allclose(dual.dual_coef_ @ dual.support_vectors_, primal.coef_)
    np.testing.assert_allclose(dual.intercept_, primal.intercept_)
