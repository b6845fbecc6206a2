"""LIBSVM's model files, against LIBSVM itself in both directions."""

from __future__ import annotations

import io
from ctypes import c_double

import numpy as np
import pytest
import scipy.sparse as sp
from libsvm.svm import gen_svm_nodearray, libsvm
from libsvm.svmutil import svm_load_model, svm_save_model, svm_train
from sklearn.datasets import load_diabetes, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, certify, load, save
from margrove.errors import InputError, MargroveWarning, ModelFileError, ParameterError
from margrove.store import read_libsvm_model, write_libsvm_model

KERNELS = {
    "linear": ("-t 0", {"kernel": "linear"}),
    "poly": ("-t 1 -g 0.1 -r 1 -d 2", {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2}),
    "rbf": ("-t 2 -g 0.1", {"kernel": "rbf", "gamma": 0.1}),
    "sigmoid": ("-t 3 -g 0.01 -r -0.5", {"kernel": "sigmoid", "gamma": 0.01, "coef0": -0.5}),
}
LABELS = {"three, unsorted": (2, 0, 1), "two, unsorted": (3, -1, -1), "two, sorted": (1, 4, 4)}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = StandardScaler().fit_transform(X)[order], y[order]
    first = [int(np.argmax(y == k)) for k in range(3)]  # so that labels appear in their order
    rows = [*first, *(row for row in range(len(y)) if row not in first)]
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200] / 100


def as_dicts(X):
    return [{j + 1: float(value) for j, value in enumerate(row) if value} for row in X]


def trained(X, y, options, path):
    """A model that LIBSVM trained, saved and loaded again."""
    svm_save_model(str(path), svm_train([float(value) for value in y], X, f"{options} -q"))
    return svm_load_model(str(path))


