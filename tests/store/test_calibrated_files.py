"""Calibrated classifiers in files: they come back the same, and parts that do not belong together do not."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from tests.store.forgeries import drop_tensor, entry, put, put_parameter, put_scalar, put_tensor, refuse

from margrove import (
    SVC,
    AdaBoostClassifier,
    BasicLinearClassifier,
    CalibratedClassifier,
    DecisionTreeClassifier,
    LinearSVC,
    OneVsRestClassifier,
    TableEncoder,
    certify,
)
from margrove.errors import ModelFileError
from margrove.store import long_lists
from margrove.store.container import unpack

MODELS = {
    "default": CalibratedClassifier(),
    "boosted, tuned": CalibratedClassifier(AdaBoostClassifier(n_estimators=4), tuned_for="f1_macro", cv=3),
    "tree": CalibratedClassifier(DecisionTreeClassifier(max_depth=2), random_state=1),
    "machines": CalibratedClassifier(OneVsRestClassifier(SVC(gamma=0.5)), tuned_for="balanced_accuracy"),
    "pipeline": CalibratedClassifier(make_pipeline(TableEncoder(), LinearSVC(C=0.1))),
}


def rows(classes=3):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(60, 3))
    return X, np.array(list("abc"))[np.where(X[:, 0] > 0.8, classes - 1, np.arange(60) % (classes - 1))]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_calibrated_classifier_comes_back_to_the_last_bit(name, classes, content, loaded):
    X, y = rows(classes)
    model = clone(MODELS[name]).fit(X, y)
    again = loaded(content(model))
    assert vars(model).keys() == vars(again).keys()
    assert repr(again) == repr(model)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert again.certificate_ == model.certificate_
    assert str(certify(again, X, y)) == str(certify(model, X, y))
    assert content(again) == content(model)
    assert clone(again).fit(X, y).predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    if model.tuned_for is not None:
        assert again.held_out_score_.tolist() == model.held_out_score_.tolist()


def test_a_scheme_of_a_calibrated_classifier_is_refused(content):
    model = OneVsRestClassifier(CalibratedClassifier()).fit(*rows())
    with pytest.raises(ModelFileError, match="is not a class that it supports"):
        content(model)


def test_a_function_or_a_foreign_estimator_is_refused(content):
    with pytest.raises(ModelFileError, match=r"tuned_for is the function .* Use a tuned_for given by its name"):
        content(CalibratedClassifier(tuned_for=balanced_accuracy_score).fit(*rows()))
    with pytest.raises(ModelFileError, match="GaussianNB is not a class that it supports"):
        content(CalibratedClassifier(GaussianNB()).fit(*rows()))


@pytest.fixture
def tuned(content):
    return content(CalibratedClassifier(BasicLinearClassifier(), tuned_for="f1_macro").fit(*rows()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put_tensor("slopes_", entry(0, -1.0)), "slopes_ goes down to -1; it must not be below 0"),
        (put_tensor("slopes_", entry(0, np.nan)), "slopes_ holds numbers that are not finite"),
        (put_tensor("intercepts_", lambda array: array[:1]), r"intercepts_ has shape \(1,\)"),
        (put_tensor("class_factors_", entry(1, 0.0)), "class_factors_ must be above 0"),
        (put_tensor("held_out_score_", lambda array: array[:1]), r"held_out_score_ has shape \(1,\)"),
        (drop_tensor("slopes_"), "the array 'slopes_' is missing"),
        (put(is_default=1), "is_default is 1; true or false"),
        (put(model={"class": "Popen"}), "'Popen', which is not a class"),
        (put_scalar(status_="fine"), "status_ is 'fine'"),
        (put_parameter(cv=1), "cv is 1"),
        (put_parameter(estimator=3), "estimator is 3"),
    ],
)
def test_a_forged_file_is_refused(change, words, tuned, forged):
    refuse(forged(tuned, change), words)


def test_factors_come_with_their_scores(tuned, forged):
    def drop(header, tensors):
        del tensors["held_out_score_"], header["model"]["arrays"]["held_out_score_"]

    refuse(forged(tuned, drop), "come with held_out_score_")


def test_a_model_that_is_no_classifier_is_refused(tuned, forged, content):
    table = content(TableEncoder().fit(rows()[0]))

    def change(header, tensors):
        header["model"]["model"] = unpack(BytesIO(table))[0]["model"]
        for name in [name for name in tensors if name.startswith("model.")]:
            del tensors[name]

    refuse(forged(tuned, change), "must be a classifier")


def test_long_lists_within_are_moved_out(content, loaded, monkeypatch):
    monkeypatch.setattr(long_lists, "LONG", 20)
    X, y = rows()
    model = CalibratedClassifier(LinearSVC()).fit(X, y)
    written = content(model)
    assert "model.certificate" in unpack(BytesIO(written))[1]
    assert loaded(written).predict(X).tolist() == model.predict(X).tolist()
