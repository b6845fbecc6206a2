"""Certificates hold for correct models and fail for changed ones."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron as SklearnPerceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import (
    BasicLinearClassifier,
    Certificate,
    KernelPerceptron,
    LeastSquaresClassifier,
    Perceptron,
    certify,
)
from margrove.errors import InputError

LEARNERS = {
    "basic": BasicLinearClassifier(),
    "least squares": LeastSquaresClassifier(),
    "perceptron": Perceptron(random_state=0),
    "averaged": Perceptron(variant="averaged", random_state=0),
    "voted": Perceptron(variant="voted", random_state=0),
    "rbf": KernelPerceptron(random_state=0),
    "poly": KernelPerceptron(kernel="poly", degree=2, coef0=1.0, random_state=0),
}


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def separable(request, rng):
    k = request.param
    codes = np.arange(30 * k) % k
    angle = 2 * np.pi * np.arange(k) / k
    X = 8 * np.column_stack([np.cos(angle), np.sin(angle)])[codes] + rng.normal(size=(30 * k, 2))
    return X, np.array(["ash", "beech", "oak"])[codes]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)], ids=["f64", "csr", "f32"])
def test_correct_models_are_certified(name, form, separable):
    X, y = form(separable[0]), separable[1]
    certificate = certify(copy.deepcopy(LEARNERS[name]).fit(X, y), X, y)
    assert certificate.holds is True, str(certificate)
    assert certificate.source == "recomputed"


def disturb(model, attribute, size=0.05):
    """One number of the model is made a little larger."""
    values = np.array(getattr(model, attribute), dtype=float)
    index = np.unravel_index(np.argmax(np.abs(values)), values.shape)
    values[index] *= 1 + size
    setattr(model, attribute, values)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("basic", "coef_"),
        ("basic", "intercept_"),
        ("least squares", "coef_"),
        ("least squares", "intercept_"),
        ("perceptron", "coef_"),
        ("perceptron", "intercept_"),
        ("perceptron", "alpha_"),
        ("averaged", "coef_"),
        ("voted", "prototypes_"),
        ("rbf", "dual_coef_"),
        ("rbf", "intercept_"),
        ("poly", "dual_coef_"),
    ],
)
def test_a_changed_model_is_not_certified(name, attribute, separable):
    X, y = separable[0] + 0.1, separable[1]
    model = copy.deepcopy(LEARNERS[name]).fit(X, y)
    if not np.any(getattr(model, attribute)):
        pytest.skip("there is nothing but zeros to disturb")
    assert certify(model, X, y).holds
    disturb(model, attribute)
    assert certify(model, X, y).holds is False


@pytest.mark.parametrize("variant", ["averaged", "voted"])
def test_forged_corrections_fail(variant, rng):
    """On rows nobody can separate, every vector is a combination of rows; but not every one is a walk's."""
    X, y = rng.normal(size=(80, 3)), np.where(rng.random(80) < 0.5, "a", "b")
    with pytest.warns(UserWarning, match="max_iter"):
        model = Perceptron(variant=variant, random_state=0, max_iter=20).fit(X, y)
    assert certify(model, X, y).holds
    turned = copy.deepcopy(model)
    turned.coef_, turned.intercept_ = -model.coef_, -model.intercept_
    if variant == "voted":
        turned.prototypes_ = -model.prototypes_
    assert not certify(turned, X, y).holds
    for attribute, change in {
        "makers_": lambda a: (a + 1) % 80,
        "times_": lambda a: a[::-1],
        "n_mistakes_": lambda a: a - 1,
        "n_steps_": lambda a: a + 7 if variant == "averaged" else a * 0,
    }.items():
        forged = copy.deepcopy(model)
        vars(forged)[attribute] = change(np.array(getattr(model, attribute)))
        assert not certify(forged, X, y).holds, attribute
    with pytest.raises(AttributeError, match="times_ is read-only"):
        model.times_ = model.times_ + 1
    with pytest.raises(ValueError, match="read-only"):
        model.n_steps_[0] += 1


def test_claims_without_a_bound_have_no_verdict():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    with pytest.warns(UserWarning, match="max_iter"):
        model = Perceptron(max_iter=5, random_state=0).fit(X, y)
    claim = certify(model, X, y).claim("mistakes made")
    assert claim.holds is None
    assert claim.limits is None


