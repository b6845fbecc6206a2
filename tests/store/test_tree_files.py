"""Trees in files: they come back the same, and arrays that make no tree do not come back at all."""

from __future__ import annotations

import io
import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tests.store.forgeries import drop_tensor, entry, put, put_parameter, put_scalar, put_tensor, refuse

from margrove import DecisionTreeClassifier, TableEncoder, certify, load
from margrove.errors import ModelFileError
from margrove.status import Status
from margrove.store import describe
from margrove.store.container import pack, unpack
from margrove.tree.model import TreeModel


def assert_same_tree(one, other):
    """Every array to the last bit, and every column."""
    for part in fields(TreeModel):
        here, there = getattr(one, part.name), getattr(other, part.name)
        if part.name == "columns":
            assert here == there
            assert [type(level) for c in here for level in c.levels] == [
                type(level) for c in there for level in c.levels
            ]
        else:
            assert (here.dtype, here.shape) == (there.dtype, there.shape), part.name
            assert here.tobytes() == there.tobytes(), part.name


def test_every_tree_comes_back_to_the_last_bit(any_tree, content, loaded):
    model, X, _ = any_tree
    again = loaded(content(model))
    assert vars(model).keys() - {"_is_clone"} == vars(again).keys()
    assert_same_tree(model.nodes_, again.nodes_)
    assert_same_tree(model.grown_, again.grown_)
    assert (again.grown_ is again.nodes_) == (model.grown_ is model.nodes_)
    for name in ("status_", "engine_", "categorical_", "ccp_alpha_", "target_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name), name
    assert str(again.certificate_) == str(model.certificate_)
    assert isinstance(again.status_, Status)
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    if hasattr(model, "classes_"):
        assert (again.n_classes_, again.classes_.dtype) == (model.n_classes_, model.classes_.dtype)
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert str(again.rules()) == str(model.rules())
    assert again.to_python() == model.to_python()
    assert again.get_params() == model.get_params() == clone(again).get_params()
    assert content(again) == content(model)


def test_the_certificate_of_a_loaded_tree_is_that_of_the_tree(any_tree, content, loaded):
    model, X, y = any_tree
    again = loaded(content(model))
    assert certify(again, X, y).holds is True
    assert str(certify(again, X, y)) == str(certify(model, X, y))
    other = np.roll(y, 1)
    assert certify(again, X, other).holds is False


@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
def test_a_tree_of_an_array_comes_back(kind, content, loaded):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(50, 4)).astype(np.float64)
    X = {"float32": X.astype(np.float32), "float64": X, "csr": sp.csr_matrix(X)}[kind]
    model = DecisionTreeClassifier().fit(X, rng.integers(0, 3, size=50))
    again = loaded(content(model))
    assert not hasattr(again, "feature_names_in_")
    assert_same_tree(model.nodes_, again.nodes_)
    assert again.apply(X).tolist() == model.apply(X).tolist()


def test_a_tree_behind_an_encoder_comes_back(table, content, loaded):
    X, y = table
    model = make_pipeline(TableEncoder(), DecisionTreeClassifier()).fit(X, y)
    again = loaded(content(model))
    assert_same_tree(model[-1].nodes_, again[-1].nodes_)
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_a_wide_tree_takes_little_of_the_header(content, loaded):
    """Columns that are thresholds and nothing else need only their names."""
    X = sp.random(20, 60_000, density=0.001, format="csr", random_state=0)
    model = DecisionTreeClassifier(max_depth=2).fit(X, np.arange(20) % 2)
    whole = content(model)
    assert "$tensor" in describe(io.BytesIO(whole))["model"]["columns"] or len(whole) < 3_000_000
    assert loaded(whole).predict(X).tolist() == model.predict(X).tolist()


# ------------------------------------------------------------------------------------------------------- forgeries


def on_column(place, /, **values):
    return lambda header, tensors: header["model"]["columns"][place].update(values)


def swapped(a, b):
    def change(array):
        array[[a, b]] = array[[b, a]]
        return array

    return change


def first(test):
    """The first node of ``grown_`` with such a test."""

    def find(header, tensors):
        columns = header["model"]["columns"]
        wanted = [j for j, column in enumerate(columns) if column.get("test", "threshold") == test]
        return int(np.flatnonzero(np.isin(tensors["grown_.feature"], wanted))[0])

    return find


def at(find, name, value):
    def change(header, tensors):
        tensors[f"grown_.{name}"][find(header, tensors)] = value

    return change


def leaf(header, tensors):
    return int(np.flatnonzero(tensors["grown_.feature"] == -1)[0])


