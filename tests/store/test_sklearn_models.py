"""scikit-learn's fitted models as ours."""

from __future__ import annotations

import io
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as theirs
import sklearn.tree as their_trees
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import margrove
from margrove import certify, from_sklearn, load, save
from margrove.errors import InputError


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def saved_and_loaded(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        theirs.SVC(C=10.0),
        theirs.SVC(kernel="linear", class_weight="balanced"),
        theirs.SVC(kernel="poly", coef0=1.0, degree=2, decision_function_shape="ovo"),
        theirs.NuSVC(nu=0.2),
    ],
    ids=repr,
)
def test_a_classifier_predicts_the_same_and_is_certified(iris, model, n_classes, is_sparse):
    X, y = iris
    X, y = (X, y) if n_classes == 3 else (X[:100], np.array(["no", "yes"])[y[:100]])
    points = sp.csr_matrix(X) if is_sparse else X
    model.fit(points, y)
    ours = from_sklearn(model)
    assert type(ours).__module__.startswith("margrove.")
    assert ours.get_params()["tol"] == model.tol
    for each in (ours, saved_and_loaded(ours)):
        assert (each.predict(points) == model.predict(points)).all()
        values, expected = each.decision_function(points), model.decision_function(points)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
    certificate = certify(ours, points, y)
    assert certificate.holds, certificate
    assert ours.certificate_.holds is None
    np.testing.assert_allclose(ours.margin_, 2 / ours.norm_)


@pytest.mark.parametrize(
    "model", [theirs.SVR(C=10.0), theirs.NuSVR(C=5.0, kernel="linear"), theirs.OneClassSVM(nu=0.2)], ids=repr
)
def test_regression_and_one_class_predict_the_same_and_are_certified(diabetes, model):
    X, y = diabetes
    model.fit(X, y)
    ours = from_sklearn(model)
    for each in (ours, saved_and_loaded(ours)):
        np.testing.assert_allclose(each.predict(X), model.predict(X), rtol=1e-9)
    certificate = certify(ours, X, y)
    assert certificate.holds, certificate


def test_kinds_of_rows_and_norms_are_those_of_our_own_fit(iris):
    X, y = iris[0][50:], iris[1][50:]
    fitted = margrove.SVC(tol=1e-8).fit(X, y)
    taken = from_sklearn(theirs.SVC(tol=1e-8).fit(X, y))
    assert (taken.kkt_ == fitted.kkt_).all()
    np.testing.assert_allclose(taken.norm_, fitted.norm_, rtol=1e-5)
    assert taken.loo_bound_ == fitted.loo_bound_