@pytest.mark.parametrize("name", ["perceptron", "averaged", "voted", "rbf"])
def test_other_rows_are_noticed(name, separable):
    X, y = separable
    model = copy.deepcopy(LEARNERS[name]).fit(X, y)
    assert not certify(model, X[:-3], y[:-3]).holds
    moved = X.copy()
    moved[model.support_[0] if name == "rbf" else slice(None)] += 0.01
    assert not certify(model, moved, y).holds


def test_swapped_labels_are_noticed(separable):
    X, y = separable
    promised = {name: learner for name, learner in LEARNERS.items() if name not in ("averaged", "voted")}
    for name, learner in promised.items():
        model = copy.deepcopy(learner).fit(X, y)
        swapped = y.copy()
        swapped[:2] = swapped[1], swapped[0]
        assert not certify(model, X, swapped).holds, name


def test_a_row_on_the_wrong_side_is_named():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 0])
    with pytest.warns(UserWarning, match="max_iter"):
        model = Perceptron(random_state=0, max_iter=20).fit(X, y)
    claim = certify(model, X, y).claim("rows on the wrong side")
    assert claim.holds is False
    assert "row " in claim.words


def test_novikoffs_bound_is_recomputed_by_hand(separable):
    X, y = separable
    if len(set(y)) > 2:
        pytest.skip("by hand for two classes")
    model = Perceptron(random_state=0).fit(X, y)
    sign = np.where(y == model.classes_[1], 1, -1)
    homogeneous = np.column_stack([X, np.ones(len(X))])
    v = np.append(model.coef_[0], model.intercept_[0])
    gamma = (sign * (homogeneous @ v)).min() / np.linalg.norm(v)
    bound = (np.linalg.norm(homogeneous, axis=1).max() / gamma) ** 2
    claim = certify(model, X, y).claim("mistakes made")
    np.testing.assert_allclose(claim.limits, [bound])
    assert claim.values == (float(model.n_mistakes_[0]),)
    assert model.n_mistakes_[0] <= bound


def test_the_certificate_depends_on_the_weights(rng, separable):
    X, y = separable
    weight = rng.integers(1, 4, size=len(y)).astype(float)
    for name, learner in LEARNERS.items():
        model = copy.deepcopy(learner).fit(X, y, sample_weight=weight)
        assert certify(model, X, y, sample_weight=weight).holds, name
        assert not certify(model, X, y).holds, name


def test_scikit_learns_perceptron_is_certified_too(separable):
    X, y = separable
    peer = SklearnPerceptron(random_state=0, tol=None, max_iter=200).fit(X, y)
    certificate = certify(peer, X, y)
    assert certificate.holds is bool(peer.score(X, y) == 1) or len(set(y)) > 2
    assert certificate.status == "unknown"


def test_a_pipeline_is_certified_at_its_end(separable):
    X, y = separable
    pipeline = make_pipeline(StandardScaler(), Perceptron(random_state=0)).fit(X, y)
    assert certify(pipeline, X, y).holds
    with pytest.raises(InputError, match="StandardScaler has no certificate"):
        certify(StandardScaler().fit(X), X, y)


def test_large_fits_have_the_solvers_numbers_and_no_verdict(rng):
    X = rng.normal(size=(60_000, 10)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = BasicLinearClassifier().fit(X, y)
    assert (model.certificate_.source, model.certificate_.holds) == ("solver", None)
    assert "certify(model, X, y)" in model.certificate_.verdict
    assert certify(model, X, y).holds is True


def test_unknown_labels_and_lengths_are_refused(separable):
    X, y = separable
    model = BasicLinearClassifier().fit(X, y)
    with pytest.raises(InputError, match="label 'yew' is not one of the model's classes"):
        certify(model, X, np.full(len(y), "yew"))
    with pytest.raises(InputError, match="rows and y has"):
        certify(model, X, y[:-1])


def test_a_certificate_is_printed_and_written_as_json(separable):
    X, y = separable
    certificate = certify(Perceptron(random_state=0).fit(X, y), X, y)
    text = str(certificate)
    assert text.splitlines()[0].endswith("recomputed in float64")
    assert "✓" in text
    assert "<table>" in certificate._repr_html_()
    assert Certificate.from_dict(json.loads(certificate.to_json())) == certificate
    with pytest.raises(KeyError, match="rows on the wrong side"):
        certificate["no such claim"]


def test_infinite_bounds_survive_json():
    X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0, 1, 0, 2])
    with pytest.warns(UserWarning, match="max_iter"):
        certificate = Perceptron(max_iter=5, random_state=0).fit(X, y).certificate_
    assert Certificate.from_dict(json.loads(certificate.to_json())) == certificate