def answers(model, rows):
    """What LIBSVM predicts, and its decision values. By the C functions: ``svmutil.svm_predict`` has room for one value
    where a ν-SVC of several classes writes many."""
    k = model.get_nr_class()
    values = (c_double * max(1, k * (k - 1) // 2))()
    labels, found = [], []
    is_kernel = model.param.kernel_type == 4
    for row in rows:
        nodes, _ = gen_svm_nodearray(row, isKernel=is_kernel)
        labels.append(libsvm.svm_predict_values(model, nodes, values))
        found.append(list(values))
    return np.array(labels), np.array(found)


def probabilities(model, rows):
    estimates = (c_double * model.get_nr_class())()
    found = []
    for row in rows:
        libsvm.svm_predict_probability(model, gen_svm_nodearray(row)[0], estimates)
        found.append(list(estimates))
    return np.array(found)


def in_their_order(model, X, labels):
    """Our values of the machines as LIBSVM has them: by its pairs of labels, f > 0 for the first."""
    place = {label: c for c, label in enumerate(model.classes_.tolist())}
    ours = model.machine_decision(X)
    k = len(labels)
    columns = []
    pairs = {pair: m for m, pair in enumerate((i, j) for i in range(k) for j in range(i + 1, k))}
    for first in range(k):
        for second in range(first + 1, k):
            i, j = place[labels[first]], place[labels[second]]
            sign = (1 if i < j else -1) * (-1 if k == 2 else 1)
            columns.append(sign * ours[:, pairs[min(i, j), max(i, j)]])
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("machine", "extra"), [("-s 0 -c 2", {"C": 2}), ("-s 1 -n 0.2", {"nu": 0.2})])
def test_a_classifier_of_libsvms_predicts_the_same_here(wine, kernel, labels, machine, extra, tmp_path):
    X, y = wine[0], np.array(LABELS[labels])[wine[1]]
    theirs = trained(as_dicts(X), y, f"{machine} {KERNELS[kernel][0]} -e 0.0001", tmp_path / "model")
    ours = read_libsvm_model(tmp_path / "model")
    said, values = answers(theirs, as_dicts(X))
    assert (ours.predict(X) == said).all()
    found = in_their_order(ours, X, theirs.get_labels())
    np.testing.assert_allclose(found, values[:, : found.shape[1]], rtol=1e-9, atol=1e-9)
    whole = read_libsvm_model(tmp_path / "model", X=X, y=y, **extra)
    certificate = certify(whole, X, y)
    assert certificate.holds, certificate
    forged = read_libsvm_model(tmp_path / "model", X=X, y=y, **{name: 0.4 * value for name, value in extra.items()})
    assert not certify(forged, X, y).holds


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("machine", "extra"),
    [
        ("-s 2 -n 0.2", {"nu": 0.2}),
        ("-s 3 -c 2 -p 0.2", {"C": 2, "epsilon": 0.2}),
        ("-s 4 -c 2 -n 0.4", {"C": 2, "nu": 0.4}),
    ],
)
def test_other_machines_of_libsvms_predict_the_same_here(diabetes, kernel, machine, extra, tmp_path):
    X, y = diabetes
    theirs = trained(as_dicts(X), y, f"{machine} {KERNELS[kernel][0]} -e 0.0001", tmp_path / "model")
    ours = read_libsvm_model(tmp_path / "model")
    said, values = answers(theirs, as_dicts(X))
    np.testing.assert_allclose(ours.predict(X), said, rtol=1e-9, atol=1e-9)
    if machine.startswith("-s 2"):
        np.testing.assert_allclose(ours.decision_function(X), values[:, 0], rtol=1e-9, atol=1e-9)
    whole = read_libsvm_model(tmp_path / "model", X=X, y=y, **extra)
    certificate = certify(whole, X, y)
    assert certificate.holds, certificate


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_ours_predicts_the_same_in_libsvm(wine, diabetes, kernel, estimator, tmp_path):
    is_classifier = estimator in (SVC, NuSVC)
    X, y = wine if is_classifier else diabetes
    targets = [y, y % 2 * 3 - 1] if is_classifier else [y]
    for target in targets:
        extra = {"nu": 0.2} if estimator is NuSVC else {}
        model = estimator(**KERNELS[kernel][1], **extra).fit(X, target)
        write_libsvm_model(model, tmp_path / "ours")
        said, values = answers(svm_load_model(str(tmp_path / "ours")), as_dicts(X))
        if is_classifier or estimator is OneClassSVM:
            assert (model.predict(X) == said).all()
        else:
            np.testing.assert_allclose(model.predict(X), said, rtol=1e-9, atol=1e-9)
        if is_classifier:
            expected = in_their_order(model, X, model.classes_.tolist())
            np.testing.assert_allclose(expected, values[:, : expected.shape[1]], rtol=1e-9, atol=1e-9)
        again = read_libsvm_model(tmp_path / "ours")
        np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
        np.testing.assert_array_equal(again.intercept_, model.intercept_)
        np.testing.assert_array_equal(again.support_vectors_, model.support_vectors_)
        np.testing.assert_allclose(again.norm_, model.norm_, rtol=1e-6)


def test_a_file_that_was_read_is_written_as_it_was(wine, tmp_path):
    X, y = wine[0], np.array([7, -2, 3])[wine[1]]
    trained(as_dicts(X), y, "-s 0 -t 2 -g 0.1 -b 1", tmp_path / "model")
    write_libsvm_model(read_libsvm_model(tmp_path / "model"), tmp_path / "again")
    first, second = (svm_load_model(str(tmp_path / name)) for name in ("model", "again"))
    assert first.get_labels() == second.get_labels()
    assert first.get_SV() == second.get_SV()
    assert first.get_sv_coef() == second.get_sv_coef()
    assert probabilities(first, as_dicts(X)).tolist() == probabilities(second, as_dicts(X)).tolist()


def test_a_precomputed_kernel_goes_both_ways(wine, tmp_path):
    X, y = wine
    gram = X @ X.T
    rows = [{0: i + 1, **{j + 1: float(value) for j, value in enumerate(row)}} for i, row in enumerate(gram)]
    theirs = trained(rows, y, "-s 0 -t 4 -c 0.5", tmp_path / "model")
    ours = read_libsvm_model(tmp_path / "model", n_features=len(X), C=0.5)
    assert (ours.predict(gram) == answers(theirs, rows)[0]).all()
    assert certify(ours, gram, y).holds
    assert np.isnan(ours.norm_).all()
    file = io.BytesIO()
    save(ours, file)
    file.seek(0)
    assert (load(file).predict(gram) == ours.predict(gram)).all()
    model = SVC(kernel="precomputed").fit(gram, y)
    write_libsvm_model(model, tmp_path / "ours")
    assert (model.predict(gram) == answers(svm_load_model(str(tmp_path / "ours")), rows)[0]).all()


