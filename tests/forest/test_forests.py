"""Forests: draws, predictions, out-of-bag votes, parameters, and what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as ScikitForest
from sklearn.metrics import f1_score, mean_absolute_error

from margrove import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    certify,
    load_penguins,
)
from margrove.errors import InputError, MargroveWarning, ParameterError
from margrove.forest.out_of_bag import error_interval
from margrove.forest.packed import PackedForest
from margrove.status import Status
from margrove.tree.draws import drawn_rows, tree_seed
from margrove.tree.grove import Grove

KINDS = [RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor]


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def data_for(kind):
    return (load_diabetes if "Regressor" in kind.__name__ else load_iris)(return_X_y=True)


def test_rows_are_drawn_as_by_exact_arithmetic():
    seed, n = tree_seed(3, 1), 1000
    rows = drawn_rows(seed, n, 500)
    key = _mixed(seed + 1)
    assert rows.tolist() == [_mixed(key ^ _mixed(i)) * n >> 64 for i in range(500)]
    counts = np.bincount(drawn_rows(seed, 50, 50_000), minlength=50)
    assert counts.min() > 850  # 1000 each, up to 5 standard deviations
    assert counts.max() < 1150


def _mixed(x):
    """SplitMix64 on whole numbers of any size."""
    bits = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & bits
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & bits
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & bits
    return x ^ x >> 31


@pytest.mark.parametrize("kind", KINDS)
def test_a_forest_predicts_the_mean_of_its_trees(kind):
    X, y = data_for(kind)
    forest = kind(n_estimators=7, max_depth=4).fit(X, y)
    if hasattr(forest, "predict_proba"):
        of_trees = np.mean([tree.predict_proba(X) for tree in forest.estimators_], axis=0)
        np.testing.assert_allclose(forest.predict_proba(X), of_trees, rtol=1e-12)
        np.testing.assert_array_equal(forest.predict(X), of_trees.argmax(axis=1))
    else:
        of_trees = np.mean([tree.predict(X) for tree in forest.estimators_], axis=0)
        np.testing.assert_allclose(forest.predict(X), of_trees, rtol=1e-12)
    np.testing.assert_array_equal(forest.apply(X)[:, 2], forest.estimators_[2].apply(X))
    path, starts = forest.decision_path(X)
    assert path.shape == (len(X), starts[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_go_where_most_rows_went(kind):
    X, y = data_for(kind)
    forest = kind(n_estimators=5, max_depth=5).fit(X, y)
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    expected = np.stack([tree.apply(holed) for tree in forest.estimators_], axis=1)
    np.testing.assert_array_equal(forest.apply(holed), expected)
    single = np.where(np.isnan(holed), 0, holed).astype(np.float32)
    np.testing.assert_array_equal(forest.apply(single), forest.apply(single.astype(np.float64)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_trees_are_the_same_for_any_number_of_threads(kind, n_jobs):
    X, y = data_for(kind)
    one, other = kind(n_estimators=5).fit(X, y), kind(n_estimators=5, n_jobs=n_jobs).fit(X, y)
    for name in ("start", "feature", "threshold", "right", "weight", "value"):
        np.testing.assert_array_equal(getattr(one.model_.trees, name), getattr(other.model_.trees, name))


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_adds_the_trees_that_one_fit_would_have(kind):
    X, y = data_for(kind)
    grown = kind(n_estimators=3, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=6).fit(X, y)
    whole = kind(n_estimators=6).fit(X, y)
    np.testing.assert_array_equal(grown.apply(X), whole.apply(X))
    assert certify(grown, X, y).holds
    apply, order = grown.apply(X), np.argsort(y)
    with pytest.warns(MargroveWarning, match="without increasing n_estimators does not fit new trees"):
        grown.fit(X[order], y[order])  # nothing is left to grow, and the data are not looked at
    np.testing.assert_array_equal(grown.apply(X), apply)
    assert certify(grown, X, y).holds
    with pytest.raises(ParameterError, match="at least the 6 trees"):
        grown.set_params(n_estimators=5).fit(X, y)
    with pytest.raises(InputError, match="other columns or classes"):
        grown.set_params(n_estimators=9).fit(X[:, 1:], y)
    if hasattr(grown, "classes_"):
        with pytest.raises(InputError, match="the classes of the model are 0, 1, 2; those of y are 1, 2, 3"):
            grown.fit(X, y + 1)
    with pytest.raises(ParameterError, match=r"random_state is 1; with warm_start=True it must be 0"):
        grown.set_params(random_state=1).fit(X, y)
    with pytest.raises(InputError, match=r"draws 20 of \d+ rows; the trees grown before drew \w+ of"):
        grown.set_params(random_state=None, bootstrap=True, oob_score=True, max_samples=20).fit(X[::2], y[::2])
    assert grown.model_.n_trees == 6


def test_warm_start_judges_the_trees_that_there_are():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=30, warm_start=True).fit(X, y)
    with pytest.warns(MargroveWarning, match="does not fit new trees"):
        forest.set_params(oob_score=True).fit(X, y)
    assert forest.oob_score_ == RandomForestClassifier(n_estimators=30, oob_score=True).fit(X, y).oob_score_
    assert not hasattr(forest.set_params(oob_score=False, n_estimators=31).fit(X, y), "oob_score_")


def test_out_of_bag_votes_are_those_of_trees_that_have_not_seen_the_row(cancer):
    X, y = cancer
    with pytest.warns(MargroveWarning, match="OOB scores"):
        forest = RandomForestClassifier(n_estimators=8, oob_score=True).fit(X, y)
    votes, count = np.zeros((len(y), 2)), np.zeros(len(y))
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(y)), rows)
        votes[out] += tree.predict_proba(X[out])
        count[out] += 1
    known = count > 0
    np.testing.assert_allclose(forest.oob_decision_function_[known], votes[known] / count[known, None], rtol=1e-12)
    assert np.isnan(forest.oob_decision_function_[~known]).all()
    assert forest.oob_score_ == np.mean(votes[known].argmax(axis=1) == y[known])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_every_tree_has_drawn_are_told(kind):
    X, y = data_for(kind)
    with pytest.warns(
        MargroveWarning, match=rf"Some inputs do not have OOB scores: every tree has drawn \d+ of {len(y)}"
    ):
        kind(n_estimators=2, bootstrap=True, oob_score=True).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_are_predicted_by_all_trees(kind):
    X, y = data_for(kind)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    forest = kind(n_estimators=25, bootstrap=True, oob_score=True).fit(X, y, weight)
    kept, own = weight > 0, kind(n_estimators=25, bootstrap=True, oob_score=True).fit(X[weight > 0], y[weight > 0])
    name = "oob_prediction_" if "Regressor" in kind.__name__ else "oob_decision_function_"
    found = getattr(forest, name)
    predicted = forest.predict(X) if found.ndim == 1 else forest.predict_proba(X)
    np.testing.assert_allclose(found[~kept], predicted[~kept], rtol=1e-12)
    np.testing.assert_array_equal(found[kept], getattr(own, name))
    assert forest.oob_score_ == own.oob_score_
    assert all(weight[rows].all() for rows in forest.estimators_samples_)
    assert certify(forest, X, y, weight).holds
    found[np.flatnonzero(kept)[5]] += 0.1
    assert not certify(forest, X, y, weight).holds


def test_the_score_of_no_row_is_nan():
    with pytest.warns(MargroveWarning, match="every tree has drawn 1 of 1 rows"):
        forest = RandomForestClassifier(n_estimators=2, oob_score=True).fit([[1.0]], [0])
    assert np.isnan(forest.oob_score_)
    assert certify(forest, [[1.0]], [0]).holds
    X, y = load_iris(return_X_y=True)
    forged = RandomForestClassifier(n_estimators=25, oob_score=True).fit(X, y)
    forged.oob_score_ = np.nan
    assert not certify(forged, X, y).holds


def test_a_function_is_the_score():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["no", "yes", "perhaps"])[y]
    score = partial(f1_score, labels=["yes"], average="macro")
    forest = RandomForestClassifier(n_estimators=25, oob_score=score).fit(X, labels)
    predicted = forest.classes_[forest.oob_decision_function_.argmax(axis=1)]
    assert forest.oob_score_ == score(labels, predicted)
    assert certify(forest, X, labels).holds
    assert forest.certificate_["out-of-bag score"] == forest.oob_score_
    numbers = RandomForestRegressor(n_estimators=25, oob_score=mean_absolute_error).fit(X[:, :2], X[:, 2])
    assert numbers.oob_score_ == mean_absolute_error(X[:, 2], numbers.oob_prediction_)
    assert numbers.certificate_["out-of-bag mean_absolute_error"] == numbers.oob_score_
    assert certify(numbers, X[:, :2], X[:, 2]).holds


def test_out_of_bag_accuracy_is_near_that_of_scikit_learn(cancer):
    X, y = cancer
    ours = RandomForestClassifier(n_estimators=100, oob_score=True).fit(X, y)
    theirs = ScikitForest(n_estimators=100, oob_score=True, random_state=0).fit(X, y)
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.015


def test_out_of_bag_importances_find_the_column_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    forest = RandomForestClassifier(n_estimators=20).fit(X, X[:, 2] > 0)
    found = forest.oob_permutation_importances(X, X[:, 2] > 0, n_repeats=2, random_state=0)
    assert found.importances.shape == (4, 2)
    assert found.importances_mean.argmax() == 2
    assert found.importances_mean[2] > 0.2
    assert forest.feature_importances_.argmax() == 2
    assert forest.feature_importances_.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="bootstrap is False"):
        ExtraTreesClassifier(n_estimators=2).fit(X, X[:, 2] > 0).oob_permutation_importances(X, X[:, 2] > 0)


def test_more_rows_than_there_are_can_be_drawn():
    X, y = load_iris(return_X_y=True)
    share, number = (RandomForestClassifier(n_estimators=4, max_samples=m).fit(X, y) for m in (1.5, 225))
    assert [len(rows) for rows in share.estimators_samples_] == [225] * 4
    np.testing.assert_array_equal(share.apply(X), number.apply(X))
    assert certify(share, X, y).holds


def test_the_interval_of_an_error_is_exact():
    low, high = error_interval(0, 10)
    assert low == 0
    assert high == pytest.approx(1 - 0.025**0.1)  # (1 − p)^10 = 0.025


def test_proximity_is_the_share_of_common_leaves():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=8).fit(X, y)
    leaves = forest.apply(X)
    expected = (leaves[:, None, :] == leaves[None, :20, :]).mean(axis=2)
    np.testing.assert_allclose(forest.proximity(X, X[:20]), expected)
    np.testing.assert_allclose(np.diag(forest.proximity(X)), 1)


def test_quantiles_are_those_of_the_targets_that_share_leaves():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(400, 1))
    y = x.ravel() + rng.normal(size=400) * 0.1
    forest = RandomForestRegressor(n_estimators=10, min_samples_leaf=20, keep_targets=True).fit(x, y)
    found = forest.predict_quantiles(x, [0.05, 0.5, 0.95])
    assert (np.diff(found, axis=1) >= 0).all()
    inside = (found[:, 0] <= y) & (y <= found[:, 2])
    assert 0.85 < inside.mean() <= 1
    tree = RandomForestRegressor(n_estimators=1, max_depth=1, bootstrap=False, keep_targets=True).fit(x, y)
    side = tree.apply(x)[:, 0] == tree.apply(x[:1])[0, 0]
    np.testing.assert_allclose(tree.predict_quantiles(x[:1], [0, 1])[0], [y[side].min(), y[side].max()])
    with pytest.raises(InputError, match="keep_targets=True"):
        RandomForestRegressor(n_estimators=2).fit(x, y).predict_quantiles(x)
    for wrong in ([2], ["low"], None, [np.nan]):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            forest.predict_quantiles(x, wrong)


def test_tables_are_taken_as_they_are():
    penguins = load_penguins()
    labels = penguins.labels()
    forest = RandomForestClassifier(n_estimators=20, oob_score=True).fit(penguins, labels)
    assert isinstance(forest.model_.trees, Grove)
    assert forest.oob_score_ > 0.95
    assert certify(forest, penguins, labels).holds
    frame = penguins.to_pandas()
    np.testing.assert_array_equal(forest.predict(frame), forest.predict(penguins))


def test_sparse_rows_give_the_forest_of_dense_ones():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (80, 6)) * rng.integers(0, 2, (80, 6)) * 1.0
    y = X[:, 0] + X[:, 1] > 2
    dense, sparse = (RandomForestClassifier(n_estimators=6).fit(given, y) for given in (X, sp.csr_matrix(X)))
    np.testing.assert_array_equal(dense.apply(X), sparse.apply(sp.csr_matrix(X)))


@pytest.mark.parametrize("weight", ["balanced", "balanced_subsample", {0: 1, 1: 5}])
def test_class_weights_are_certified(cancer, weight):
    X, y = cancer
    forest = RandomForestClassifier(n_estimators=5, class_weight=weight, max_depth=3).fit(X, y)
    assert certify(forest, X, y).holds
    plain = RandomForestClassifier(n_estimators=5, max_depth=3).fit(X, y)
    assert not np.array_equal(forest.predict_proba(X), plain.predict_proba(X))


def test_several_targets():
    X, y = load_iris(return_X_y=True)
    both = np.stack([y, y % 2], axis=1)
    with pytest.raises(InputError, match=r"cannot be used to compute OOB estimates: the targets have 3, 2 classes"):
        RandomForestClassifier(oob_score=True).fit(X, both)
    forest = RandomForestClassifier(n_estimators=5, class_weight="balanced_subsample").fit(X, both)
    assert [shares.shape for shares in forest.predict_proba(X)] == [(150, 3), (150, 2)]
    assert (forest.predict(X) == both).mean() > 0.95
    assert certify(forest, X, both).holds
    marks = np.stack([y == 1, y > 0], axis=1)
    marked = RandomForestClassifier(n_estimators=25, oob_score=True).fit(X, marks)
    assert marked.oob_decision_function_.shape == (150, 2, 2)
    assert marked.oob_score_ == (marked.oob_decision_function_.argmax(axis=1) == marks).all(axis=1).mean()
    assert certify(marked, X, marks).holds
    numbers = RandomForestRegressor(n_estimators=25, oob_score=True).fit(X[:, :2], X[:, 2:])
    assert numbers.predict(X[:, :2]).shape == (150, 2)
    assert numbers.oob_prediction_.shape == (150, 2)


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson", "gaussian_entropy"])
def test_other_criteria_of_numbers(criterion):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(n_estimators=3, criterion=criterion, max_depth=4).fit(X, y)
    assert isinstance(forest.model_.trees, Grove)
    assert certify(forest, X, y).holds


def test_monotone_columns_and_pruned_trees():
    X, y = load_diabetes(return_X_y=True)
    signs = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    forest = RandomForestRegressor(n_estimators=4, max_depth=4, monotonic_cst=signs).fit(X, y)
    higher = X.copy()
    higher[:, 2] += 0.05
    assert (forest.predict(higher) >= forest.predict(X)).all()
    assert certify(forest, X, y).holds
    pruned = RandomForestRegressor(n_estimators=4, ccp_alpha=20.0).fit(X, y)
    whole = RandomForestRegressor(n_estimators=4).fit(X, y)
    assert len(pruned.model_.trees.weight) < len(whole.model_.trees.weight) / 2
    assert certify(pruned, X, y).holds


def test_the_packed_trees_are_those_of_the_grove(cancer):
    X, y = cancer
    forest = RandomForestClassifier(n_estimators=4).fit(X, y)
    assert isinstance(forest.model_.trees, PackedForest)
    assert forest.model_.trees.n_bytes < 4 * 30 * 64  # a third of the bytes of scikit-learn's nodes
    problem = forest._problem_of(X, y)
    for t in range(4):
        tree, alone = forest.model_.tree(t), forest.estimators_[t]
        rows = np.flatnonzero(problem.counts(t))
        again = alone.fit(X[rows], y[rows], problem.weight(problem.counts(t))).nodes_
        for name in ("feature", "threshold", "child", "n_rows", "weight", "default_branch"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(again, name))
        for name in ("value", "impurity", "gain"):
            np.testing.assert_allclose(getattr(tree, name), getattr(again, name), rtol=1e-9, atol=1e-12)


def test_the_time_limit_keeps_the_trees_so_far(cancer):
    X, y = cancer
    with pytest.warns(MargroveWarning, match="of 1000000 trees"):
        forest = RandomForestClassifier(n_estimators=1_000_000, time_limit=0.5).fit(X, y)
    assert forest.status_ is Status.TIME_LIMIT
    assert 0 < forest.model_.n_trees < 1_000_000
    assert forest.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_estimators": 0}, "n_estimators is 0"),
        ({"max_samples": 0.0}, "max_samples is 0.0"),
        ({"max_samples": "all"}, "max_samples is 'all'"),
        ({"max_samples": np.inf}, "share of the rows > 0"),
        ({"max_samples": 1e300}, "at most 2147483647 rows"),
        ({"max_samples": 2**31}, "at most 2147483647 rows"),
        ({"max_samples": 10, "bootstrap": False}, "bootstrap=False"),
        ({"oob_score": "accuracy"}, "oob_score is 'accuracy'; it must be True or False"),
        ({"oob_score": True, "bootstrap": False}, "bootstrap=True"),
        ({"criterion": "squared_error"}, "criterion"),
        ({"max_features": 0}, "max_features"),
    ],
)
def test_wrong_parameters_are_named(given, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ParameterError, match=words):
        RandomForestClassifier(**given).fit(X, y)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(InputError):
        forest.fit(X, y[:-1])
    assert forest.model_.n_trees == 3


def test_frames_keep_their_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(n_estimators=3).fit(X, y)
    assert list(forest.feature_names_in_) == list(X.columns)
    with pytest.raises((InputError, ValueError)):
        forest.predict(pd.DataFrame({"a": [1.0]}))


@pytest.mark.parametrize("table", ["numbers", "penguins"])
def test_a_fit_continues_from_its_checkpoint(tmp_path, table):
    X, y = load_iris(return_X_y=True)
    if table == "penguins":
        X = load_penguins()
        y = X.labels()
    path = tmp_path / "forest.checkpoint"
    with pytest.warns(MargroveWarning, match="of 1000000 trees"):
        RandomForestClassifier(n_estimators=1_000_000, time_limit=0.3, checkpoint=path).fit(X, y)
    assert path.exists()
    with pytest.raises(InputError, match="other data or other parameters"):
        RandomForestClassifier(n_estimators=4, max_depth=2, checkpoint=path).fit(X, y)
    resumed = RandomForestClassifier(n_estimators=4, checkpoint=path).fit(X, y)
    assert not path.exists()
    np.testing.assert_array_equal(resumed.apply(X), RandomForestClassifier(n_estimators=4).fit(X, y).apply(X))
    whole = RandomForestClassifier(n_estimators=20, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(whole.apply(X), RandomForestClassifier(n_estimators=20).fit(X, y).apply(X))