def level_of(find, value):
    def change(header, tensors):
        tensors["grown_.level_branch"][tensors["grown_.level_start"][find(header, tensors)]] = value

    return change


NUMBER, CATEGORY, INTERVALS = first("threshold"), first("multiway"), first("intervals")

ON_TREE = {
    "a feature beyond the columns": (at(NUMBER, "feature", 4), "feature goes up to 4; it must be below d = 4"),
    "a feature below the leaves'": (at(NUMBER, "feature", -2), "feature goes down to -2"),
    "a leaf with children": (at(NUMBER, "feature", -1), "a leaf has children"),
    "an inner node without children": (at(leaf, "feature", 0), "an inner node has none"),
    "a test of another column": (at(NUMBER, "feature", 2), "do not form a tree"),
    "a threshold that is no number": (at(NUMBER, "threshold", np.nan), "thresholds are not where threshold tests are"),
    "a threshold below all": (at(NUMBER, "threshold", -np.inf), "a threshold is -infinity"),
    "a threshold of a category": (at(CATEGORY, "threshold", 0.5), "thresholds are not where threshold tests are"),
    "a threshold of a leaf": (at(leaf, "threshold", 0.5), "thresholds are not where threshold tests are"),
    "a missing cell's branch beyond": (at(NUMBER, "missing_branch", 2), "missing_branch refers to a branch"),
    "no branch for a missing cell": (at(NUMBER, "missing_branch", -1), "missing_branch refers to a branch"),
    "a branch of a leaf": (at(leaf, "missing_branch", 0), "missing_branch refers to a branch"),
    "a branch far below": (at(NUMBER, "missing_branch", -(2**31)), "missing_branch goes down"),
    "an unseen level's branch beyond": (at(CATEGORY, "default_branch", 99), "default_branch refers to a branch"),
    "a level's branch beyond": (level_of(CATEGORY, 99), "level_branch refers to a branch"),
    "a level's branch below": (level_of(CATEGORY, -2), "level_branch goes down to -2"),
    "an interval's branch beyond": (level_of(INTERVALS, 4), "level_branch refers to a branch"),
    "a child that is the root": (put_tensor("grown_.child", entry(0, 0)), "is not where its parent expects it"),
    "a child beyond": (put_tensor("grown_.child", entry(0, 10**6)), "is not where its parent expects it"),
    "a child twice": (put_tensor("grown_.child", lambda a: a * 0 + 1), "is not where its parent expects it"),
    "children out of order": (put_tensor("grown_.child", swapped(0, 1)), "is not where its parent expects it"),
    "a child less": (put_tensor("grown_.child", lambda a: a[:-1]), "child_start must rise"),
    "starts that fall": (put_tensor("grown_.child_start", swapped(0, 1)), "child_start must rise"),
    "starts far out": (put_tensor("grown_.child_start", entry(1, 2**31 - 1)), "child_start must rise"),
    "starts below zero": (put_tensor("grown_.child_start", entry(1, -(2**31))), "child_start must rise"),
    "level starts that fall": (put_tensor("grown_.level_start", entry(1, 2**62)), "level_start must rise"),
    "level starts after zero": (put_tensor("grown_.level_start", entry(0, 1)), "level_start must rise"),
    "fewer levels": (put_tensor("grown_.level_branch", lambda a: a[:-1]), "level_start must rise"),
    "one node less": (put_tensor("grown_.threshold", lambda a: a[:-1]), "threshold has shape"),
    "no node at all": (put_tensor("grown_.feature", lambda a: a[:0]), "has shape"),
    "features of 64 bits": (put_tensor("grown_.feature", lambda a: a.astype(np.int64)), "feature is of type int64"),
    "thresholds of 32 bits": (put_tensor("grown_.threshold", lambda a: a.astype(np.float32)), "of type float32"),
    "a node without rows": (at(leaf, "n_rows", 0), "n_rows goes down to 0"),
    "a node without weight": (at(leaf, "weight", 0.0), "the weight of a node is not positive"),
    "a weight without end": (at(leaf, "weight", np.inf), "weight holds numbers that are not finite"),
    "a gain of a leaf": (at(leaf, "gain", 0.5), "gains are not where"),
    "a gain that is no number": (at(NUMBER, "gain", np.nan), "gains are not where"),
    "a gain without end": (at(NUMBER, "gain", np.inf), "a gain is infinite"),
    "tests of a leaf": (at(leaf, "n_tests", 3.0), "n_tests is not a count"),
    "tests that are no number": (at(NUMBER, "n_candidates", np.nan), "n_candidates is not a count"),
    "an impurity that is no number": (at(leaf, "impurity", np.nan), "impurity holds numbers that are not finite"),
    "a value below zero": (at(leaf, "value", -1.0), "not a weight for each class"),
    "a value of nothing": (at(leaf, "value", 0.0), "not a weight for each class"),
    "a value that is no number": (at(leaf, "value", np.nan), "value holds numbers that are not finite"),
    "values whose sum overflows": (at(leaf, "value", 1.7e308), "not a weight for each class"),
    "a class less": (put_tensor("grown_.value", lambda a: a[:, :-1]), "value has shape"),
    "the pruned tree forged": (put_tensor("tree_.child", lambda a: a * 0 + 1), "arrays of tree_ do not form a tree"),
    "a missing array": (drop_tensor("grown_.child"), "'grown_.child' is missing"),
    "no tree": (put(arrays={}), "the list of trees has no 'tree_'"),
    "a third tree": (
        lambda header, tensors: header["model"]["arrays"].update(old_={}),
        "the list of trees has 'old_'",
    ),
    "trees as a list": (put(arrays=["tree_"]), "JSON object was expected"),
    "a sparse array": (
        lambda header, tensors: header["model"]["arrays"]["tree_"].update(value="csr_matrix"),
        "laid out as",
    ),
    "a test unknown": (on_column(0, test="eval"), "its test is 'eval'"),
    "another test": (on_column(1, test="intervals"), "do not match its test"),
    "levels of a number": (on_column(1, levels=["a"]), "do not match its test"),
    "levels out of order": (on_column(2, levels=["b", "a", "c", "d"]), "not sorted and distinct"),
    "levels of two kinds": (on_column(2, levels=["a", "b", "c", 1]), "neither all text nor all numbers"),
    "a level more": (on_column(2, levels=["a", "b", "c", "d", "e"]), "more or fewer codes"),
    "levels as text": (on_column(2, levels="abcd"), "levels is 'abcd'"),
    "truth values of one kind": (on_column(3, levels=[True]), "a boolean column must have"),
    "cut points that fall": (on_column(0, cuts=[5.0, 3.0]), "increasing numbers were expected"),
    "cut points without end": (on_column(0, cuts=[1.0, {"$float": "inf"}]), "increasing numbers were expected"),
    "cut points that are whole": (on_column(0, cuts=[1, 2]), "increasing numbers were expected"),
    "a cut point more": (on_column(0, cuts=[1.0, 2.0, 3.0]), "more or fewer codes"),
    "a direction of a category": (on_column(2, monotone=1), "monotone is 1"),
    "a direction of two": (on_column(1, monotone=2), "monotone is 2"),
    "a direction that is true": (on_column(1, monotone=True), "monotone is True"),
    "gaps perhaps": (on_column(1, has_missing="maybe"), "has_missing is 'maybe'"),
    "a column's field unknown": (on_column(1, hook="x"), "unknown field 'hook'"),
    "a column's name twice": (on_column(1, name="mass"), "two columns have the same name"),
    "a column's name changed": (on_column(1, name="x"), "differ from those of the tree"),
    "a column without a name": (on_column(1, name=None), "it has no name"),
    "a format of text": (on_column(0, format="dmy"), "its format is 'dmy'"),
    "a format unknown": (on_column(0, format={"kind": "date", "zone": "UTC"}), "its format is"),
    "a category with a format": (on_column(2, format={"kind": "date"}), "a category has no format"),
    "a part of no date": (on_column(1, date_part=["day", "week"]), "is not a column of dates and a part"),
    "a part of another name": (on_column(1, date_part=["day", "month"]), "is not a column of dates and a part"),
    "a part that is text": (on_column(1, date_part="day month"), "date_part is 'day month'"),
    "columns too few": (put(columns=[]), "a list of 4 was expected"),
    "other columns": (put(n_features_in=5), "a list of 5 was expected"),
    "a target among the columns": (put(target="mass"), "the target is 'mass'"),
    "a target that is a number": (put(target=1), "the target is 1"),
    "reasons for other columns": (put(categorical={"mass": "x"}), "the list of categories has"),
    "reasons that are numbers": (put(categorical={"island": 1, "is_old": "x"}), "a text for each was expected"),
    "two labels": (put(labels={"dtype": "<U1", "values": ["a", "b"]}), "value has shape"),
    "an unknown criterion": (put_parameter(criterion="squared_error"), "criterion is 'squared_error'"),
    "threads beyond counting": (put_parameter(n_jobs=10**6), "n_jobs is 1000000"),
    "a smoothing below zero": (put_parameter(smoothing=-1.0), "smoothing is -1.0"),
    "a penalty below zero": (put_scalar(ccp_alpha_=-0.5), "ccp_alpha_ is -0.5"),
    "a status unknown": (put_scalar(status_="perfect"), "status_ is 'perfect'"),
    "a strange field": (put(hook="x"), "'hook', which is unknown"),
    "a p-value more": (
        lambda header, tensors: header["model"]["certificate"]["claims"][0].update(values=[0.0] * 99, limits=None),
        "certificate does not fit",
    ),
}