@pytest.mark.parametrize("labels", LABELS)
def test_probabilities_are_libsvms_where_the_most_probable_label_is_the_predicted_one(wine, labels, tmp_path):
    X, y = wine[0], np.array(LABELS[labels])[wine[1]]
    theirs = trained(as_dicts(X), y, "-s 0 -t 2 -g 0.1 -b 1", tmp_path / "model")
    ours = read_libsvm_model(tmp_path / "model")
    order = np.argsort(theirs.get_labels())
    expected = probabilities(theirs, as_dicts(X))[:, order]
    agrees = ours.classes_[expected.argmax(axis=1)] == ours.predict(X)
    assert agrees.mean() > 0.9
    # LIBSVM couples the pairs by iterations that it ends at 0.005 / K.
    np.testing.assert_allclose(ours.predict_proba(X)[agrees], expected[agrees], atol=0.005)


def test_ours_gives_its_probabilities_to_libsvm(wine, tmp_path):
    X, y = wine[0], wine[1] % 2
    model = SVC(probability=True).fit(X, y)
    write_libsvm_model(model, tmp_path / "ours")
    theirs = svm_load_model(str(tmp_path / "ours"))
    p = probabilities(theirs, as_dicts(X))
    agrees = p.argmax(axis=1) == model.predict(X)
    np.testing.assert_allclose(model.predict_proba(X)[agrees], p[agrees], atol=1e-6)


@pytest.mark.parametrize("machine", ["-s 3", "-s 2"])
def test_probabilities_without_a_counterpart_are_left_out_with_a_warning(diabetes, machine, tmp_path):
    trained(as_dicts(diabetes[0]), diabetes[1], f"{machine} -b 1", tmp_path / "model")
    with pytest.warns(MargroveWarning, match="does not support.*ignored"):
        read_libsvm_model(tmp_path / "model")


def test_ties_are_decided_in_the_order_of_the_file():
    """Three machines that vote in a circle, and f = 0 exactly: LIBSVM takes the first label it knew, and the second of
    a pair."""
    text = (
        "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho -1 1 -1\nlabel 5 9 1\nnr_sv 1 1 1\nSV\n"
        "0.5 0 1:1\n0 0 2:1\n0 0 3:1\n"
    )
    model = read_libsvm_model(io.BytesIO(text.encode()))
    assert model.predict(np.zeros((1, 3))) == [5]
    flat = (
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel {}\nnr_sv 1 1\nSV\n1 1:1\n-1 1:-1\n"
    )
    assert read_libsvm_model(io.BytesIO(flat.format("5 1").encode())).predict([[0.0]]) == [1]
    assert read_libsvm_model(io.BytesIO(flat.format("1 5").encode())).predict([[0.0]]) == [5]


def test_the_order_of_labels_is_saved_and_a_new_fit_forgets_it(wine, tmp_path):
    X, y = wine[0], np.array([2, 0, 1])[wine[1]]
    trained(as_dicts(X), y, "-s 0 -t 0", tmp_path / "model")
    model = read_libsvm_model(tmp_path / "model", C=1.0)
    assert model.label_order_.tolist() == [2, 0, 1]
    save(model, tmp_path / "ours.margrove")
    loaded = load(tmp_path / "ours.margrove")
    assert loaded.label_order_.tolist() == [2, 0, 1]
    assert str(loaded.status_) == "imported"
    assert not hasattr(loaded.fit(X, y), "label_order_")


def test_sparse_rows_and_columns_that_no_support_vector_has(tmp_path):
    rng = np.random.default_rng(3)
    X = sp.random(60, 300_000, density=0.0005, random_state=rng, format="csr")
    y = np.where(np.arange(60) % 2, 1, -1)
    model = SVC(kernel="linear").fit(X, y)
    write_libsvm_model(model, tmp_path / "model")
    read = read_libsvm_model(tmp_path / "model", n_features=X.shape[1])
    assert sp.issparse(read.support_vectors_)
    assert (read.predict(X) == model.predict(X)).all()
    with pytest.raises(ParameterError, match="n_features is 10"):
        read_libsvm_model(tmp_path / "model", n_features=10)


