"""ImpuritySelector: what it keeps, and that it gives back the kind of thing it was given."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import (
    SVC,
    DecisionTreeClassifier,
    ImpuritySelector,
    Table,
    TableEncoder,
    as_table,
    gain_ratio,
    gini_gain,
    information_gain,
    load_penguins,
)
from margrove.errors import DataWarning, InputError, ParameterError


@parametrize_with_checks([ImpuritySelector(k=1), ImpuritySelector("gain_ratio", k=0.5), ImpuritySelector(k="all")])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def frame() -> pd.DataFrame:
    """In order of information gain: word, size, flag, then nothing: same."""
    return pd.DataFrame(
        {
            "same": [1, 1, 1, 1, 1, 1, 1, 1],
            "size": [1.0, np.nan, 3.0, 2.0, 8.0, 1.0, 9.0, 7.0],
            "word": pd.Categorical(["sea", "ice", None, "sea", "air", "air", "air", "air"]),
            "flag": [True, False, True, True, False, True, False, True],
        },
        index=list("abcdefgh"),
    )


LABELS = np.array(["x", "x", "x", "x", "y", "y", "y", "y"])


# ------------------------------------------------------------------------------------------- the same kind comes back


def test_a_pandas_frame_keeps_index_and_types(frame):
    kept = ImpuritySelector(k=2).fit_transform(frame, LABELS)
    pd.testing.assert_frame_equal(kept, frame[["size", "word"]])


def test_a_polars_frame_stays_one(frame):
    given_as = pl.from_pandas(frame)
    kept = ImpuritySelector(k=2).fit_transform(given_as, LABELS)
    assert isinstance(kept, pl.DataFrame)
    assert kept.equals(given_as.select("size", "word"))


def test_a_pyarrow_table_stays_one(frame):
    given_as = pa.Table.from_pandas(frame, preserve_index=False)
    kept = ImpuritySelector(k=2).fit_transform(given_as, LABELS)
    assert isinstance(kept, pa.Table)
    assert kept.equals(given_as.select(["size", "word"]))


def test_a_table_stays_one_and_keeps_its_target():
    penguins = load_penguins()
    kept = ImpuritySelector(k=3).fit_transform(penguins, penguins.labels())
    assert isinstance(kept, Table)
    assert kept.names == ("island", "bill_length_mm", "flipper_length_mm")
    assert kept["island"].levels == penguins["island"].levels
    assert (kept.labels() == penguins.labels()).all()


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_sparse_matrix_stays_one_of_its_form(form, rng):
    X, y = sp.random(100, 12, 0.3, format=form, random_state=1), rng.integers(0, 2, 100)
    selector = ImpuritySelector(k=5).fit(X, y)
    kept = selector.transform(X)
    assert kept.format == form
    assert (kept.toarray() == X.toarray()[:, selector.support_]).all()


def test_columns_that_a_libsvm_file_does_not_name_are_zero(rng):
    X = sp.random(60, 6, 0.5, format="csr", random_state=2)
    y = (X[:, [4]].toarray().ravel() > 0) ^ (rng.random(60) < 0.1)
    selector = ImpuritySelector(k=2).fit(Table(block=X, names=list("abcdef"), absent_is_zero=True), y)
    first = selector.get_support(indices=True)[0]
    short = Table(block=X[:, : first + 1], names=list("abcdef")[: first + 1], absent_is_zero=True)
    kept = selector.transform(short)
    assert kept.names == tuple(selector.get_feature_names_out())
    assert (kept.sparse.toarray()[:, 0] == X[:, [first]].toarray().ravel()).all()
    assert (kept.sparse.toarray()[:, 1] == 0).all()
    assert kept.absent_is_zero


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.str_, object])
def test_an_array_keeps_its_type(dtype):
    X = np.array([[1, 5, 0], [1, 6, 0], [1, 5, 1], [1, 6, 1]]).astype(dtype)
    kept = ImpuritySelector(k=1).fit_transform(X, [0, 0, 1, 1])
    assert kept.dtype == X.dtype
    assert (kept == X[:, [2]]).all()


def test_rows_of_text_and_numbers_are_accepted():
    X = [["a", 1.0], ["a", None], ["b", 3.0], ["b", 2.0]]
    assert ImpuritySelector(k=1).fit_transform(X, [0, 0, 1, 1]).tolist() == [["a"], ["a"], ["b"], ["b"]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_the_requested_frame(frame, library):
    wanted = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for given_as in (frame, pl.from_pandas(frame), arrow, as_table(frame), load_iris().data[:8]):
        selector = ImpuritySelector(k=2).set_output(transform=library)
        kept = selector.fit_transform(given_as, LABELS)
        assert isinstance(kept, wanted)
        assert kept.shape == (8, 2)
        assert list(kept.columns) == selector.get_feature_names_out().tolist()
    with config_context(transform_output=library):
        assert isinstance(ImpuritySelector(k=2).fit(frame, LABELS).transform(arrow), wanted)


def test_set_output_of_a_table_has_its_labels_and_missing_cells():
    penguins = load_penguins()
    selector = ImpuritySelector(k="all").set_output(transform="pandas").fit(penguins, penguins.labels())
    kept = selector.transform(penguins)
    assert set(kept["sex"].dropna()) == set(penguins["sex"].levels)
    for column in penguins:
        assert kept[column.name].isna().sum() == column.n_missing


# ----------------------------------------------------------------------------------------------------- names and places


def test_columns_are_found_by_name_and_the_others_may_be_absent(frame):
    selector = ImpuritySelector(k=2).fit(frame, LABELS)
    assert selector.get_feature_names_out().tolist() == ["size", "word"]
    assert selector.get_support(indices=True).tolist() == [1, 2]
    turned = frame[["flag", "word", "size"]]
    pd.testing.assert_frame_equal(selector.transform(turned), frame[["size", "word"]])


def test_a_chosen_column_that_is_absent_is_named(frame):
    selector = ImpuritySelector(k=2).fit(frame, LABELS)
    with pytest.raises(InputError, match="'word'"):
        selector.transform(frame[["size", "flag"]])
    with pytest.raises(InputError, match="occurs 2 times"):
        selector.transform(pd.concat([frame, frame], axis=1))


def test_columns_that_were_not_in_the_training_data_cause_a_warning(frame):
    selector = ImpuritySelector(k=2).fit(frame, LABELS)
    with pytest.warns(DataWarning, match="'more'"):
        assert selector.transform(frame.assign(more=1)).shape == (8, 2)


def test_a_selector_of_arrays_takes_frames_by_place():
    X, y = load_iris(return_X_y=True)
    selector = ImpuritySelector(k=2).fit(X, y)
    named = pd.DataFrame(X, columns=list("abcd"))
    assert selector.transform(named).columns.tolist() == ["c", "d"]
    with pytest.raises(InputError, match="X has 3 features, but ImpuritySelector is expecting 4"):
        selector.transform(named[["b", "c", "d"]])


def test_columns_may_have_numbers_for_names():
    X, y = load_iris(return_X_y=True)
    kept = ImpuritySelector(k=2).fit_transform(pd.DataFrame(X), y)
    assert kept.columns.tolist() == [2, 3]


def test_inverse_transform_fills_with_zeros():
    X, y = load_iris(return_X_y=True)
    selector = ImpuritySelector(k=2).fit(X, y)
    back = selector.inverse_transform(selector.transform(X))
    assert (back[:, 2:] == X[:, 2:]).all()
    assert (back[:, :2] == 0).all()


# ----------------------------------------------------------------------------------------------------- which are kept


def test_scores_are_those_of_the_function(frame):
    for function in (information_gain, gini_gain, gain_ratio):
        for score_func in (function, function.__name__):
            selector = ImpuritySelector(score_func).fit(frame, LABELS)
            scores, p = function(frame, LABELS)
            assert (selector.scores_ == scores).all()
            assert (selector.p_values_ == p).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_none_that_is_left_out_is_better(number, k):
    rng = np.random.default_rng(number)
    X, y = rng.integers(0, 3, (30, 8)).astype(float), rng.integers(0, 2, 30)
    selector = ImpuritySelector(k=k).fit(X, y)
    assert selector.support_.sum() == min(k, 8)
    kept, left_out = selector.scores_[selector.support_], selector.scores_[~selector.support_]
    assert kept.min() >= left_out.max(initial=-np.inf) - 1e-11


def test_of_equal_columns_the_first_is_kept():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    X = np.column_stack([[5, 5, 6, 6], x, -x, np.exp(x)])
    assert ImpuritySelector(k=2).fit(X, [0, 0, 1, 1]).get_support(indices=True).tolist() == [0, 1]


def test_a_share_of_the_columns():
    X, y = load_breast_cancer(return_X_y=True)
    assert ImpuritySelector(k=0.5).fit(X, y).support_.sum() == 15
    assert ImpuritySelector(k=0.001).fit(X, y).support_.sum() == 1
    assert ImpuritySelector(k=1.0).fit(X, y).support_.all()
    assert ImpuritySelector(k="all").fit(X, y).support_.all()
    assert ImpuritySelector().fit(X, y).support_.sum() == 10


def test_limits_hold_together(rng):
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, rng.normal(size=(150, 10))])
    by_p = ImpuritySelector(k="all", significance=0.001).fit(X, y)
    assert by_p.get_support(indices=True).tolist() == [0, 1, 2, 3]
    by_score = ImpuritySelector(k="all", threshold=0.5).fit(X, y)
    assert (by_score.support_ == (by_score.scores_ >= 0.5)).all()
    assert by_score.support_.sum() == 3
    assert ImpuritySelector(k=2, threshold=0.5, significance=0.001).fit(X, y).support_.sum() == 2


def test_a_score_that_is_not_there_is_the_last(frame):
    selector = ImpuritySelector("skew_adjusted_gain", k=3).fit(frame, LABELS)
    assert np.isnan(selector.scores_[0])
    assert not selector.support_[0]
    assert not ImpuritySelector("skew_adjusted_gain", threshold=-1e9).fit(frame, LABELS).support_[0]


def test_if_no_column_is_left_the_error_names_the_best(rng):
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 2, 40)
    selector = ImpuritySelector(threshold=0.9, significance=0.05)
    with pytest.raises(
        InputError, match=r"none of 5 has score ≥ 0.9 and p ≤ 0.05. The best score is 0\.\d+, with p = "
    ):
        selector.fit(X, y)
    with pytest.raises(NotFittedError):
        selector.transform(X)


def rare_and_useful() -> tuple[pd.DataFrame, np.ndarray]:
    """One row of a hundred set apart has no split information to speak of; the useful column errs now and then."""
    y = np.repeat([0, 1], 50)
    useful = y.copy()
    useful[[0, 1, 2, 97, 98, 99]] ^= 1
    return pd.DataFrame({"rare": y * (np.arange(100) == 60), "useful": useful, "noise": np.arange(100) % 7}), y


def test_the_gain_ratio_is_taken_among_columns_of_average_gain():
    X, y = rare_and_useful()
    assert gain_ratio(X, y)[0][0] > 0.1  # rare: a hundredth of the gain, a twelfth of a bit of split information
    assert information_gain(X, y)[0][0] < 0.02
    y_hard = np.where(np.arange(100) % 3 == 0, 1 - y, y)
    ratio = gain_ratio(X, y_hard)[0]
    assert np.argmax(ratio) == 0
    assert ImpuritySelector("gain_ratio", k=1).fit(X, y_hard).get_feature_names_out().tolist() == ["useful"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["gain", "gain_ratio"]))
def test_the_best_column_is_the_root_of_the_tree(number, split_score):
    rng = np.random.default_rng(number)
    y = rng.integers(0, 2, 50)
    X = pd.DataFrame(
        {
            "word": rng.choice(["a", "b", "c", "d"], 50),
            "number": y + rng.normal(size=50),
            "rare": (rng.random(50) < 0.1).astype(float),
        }
    )
    tree = DecisionTreeClassifier(criterion="entropy", split_score=split_score, categorical="multiway", max_depth=1)
    score_func = "information_gain" if split_score == "gain" else "gain_ratio"
    selector = ImpuritySelector(score_func, k=1).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [tree.fit(X, y).nodes_.feature[0]]


def test_best_thresholds_are_those_of_the_stump():
    X, y = load_iris(return_X_y=True)
    selector = ImpuritySelector("gini_gain").fit(X, y)
    for j in range(4):
        tree = DecisionTreeClassifier(max_depth=1).fit(X[:, [j]], y)
        assert selector.best_thresholds_[j] == tree.nodes_.threshold[0]
        assert np.isclose(selector.gains_[j], tree.nodes_.gain[0])


def test_weights_count():
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), [0, 0, 1, 0]
    assert ImpuritySelector(k=1).fit(X, y, sample_weight=[1, 1, 9, 1]).engine_ == "native"
    weighted = ImpuritySelector(k=1).fit(X, y, sample_weight=[0, 5, 5, 0])
    assert weighted.scores_.tolist() == [1.0, 1.0]
    by_class = ImpuritySelector(class_weight="balanced").fit(X, y).scores_
    assert (by_class != ImpuritySelector().fit(X, y).scores_).all()


# ---------------------------------------------------------------------------------------------------------- pipelines


def test_it_works_before_a_tree_and_before_an_encoder():
    penguins = load_penguins()
    y = penguins.labels()
    tree = make_pipeline(ImpuritySelector(k=3), DecisionTreeClassifier(max_depth=4)).fit(penguins, y)
    assert tree[-1].n_features_in_ == 3
    assert tree.score(penguins, y) > 0.9
    svm = make_pipeline(ImpuritySelector(k=3), TableEncoder(), SVC()).fit(penguins, y)
    names = svm[:-1].get_feature_names_out().tolist()
    assert "island=Dream" in names
    assert "bill_length_mm" in names
    assert cross_val_score(tree, penguins, y, cv=3).mean() > 0.85


def test_the_number_of_columns_can_be_searched():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(ImpuritySelector(), DecisionTreeClassifier(max_depth=3))
    search = GridSearchCV(pipeline, {"impurityselector__k": [1, 5], "impurityselector__score_func": ["gini_gain"]})
    search.fit(X, y)
    assert search.best_estimator_[0].support_.sum() == search.best_params_["impurityselector__k"]


def test_it_works_on_some_columns_of_a_frame(frame):
    only = make_column_transformer((ImpuritySelector(k=1), ["same", "flag"]), ("passthrough", ["size"]))
    assert only.set_output(transform="pandas").fit_transform(frame, LABELS).shape == (8, 2)


def test_copies_are_equal(frame):
    selector = ImpuritySelector("gini_gain", k=2).fit(frame, LABELS)
    again = pickle.loads(pickle.dumps(selector))
    assert (again.support_ == selector.support_).all()
    assert clone(selector).get_params() == selector.get_params()


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"score_func": "chi"}, "score_func is 'chi'"),
        ({"score_func": len}, "score_func is <built-in"),
        ({"score_func": ["gini_gain"]}, "score_func is"),
        ({"k": 0}, "k is 0"),
        ({"k": -1}, "k is -1"),
        ({"k": 1.5}, "k is 1.5"),
        ({"k": 0.0}, "k is 0.0"),
        ({"k": float("nan")}, "k is nan"),
        ({"k": "most"}, "k is 'most'"),
        ({"k": None}, "k is None"),
        ({"k": True}, "k is True"),
        ({"threshold": "low"}, "threshold is 'low'"),
        ({"threshold": float("inf")}, "threshold is inf"),
        ({"significance": 5}, "significance is 5"),
        ({"thresholds": "none"}, "thresholds is 'none'"),
        ({"categorical": "auto"}, "categorical is 'auto'"),
        ({"score_func": "gain_ratio", "criterion": "chaos"}, "criterion is 'chaos'"),
        ({"engine": "abacus"}, "engine is 'abacus'"),
    ],
)
def test_parameters_out_of_range_are_refused_before_any_work(parameters, words):
    with pytest.raises(ParameterError, match=words):
        ImpuritySelector(**parameters).fit(None, None)


def test_the_text_of_a_file_is_not_a_table():
    with pytest.raises(ValueError, match="array"):
        ImpuritySelector().fit("penguins.csv", [0])
