"""The independent recomputation agrees with honest certificates, and denies models that were changed afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attack.independent import complaints

from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    BasicLinearClassifier,
    DecisionTreeClassifier,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    certify,
)

LEARNERS = {
    "SVC": (SVC(C=2.0), "dual_coef_"),
    "SVC, of classes": (SVC(kernel="poly", class_weight="balanced", multiclass="ovr"), "dual_coef_"),
    "NuSVC": (NuSVC(nu=0.3, kernel="laplacian"), "dual_coef_"),
    "SVR": (SVR(epsilon=0.05), "dual_coef_"),
    "NuSVR": (NuSVR(nu=0.3), "dual_coef_"),
    "OneClassSVM": (OneClassSVM(nu=0.3), "dual_coef_"),
    "LinearSVC": (LinearSVC(C=0.5), "coef_"),
    "LinearSVC, hinge": (LinearSVC(loss="hinge", regularize_intercept=False), "dual_coef_"),
    "LinearSVC, l1": (LinearSVC(penalty="l1"), "coef_"),
    "LinearSVC, joint": (LinearSVC(multi_class="crammer_singer"), "dual_coef_"),
    "LinearSVR": (LinearSVR(epsilon=0.05), "coef_"),
    "BasicLinearClassifier": (BasicLinearClassifier(), "coef_"),
    "LeastSquaresClassifier": (LeastSquaresClassifier(), "coef_"),
}


@pytest.fixture
def points(rng):
    X = np.abs(rng.normal(size=(40, 3)))
    return X, np.argmax(X + rng.normal(size=X.shape), axis=1), X[:, 0] + 0.3 * rng.normal(size=40)


def fitted(name, points):
    X, codes, values = points
    model = LEARNERS[name][0]
    y = values if name.endswith("SVR") else codes
    return model.fit(X, y), X, y


@pytest.mark.parametrize("name", LEARNERS)
def test_a_true_certificate_is_confirmed(name, points):
    model, X, y = fitted(name, points)
    certificate = certify(model, X, y)
    assert certificate.holds
    assert complaints(model, X, y, None, certificate) == []


@pytest.mark.parametrize("name", LEARNERS)
def test_a_changed_model_is_denied(name, points):
    model, X, y = fitted(name, points)
    certificate = certify(model, X, y)
    getattr(model, LEARNERS[name][1])[...] *= 1.3
    assert complaints(model, X, y, None, certificate) != []


def test_a_worse_threshold_is_denied(points):
    X, y, _ = points
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    certificate = certify(model, X, y)
    assert complaints(model, X, y, None, certificate) == []
    model.nodes_.threshold[0] = np.sort(X[:, model.nodes_.feature[0]])[0]
    assert complaints(model, X, y, None, certificate) != []


def test_a_false_training_error_is_denied(points):
    X, y, _ = points
    model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    assert complaints(model, X, y, None, certify(model, X, y)) == []
    other = np.roll(y, 1)
    assert complaints(model, X, other, None, certify(model, X, y)) != []
