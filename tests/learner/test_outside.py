"""A learner from outside the package: what it describes of itself works as it does for Margrove's own."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from margrove import SVC, Certificate, Claim, TableEncoder, certify, load, save, write_onnx
from margrove.errors import InputError, ModelFileError
from margrove.learner import Learner, learner_named, learner_of
from margrove.store.arrays import Array
from margrove.store.container import pack, unpack
from margrove.store.schema import Schema


class NearestMean(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearest."""

    def __init__(self, metric="euclidean"):
        self.metric = metric

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == label].mean(axis=0) for label in self.classes_])
        self.certificate_ = certify_means(self, X, y, None)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.classes_[pairwise_distances(X, self.means_, metric=self.metric).argmin(axis=1)]


def certify_means(model, X, y, sample_weight):
    """Its one claim: the means are those of the rows."""
    means = np.stack([X[y == label].mean(axis=0) for label in model.classes_])
    error = np.abs(means - model.means_).max(axis=1)
    claim = Claim.bounded("error of the mean", error, np.full(len(error), 1e-12), "the means are those of the rows")
    names = tuple(map(str, model.classes_))
    return Certificate(type(model).__name__, "converged", "recomputed", len(X), names, (claim,))


class HeirOfNearestMean(NearestMean):
    """A subclass that is not described."""


class Namesake(NearestMean):
    """A class with the name of one of Margrove's."""


Namesake.__name__ = Namesake.__qualname__ = "SVC"

MEANS = Schema((Array("means_", "K d"),), limits={"metric": ("euclidean", "manhattan")}, machines=lambda _, k: {"m": k})
OUTSIDERS = (
    Learner(NearestMean, called="a nearest mean", certify=certify_means, file=MEANS),
    Learner(Namesake, certify=certify_means, file=MEANS),
)


@pytest.fixture
def table(rng):
    y = np.arange(60) % 3
    return rng.normal(size=(60, 2)) + y[:, None], np.array(["low", "middle", "high"])[y]


def saved(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return file


def test_a_class_of_the_same_module_and_name_is_another_one(table):
    class Other(BaseEstimator):
        def fit(self, X, y):
            self.means_ = np.zeros((2, X.shape[1]))
            return self

    Other.__module__, Other.__qualname__ = NearestMean.__module__, NearestMean.__qualname__
    assert learner_of(NearestMean()).called == "a nearest mean"
    assert learner_of(Other()) is None


def test_a_function_that_returns_no_certificate_is_reported(table, monkeypatch):
    model = NearestMean().fit(*table)
    forgetful = replace(learner_of(model), certify=lambda *given: None)
    monkeypatch.setattr("margrove.certificate.learner_of", lambda model: forgetful)
    with pytest.raises(InputError, match=r"the function that certifies NearestMean returned None\. It must return"):
        certify(model, *table)


def test_it_is_certified(table):
    model = NearestMean().fit(*table)
    assert certify(model, *table).holds
    model.means_ = model.means_ + 1
    assert not certify(model, *table).holds


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(TableEncoder(), model)])
def test_it_is_saved_and_loaded(table, wrap):
    X, y = table
    model = wrap(NearestMean(metric="manhattan")).fit(X, y)
    again = load(saved(model))
    assert type(again) is type(model)
    assert (again.predict(X) == model.predict(X)).all()
    learner = again[-1] if hasattr(again, "steps") else again
    assert learner.metric == "manhattan"
    assert (
        certify(NearestMean().fit(X, y), X, y).to_dict() == load(saved(NearestMean().fit(X, y))).certificate_.to_dict()
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header, tensors: tensors.update(means_=tensors["means_"][:2]), r"means_ has shape \(2, 2\); \(K, d\)"),
        (lambda header, tensors: header["model"]["parameters"].update(metric="cosine"), "metric is 'cosine'"),
        (lambda header, tensors: header["model"].update(code="import os"), "has 'code', which is unknown"),
        (
            lambda header, tensors: header["model"].update({"class": "OutsideAll"}),
            "it holds a 'OutsideAll', which is not",
        ),
    ],
)
def test_a_forged_file_of_it_is_refused(table, change, words):
    header, tensors = unpack(saved(NearestMean().fit(*table)))
    del header["sha256"]
    change(header, tensors)
    with pytest.raises(ModelFileError, match=words):
        load(io.BytesIO(pack(header, tensors)))


def test_a_subclass_is_not_saved(table):
    with pytest.raises(ModelFileError, match=r"HeirOfNearestMean is not a class that it supports"):
        saved(HeirOfNearestMean().fit(*table))


def test_a_class_with_the_name_of_one_of_ours_is_not_saved(table):
    assert learner_named("SVC").key == "margrove.svm.svc:SVC"
    with pytest.raises(ModelFileError, match="SVC is the name of another"):
        saved(Namesake().fit(*table))
    assert type(load(saved(SVC().fit(*table)))) is SVC


def test_without_a_writer_it_has_no_form_in_onnx(table):
    model = NearestMean().fit(*table)
    with pytest.raises(ModelFileError, match=r"NearestMean cannot be exported to ONNX\. Export a Margrove learner"):
        write_onnx(model, io.BytesIO())