@pytest.mark.parametrize("forgery", ON_TREE)
def test_forged_trees_are_refused(tree, content, forged, forgery):
    change, words = ON_TREE[forgery]
    refuse(forged(content(tree), change), words)


def test_a_rewritten_valid_file_of_a_tree_loads(tree, content, forged, loaded):
    """So the refusals above are not about the digest; and the tree has every kind of test that they ask for."""
    whole = content(tree)
    assert forged(whole, lambda header, tensors: None) == whole
    loaded(whole)


def test_a_regressor_with_labels_is_refused(tree_regressor, content, forged):
    change = put(labels={"dtype": "<i8", "values": [0]})
    refuse(forged(content(tree_regressor), change), "DecisionTreeRegressor has none")


def test_a_forged_number_of_a_sound_tree_is_for_the_certificate_to_find(any_tree, content, forged, loaded):
    model, X, y = any_tree
    disturbed = loaded(forged(content(model), put_tensor("tree_.value", lambda a: 1.01 * a)))
    assert certify(disturbed, X, y).holds is False


ARRAYS = [part.name for part in fields(TreeModel) if part.name != "columns"]
SMALL = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [3.0, 3.0, 1.0], [4.0, 2.0, 2.0], [2.0, np.nan, 2.0]])


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_invalid_values_in_a_forged_array_are_refused_or_harmless(engine, content):
    """Any entry of any array, the digest right: the one exception, or a tree that still predicts."""
    model = DecisionTreeClassifier(categorical_features=[2], split_values={0: (0.5, 2.5)}, engine=engine)
    whole = content(model.fit(SMALL, [0, 1, 2, 0, 1]))
    numbers = st.integers(-3, 9) | st.integers(-(2**31), 2**31 - 1) | st.sampled_from([np.nan, np.inf, -np.inf, 0.5])

    @given(st.sampled_from(ARRAYS), st.integers(0, 10**6), numbers)
    @settings(max_examples=300, deadline=None)
    def check(name, place, value):
        header, tensors = unpack(io.BytesIO(whole))
        del header["sha256"]
        array = tensors[f"tree_.{name}"]
        if not array.size or (array.dtype.kind == "i" and not float(value).is_integer()):
            return
        array.flat[place % array.size] = value
        try:
            forged = load(io.BytesIO(bytes(pack(header, tensors))))
        except ModelFileError:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert set(forged.predict(SMALL)) <= {0, 1, 2}
            assert np.isfinite(forged.predict_proba(SMALL)).all()
            assert forged.nodes_.apply(_cells_of(forged)).tolist() == forged.apply(SMALL).tolist()
            str(forged.rules())

    check()


