"""Calibrated probabilities and tuned thresholds of any classifier."""

from __future__ import annotations

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import CalibratedClassifier

_FOLDS = "folds do not look at weights"


@parametrize_with_checks(
    [CalibratedClassifier(), CalibratedClassifier(GaussianNB(), tuned_for="f1_macro", cv=3)],
    expected_failed_checks=lambda model: {
        f"check_sample_weight_equivalence_on_{kind}_data": _FOLDS for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
