"""What scikit-learn's kernel machines do at the edges: weights ≤ 0, sparse attributes, rows of any kind, C=inf."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as peers
from sklearn.base import clone

from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM, OneVsRestClassifier, certify, load, save
from margrove.errors import InfeasibleError, InputError, MargroveError, ModelFileError
from margrove.store import write_libsvm_model

MACHINES = [SVC(kernel="linear"), NuSVC(kernel="linear"), SVR(kernel="linear"), NuSVR(kernel="linear"), OneClassSVM()]
WORDS = ["A A", "A", "B", "B B", "A B"]
LABELS = np.array([1, 1, 2, 2, 1])


def letters(these, those):
    counts = [np.array([[word.count("A"), word.count("B")] for word in words], float) for words in (these, those)]
    return counts[0] @ counts[1].T


@pytest.mark.parametrize("machine", MACHINES, ids=lambda each: type(each).__name__)
def test_rows_of_negative_weight_are_ignored(machine, rng):
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(float)
    weight = np.ones(40)
    weight[[3, 17, 20]] = -2.0, 0.0, -0.1
    kept = weight > 0
    model = clone(machine).set_params(gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    other = clone(machine).set_params(gamma=0.5, tol=1e-8).fit(X[kept], y[kept])
    value = "predict" if isinstance(model, SVR | NuSVR) else "decision_function"
    np.testing.assert_allclose(getattr(model, value)(X), getattr(other, value)(X), atol=1e-6)
    assert (np.ravel(model.kkt_)[~kept] == "").all()
    assert certify(model, X, y, sample_weight=weight).holds
    assert not certify(model, X, y).holds or isinstance(model, OneClassSVM)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("weight", [0.0, -0.3])
def test_no_row_of_positive_weight_is_refused(machine, weight, rng):
    X, y = rng.normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 1])
    with pytest.raises(InputError, match="Invalid input - all samples have zero or negative weights"):
        clone(machine).fit(X, y, sample_weight=np.full(6, weight))


def test_one_class_of_positive_weight_is_refused(rng):
    X, y, weight = rng.normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 1]), [0, -0.5, 0, 1, 1, 1]
    with pytest.raises(InputError, match=r"all samples with positive weights belong to the same class: .* class 0"):
        SVC().fit(X, y, sample_weight=weight)
    with pytest.raises(InputError, match="the specified nu is infeasible"):
        NuSVC().fit(X, y, sample_weight=weight)


def test_probabilities_ignore_rows_of_negative_weight(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    weight = np.where(np.arange(60) % 7 == 0, -1.0, 1.0)
    negative, zero = (SVC(probability=True).fit(X, y, sample_weight=each) for each in (weight, np.maximum(weight, 0)))
    np.testing.assert_array_equal(negative.predict_proba(X), zero.predict_proba(X))


@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
def test_attributes_are_sparse_after_a_sparse_fit(machine, form, rng):
    X = np.where(rng.random((40, 5)) < 0.5, 0.0, rng.normal(size=(40, 5)))
    y = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    model = clone(machine).fit(form(X), y)
    for name in ("support_vectors_", "dual_coef_", "coef_"):
        assert isinstance(getattr(model, name), form), name
    np.testing.assert_allclose(model.coef_.toarray(), (model.dual_coef_ @ model.support_vectors_).toarray(), atol=1e-9)
    assert not model.coef_.data.flags.writeable
    assert certify(model, form(X), y).holds
    target = io.BytesIO()
    save(model, target)
    again = load(io.BytesIO(target.getvalue()))
    assert isinstance(again.dual_coef_, form)
    np.testing.assert_array_equal(again.predict(form(X)), model.predict(form(X)))


def test_changed_coefficients_change_predictions_and_break_the_certificate(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = SVC(kernel="linear").fit(sp.csr_matrix(X), y)
    before = model.decision_function(X)
    model.dual_coef_ = 2 * model.dual_coef_
    np.testing.assert_allclose(model.decision_function(X) - model.intercept_, 2 * (before - model.intercept_))
    assert not certify(model, sp.csr_matrix(X), y).holds
    dense = SVC(kernel="linear").fit(X, y)
    np.testing.assert_array_equal(dense._dual_coef_, -dense.dual_coef_)  # LIBSVM's sign, as in scikit-learn


def test_sparse_rows_are_refused_by_a_model_of_dense_ones(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(InputError, match=r"cannot use sparse input in 'SVC' trained on dense data\. Pass X\.toarray"):
        SVC().fit(X, y).predict(sp.csr_matrix(X))


def test_a_sparse_gram_matrix_is_a_type_error():
    with pytest.raises(TypeError, match=r"Sparse precomputed kernels are not supported.*K\.toarray"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(np.eye(2)), [0, 1])


def test_altered_counts_are_noticed(rng):
    model = SVC().fit(rng.normal(size=(30, 2)), np.arange(30) % 2)
    model._n_support[0] = 1000
    with pytest.raises(InputError, match="The internal representation of SVC was altered"):
        model.predict([[0.0, 0.0]])


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("Model", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_callable_kernel_takes_rows_of_any_kind(Model, engine):
    options = {"nu": 0.5} if Model in (NuSVC, NuSVR, OneClassSVM) else {}
    model = Model(kernel=letters, engine=engine, **options).fit(WORDS, LABELS)
    gram = Model(kernel="precomputed", engine=engine, **options).fit(letters(WORDS, WORDS), LABELS)
    value = "predict" if Model in (SVR, NuSVR) else "decision_function"
    fresh = ["A A A", "B", "A B B"]
    np.testing.assert_allclose(getattr(model, value)(fresh), getattr(gram, value)(letters(fresh, WORDS)), atol=1e-9)
    assert model.shape_fit_ == (5,)
    assert model.support_vectors_.shape == (0, 0)  # as scikit-learn has it
    assert certify(model, WORDS, LABELS).holds
    other = certify(model, WORDS[::-1], LABELS[::-1])
    assert not other.holds
    assert [claim.name for claim in other.claims] == ["the rows are those it was fitted on"]


def test_a_scikit_learn_model_of_texts_is_certified():
    theirs = peers.SVC(kernel=letters).fit(WORDS, LABELS)
    assert certify(theirs, WORDS, LABELS).holds


def test_probabilities_paths_and_leave_one_out_of_texts():
    words, labels = WORDS * 4, np.tile(LABELS, 4)
    for Model in (SVC, NuSVC):
        model = Model(kernel=letters, probability=True).fit(words, labels)
        assert model.predict_proba(WORDS).shape == (5, 2)
    path = SVC(kernel=letters).path(words, labels, [0.1, 1.0])
    assert all(each.certificate_.holds for each in path.models)
    model = SVC(kernel=letters).fit(words, labels)
    assert model.leave_one_out(words, labels).error == 0.0


def test_models_of_texts_are_not_saved():
    model = SVC(kernel=letters).fit(WORDS, LABELS)
    with pytest.raises(MargroveError, match="kernel"):
        save(model, io.BytesIO())


def test_a_table_after_texts_is_a_table_again(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = SVC(kernel=letters).fit(WORDS, LABELS)
    model.set_params(kernel="rbf").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), SVC().fit(X, y).decision_function(X))


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_the_hard_tube(kernel, engine, rng):
    X = rng.normal(size=(25, 3))
    z = X[:, 0] + 0.05 * rng.normal(size=25)
    rows = X @ X.T if kernel == "precomputed" else X
    hard = SVR(kernel=kernel, C=np.inf, epsilon=0.2, tol=1e-6, engine=engine).fit(rows, z)
    large = SVR(kernel=kernel, C=1e6, epsilon=0.2, tol=1e-6, engine=engine).fit(rows, z)
    np.testing.assert_allclose(hard.predict(rows), large.predict(rows), atol=1e-4)
    assert np.abs(hard.predict(rows) - z).max() <= 0.2 + 1e-5
    assert "hard" not in hard.kkt_
    assert hard.certificate_.holds
    again = certify(hard, rows, z)
    assert again.holds
    assert 0 <= again["duality gap"] < 1e-3
    hard.dual_coef_ = 1.5 * hard.dual_coef_
    assert not certify(hard, rows, z).holds


@pytest.mark.parametrize(
    ("X", "z", "kernel", "engine"),
    [
        ([[0.0], [0.0], [1.0]], [0.0, 1.0, 2.0], "rbf", "native"),  # one point with two values
        ([[0.0], [0.0], [1.0]], [0.0, 1.0, 2.0], "rbf", "reference"),
        ([[0.0], [1.0], [2.0]], [0.0, 5.0, 0.0], "linear", "native"),
        ([[0.0], [1.0], [2.0]], [0.0, 5.0, 0.0], "linear", "reference"),
        ([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 1.5, 9.0], "linear", "native"),  # a minute of steps in Python
    ],
)
def test_a_tube_that_no_function_stays_in_is_refused_with_evidence(X, z, kernel, engine):
    X, z = np.array(X), np.array(z)
    model = SVR(kernel=kernel, C=np.inf, epsilon=0.1, gamma=1.0, engine=engine)
    with pytest.raises(InfeasibleError, match="no hard tube") as found:
        model.fit(X, z)
    rows, weights = found.value.evidence["rows"], found.value.evidence["weights"]
    assert abs(weights.sum()) < 1e-9
    assert np.abs(weights).sum() == pytest.approx(1.0)
    if kernel == "linear":  # Σβx = 0, so every plane gives Σβf = 0
        np.testing.assert_allclose(weights @ X[rows], 0, atol=1e-4)
    assert weights @ z[rows] - 0.1 == pytest.approx(found.value.evidence["excess"])
    assert found.value.evidence["excess"] > 0
    assert not hasattr(model, "dual_coef_")


def test_a_hard_tube_does_not_start_from_rows_at_their_bounds(rng):
    X = rng.normal(size=(25, 2))
    z = np.sin(X[:, 0])
    model = SVR(C=0.01, warm_start=True, epsilon=0.05).fit(X, z)
    model.set_params(C=np.inf).fit(X, z)
    np.testing.assert_allclose(model.predict(X), SVR(C=np.inf, epsilon=0.05).fit(X, z).predict(X), atol=1e-9)


def test_linear_precomputed_and_callable_kernels_give_the_same_model(rng):
    X = rng.normal(size=(60, 4))
    X[30:32] = X[:2]  # duplicates, too
    y = rng.integers(0, 3, 60)
    models = [SVC(kernel="linear").fit(X, y), SVC(kernel="precomputed").fit(X @ X.T, y)]
    models.append(SVC(kernel=lambda these, those: these @ those.T).fit(X, y))
    for model in models[1:]:
        np.testing.assert_array_equal(model.support_, models[0].support_)
        np.testing.assert_allclose(model.dual_coef_, models[0].dual_coef_, atol=1e-12)


def test_calibration_attributes_warn_as_those_of_scikit_learn(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    for probability, size in ((False, 0), (True, 1)):
        model = SVC(probability=probability).fit(X, y)
        with pytest.warns(FutureWarning, match="Attribute `probA_` was deprecated"):
            assert model.probA_.shape == (size,)


def test_nothing_of_ours_reads_the_deprecated_attributes(rng, tmp_path):
    """Warnings are errors here."""
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = SVC(probability=True).fit(X, y)
    model.predict_proba(X)
    save(model, tmp_path / "model.margrove")
    write_libsvm_model(model, tmp_path / "model.libsvm")
    one_vs_rest = OneVsRestClassifier(SVC(probability=True)).fit(X, y)
    assert one_vs_rest.predict_proba(X).shape == (60, 3)
    assert one_vs_rest.estimators_[0].predict_proba(X).shape == (60, 2)
    uncalibrated = SVC().fit(X, y).set_params(probability=True)
    with pytest.raises(ModelFileError, match="no 'probA_'"):
        save(uncalibrated, tmp_path / "model.margrove")


@pytest.mark.parametrize("machine", [SVC(), SVR(), NuSVR(), OneClassSVM()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("constant", [{"gamma": 0}, {"kernel": "poly", "degree": 0}, {"kernel": "sigmoid", "gamma": 0}])
def test_a_constant_kernel_predicts_what_scikit_learn_predicts(machine, constant, rng):
    X = rng.normal(size=(30, 2))
    y = np.repeat([0.0, 1.0, 2.0], [5, 10, 15])
    model = clone(machine).set_params(**constant).fit(X, y)
    theirs = getattr(peers, type(machine).__name__)(**constant).fit(X, y)
    assert certify(model, X, y).holds
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-3)


def test_a_constant_kernel_has_no_margin_for_nu(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(InfeasibleError, match="no margin between the sides"):
        NuSVC(gamma=0).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        peers.NuSVC(gamma=0).fit(X, y)