def _cells_of(model):
    from margrove.tree.reading import read_cells

    return read_cells(model, SMALL, model.nodes_.columns)


@pytest.mark.parametrize("prune", [None, "reduced_error"])
def test_a_generator_comes_back_as_the_number_that_the_fit_drew(content, loaded, prune):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(120, 4)).astype(float), rng.integers(0, 2, 120)
    model = DecisionTreeClassifier(random_state=np.random.RandomState(5), max_features=2, prune=prune).fit(X, y)
    again = loaded(content(model))
    assert isinstance(again.random_state, int)
    assert certify(again, X, y).holds
    refitted = clone(again).fit(X, y)
    np.testing.assert_array_equal(refitted.nodes_.threshold, model.nodes_.threshold)
    assert loaded(content(refitted)).random_state == again.random_state


def test_statistics_of_all_levels_are_kept_with_subsets(any_tree, content):
    model, _, _ = any_tree
    _, tensors = unpack(io.BytesIO(content(model)))
    has_subsets = any(column.test == "subset" for column in model.nodes_.columns)
    assert ("tree_.n_levels" in tensors) == has_subsets


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("n_levels", 1.0, "statistics of levels are not where"),
        ("inverse_weight", 0.0, "statistics of levels are not where"),
    ],
)
def test_levels_that_are_not_counted_are_refused(content, forged, name, value, words):
    file = content(DecisionTreeClassifier(max_depth=1).fit([["a"], ["b"], ["c"], ["a"]], [0, 1, 1, 0]))
    refuse(forged(file, put_tensor(f"tree_.{name}", entry(0, value))), words)
