"""Probabilities: calibrated, and never at odds with the prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict

from margrove import SVC, NuSVC, Status, load, save
from margrove.engine import Native
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.run import slices
from margrove.run.effort import on_interrupt
from margrove.run.progress import watched
from margrove.svm.probability import by_code, coupled, fitted_sigmoid, with_law
from margrove.svm.search_problem import SearchProblem

CODE = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [-1, 1, 1, 1], [-1, -1, -1, 1]])
MACHINES = [
    SVC(probability=True, gamma=0.5),
    SVC(probability=True, gamma=0.5, C=0.01, class_weight="balanced"),
    SVC(probability=True, gamma=0.5, multiclass="ovr"),
    SVC(probability=True, gamma=0.5, break_ties=True),
    SVC(probability=True, gamma=20.0, C=np.inf),
    SVC(probability=True, gamma=0.5, engine="reference"),
    NuSVC(probability=True, gamma=0.5, nu=0.2),
]


@pytest.fixture(params=["two_classes", "four_classes"])
def table(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_the_most_probable_class_is_the_predicted_one(machine, table, rng):
    X, y = table
    model = clone(machine).fit(X, y)
    rows = np.concatenate([X, rng.uniform(-5, 8, size=(3000, X.shape[1]))])
    p = model.predict_proba(rows)
    assert p.shape == (len(rows), len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert (p >= 0).all()
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(rows))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), p)
    plain = clone(machine).set_params(probability=False).fit(X, y)
    np.testing.assert_array_equal(plain.predict(rows), model.predict(rows))
    np.testing.assert_allclose(plain.decision_function(rows), model.decision_function(rows))


def test_a_code_matrix(four_classes):
    X, y = four_classes
    model = SVC(probability=True, gamma=0.5, multiclass=CODE).fit(X, y)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("machine", [SVC(probability=True, gamma=0.5), NuSVC(probability=True, gamma=0.5, nu=0.2)])
def test_the_same_for_the_same_seed(machine, table):
    X, y = table
    first, second = (clone(machine).set_params(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    other = clone(machine).set_params(random_state=4).fit(X, y)
    assert (other.predict_proba(X) != first.predict_proba(X)).any()
    unseeded = [clone(machine).fit(X, y).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(*unseeded)


def test_a_precomputed_kernel(two_classes):
    X, y = two_classes
    wanted = SVC(probability=True, gamma=0.5, tol=1e-6).fit(X, y).predict_proba(X)
    gram = rbf_kernel(X, gamma=0.5)
    given = SVC(probability=True, kernel="precomputed", tol=1e-6).fit(gram, y)
    np.testing.assert_allclose(given.predict_proba(gram), wanted, atol=1e-3)
    nu = NuSVC(probability=True, kernel="precomputed", nu=0.3).fit(gram, y)
    assert nu.predict_proba(gram).shape == (len(y), 2)


def test_predict_proba_needs_probability_true(two_classes):
    model = SVC().fit(*two_classes)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        model.predict_proba(two_classes[0])
    with pytest.raises(ParameterError, match="probability is 'yes'"):
        SVC(probability="yes").fit(*two_classes)


def test_a_class_of_one_row_is_refused():
    with pytest.raises(InputError, match=r"class 'b' has only one. Add rows of it, or use probability=False"):
        SVC(probability=True).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_they_are_calibrated(load):
    """Better than the base rates by far, and no worse than a sigmoid by cross-validation around the machine."""
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    p = cross_val_predict(SVC(probability=True), X, y, method="predict_proba")
    rates = np.tile(np.bincount(y) / len(y), (len(y), 1))
    assert log_loss(y, p) < log_loss(y, rates) / 4
    if len(np.unique(y)) == 2:
        assert brier_score_loss(y, p[:, 1]) < 0.03


def test_class_weights_do_not_change_the_class_frequencies(rng):
    y = (np.arange(600) % 10 == 0).astype(int)
    X = rng.normal(size=(600, 2)) + 1.2 * y[:, None]
    p = SVC(probability=True, class_weight="balanced").fit(X, y).predict_proba(X)
    assert p[:, 1].mean() < 0.2  # a tenth of the rows; what exceeds it, the law has lifted to a half


# ---- the parts


def test_the_sigmoid_is_the_most_likely_one(rng):
    f = rng.normal(size=300) * 4
    is_positive = rng.random(300) < expit(1.5 * f - 0.7)
    weight = rng.uniform(0.5, 2, 300)
    a, b = fitted_sigmoid(f, is_positive, weight)
    positive, negative = weight[is_positive].sum(), weight[~is_positive].sum()
    target = np.where(is_positive, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(parameters):
        p = expit(parameters[0] * f + parameters[1])
        return -weight @ (target * np.log(p) + (1 - target) * np.log(1 - p))

    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose([a, b], best.x, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_sigmoid_of_any_scale(scale):
    f = scale * np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    a, b = fitted_sigmoid(f, f > 0)
    assert a > 0
    assert abs(b) < 1e-9
    assert 0.7 < expit(a * f[-1] + b) < 1


def test_decision_values_of_the_wrong_sign_give_a_slope_of_zero():
    f = np.array([-2.0, -1.0, 1.0, 2.0])
    assert fitted_sigmoid(f, f < 0)[0] == 0
    assert np.isfinite(fitted_sigmoid(np.zeros(4), f > 0)).all()


def test_coupling_recovers_the_probabilities_behind_the_pairs(rng):
    p = rng.dirichlet(np.ones(5), size=40)
    i, j = np.triu_indices(5, 1)
    np.testing.assert_allclose(coupled(p[:, i] / (p[:, i] + p[:, j]), 5), p, atol=1e-6)
    sure = coupled(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), 3)
    np.testing.assert_allclose(sure.sum(axis=1), 1)
    assert np.isfinite(sure).all()


def test_codes_multiply_the_probabilities_of_the_machines():
    sides = np.array([[2.0, -1.0]])
    code = np.array([[1, 1], [1, -1], [-1, 0]])
    wanted = np.array([expit(2.0) * expit(-1.0), expit(2.0) * expit(1.0), expit(-2.0)])
    np.testing.assert_allclose(by_code(sides, code)[0], wanted / wanted.sum())


@given(arrays(np.float64, (6, 4), elements=st.floats(0.01, 1)), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_the_law_moves_as_little_as_it_can(raw, chosen):
    p = raw / raw.sum(axis=1, keepdims=True)
    predicted = np.array(chosen)
    found = with_law(p, predicted)
    np.testing.assert_array_equal(found.argmax(axis=1), predicted)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    kept = p.argmax(axis=1) == predicted
    np.testing.assert_array_equal(found[kept], p[kept])
    for row in np.flatnonzero(~kept):
        k = predicted[row]
        # The nearest point of {q: q_k ≥ q_j}: moving it further towards p breaks the law, and no candidate that shares
        # another set's mean is nearer.
        order = np.argsort(-np.where(np.arange(4) == k, -np.inf, p[row]))
        candidates = []
        for count in range(1, 4):
            shared = [k, *order[:count]]
            q = p[row].copy()
            q[shared] = p[row][shared].mean()
            if (q[k] >= q - 1e-12).all():
                candidates.append(np.linalg.norm(q - p[row]))
        assert np.linalg.norm(found[row] - p[row]) <= min(candidates) + 1e-6


def test_calibration_is_of_the_last_fit(two_classes):
    X, y = two_classes
    model = SVC(probability=True).fit(X, y).set_params(probability=False).fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match=r"fitted with probability=False. Fit again"):
        model.predict_proba(X)
    assert not hasattr(SVC(probability=True).path(X, y, [1.0]).models[0], "predict_proba")


# ---- fits that are stopped early


class Watched(Native):
    """Keeps the time limit of each solve of folds, and ends it with ``ends_with`` after ``n_folds`` of them."""

    def __init__(self, n_folds=5, ends_with=Status.CONVERGED):
        super().__init__()
        self.n_folds, self.ends_with, self.limits = n_folds, ends_with, []

    def solve(self, problem, effort):
        if not isinstance(problem, SearchProblem):
            return super().solve(problem, effort)
        self.limits.append(effort.time_limit)
        super().solve(replace(problem, units=problem.units[: self.n_folds]), effort)
        if self.ends_with is None:
            raise KeyboardInterrupt
        return self.ends_with


class OutOfTime(Native):
    def solve(self, problem, effort):
        return tuple(replace(each, status=Status.TIME_LIMIT) for each in super().solve(problem, effort))


def press(progress):
    raise KeyboardInterrupt


def assert_consistent(model, X):
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("ended", [Status.TIME_LIMIT, Status.INTERRUPTED, None])
def test_folds_that_are_done_count(ended, table):
    X, y = table
    known = "'interrupted' after 2 of 5: predict_proba is calibrated on their rows; fit again"
    if ended is Status.TIME_LIMIT:
        known = "'time_limit' after 2 of 5: predict_proba is calibrated on their rows; raise time_limit"
    with pytest.warns(ConvergenceWarning, match=f"the folds of probability=True ended with status {known}"):
        model = SVC(probability=True, gamma=0.5, engine=Watched(2, ended)).fit(X, y)
    assert model.status_ is (ended or Status.INTERRUPTED)
    assert (model._calibration[0] < 0).all()
    assert_consistent(model, X)


def test_without_a_fold_probabilities_are_class_frequencies(rng):
    y = np.repeat([0, 1], [300, 100])
    X = rng.normal(size=(400, 2)) + 2 * y[:, None]
    with pytest.warns(ConvergenceWarning, match="before the first was done: predict_proba knows only the predicted"):
        model = SVC(probability=True, engine=Watched(0, Status.TIME_LIMIT)).fit(X, y)
    p, predicted = model.predict_proba(X)[:, 1], model.predict(X)
    np.testing.assert_allclose(p[predicted == 0], 0.25, atol=0.01)
    np.testing.assert_allclose(p[predicted == 1], 0.5)
    assert_consistent(model, X)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("machine", [SVC(probability=True), NuSVC(probability=True, nu=0.3)], ids=repr)
def test_ctrl_c_in_the_fit_ends_all_of_it(machine, multiclass, four_classes, monkeypatch, tmp_path):
    X, y = four_classes
    monkeypatch.setattr(slices, "SLICE", 1e-9)  # every pause is taken, whatever the clock says
    monkeypatch.setattr(type(machine), "_hold_out", None)  # no fold is begun
    model = clone(machine).set_params(multiclass=multiclass, tol=1e-9)
    with watched(press), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with watched(press), on_interrupt("keep"), pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert ["before the first was done" in str(each.message) for each in caught] == [False, True]
    assert model.status_ is Status.INTERRUPTED
    assert_consistent(model, X)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("machine", [SVC(probability=True), NuSVC(probability=True, nu=0.3)], ids=repr)
def test_time_that_the_fit_has_used_up_is_not_given_to_the_folds(machine, two_classes, monkeypatch):
    monkeypatch.setattr(type(machine), "_hold_out", None)
    with pytest.warns(ConvergenceWarning) as caught:
        model = clone(machine).set_params(engine=OutOfTime()).fit(*two_classes)
    assert ["before the first was done" in str(each.message) for each in caught] == [False, True]
    assert model.status_ is Status.TIME_LIMIT


def test_folds_get_the_time_that_is_left(two_classes):
    engine = Watched()
    SVC(probability=True, engine=engine, time_limit=1e6).fit(*two_classes)
    SVC(probability=True, engine=engine).fit(*two_classes)
    assert engine.limits[0] < 1e6
    assert engine.limits[1] is None


def test_ctrl_c_in_the_folds_of_a_clone_is_an_exception(two_classes):
    with pytest.raises(KeyboardInterrupt):
        clone(SVC(probability=True, engine=Watched(2, None))).fit(*two_classes)


def test_ctrl_c_between_the_folds_of_nu_keeps_the_model(two_classes, monkeypatch):
    X, y = two_classes
    decide, asked = NuSVC.machine_decision, []

    def interrupted(model, rows):
        asked.append(model)
        return press(None) if len(asked) == 3 else decide(model, rows)

    with monkeypatch.context() as patch:
        patch.setattr(NuSVC, "machine_decision", interrupted)
        with pytest.warns(ConvergenceWarning, match="'interrupted' after 2 of 5"):
            model = NuSVC(probability=True, nu=0.3).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_ is not None
    assert_consistent(model, X)


def test_interrupted_folds_of_nu_are_warned_about_once(two_classes, monkeypatch):
    X, y = two_classes
    fit, begun = NuSVC.fit, []

    def interrupted(model, *given):
        fit(model, *given)
        begun.append(model)
        model.status_ = Status.INTERRUPTED if not model.probability else model.status_
        return model

    monkeypatch.setattr(NuSVC, "fit", interrupted)
    with pytest.warns(
        ConvergenceWarning, match="the folds of probability=True ended with status 'interrupted'"
    ) as caught:
        model = NuSVC(probability=True, nu=0.3).fit(X, y)
    assert len(caught) == 1
    assert len(begun) == 2  # no further fold after Ctrl-C
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.predict_proba(X)).all()