def test_equal_rows_are_distinguished_by_label_and_value(tmp_path):
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [2.0], [2.0]])
    for options, y, extra in (
        ("-s 0 -t 0 -c 1", np.array([0, 1, 0, 1, 0, 1, 1, 1]), {"C": 1}),
        ("-s 3 -t 0 -c 1 -p 0.1", np.array([0.0, 1.0, -1.0, 2.0, 1.0, 0.0, 5.0, 2.0]), {"C": 1, "epsilon": 0.1}),
    ):
        trained(as_dicts(X), y, options, tmp_path / "model")
        certificate = certify(read_libsvm_model(tmp_path / "model", X=X, y=y, **extra), X, y)
        assert certificate.holds, certificate


def test_without_the_rows_it_is_the_machine_of_its_support_vectors(wine, tmp_path):
    X, y = wine
    trained(as_dicts(X), y, "-s 0 -t 2 -g 0.1 -c 3 -e 0.0001", tmp_path / "model")
    model = read_libsvm_model(tmp_path / "model")
    assert model.C == 3
    certificate = certify(model, model.support_vectors_, np.repeat(model.classes_, model.n_support_))
    assert certificate.holds, certificate


def test_kinds_of_rows_are_those_of_a_fit(wine, tmp_path):
    X, y = wine[0], wine[1] % 2
    fitted = SVC(gamma=0.1, tol=1e-6).fit(X, y)
    write_libsvm_model(fitted, tmp_path / "model")
    read = read_libsvm_model(tmp_path / "model", X=X, y=y, C=1.0)
    assert (read.support_ == fitted.support_).all()
    assert (read.kkt_ == fitted.kkt_).all()


def test_rows_other_than_the_training_rows_are_refused(wine, tmp_path):
    X, y = wine
    trained(as_dicts(X), y, "-s 0", tmp_path / "model")
    with pytest.raises(InputError, match="none of the remaining rows"):
        read_libsvm_model(tmp_path / "model", X=X + 1, y=y)
    with pytest.raises(ParameterError, match="Pass both"):
        read_libsvm_model(tmp_path / "model", X=X)
    with pytest.raises(InputError, match="177"):
        read_libsvm_model(tmp_path / "model", X=X, y=y[:-1])


@pytest.mark.parametrize(
    ("parameters", "words"), [({"gamma": 1.0}, "the file contains it"), ({"epsilon": 1.0}, "no such parameter")]
)
def test_parameters_that_cannot_be_given_are_refused(wine, parameters, words, tmp_path):
    trained(as_dicts(wine[0]), wine[1], "-s 0", tmp_path / "model")
    with pytest.raises(ParameterError, match=words):
        read_libsvm_model(tmp_path / "model", **parameters)


def test_text_labels_are_written_as_positions(wine, tmp_path):
    X, y = wine
    model = SVC().fit(X, np.array(["red", "white", "rosé"])[y])
    with pytest.warns(MargroveWarning, match="red = 0, rosé = 1, white = 2"):
        write_libsvm_model(model, tmp_path / "model")
    said = answers(svm_load_model(str(tmp_path / "model")), as_dicts(X))[0]
    assert (model.classes_[said.astype(int)] == model.predict(X)).all()


def test_models_that_libsvm_does_not_support_are_refused_with_a_remedy(wine):
    X, y = wine
    positive = np.abs(X)
    refused = [
        (SVC(kernel="laplacian").fit(positive, y), "LIBSVM has no laplacian kernel.*'precomputed'"),
        (SVC(kernel=lambda a, b: a @ b.T).fit(X, y), "no function kernel"),
        (SVC(multiclass="ovr").fit(X, y), "multiclass is ovr. Fit with multiclass='ovo'"),
        (SVC(multiclass=[[1, 1], [-1, 1], [1, -1]]).fit(X, y), "a code matrix"),
        (
            LinearSVC().fit(X, y),
            "supports only kernel support vector machines, not LinearSVC. Train one of SVC, ",
        ),
        (make_pipeline(StandardScaler(), SVC()).fit(X, y), r"model\[-1\]"),
    ]
    for model, words in refused:
        with pytest.raises(ModelFileError, match=words):
            write_libsvm_model(model, io.BytesIO())


