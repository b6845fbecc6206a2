"""Exact leave-one-out: what fits without each row say, and the bound above it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut as TheirSplits

from margrove import SVC, Status
from margrove.engine import Native
from margrove.errors import ConvergenceWarning, EngineError, InputError, ParameterError
from margrove.svm.problem import LeftOut


def one_by_one(model, X, y, sample_weight=None):
    """The same by fits from nothing."""
    found = np.empty(len(y), dtype=np.asarray(y).dtype)
    for train, test in TheirSplits().split(X):
        weight = None if sample_weight is None else sample_weight[train]
        found[test] = clone(model).fit(X[train], y[train], weight).predict(X[test])
    return found


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("table", ["two_classes", "four_classes"])
def test_equals_fits_without_each_row(table, C, request):
    X, y = request.getfixturevalue(table)
    model = SVC(C=C, gamma=0.5, tol=1e-5).fit(X, y)
    found = model.leave_one_out(X, y)
    wanted = one_by_one(SVC(C=C, gamma=0.5, tol=1e-5), X, y)
    np.testing.assert_array_equal(found.predicted, wanted)
    np.testing.assert_array_equal(found.is_wrong, wanted != y)
    assert found.error == np.mean(wanted != y)
    assert found.error <= found.bound == model.loo_bound_
    assert found.status is Status.CONVERGED
    assert found.n_solves == sum(int((np.abs(beta) > 0).sum()) for beta in model.dual_coef_)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_values_equal_the_reference(two_classes, precision):
    X, y = two_classes
    model = SVC(gamma=0.5, tol=1e-6, precision=precision).fit(X, y)
    native = model.leave_one_out(X, y)
    plain = SVC(gamma=0.5, tol=1e-6, engine="reference").fit(X, y).leave_one_out(X, y)
    np.testing.assert_allclose(native.values, plain.values, atol=2e-5)
    np.testing.assert_array_equal(native.predicted, plain.predicted)


@pytest.mark.parametrize(
    "multiclass", ["ovr", np.array([[1, 1, -1, -1], [1, -1, 1, -1], [-1, 1, 1, 1], [-1, -1, -1, 1]])]
)
def test_other_codes_weights_and_kernels(four_classes, multiclass, rng):
    X, y = four_classes
    weight = rng.uniform(0.5, 2, len(y))
    model = SVC(gamma=0.5, tol=1e-5, multiclass=multiclass, class_weight={"ash": 2.0})
    found = clone(model).fit(X, y, weight).leave_one_out(X, y, weight)
    np.testing.assert_array_equal(found.predicted, one_by_one(model, X, y, weight))
    gram = rbf_kernel(X, gamma=0.5)
    given = clone(model).set_params(kernel="precomputed").fit(gram, y, weight).leave_one_out(gram, y, weight)
    np.testing.assert_array_equal(given.predicted, found.predicted)


def test_duplicates_and_one_thread(rng):
    X = rng.integers(0, 3, size=(120, 2)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=120) > 2, 1, -1)
    model = SVC(gamma=1.0, tol=1e-5, C=5.0).fit(X, y)
    one, two = (model.set_params(n_jobs=n_jobs).leave_one_out(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    wanted = one_by_one(SVC(gamma=1.0, tol=1e-5, C=5.0), X, y)
    assert np.mean(one.predicted != wanted) < 0.03  # rows that f puts on the boundary


def test_other_rows_are_refused(two_classes):
    X, y = two_classes
    model = SVC(gamma=0.5).fit(X, y)
    for rows, labels in ((X[:-1], y[:-1]), (X + 1, y)):
        with pytest.raises(InputError, match=r"not the rows that the model was fitted on. Pass the training rows"):
            model.leave_one_out(rows, labels)
    with pytest.raises(ParameterError, match="needs a finite C"):
        SVC(C=np.inf, gamma=50.0).fit(X, y).leave_one_out(X, y)
    with pytest.raises(EngineError, match="Raise cache_size, or cross-validate with SVCCV"):
        model.set_params(cache_size=0.01).leave_one_out(X, y)


def test_a_class_of_one_row_is_refused():
    X = np.array([[0.0], [1.0], [2.0], [9.0]])
    model = SVC(gamma=1.0).fit(X, [0, 0, 0, 1])
    with pytest.raises(InputError, match="one row on one of its sides"):
        model.leave_one_out(X, [0, 0, 0, 1])


def test_other_labels_weights_and_costs_are_refused(two_classes):
    X, y = two_classes
    model = SVC(gamma=0.5).fit(X, y)
    wanted = model.leave_one_out(X, y)
    other = np.where(y == "yes", "no", "yes")
    with pytest.raises(InputError, match="differ from those the model was fitted with"):
        model.leave_one_out(X, other)
    with pytest.raises(InputError, match="differ from those the model was fitted with"):
        model.set_params(C=1e-3).leave_one_out(X, y)
    with pytest.raises(InputError, match="differ from those the model was fitted with"):
        model.set_params(C=5.0).leave_one_out(X, y)  # rows stood on the bound of before
    weighted = SVC(gamma=0.5).fit(X, y, np.linspace(0.5, 1, len(y)))
    with pytest.raises(InputError, match="differ from those the model was fitted with"):
        weighted.leave_one_out(X, y)
    found = model.set_params(C=1.0, gamma=30.0).leave_one_out(X, y)
    np.testing.assert_array_equal(found.predicted, wanted.predicted)


def test_an_interrupted_run_has_no_error_estimate(two_classes):
    """The rows that need no solve are the easy ones: a mean over those that are known would flatter."""
    X, y = two_classes
    model = SVC(gamma=0.5).fit(X, y)
    stopped = LeftOut(np.full(len(y), np.nan), False, Status.TIME_LIMIT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Native, "solve", lambda *given: (stopped,))
        with pytest.warns(ConvergenceWarning, match="so its error is not exact: .* of .* rows were evaluated"):
            found = model.leave_one_out(X, y)
    assert np.isnan(found.error)
    assert found.status is Status.TIME_LIMIT


def test_the_error_of_an_unconverged_model_is_not_exact(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="SVC ended with status 'max_iter'"):
        model = SVC(gamma=0.5, max_iter=3).fit(X, y)
    with pytest.warns(
        ConvergenceWarning, match="leave_one_out ended with status 'max_iter', so its error is not exact"
    ):
        found = model.leave_one_out(X, y)
    assert found.status is Status.MAX_ITER


def test_balanced_weights_are_those_of_all_rows(two_classes):
    X, y = two_classes
    X, y = X[10:], y[10:]
    model = SVC(gamma=0.5, tol=1e-5, class_weight="balanced").fit(X, y)
    as_they_were = dict(zip(model.classes_, model.class_weight_, strict=True))
    wanted = one_by_one(SVC(gamma=0.5, tol=1e-5, class_weight=as_they_were), X, y)
    np.testing.assert_array_equal(model.leave_one_out(X, y).predicted, wanted)
