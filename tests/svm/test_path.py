"""The models along C: each what a fit alone would give."""

from __future__ import annotations

import numpy as np
import pytest

from margrove import SVC, Status, certify
from margrove.errors import ConvergenceWarning, ParameterError
from margrove.run.progress import watched

CS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def objective(model):
    return model.certificate_.dual


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("table", ["two_classes", "four_classes"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_each_model_equals_a_single_fit(table, engine, class_weight, request):
    X, y = request.getfixturevalue(table)
    model = SVC(gamma=0.5, tol=1e-5, class_weight=class_weight, engine=engine)
    path = model.path(X, y, CS)
    assert path.status is Status.CONVERGED
    np.testing.assert_array_equal(path.Cs, CS)
    for C, along in zip(CS, path.models, strict=True):
        alone = SVC(gamma=0.5, tol=1e-5, class_weight=class_weight, C=C).fit(X, y)
        assert along.C == C
        assert certify(along, X, y).holds
        np.testing.assert_allclose(along.norm_, alone.norm_, rtol=1e-3)
        np.testing.assert_allclose(along.decision_function(X), alone.decision_function(X), atol=2e-3)
        assert along.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(path.margins.shape, (len(CS), len(path.models[0].intercept_)))
    assert path.n_support.tolist() == [len(model.support_) for model in path.models]


def test_many_rows_and_duplicates(rng):
    """More rows than are solved for at once, some of them twice: bounds of merged rows grow together."""
    X = rng.normal(size=(6000, 3)).round(1)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=6000) > 0, 1, -1)
    weight = rng.integers(1, 4, 6000).astype(float)
    path = SVC(gamma=0.5, tol=1e-3).path(X, y, [0.1, 1.0, 30.0], weight)
    for model in path.models:
        assert certify(model, X, y, weight).holds
        assert set(np.unique(model.kkt_)) <= {"easy", "marginal", "hard"}
        alone = SVC(gamma=0.5, tol=1e-3, C=model.C).fit(X, y, weight)
        np.testing.assert_allclose(model.norm_, alone.norm_, rtol=2e-3)


def test_values_of_c_in_any_order_and_defaults(two_classes):
    X, y = two_classes
    assert SVC().path(X, y, [10, 0.1, 10]).Cs.tolist() == [0.1, 10.0]
    assert SVC().path(X, y, (C for C in (10, 0.1))).Cs.tolist() == [0.1, 10.0]
    assert len(SVC().path(X, y).models) == 20
    for Cs, words in (
        ([], "Cs is empty"),
        ([0], "Cs holds 0; it must be a number > 0"),
        (1.0, "Cs is 1.0; it must be a list"),
        (np.ones((2, 2)), r"Cs is \[\[1.0, 1.0\], \[1.0, 1.0\]\]; it must be a list"),
        ([1e101], r"Cs holds 1e\+101; it must be at most 1e\+100"),
    ):
        with pytest.raises(ParameterError, match=words):
            SVC().path(X, y, Cs)


def test_margins_shrink_along_c(two_classes):
    margins = SVC(gamma=0.5).path(*two_classes).margins.ravel()
    assert (np.diff(margins) <= 1e-6 * margins[:-1]).all()


def test_ctrl_c_keeps_the_steps_that_were_reached():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = np.arange(3000) % 2

    def stop(progress):
        if progress.done >= 3:
            raise KeyboardInterrupt

    with watched(stop), pytest.warns(ConvergenceWarning, match="interrupted"):
        path = SVC(gamma=0.1, tol=1e-5).path(X, y, np.logspace(-2, 6, 12))
    assert path.status is Status.INTERRUPTED
    assert 3 <= len(path.models) < 12
    assert all(model.status_ is Status.CONVERGED for model in path.models[:3])
