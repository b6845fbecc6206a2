"""Where C times the rounding of f is as large as the gap: a certificate claims what exact arithmetic confirms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margrove import LinearSVC, LinearSVR, certify
from margrove.errors import ConvergenceWarning

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")


def exact_gap(model: Any, X: np.ndarray, z: np.ndarray) -> Fraction:
    """(P − D)/P of a hinge or ε-insensitive loss with a penalised intercept, without rounding."""
    C, epsilon = Fraction(model.C), Fraction(getattr(model, "epsilon", 0.0))
    w = [*map(Fraction, np.ravel(model.coef_).tolist()), Fraction(float(model.intercept_[0]))]
    beta = [Fraction(each) for each in model.dual_coef_[0].tolist()]
    rows = [[*map(Fraction, row), Fraction(1)] for row in X.tolist()]
    primal = sum(each * each for each in w) / 2
    dual = Fraction(0)
    for row, target, coefficient in zip(rows, map(Fraction, z.tolist()), beta, strict=True):
        f = sum(a * b for a, b in zip(row, w, strict=True))
        excess = 1 - target * f if model.loss == "hinge" else abs(target - f) - epsilon
        primal += C * max(Fraction(0), excess)
        coefficient = min(max(coefficient, -C), C)
        dual += target * coefficient - (0 if model.loss == "hinge" else epsilon * abs(coefficient))
    sums = [sum(coefficient * row[j] for coefficient, row in zip(beta, rows, strict=True)) for j in range(len(w))]
    dual -= sum(each * each for each in sums) / 2
    return (primal - max(dual, Fraction(0))) / primal


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("seed", range(3))
def test_a_claimed_gap_is_never_smaller_than_the_exact_one(C, seed):
    rng = np.random.default_rng(seed)
    X, y = 1e3 * rng.normal(size=(10, 10)), 10 * rng.normal(size=10)
    sign = np.where(y > 0, 1.0, -1.0)
    for model, target in (
        (LinearSVR(C=C, tol=1e-6, max_iter=3000).fit(X, y), y),
        (LinearSVC(C=C, tol=1e-6, loss="hinge", max_iter=3000).fit(X, sign), sign),
    ):
        certificate = certify(model, X, target)
        claimed = certificate["relative duality gap"]
        assert float(exact_gap(model, X, target)) <= claimed * (1 + 1e-9)
        assert certificate.holds == (claimed <= 1e-6 * (1 + 1e-6) + 1e-13)
        assert certificate.holds or model.status_ != "converged"


def test_a_c_that_float64_cannot_prove_is_stalled_with_a_reason(rng):
    X, y = 1e3 * rng.normal(size=(10, 10)), rng.normal(size=10)
    with pytest.warns(ConvergenceWarning, match=r"'stalled': relative duality gap.*check the scale"):
        model = LinearSVR(C=1e9, tol=1e-6).fit(X, y)
    assert model.status_ == model.certificate_.status == "stalled"
    claim = model.certificate_.claim("relative duality gap")
    assert not claim.holds
    assert "float64 cannot prove less" in claim.words


def test_rows_beyond_the_margin_are_proved_to_have_no_loss_at_a_huge_c(rng):
    X = rng.normal(size=(40, 60))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    model = LinearSVC(loss="hinge", C=1e10).fit(X, y)
    assert model.status_ == "converged"
    assert certify(model, X, y).holds


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_free_intercept_on_duplicated_rows_is_proved_by_the_model_arrays(loss):
    rng = np.random.default_rng(1369)  # found by an attack
    for _ in range(40):
        n = int(rng.integers(10, 60))
        X = rng.normal(size=(n, 1))[rng.integers(0, n, size=n)]
        y = X[:, 0] + rng.normal(size=n) > 0
        if y.all() or not y.any():
            continue
        model = LinearSVC(loss=loss, C=22.66, regularize_intercept=False).fit(X, y)
        assert certify(model, X, y).holds == (model.status_ == "converged")
        assert certify(model, X, y)["relative duality gap"] == pytest.approx(float(model.gap_[0]), abs=1e-9)