def test_a_precomputed_kernel_is_taken_over(iris):
    X, y = iris
    gram = X @ X.T
    model = theirs.SVC(kernel="precomputed").fit(gram, y)
    ours = from_sklearn(model)
    assert (saved_and_loaded(ours).predict(gram) == model.predict(gram)).all()
    assert certify(ours, gram, y).holds


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_taken_over(iris, n_classes):
    X, y = iris[0][: 50 * n_classes], iris[1][: 50 * n_classes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn 1.9 on probability=True
        model = theirs.SVC(probability=True, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    agrees = expected.argmax(axis=1) == model.predict(X)
    assert agrees.mean() > 0.9
    np.testing.assert_allclose(from_sklearn(model).predict_proba(X)[agrees], expected[agrees], atol=0.005)


@pytest.mark.parametrize(
    "model",
    [
        theirs.LinearSVC(dual=False, tol=1e-10),
        theirs.LinearSVC(penalty="l1", dual=False, fit_intercept=False, max_iter=100_000),
        theirs.LinearSVC(multi_class="crammer_singer", max_iter=100_000),
        theirs.LinearSVC(loss="hinge", max_iter=1_000_000),
    ],
    ids=repr,
)
def test_a_linear_classifier_predicts_the_same(iris, model):
    X, y = iris
    model.fit(X, y)
    ours = from_sklearn(model)
    for each in (ours, saved_and_loaded(ours)):
        assert (each.predict(X) == model.predict(X)).all()
        np.testing.assert_array_equal(each.decision_function(X), model.decision_function(X))


def test_a_linear_machine_of_a_squared_loss_is_certified_like_the_original(diabetes):
    X, y = diabetes
    model = theirs.LinearSVR(loss="squared_epsilon_insensitive", dual=False).fit(X, y)
    ours = from_sklearn(model)
    np.testing.assert_array_equal(saved_and_loaded(ours).predict(X), model.predict(X))
    assert certify(ours, X, y).holds == certify(model, X, y).holds is True


@pytest.mark.parametrize(
    "model",
    [
        their_trees.DecisionTreeClassifier(),
        their_trees.DecisionTreeClassifier(max_leaf_nodes=6, criterion="entropy"),
        their_trees.DecisionTreeClassifier(max_depth=3, class_weight="balanced"),
        their_trees.DecisionTreeClassifier(min_samples_leaf=5, criterion="log_loss"),
        their_trees.DecisionTreeClassifier(max_depth=1),
    ],
    ids=repr,
)
def test_a_tree_predicts_the_same_and_is_certified(iris, model):
    X, y = iris
    model.fit(X, y)
    ours = from_sklearn(model)
    for each in (ours, saved_and_loaded(ours)):
        assert (each.predict(X) == model.predict(X)).all()
        np.testing.assert_allclose(each.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert (ours.get_depth(), ours.get_n_leaves()) == (model.get_depth(), model.get_n_leaves())
    np.testing.assert_allclose(ours.feature_importances_, model.feature_importances_, atol=1e-12)
    certificate = certify(ours, X, y)
    assert certificate.holds, certificate


def test_a_tree_without_a_split_is_taken_over():
    model = their_trees.DecisionTreeClassifier().fit([[1.0], [2.0]], [1, 1])
    assert saved_and_loaded(from_sklearn(model)).predict([[5.0]]).tolist() == [1]


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_a_regression_tree_predicts_the_same(diabetes, criterion):
    X, y = diabetes
    model = their_trees.DecisionTreeRegressor(criterion=criterion, max_depth=6).fit(X, y)
    ours = from_sklearn(model)
    np.testing.assert_array_equal(saved_and_loaded(ours).predict(X), model.predict(X))
    assert certify(ours, X, y).holds


def test_every_number_takes_the_branch_that_scikit_learns_rounding_gives_it():
    """The neighbours of each threshold in float64, float32 and between: where a comparison without rounding differs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1.0, 1e-3] + [0.0, 16_777_216.0]
    model = their_trees.DecisionTreeClassifier(random_state=0).fit(X, rng.integers(0, 3, 400))
    ours = from_sklearn(model)
    inner = model.tree_.children_left >= 0
    near = []
    for j, theta in zip(model.tree_.feature[inner], model.tree_.threshold[inner], strict=True):
        single = np.float32(theta)
        steps = [np.nextafter(single, np.float32(-np.inf)), single, np.nextafter(single, np.float32(np.inf))]
        middles = [(float(a) + float(b)) / 2 for a, b in itertools.pairwise(steps)]
        for value in [theta, *map(float, steps), *middles]:
            for cell in (value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)):
                row = X[len(near) % len(X)].copy()
                row[j] = cell
                near.append(row)
    rows = np.array(near)
    np.testing.assert_allclose(ours.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)


def test_missing_cells_take_the_same_branch(iris):
    rng = np.random.default_rng(1)
    X, y = iris[0].copy(), iris[1]
    X[rng.random(X.shape) < 0.2] = np.nan
    model = their_trees.DecisionTreeClassifier(random_state=0).fit(X, y)
    ours = from_sklearn(model)
    holes = iris[0].copy()
    holes[rng.random(X.shape) < 0.5] = np.nan
    for rows in (X, holes):
        np.testing.assert_allclose(saved_and_loaded(ours).predict_proba(rows), model.predict_proba(rows), rtol=1e-12)
    assert any(column.has_missing for column in ours.nodes_.columns)


def test_names_of_columns_come_along(iris):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    tree = from_sklearn(their_trees.DecisionTreeClassifier(max_depth=2).fit(frame, iris[1]))
    asked = "abcd"[tree.nodes_.feature[0]]
    assert str(tree.rules()).startswith((f"if {asked} ≤ ", f"if {asked} < "))  # of two equal columns either
    assert tree.predict(frame).shape == (150,)
    machine = from_sklearn(theirs.SVC().fit(frame, iris[1]))
    assert machine.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert machine.predict(frame).shape == (150,)


def test_a_tree_is_exported_and_drawn(iris):
    X, y = iris
    model = their_trees.DecisionTreeClassifier(max_depth=3).fit(X, y)
    ours, namespace = from_sklearn(model), {}
    exec(ours.to_python(), namespace)
    said = [namespace["predict"](dict(zip(("x0", "x1", "x2", "x3"), row, strict=True))) for row in X.tolist()]
    assert said == model.predict(X).tolist()
    assert margrove.plots.plot_tree(ours) is not None


def test_models_that_cannot_be_converted_are_refused_with_a_remedy(iris):
    X, y = iris
    refused = [
        (RandomForestClassifier(n_estimators=2).fit(X, y), "one of its estimators_"),
        (make_pipeline(theirs.SVC()).fit(X, y), "its last step"),
        (theirs.SVC(kernel=lambda a, b: a @ b.T).fit(X, y), "precomputed"),
        (margrove.SVC().fit(X, y), "already a Margrove model"),
        ("SVC", "Models that can be converted: SVC"),
    ]
    for model, words in refused:
        with pytest.raises(InputError, match=words):
            from_sklearn(model)


@pytest.mark.parametrize(
    "tree",
    [
        their_trees.DecisionTreeClassifier(),
        their_trees.DecisionTreeClassifier(splitter="random", random_state=0),
        their_trees.DecisionTreeClassifier(max_features=1, random_state=0),
        their_trees.DecisionTreeRegressor(criterion="poisson"),
    ],
)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_trees_of_scikit_learn_are_certified_as_they_are(tree, n_targets, iris):
    X, y = iris[0], iris[1] if n_targets == 1 else np.stack([iris[1], iris[1] % 2], axis=1)
    tree.fit(X, y)
    assert margrove.certify(tree, X, y).holds
    np.testing.assert_array_equal(from_sklearn(tree).predict(X), tree.predict(X))
    assert not margrove.certify(tree, X, y[::-1]).holds


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_of_weighted_rows_is_certified(seed):
    """Unknown cells take the branch with more rows there, and the heavier one in our trees."""
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(80, 3)).astype(np.float32).astype(np.float64), rng.uniform(0.1, 9.0, 80)
    y = X[:, 0] > 0.3
    model = their_trees.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y, np.where(y, 9.0, 1.0))
    assert certify(model, X, y, sample_weight=np.where(y, 9.0, 1.0)).holds
    numbers = their_trees.DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 1], weight)
    assert certify(numbers, X, X[:, 1], sample_weight=weight).holds
