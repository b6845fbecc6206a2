"""scikit-learn's checks of estimators."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

_DRAWN = "rows are drawn: a row of weight 2 is not two rows, as in scikit-learn's"


def _failing(estimator):
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(names, _DRAWN) if estimator.bootstrap else {}


@parametrize_with_checks(
    [
        RandomForestClassifier(n_estimators=4),
        RandomForestRegressor(n_estimators=4),
        ExtraTreesClassifier(n_estimators=4),
        ExtraTreesRegressor(n_estimators=4),
    ],
    expected_failed_checks=_failing,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
