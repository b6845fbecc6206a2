"""Numbers of a report, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import auc, r2_score, roc_auc_score

from margrove.app.history import ScoredRows
from margrove.app.report.measures import (
    calibration,
    class_qualities,
    confusion,
    quality_of,
    rankings,
    thinned,
    wilson,
)


@pytest.mark.parametrize(("n_right", "n", "low", "high"), [(0, 10, 0.0, 0.2775), (81, 263, 0.2553, 0.3662)])
def test_wilson_interval_is_that_of_the_literature(n_right, n, low, high):
    assert wilson(n_right, n) == pytest.approx((low, high), abs=5e-5)  # Newcombe (1998), table I


def test_an_interval_covers_the_share_and_stays_within_0_and_1():
    for n in (1, 3, 50, 10_000):
        for n_right in {0, 1, n // 2, n}:
            low, high = wilson(n_right, n)
            assert 0 <= low <= n_right / n <= high <= 1


def some_answers(n: int = 400) -> ScoredRows:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, n)
    scores = rng.dirichlet(np.ones(3), n) + 0.8 * np.eye(3)[truth]
    scores /= scores.sum(axis=1, keepdims=True)
    return ScoredRows(["a", "b", "c"], truth, scores.argmax(axis=1), scores)


def test_confusion_counts_each_row_once_by_true_and_predicted_class():
    scored = ScoredRows(["a", "b"], np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0]))
    assert confusion(scored).tolist() == [[1, 1], [1, 2]]
    first, second = class_qualities(scored)
    assert (first.n_rows, first.recall, first.precision) == (2, 0.5, 0.5)
    assert (second.n_rows, second.recall, second.precision) == (3, 2 / 3, 2 / 3)


def test_class_without_rows_has_no_recall_and_one_never_predicted_no_precision():
    scored = ScoredRows(["a", "b"], np.array([0, 0]), np.array([0, 0]))
    missing = class_qualities(scored)[1]
    assert missing.recall is None
    assert missing.precision is None


def test_baseline_of_accuracy_is_the_largest_class():
    scored = ScoredRows(["a", "b"], np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0]))
    quality = quality_of(scored)
    assert quality is not None
    assert (quality.value, quality.baseline, quality.baseline_class) == (0.75, 0.75, "b")


def test_r2_and_its_interval_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=300)
    predicted = truth + 0.5 * rng.normal(size=300)
    quality = quality_of(ScoredRows(None, truth, predicted))
    assert quality is not None
    assert quality.value == pytest.approx(r2_score(truth, predicted))
    assert quality.low < quality.value < quality.high
    assert quality.typical_error == pytest.approx(np.abs(truth - predicted).mean())


def test_constant_target_has_no_quality():
    assert quality_of(ScoredRows(None, np.ones(5), np.zeros(5))) is None


def test_curves_of_each_class_have_the_area_of_scikit_learn():
    scored = some_answers()
    found = rankings(scored)
    assert [ranking.name for ranking in found] == ["a", "b", "c"]
    for code, ranking in enumerate(found):
        assert ranking.auc == pytest.approx(roc_auc_score(scored.truth == code, scored.scores[:, code]))
        assert auc(*ranking.roc) == pytest.approx(ranking.auc, abs=5e-3)  # of a thinned curve


def test_a_thinned_curve_keeps_its_ends_and_only_points_that_were_there():
    x, y = np.sort(np.random.default_rng(0).random(1000)), np.sort(np.random.default_rng(1).random(1000))
    fewer = thinned(x, y, 50)
    assert len(fewer[0]) <= 52
    assert (fewer[0][0], fewer[0][-1], fewer[1][-1]) == (x[0], x[-1], y[-1])
    assert {*zip(*fewer, strict=True)} <= {*zip(x, y, strict=True)}


def test_calibration_compares_probabilities_with_shares_of_correct_predictions():
    scores = np.repeat([[0.25, 0.75], [0.05, 0.95]], 40, axis=0)
    truth = np.repeat([1, 0, 1], [30, 10, 40])
    bins = calibration(ScoredRows(["no", "yes"], truth, np.ones(80, int), scores))
    assert [(round(b.predicted, 9), b.observed, b.n_rows) for b in bins] == [(0.75, 0.75, 40), (0.95, 1.0, 40)]


def test_scores_that_are_no_probabilities_are_not_calibrated():
    scored = some_answers()
    assert calibration(scored)
    assert not calibration(ScoredRows(scored.classes, scored.truth, scored.predicted, 3 * scored.scores))
