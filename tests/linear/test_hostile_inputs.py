"""Inputs that once broke a learner or a certificate."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from margrove import BasicLinearClassifier, KernelPerceptron, LeastSquaresClassifier, Perceptron, certify
from margrove.errors import ConvergenceWarning, InputError


@pytest.fixture
def separable(rng):
    X = np.vstack([rng.normal(-3, 1, (40, 2)), rng.normal(3, 1, (40, 2))])
    return X, np.repeat([0, 1], 40)


def test_float32_points_close_together_and_far_from_the_rest(rng):
    """Map coordinates in metres, pairs ten metres apart: what is learnt is what is predicted."""
    corner = rng.uniform([4e5, 5e6], [5e5, 5.1e6], (300, 2))
    X = np.vstack([corner, corner + np.array([10, 0])]).astype(np.float32)
    y = np.repeat([0, 1], 300)
    model = KernelPerceptron(sigma=5.0, random_state=0).fit(X, y)
    assert model.status_ == "converged"
    assert model.score(X, y) == 1
    assert certify(model, X, y).holds
    assert model.score(X.astype(np.float64), y) == 1


def test_clusters_far_apart_keep_their_fine_structure(rng):
    X = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(0, 1, (60, 2)) + 1e8])
    y = (np.floor(X[:, 0] * 2) % 2).astype(int)
    model = KernelPerceptron(gamma=20.0, random_state=0).fit(X, y)
    assert (model.status_, model.score(X, y)) == ("converged", 1)
    assert certify(model, X, y).holds


@pytest.mark.parametrize("scale", [1e-170, 1e140])
def test_wrong_models_are_found_at_any_scale(scale, separable):
    X, y = separable[0] * scale, separable[1]
    if scale < 1e-150:  # b, a product of two means, is below every number
        with pytest.warns(ConvergenceWarning, match="'stalled': the boundary lies halfway"):
            assert not certify(BasicLinearClassifier().fit(X, y), X, y).holds
    else:
        basic = BasicLinearClassifier().fit(X, y)
        basic.coef_ = -3 * basic.coef_[:, ::-1]
        assert not certify(basic, X, y).holds
    squares = LeastSquaresClassifier().fit(X, y)
    assert certify(squares, X, y).holds
    squares.coef_ = squares.coef_ * 5
    squares.intercept_ = -(squares.coef_ @ X.mean(axis=0))
    assert not certify(squares, X, y).holds
    for variant in ("last", "averaged") if scale > 1e-150 else ():  # below, w·x itself vanishes
        perceptron = Perceptron(variant=variant, fit_intercept=False, random_state=0).fit(X, y)
        perceptron.coef_ = -perceptron.coef_
        assert not certify(perceptron, X, y).holds


@pytest.mark.parametrize("eta0", [1e-200, 1e-3, 1e200])
def test_any_eta_is_certified(eta0, separable):
    for learner in (
        Perceptron(eta0=eta0, random_state=0),
        KernelPerceptron(kernel="linear", eta0=eta0, random_state=0),
    ):
        model = learner.fit(*separable)
        if abs(np.log10(eta0)) < 100 or isinstance(learner, Perceptron):
            assert certify(model, *separable).holds, str(certify(model, *separable))


def test_a_warm_start_is_no_false_alarm(separable):
    model = Perceptron(warm_start=True, random_state=0).fit(*separable).fit(*separable)
    assert model.certificate_.holds


def test_the_norm_a_kernel_model_keeps_is_checked(separable):
    model = KernelPerceptron(random_state=0).fit(*separable)
    model.norm_ = model.norm_ * 100
    assert not certify(model, *separable).holds


def _fit_in_child(queue, X, y):
    models = [Perceptron(n_jobs=2, max_iter=3), KernelPerceptron(n_jobs=2, max_iter=3), BasicLinearClassifier(n_jobs=2)]
    queue.put([type(model.fit(X, y)).__name__ for model in models])


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning", "ignore::DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_threads(rng):
    X, y = rng.normal(size=(18_000, 3)), rng.integers(0, 4, size=18_000)
    BasicLinearClassifier(n_jobs=2).fit(X, y)
    Perceptron(n_jobs=2, max_iter=3).fit(X, y)  # the parent has its threads now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fit_in_child, args=(queue, X[:500], y[:500]))
    child.start()
    assert queue.get(timeout=60) == ["Perceptron", "KernelPerceptron", "BasicLinearClassifier"]
    child.join(timeout=60)
    assert child.exitcode == 0


@pytest.mark.parametrize("learner", [Perceptron(max_iter=10**9), KernelPerceptron(max_iter=10**9, gamma=1.0)], ids=repr)
def test_a_machine_that_does_not_converge_leaves_time_for_the_others(learner, rng):
    """Two rows contradict each other in one class; the other machines must still be walked."""
    codes = np.arange(150) % 3
    X = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[codes] + rng.normal(size=(150, 2))
    X[0] = X[1]
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = learner.set_params(time_limit=0.5, random_state=0).fit(X, codes)
    assert (model.n_mistakes_ > 0).all()
    assert model.score(X, codes) > 0.9


def test_sparse_least_squares_copes_with_columns_of_all_sizes():
    random = np.random.default_rng(1)
    X = (random.random((200, 30)) < 0.2) * 10.0 ** random.uniform(-5, 5, 30)
    y = (X @ (1 / np.maximum(X.max(axis=0), 1e-9)) > 6).astype(int)
    dense, sparse = LeastSquaresClassifier().fit(X, y), LeastSquaresClassifier().fit(sp.csr_matrix(X), y)
    assert sparse.status_ == "converged"
    assert certify(sparse, sp.csr_matrix(X), y).holds
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_constant_column_gets_no_weight(form):
    X, y = form(np.full((41, 1), 0.1)), np.arange(41) % 2
    model = LeastSquaresClassifier().fit(X, y)
    assert model.coef_.tolist() == [[0.0]]
    assert certify(model, X, y).holds


def test_cells_in_several_parts_are_added_up():
    parts = sp.csr_matrix(([0.5, 0.5, 1, 3, 2, 2], [0, 0, 1, 0, 1, 1], [0, 3, 4, 6]), shape=(3, 2))
    whole = parts.copy()
    whole.sum_duplicates()
    for learner in (KernelPerceptron(kernel="linear", random_state=0), Perceptron(random_state=0)):
        model = learner.fit(whole, [0, 1, 0])
        np.testing.assert_array_equal(model.decision_function(parts), model.decision_function(whole))
    assert parts.nnz == 6  # the user's matrix is left alone


def test_huge_weights_do_not_hide_the_other_classes():
    X = np.array([[1.0, 2], [3, 4], [5, 6], [7, 9], [8, 8], [9, 7]])
    y, weight = np.array([0, 0, 1, 1, 2, 2]), np.array([1e16, 1e16, 1, 1, 1, 1.0])
    native = BasicLinearClassifier().fit(X, y, sample_weight=weight)
    reference = BasicLinearClassifier(engine="reference").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(native.coef_, reference.coef_)


def test_numbers_too_large_are_named(separable):
    X, y = separable
    with pytest.warns(ConvergenceWarning, match="nonfinite"):
        model = BasicLinearClassifier().fit(X * 1e160, y)
    assert certify(model, X * 1e160, y).holds is False


def test_a_gram_matrix_that_is_not_symmetric_is_refused(separable):
    X, y = separable
    with pytest.raises(InputError, match="must be symmetric"):
        KernelPerceptron(kernel="precomputed").fit(np.triu(X @ X.T), y)


def test_a_piece_may_lack_classes_that_have_a_weight(separable):
    X, y = separable
    model = Perceptron(class_weight={1: 2.0}).partial_fit(X[:40], y[:40], classes=[0, 1])
    assert model.partial_fit(X[40:], y[40:]).classes_.tolist() == [0, 1]


def test_labels_of_another_type_are_refused(separable):
    X, y = separable
    model = BasicLinearClassifier().fit(X, y)
    with pytest.raises(InputError, match=r"differ in type|not one of the model's classes"):
        certify(model, X, pd.Series(y.astype(str)))


def test_a_tiny_time_limit_stops_the_fit(separable):
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = KernelPerceptron(kernel="laplacian", time_limit=1e-12).fit(*separable)
    assert model.support_.size == 0
    assert model.predict(separable[0]).shape == (80,)


def test_sigma_and_gamma_together_are_refused(separable):
    with pytest.raises(ValueError, match="set only one of them"):
        KernelPerceptron(sigma=2.0, gamma=50.0).fit(*separable)


def test_a_voted_certificate_is_recomputed_only_on_request(rng):
    """Every vector votes on every row: recomputing that after each fit would take longer than the fit."""
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 2, size=2000)
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(variant="voted", max_iter=5, random_state=0).fit(X, y)
    assert model.certificate_.source == "solver"