GOOD = (
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.1\nlabel 1 2\nnr_sv 1 1\n"
    "SV\n1 1:1 3:2\n-1 2:1\n"
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("c_svc", "c_svm", "line 1: svm_type is 'c_svm'"),
        ("rbf", "laplacian", "line 2: kernel_type"),
        ("gamma 0.5", "gamma nan", "line 3: gamma is 'nan'; a finite number"),
        ("gamma 0.5", "gamma -1", "line 3: gamma is -1"),
        ("nr_class 2", "nr_class 1", "line 4: nr_class is '1'"),
        ("nr_class 2", "nr_class 2147483647", "line 6: rho has 1 numbers"),
        ("total_sv 2", "total_sv 999999999", "nr_sv has 2 numbers that sum to 2"),
        ("total_sv 2", "total_sv 1_0", "line 5: total_sv is '1_0'"),
        ("rho 0.1", "rho 0.1 0.2", "line 6: rho has 2 numbers"),
        ("rho 0.1\n", "", "its header has no rho"),
        ("label 1 2", "label 1 1", "line 7: label has 1 different"),
        ("label 1 2", "label 1 2.5", "line 7: a label is '2.5'"),
        ("nr_sv 1 1", "nr_sv 3 -1", "line 8: nr_sv is '-1'"),
        ("SV\n", "", "line 9: '1' is not a field"),
        ("1 1:1 3:2\n", "", "1 support vectors, and total_sv is 2"),
        ("-1 2:1\n", "-1 2:1\n1 1:1\n", "line 12: it has more support vectors"),
        ("1:1 3:2", "3:1 1:2", "line 10: column 1 follows column 3"),
        ("1:1 3:2", "0:1 3:2", "line 10: the number of a column is '0'"),
        ("1:1 3:2", "1:1 99999999999:2", "line 10: the number of a column"),
        ("1:1 3:2", "1:x", "line 10: column 1 is 'x'"),
        ("1:1 3:2", "1", "line 10: column 1 is ''"),
        ("-1 2:1", "inf 2:1", "line 11: a coefficient is 'inf'"),
        ("gamma 0.5", "gamma 0.5\ngamma 0.6", "line 4: gamma was already on line 3"),
        ("gamma 0.5", "gämma 0.5", "line 3: this is not the text"),
    ],
)
def test_errors_in_a_file_name_its_line(old, new, words):
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ModelFileError, match=words):
        read_libsvm_model(io.BytesIO(text.encode()))


def test_other_files_are_refused_as_such(tmp_path):
    save(SVC().fit([[0.0], [1.0]], [0, 1]), tmp_path / "model.margrove")
    for path, words in (
        (tmp_path / "model.margrove", "margrove.load reads our own"),
        (io.BytesIO(b""), "it is empty"),
        (tmp_path / "nothing", "no such file"),
    ):
        with pytest.raises(ModelFileError, match=words):
            read_libsvm_model(path)


@pytest.mark.slow  # SciPy counts the columns
def test_a_column_number_of_two_thousand_million_takes_no_memory():
    model = read_libsvm_model(io.BytesIO(GOOD.replace("3:2", "2000000000:2").encode()))
    assert model.n_features_in_ == 2_000_000_000
    assert sp.issparse(model.support_vectors_)


def test_damaged_files_are_read_or_refused_and_nothing_else():
    rng = np.random.default_rng(11)
    letters = np.frombuffer(b"0123456789 :.-+e\nSVrhoab_x", dtype=np.uint8)
    refused = 0
    for _ in range(400):
        content = bytearray(GOOD.encode())
        for _ in range(int(rng.integers(1, 6))):
            place = int(rng.integers(len(content)))
            action = rng.integers(3)
            if action == 0:
                content[place] = int(rng.choice(letters))
            elif action == 1:
                del content[place : place + int(rng.integers(1, 12))]
            else:
                content[place:place] = bytes(rng.choice(letters, 4).tolist())
        try:
            model = read_libsvm_model(io.BytesIO(bytes(content)))
        except ModelFileError:
            refused += 1
        else:
            assert model.predict(sp.csr_matrix((1, model.n_features_in_))).shape == (1,)
    assert 100 < refused < 400
