"""Schemes for many classes in files: they come back the same, and parts that do not belong together do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.store.forgeries import drop_tensor, put_tensor, refuse

from margrove import (
    SVC,
    AdaBoostClassifier,
    BasicLinearClassifier,
    BitStringClassifier,
    DecisionTreeClassifier,
    KernelPerceptron,
    NuSVC,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    TableEncoder,
    certify,
)
from margrove.errors import ModelFileError
from margrove.store import describe, long_lists

MODELS = {
    "rest, default": OneVsRestClassifier(),
    "rest, probabilities": OneVsRestClassifier(SVC(gamma=0.5, probability=True)),
    "rest, balanced": OneVsRestClassifier(SVC(gamma=0.5, class_weight="balanced"), n_jobs=1),
    "rest, averaged": OneVsRestClassifier(Perceptron(variant="averaged", max_iter=5, random_state=0), verbose=False),
    "one, nu": OneVsOneClassifier(NuSVC(nu=0.3, gamma=0.5)),
    "one, tree": OneVsOneClassifier(DecisionTreeClassifier(max_depth=3, prune="pessimistic")),
    "rest, boosted": OneVsRestClassifier(AdaBoostClassifier(n_estimators=4)),
    "one, boosted": OneVsOneClassifier(AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3)),
    "bits, boosted": BitStringClassifier(AdaBoostClassifier(n_estimators=9, early_stopping=True), code="hadamard"),
    "rest, boosted in a pipe": OneVsRestClassifier(make_pipeline(TableEncoder(), AdaBoostClassifier(n_estimators=3))),
    "one, gram": OneVsOneClassifier(KernelPerceptron(kernel="precomputed", max_iter=5, random_state=0)),
    "one, shared gram": OneVsOneClassifier(SVC(kernel="precomputed")),
    "one, pipeline": OneVsOneClassifier(make_pipeline(TableEncoder(), BasicLinearClassifier())),
    "bits": BitStringClassifier(SVC(gamma=0.5)),
    "bits, random": BitStringClassifier(BasicLinearClassifier(), code="random", random_state=1, decoding="hamming"),
    "bits, matrix": BitStringClassifier(SVC(), code=np.array([[1, 1, 0], [-1, 1, 1], [0, -1, -1]]), decoding="linear"),
}


def rows(name, classes=3):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(40, 3))
    return (X @ X.T if "gram" in name else X), np.array(list("abcde"))[np.arange(40) % classes]


@pytest.fixture(params=MODELS)
def fitted(request, fit):
    X, y = rows(request.param)
    return fit(clone(MODELS[request.param]), X, y), X, y


def test_every_scheme_comes_back_to_the_last_bit(fitted, content, loaded):
    model, X, y = fitted
    again = loaded(content(model))
    assert type(again) is type(model)
    assert vars(model).keys() - {"_is_clone"} == vars(again).keys()
    for name in ("min_distance_", "errors_corrected_", "machine_names_", "sharing_", "status_", "engine_"):
        assert getattr(again, name) == getattr(model, name), name
    assert again.n_features_in_ == model.n_features_in_
    assert again.code_.tobytes() == model.code_.tobytes()
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    if hasattr(model, "predict_proba"):
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert again.certificate_ == model.certificate_
    assert str(certify(again, X, y)) == str(certify(model, X, y))
    assert repr(again) == repr(model)
    assert content(again) == content(model)
    refitted = clone(again).fit if "Perceptron" not in repr(model) else None
    if refitted is not None:
        assert (refitted(X, y).predict(X) == model.predict(X)).all()


def test_a_code_that_was_a_data_frame_comes_back_as_its_matrix(content, loaded):
    X, y = rows("")
    code = pd.DataFrame([[1, -1], [1, 1], [-1, 1]], index=["c", "a", "b"])
    model = BitStringClassifier(SVC(), code=code).fit(X, y)
    again = loaded(content(model))
    assert np.asarray(again.code).tolist() == again.code_.tolist() == [[1, 1], [-1, 1], [1, -1]]
    assert again.predict(X).tolist() == model.predict(X).tolist() == clone(again).fit(X, y).predict(X).tolist()


def test_a_scheme_in_a_pipeline_comes_back(content, loaded):
    X, y = rows("")
    model = make_pipeline(TableEncoder(), BitStringClassifier(SVC())).fit(X, y)
    again = loaded(content(model))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert certify(again, X, y).holds


@pytest.mark.parametrize(
    "base", [LogisticRegression(), make_pipeline(StandardScaler(), BasicLinearClassifier())], ids=["alone", "in a pipe"]
)
def test_a_learner_of_another_package_is_refused_with_a_remedy(base, content):
    model = OneVsRestClassifier(base).fit(*rows(""))
    with pytest.raises(
        ModelFileError,
        match=r"OneVsRestClassifier's estimator, sklearn.* is not a class that it supports.*Use one of Margrove's",
    ):
        content(model)


def test_a_boosted_learner_of_another_package_is_refused_with_a_remedy(content):
    model = OneVsRestClassifier(AdaBoostClassifier(GaussianNB(), n_estimators=2)).fit(*rows(""))
    with pytest.raises(ModelFileError, match=r"AdaBoostClassifier's estimator, sklearn.*GaussianNB, is not a class"):
        content(model)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            ("estimator", "parameters", "estimator", "class"),
            "DecisionTreeRegressor",
            "which AdaBoostClassifier cannot boost",
        ),
        (("estimator", "parameters", "estimator", "class"), "Popen", "'Popen', which AdaBoostClassifier cannot boost"),
        (("estimator", "parameters", "learning_rate"), -1.0, "learning_rate is -1"),
        (("estimator", "class"), "AdaBoostRegressor", "parameters"),
        (("estimator", "parameters"), [], "parameters"),
    ],
)
def test_a_forged_boosted_estimator_is_refused(path, value, words, content, loaded, forged):
    base = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=2)
    original = content(OneVsRestClassifier(base).fit(*rows("")))
    with pytest.raises(ModelFileError, match=words):
        loaded(forged(original, put(*path, value=value)))


def test_the_header_names_the_learner_and_every_machine(tmp_path):
    from margrove import save

    file = tmp_path / "model.margrove"
    save(OneVsOneClassifier(BasicLinearClassifier()).fit(*rows("")), file)
    told = describe(file)["model"]
    assert told["estimator"]["class"] == "BasicLinearClassifier"
    assert [machine["class"] for machine in told["machines"]] == ["BasicLinearClassifier"] * 3
    assert describe(file)["tensors"]["code_"] == {"dtype": "int8", "shape": [3, 3]}


def test_long_lists_of_machines_are_stored_in_tensors(content, loaded, monkeypatch):
    model = OneVsOneClassifier(DecisionTreeClassifier()).fit(*rows(""))
    monkeypatch.setattr(long_lists, "LONG", 100)
    again = loaded(content(model))
    assert again.certificate_ == model.certificate_


def put(*path, value):
    """A change of the header."""

    def change(header, tensors):
        part = header["model"]
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = value

    return change


def put_code(value):
    return put_tensor("code_", lambda code: np.array(value, dtype=np.int8))


def drop_machine(header, tensors):
    header["model"]["machines"].pop()


FORGERIES = {
    "no code": (drop_tensor("code_"), "'code_' is missing"),
    "a code of one class less": (put_code([[1, -1], [-1, 1]]), "code has 2 rows; y has 3 classes"),
    "two equal words": (put_code([[1, 1, -1], [1, 1, -1], [-1, -1, 1]]), "same code word"),
    "another code": (
        put_code([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]),
        "its code is not the code of OneVsOneClassifier",
    ),
    "numbers beyond": (put_code([[1, 2, 0], [-1, 0, 1], [0, -1, -1]]), "code_ goes up to 2"),
    "a machine less": (drop_machine, "do not match the 3 columns of its code"),
    "machines that are none": (put("machines", value={}), "columns of its code"),
    "another estimator": (put("estimator", value={"class": "OneClassSVM", "parameters": {}}), "has no"),
    "an unknown estimator": (
        put("estimator", value={"class": "Popen", "parameters": {}}),
        "'Popen', which this",
    ),
    "an estimator as a parameter": (put("parameters", "estimator", value="SVC"), "estimator is 'SVC'"),
    "a pipeline of nothing": (put("estimator", value={"class": "Pipeline", "steps": []}), "without steps"),
    "a step without a name": (
        put("estimator", value={"class": "Pipeline", "steps": [[1, None]]}),
        "a name and a record",
    ),
    "other labels": (put("machines", 0, "labels", "values", value=[1, 2]), r"labels of a machine are \[1, 2\]"),
    "columns too many": (put("n_features_in", value=4), "number of columns"),
    "names too many": (put("feature_names", value=["a", "b"]), "3 distinct strings"),
    "rows of no Gram matrix": (put("rows", value=[True, False, False]), "rows of machine 0"),
    "rows in words": (put("rows", value="none"), "true or false was expected"),
    "a field more": (put("code", value=1), "'code', which is unknown"),
    "threads": (put("parameters", "n_jobs", value="all"), "n_jobs is 'all'"),
    "a certificate of another": (put("certificate", value={}), "not one that Margrove wrote"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_inconsistent_parts_are_refused(name, content, forged):
    change, words = FORGERIES[name]
    original = content(OneVsOneClassifier(BasicLinearClassifier()).fit(*rows("")))
    refuse(forged(original, change), words)


def test_rows_of_a_gram_matrix_that_are_not_there_are_refused(content, forged, fit):
    model = fit(clone(MODELS["one, gram"]), *rows("one, gram"))
    change = put_tensor("machines.0.rows", lambda rows: rows + 20)
    refuse(forged(content(model), change), "rows of machine 0 are not ascending numbers below 40")


def test_a_shared_machine_of_another_code_is_refused(content, forged):
    X, y = rows("")
    model = BitStringClassifier(SVC(), code="hadamard").fit(X, y)
    change = put_tensor("code_", lambda code: code[:, ::-1])
    refuse(forged(content(model), change), "machines that share a kernel do not match the code")
