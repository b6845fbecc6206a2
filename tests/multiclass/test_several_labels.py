"""Several labels per row, constants, pieces of data and requests for metadata: as in scikit-learn."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import multiclass as peers
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC  # noqa: N811

from margrove import (
    SVC,
    BasicLinearClassifier,
    BitStringClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    NuSVC,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    certify,
    load,
    load_penguins,
    save,
    write_onnx,
)
from margrove.errors import InputError, MargroveWarning, ModelFileError, ParameterError
from margrove.explanation import explanation_of
from margrove.multiclass.problem import ConstantMachine

CONSTANT = "rows on the other side of a constant"
IN_ALL = r"Label .+ is present in all training examples"


@pytest.fixture(scope="module")
def labelled():
    return make_multilabel_classification(100, 20, n_classes=5, n_labels=3, length=50, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# ---- several labels


@pytest.mark.parametrize(
    "base",
    [
        MultinomialNB(),
        LogisticRegression(solver="liblinear"),
        KNeighborsClassifier(3),
        Ridge(),
        Lasso(alpha=0.5),
        GaussianNB(),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix, sp.lil_matrix, sp.dok_array, pd.DataFrame])
def test_several_labels_are_predicted_as_by_scikit_learn(base, kind, labelled):
    X, Y = labelled
    ours, theirs = (scheme(base).fit(X, kind(Y)) for scheme in (OneVsRestClassifier, peers.OneVsRestClassifier))
    assert ours.multilabel_ is theirs.multilabel_ is True
    assert ours.n_classes_ == len(ours.estimators_) == 5
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    predicted, wanted = ours.predict(X), theirs.predict(X)
    assert type(predicted) is type(wanted)
    assert predicted.dtype == wanted.dtype
    if sp.issparse(wanted):
        predicted, wanted = predicted.toarray(), wanted.toarray()
    np.testing.assert_array_equal(predicted, wanted)
    assert ours.score(X, Y) == theirs.score(X, Y)
    for name in ("predict_proba", "decision_function"):
        if hasattr(theirs, name):
            np.testing.assert_allclose(getattr(ours, name)(X), getattr(theirs, name)(X))
    assert hasattr(ours, "predict_proba") == hasattr(theirs, "predict_proba")
    binarizer, peer = ours.label_binarizer_, theirs.label_binarizer_
    assert (binarizer.y_type_, binarizer.sparse_input_) == (peer.y_type_, peer.sparse_input_)


def test_an_indicator_of_minus_one_and_one_is_one_of_labels(labelled):
    X, Y = labelled
    ours = OneVsRestClassifier(GaussianNB()).fit(X, 2 * Y - 1)
    np.testing.assert_array_equal(ours.predict(X), OneVsRestClassifier(GaussianNB()).fit(X, Y).predict(X))


def test_classes_have_a_binarizer_too(iris):
    X, y = iris
    ours = OneVsRestClassifier(GaussianNB()).fit(X, y)
    assert not ours.multilabel_
    assert ours.label_binarizer_.y_type_ == "multiclass"
    np.testing.assert_array_equal(ours.label_binarizer_.classes_, ours.classes_)


@pytest.mark.parametrize(
    "base",
    [SVC(gamma=0.01), DecisionTreeClassifier(max_depth=3), BasicLinearClassifier()],
    ids=["SVC", "tree", "linear"],
)
def test_the_certificate_has_a_claim_for_each_label(base, labelled):
    X, Y = labelled
    model = OneVsRestClassifier(base).fit(X, Y)
    for given in (Y, sp.csr_array(Y)):
        certificate = certify(model, X, given)
        assert certificate.holds
        assert certificate.n_rows == 100
        assert certificate.machines == model.machine_names_ == tuple(f"{k} vs not {k}" for k in range(5))
        assert certificate["machines whose certificate holds"] == (1.0,) * 5
    assert certify(model, X, 1 - Y).holds is False
    with pytest.raises(InputError, match=r"shape \(100, 4\); an indicator matrix of 5 labels"):
        certify(model, X, Y[:, :4])
    assert not hasattr(model, "code_")
    model.classes_ = model.classes_[::-1]
    assert certify(model, X, Y).holds is False


def test_labels_do_not_outlive_a_fit_with_classes(labelled):
    X, Y = labelled
    model = OneVsRestClassifier(DecisionTreeClassifier(max_depth=2)).fit(X, Y)
    model.fit(X, Y.sum(axis=1))
    assert not model.multilabel_
    assert model.code_.shape[0] == len(model.classes_)
    model.fit(X, Y)
    assert not hasattr(model, "min_distance_")


def test_tables_of_several_labels():
    penguins = load_penguins()
    Y = np.stack([penguins.labels() == kind for kind in np.unique(penguins.labels())], axis=1).astype(int)
    model = OneVsRestClassifier(DecisionTreeClassifier(max_depth=3)).fit(penguins, Y)
    assert model.score(penguins, Y) > 0.9
    assert certify(model, penguins, Y).holds
    Y[:, 1] = 1
    with pytest.warns(MargroveWarning, match="Label 1 is present in all"):
        model.fit(penguins, Y)
    assert model.predict(penguins)[:, 1].all()


# ---- constants


def constant_labels():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 5, axis=0)
    Y = np.zeros((10, 4), int)
    Y[5:, 0] = Y[:, 1] = 1
    Y[::2, 3] = 1
    return X, Y


@pytest.mark.parametrize("base", [LogisticRegression(solver="liblinear"), GaussianNB()], ids=repr)
def test_a_label_that_all_rows_have_or_none_is_constant(base):
    X, Y = constant_labels()
    ours, theirs = OneVsRestClassifier(base), peers.OneVsRestClassifier(base)
    with pytest.warns(MargroveWarning) as caught:
        ours.fit(X, Y)
    with pytest.warns(UserWarning, match=IN_ALL) as expected:
        theirs.fit(X, Y)
    assert [str(each.message) for each in caught] == [str(each.message) for each in expected]
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    np.testing.assert_array_equal(ours.machine_decision(X)[:, 1:3], [[1, 0]] * 10)
    for machine in ours.estimators_[1:3]:
        assert machine.n_features_in_ == 2
        with pytest.raises(ValueError, match="3 features"):
            machine.predict(np.ones((1, 3)))


@pytest.mark.filterwarnings("ignore:Label")
def test_constants_have_a_claim_of_their_own(tmp_path):
    X, Y = constant_labels()
    model = OneVsRestClassifier(BasicLinearClassifier()).fit(X, Y)
    assert [isinstance(each, ConstantMachine) for each in model.estimators_] == [False, True, True, False]
    certificate = certify(model, X, Y)
    assert certificate.holds
    assert certificate.claim(CONSTANT).limits == (0.0,)
    assert np.isnan(certificate["margin"]).tolist() == [False, True, True, False]
    assert model.certificate_.holds is None  # no constant vouches for itself
    other = Y.copy()
    other[0, 1] = 0
    certificate = certify(model, X, other)
    assert certificate.holds is False
    assert certificate[CONSTANT] == 1
    model.estimators_[2].side = 1
    assert certify(model, X, Y).holds is False
    assert "4 machines; each decides on a label by itself" in explanation_of(model).description()


@pytest.mark.filterwarnings("ignore:Label not")
@pytest.mark.parametrize("y", [np.array(["a"] * 6), np.ones(6, int), np.zeros((6, 1), int)[:, 0]], ids=str)
@pytest.mark.parametrize(
    "base", [LogisticRegression(solver="liblinear"), SVC(probability=True)], ids=lambda b: type(b).__name__
)
def test_a_single_class_is_constant_in_one_vs_rest(base, y):
    X = np.arange(12.0).reshape(6, 2)
    ours = OneVsRestClassifier(base).fit(X, y)
    theirs = peers.OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))
    assert certify(ours, X, y).holds
    with pytest.raises(InputError, match="is not one of the model's classes"):
        certify(ours, X, np.array([9] * 6) if y.dtype.kind == "i" else np.array(["z"] * 6))


# ---- files


@pytest.mark.filterwarnings("ignore:Label")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "base",
    [SVC(), DecisionTreeClassifier(max_depth=2), make_pipeline(StandardScaler(), BasicLinearClassifier())[1:]],
    ids=["SVC", "tree", "pipeline"],
)
def test_models_of_labels_and_constants_are_saved(base, kind, tmp_path):
    X, Y = constant_labels()
    for target in (kind(Y), kind(Y[:, [0, 3]])):
        model = OneVsRestClassifier(base).fit(X, target)
        save(model, tmp_path / "model.margrove")
        again = load(tmp_path / "model.margrove")
        assert again.multilabel_
        assert type(again.predict(X)) is type(model.predict(X))
        np.testing.assert_array_equal(again.machine_decision(X), model.machine_decision(X))
        assert str(certify(again, X, target)) == str(certify(model, X, target))
        assert again.sharing_ == model.sharing_
        assert vars(again).keys() == vars(model).keys() - {"_is_clone"}


@pytest.mark.filterwarnings("ignore:Label")
def test_a_single_class_is_saved_and_not_exported(tmp_path):
    X, Y = constant_labels()
    model = OneVsRestClassifier().fit(X, ["a"] * 10)
    save(model, tmp_path / "model.margrove")
    assert load(tmp_path / "model.margrove").predict(X).tolist() == ["a"] * 10
    with pytest.raises(ModelFileError, match="OneVsRestClassifier of a single class cannot be exported to ONNX"):
        write_onnx(model, tmp_path / "model.onnx")
    with pytest.raises(ModelFileError, match=r"of several labels per row cannot be exported.*estimators_ one by one"):
        write_onnx(OneVsRestClassifier(BasicLinearClassifier()).fit(X, Y), tmp_path / "model.onnx")


# ---- pieces


PIECES = [MultinomialNB(), SGDClassifier(random_state=0, shuffle=False), Perceptron(shuffle=False)]


@pytest.mark.parametrize("base", PIECES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("scheme", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("kind", [np.asarray, sp.csc_array])
def test_pieces_are_learnt_as_by_scikit_learn(scheme, base, kind, iris):
    X, y = iris
    ours, theirs = scheme(base), getattr(peers, scheme.__name__)(base)
    for rows in (slice(0, 60), slice(60, 150), slice(0, 150)):  # the first piece has two of the classes
        for model in (ours, theirs):
            model.partial_fit(kind(X)[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for mine, peer in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_array_equal(mine.predict(X), peer.predict(X))
    assert ours.n_features_in_ == 4


def test_bit_strings_learn_in_pieces_with_one_code(iris):
    X, y = iris
    model = BitStringClassifier(GaussianNB(), code="random", n_bits=3)
    model.partial_fit(X[::2], y[::2], [0, 1, 2])
    code = model.code_.copy()
    model.partial_fit(X[1::2], y[1::2], sample_weight=np.ones(75))
    np.testing.assert_array_equal(model.code_, code)
    alone = GaussianNB().fit(X, (code[y, 1] > 0).astype(int))
    np.testing.assert_allclose(model.estimators_[1].theta_, alone.theta_)


@pytest.mark.filterwarnings("ignore:Label")
def test_pieces_that_cannot_be_are_refused(iris):
    X, y = iris
    model = OneVsRestClassifier(GaussianNB())
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ParameterError, match="a classifier needs at least two"):
        model.partial_fit(X, y, classes=[0])
    model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ParameterError, match="the first call of partial_fit had"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match=r"Mini-batch contains \[0 1 2 3\] while classes must be subset of \[0 1 2\]"):
        model.partial_fit(X[:4], [0, 1, 2, 3])
    with pytest.raises(InputError, match="y should be a 1d array"):
        model.partial_fit(X, np.eye(3, dtype=int)[y])
    for target in (np.eye(3, dtype=int)[y], np.zeros(150)):
        with pytest.raises(InputError, match="several labels per row, or one class: partial_fit cannot continue"):
            OneVsRestClassifier(GaussianNB()).fit(X, target).partial_fit(X, y)
    assert not hasattr(OneVsOneClassifier(SVC()), "partial_fit")
    with pytest.raises(AttributeError, match="This 'OneVsOneClassifier' has no attribute 'partial_fit'") as caught:
        OneVsOneClassifier(LogisticRegression(solver="liblinear")).partial_fit(X, y)
    assert "'LogisticRegression' object has no attribute 'partial_fit'" in str(caught.value.__cause__)


# ---- estimators_ of a shared kernel, regressors, weights


@pytest.mark.parametrize("scheme", [OneVsRestClassifier, OneVsOneClassifier, BitStringClassifier])
@pytest.mark.parametrize("base", [SVC(gamma=0.3, probability=True), NuSVC(nu=0.2), SVC(kernel="precomputed")])
def test_each_machine_of_a_shared_kernel_is_an_estimator_of_its_own(scheme, base, iris):
    X, y = iris
    X = X @ X.T if base.kernel == "precomputed" else X
    model = scheme(clone(base)).fit(X, y)
    values, q = model.machine_decision(X), None
    if hasattr(model, "predict_proba"):
        q = model._machines.probabilities(X)
    assert len(model.estimators_) == values.shape[1]
    for number, (machine, column) in enumerate(zip(model.estimators_, model.code_.T, strict=True)):
        rows = np.flatnonzero(column[y])
        part = X[np.ix_(rows, rows)] if base.kernel == "precomputed" else X[rows]
        np.testing.assert_allclose(machine.decision_function(part), values[rows, number], atol=1e-10)
        np.testing.assert_array_equal(machine.predict(part), values[rows, number] > 0)
        if q is not None:
            agree = (q[rows, number] > 0.5) == (values[rows, number] > 0)  # its own probabilities follow its prediction
            np.testing.assert_allclose(machine.predict_proba(part)[agree, 1], q[rows, number][agree])
        assert machine.shape_fit_ == part.shape
        assert certify(machine, part, (column[y][rows] > 0).astype(int)).holds
    assert isinstance(pickle.loads(pickle.dumps(model.estimators_[0])), type(base))


def test_the_rows_of_each_pair_are_those_of_scikit_learn(iris):
    X, y = iris
    gram = X @ X.T
    theirs = peers.OneVsOneClassifier(PeerSVC(kernel="precomputed")).fit(gram, y)
    for base in (SVC(kernel="precomputed"), PeerSVC(kernel="precomputed")):  # one kernel; each by itself
        ours = OneVsOneClassifier(base).fit(gram, y)
        for mine, peer in zip(ours.pairwise_indices_, theirs.pairwise_indices_, strict=True):
            np.testing.assert_array_equal(mine, peer)
        assert [each.n_features_in_ for each in ours.estimators_] == [100] * 3
        np.testing.assert_array_equal(ours.predict(gram), theirs.predict(gram))
        framed = OneVsOneClassifier(base).fit(pd.DataFrame(gram), y)
        np.testing.assert_array_equal(framed.predict(pd.DataFrame(gram)), theirs.predict(gram))
    two = OneVsOneClassifier(SVC(kernel="precomputed")).fit(gram, y > 0)
    np.testing.assert_array_equal(two.pairwise_indices_, [np.arange(150)])
    assert OneVsOneClassifier(SVC()).fit(X, y).pairwise_indices_ is None


@pytest.mark.parametrize("base", [Ridge(), Lasso(alpha=0.1), DecisionTreeRegressor(max_depth=2)], ids=repr)
def test_regressors_learn_zero_and_one(base, iris):
    X, y = iris
    ours, theirs = (scheme(base).fit(X, y) for scheme in (OneVsRestClassifier, peers.OneVsRestClassifier))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for mine, peer in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_allclose(mine.predict(X), peer.predict(X))
    two, peer = (scheme(base).fit(X, y > 0) for scheme in (OneVsOneClassifier, peers.OneVsRestClassifier))
    np.testing.assert_array_equal(two.predict(X), peer.predict(X))


def test_weights_of_the_sides_have_the_keys_zero_and_one(iris):
    X, y = iris
    ours, theirs = (
        scheme(LogisticRegression(solver="liblinear", class_weight={0: 1, 1: 20})).fit(X, y)
        for scheme in (OneVsRestClassifier, peers.OneVsRestClassifier)
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X))


@pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.dok_matrix, sp.lil_matrix, sp.bsr_array])
def test_sparse_points_of_every_kind_are_taken_by_fit_and_predict(make, iris):
    X, y = iris
    for scheme in (OneVsRestClassifier, OneVsOneClassifier):
        ours = scheme(LogisticRegression(solver="liblinear"))
        theirs = getattr(peers, scheme.__name__)(LogisticRegression(solver="liblinear"))
        np.testing.assert_array_equal(ours.fit(make(X), y).predict(make(X)), theirs.fit(X, y).predict(X))


# ---- metadata


@pytest.mark.parametrize("scheme", [OneVsRestClassifier, OneVsOneClassifier])
def test_routed_weights_reach_the_estimator_that_asks_for_them(scheme, iris):
    X, y = iris
    weight = np.linspace(0.1, 3, 150)
    plain = scheme(LogisticRegression(solver="liblinear")).fit(X, y, sample_weight=weight)
    pipe = make_pipeline(StandardScaler(with_mean=False, with_std=False), LogisticRegression(solver="liblinear"))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = LogisticRegression(solver="liblinear").set_fit_request(sample_weight=True)
        routed = scheme(asking).fit(X, y, sample_weight=weight)
        pipe.steps[-1][1].set_fit_request(sample_weight=True)
        pipe.steps[0][1].set_fit_request(sample_weight=False)
        through = scheme(pipe).fit(X, y, sample_weight=weight)
        searched = scheme(asking).set_score_request(sample_weight=False)
        found = cross_validate(searched, X, y, params={"sample_weight": weight}, cv=3, return_estimator=True)
        silent = scheme(LogisticRegression(solver="liblinear").set_fit_request(sample_weight=False))
        with pytest.raises(TypeError, match="sample_weight"):
            silent.fit(X, y, sample_weight=weight)
        with pytest.raises(ValueError, match="not explicitly set as requested or not requested"):
            scheme(LogisticRegression(solver="liblinear")).fit(X, y, sample_weight=weight)
        pieces = GaussianNB().set_partial_fit_request(sample_weight=True)
        ours = scheme(pieces).partial_fit(X, y, [0, 1, 2], sample_weight=weight)
        theirs = getattr(peers, scheme.__name__)(pieces).partial_fit(X, y, [0, 1, 2], sample_weight=weight)
    np.testing.assert_allclose(routed.decision_function(X), plain.decision_function(X))
    np.testing.assert_allclose(through.decision_function(X), plain.decision_function(X), atol=1e-3)
    assert len(found["estimator"]) == 3
    np.testing.assert_allclose(ours.estimators_[0].theta_, theirs.estimators_[0].theta_)
    assert not hasattr(plain, "set_fit_request")


def test_other_parameters_of_fit_need_routing(iris):
    X, y = iris
    model = OneVsOneClassifier(SGDClassifier(random_state=0))
    with pytest.raises(ParameterError, match=r"OneVsOneClassifier\.fit got coef_init.*enable_metadata_routing=True"):
        model.fit(X, y, coef_init=np.ones((1, 4)))
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        model.estimator.set_fit_request(coef_init=True)
        started = model.fit(X, y, coef_init=np.ones((1, 4)))
    assert len(started.estimators_) == 3
