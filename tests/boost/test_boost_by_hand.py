"""Three rounds worked on paper: x = 1, 2, 3 of classes a, b, a, and stumps (Gini).

Round 1, w = 1/3, 1/3, 1/3. x ≤ 1.5 and x ≤ 2.5 gain the same, so the first is taken: left a; right one b and one a of
        equal weight, so a, the first. All a: row 2 is wrong, ε = 1/3, a = ln 2.
        Right rows times 1/(2 (1 − ε)) = 3/4, wrong ones times 1/(2 ε) = 3/2.
Round 2, w = 1/4, 1/2, 1/4. Again both gain the same; x ≤ 1.5: left a; right 1/2 b against 1/4 a, so b. Row 3 is wrong,
        ε = 1/4, a = ln 3. Times 2/3 and 2.
Round 3, w = 1/6, 1/3, 1/2. x ≤ 1.5 leaves 5/6 · 2 · 2/5 · 3/5 = 0.4, x ≤ 2.5 leaves 1/2 · 2 · 1/3 · 2/3 = 2/9: it is
        taken. Left b, right a. Row 1 is wrong, ε = 1/6, a = ln 5. Times 3/5 and 3.
After   w = 1/2, 1/5, 3/10.

Votes   row 1: a ln 2 + ln 3 = ln 6, b ln 5. Row 2: a ln 2, b ln 15. Row 3: a ln 10, b ln 3. All are right.
        After two rounds row 3 had a ln 2 and b ln 3: wrong. After one, row 2.
Loss    Z = 2 √(ε (1 − ε)): 2 √2/3, √3/2, √5/3. Their product is √30/9, by rows (√(5/6) + √(2/15) + √(3/10))/3.
"""

from __future__ import annotations

import numpy as np
import pytest

from margrove import AdaBoostClassifier, certify
from margrove.boost.problem import BoostProblem
from margrove.boost.rounds import Boosting
from margrove.tree.problem import Cells, TreeProblem

X, Y = np.array([[1.0], [2.0], [3.0]]), np.array(["a", "b", "a"])
SAID = (["a", "a", "a"], ["a", "b", "b"], ["b", "b", "a"])
ERRORS, VOTES = np.array([1 / 3, 1 / 4, 1 / 6]), np.log([2.0, 3.0, 5.0])


@pytest.fixture
def model(engine):
    return AdaBoostClassifier(n_estimators=3, engine=engine).fit(X, Y)


def test_errors_votes_and_alphas_are_those_computed_by_hand(model):
    np.testing.assert_allclose(model.estimator_errors_, ERRORS, rtol=1e-14)
    np.testing.assert_allclose(model.estimator_weights_, VOTES, rtol=1e-14)
    np.testing.assert_allclose(model.alphas_, VOTES / 2, rtol=1e-14)


def test_every_learner_predicts_as_computed_by_hand(model):
    for learner, said in zip(model.estimators_, SAID, strict=True):
        assert learner.predict(X).tolist() == said
    assert [float(learner.nodes_.threshold[0]) for learner in model.estimators_] == [1.5, 1.5, 2.5]


def test_loss_bound_and_training_error_are_those_computed_by_hand(model):
    z = [2 * np.sqrt(2) / 3, np.sqrt(3) / 2, np.sqrt(5) / 3]
    np.testing.assert_allclose(model.rounds_.normaliser, z, rtol=1e-14)
    np.testing.assert_allclose(model.rounds_.loss[-1], np.sqrt(30) / 9, rtol=1e-14)
    np.testing.assert_allclose(model.rounds_.bound, model.rounds_.loss, rtol=1e-14)
    by_rows = (np.sqrt(5 / 6) + np.sqrt(2 / 15) + np.sqrt(3 / 10)) / 3
    np.testing.assert_allclose(certify(model, X, Y)["training error"], 0.0)
    np.testing.assert_allclose(by_rows, np.sqrt(30) / 9, rtol=1e-14)
    np.testing.assert_allclose(model.rounds_.training_error, [1 / 3, 1 / 3, 0], atol=1e-15)


def test_votes_and_margins_are_those_computed_by_hand(model):
    first, second, third = np.log(6 / 5), np.log(15 / 2), np.log(10 / 3)
    np.testing.assert_allclose(model.margins(X, Y), np.array([first, second, third]) / np.log(30), rtol=1e-12)
    after_two = np.array([np.log(6), np.log(3 / 2), np.log(2 / 3)]) / np.log(6)
    np.testing.assert_allclose(model.margins(X, Y, staged=True)[1], after_two, rtol=1e-12)
    assert [stage.tolist() for stage in model.staged_predict(X)] == [
        ["a", "a", "a"],
        ["a", "b", "b"],
        ["a", "b", "a"],
    ]


def test_weights_after_each_round_are_those_computed_by_hand():
    said = [np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([1, 1, 0])]
    rows = TreeProblem(Cells((), 3), np.array([0, 1, 0], dtype=np.int32), n_classes=2)
    seen = []

    def learn(weight, t):
        seen.append(weight)
        return t, said[t], None

    boosting = Boosting(BoostProblem(rows, n_rounds=3), learn)
    while boosting.step() is None:
        continue
    on_paper = [[1 / 3, 1 / 3, 1 / 3], [1 / 4, 1 / 2, 1 / 4], [1 / 6, 1 / 3, 1 / 2]]
    np.testing.assert_allclose(seen, on_paper, rtol=1e-14)
    np.testing.assert_allclose(boosting.weight, [1 / 2, 1 / 5, 3 / 10], rtol=1e-14)
