"""The registry of learners: descriptions are found by class, by inheritance and by name, and load nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import sklearn.svm
from sklearn.base import BaseEstimator

import margrove
from margrove import SVC, certify
from margrove.errors import InputError
from margrove.learner import learner_named, learner_of, learners, loaded
from margrove.store import describe
from tests.attack.estimators import NAMES


class Heir(SVC):
    """A subclass of ours."""


class HeirOfPeer(sklearn.svm.SVC):
    """A subclass of scikit-learn's."""


def test_a_subclass_is_certified_as_its_parent(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    for kind in (Heir, HeirOfPeer):
        assert certify(kind(tol=1e-5).fit(X, y), X, y).holds


def test_a_class_that_only_has_the_name_is_not_certified(rng):
    class Stranger(BaseEstimator):
        """Neither ours nor scikit-learn's."""

        def fit(self, X, y):
            vars(self).update(vars(SVC().fit(X, y)))
            return self

    Stranger.__name__ = "SVC"
    X, y = rng.normal(size=(20, 2)), [0, 1] * 10
    with pytest.raises(InputError, match="SVC has no certificate"):
        certify(Stranger().fit(X, y), X, y)


def test_every_reference_can_be_imported():
    for learner in (*learners(), learner_named("TableEncoder"), learner_named("ImpuritySelector")):
        for field in fields(learner):
            value = getattr(learner, field.name)
            if isinstance(value, str) and ":" in value and not learner.key.startswith("sklearn"):
                assert loaded(value) is not None


def test_every_public_estimator_with_a_certificate_is_described():
    for name in margrove.__all__:
        kind = getattr(margrove, name)
        if isinstance(kind, type) and hasattr(kind, "fit") and not name.endswith("CV"):
            assert learner_of(kind()).name == name
            assert learner_named(name) is learner_of(kind())


def test_descriptions_load_no_learner():
    code = (
        "import sys; from margrove.learner import learners; list(learners());"
        "print([m for m in sys.modules if m.startswith(('numpy', 'sklearn', 'margrove.engine'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_an_unknown_name_has_no_description():
    assert learner_named("Nobody") is None
    assert learner_of(object()) is None


def test_every_learner_with_a_model_file_has_a_golden_file_and_is_attacked():
    golden = Path(__file__).parents[1] / "store" / "golden"
    headers = [repr(describe(path)) for path in golden.glob("*.margrove")]
    kept = {name for header in headers for name in re.findall(r"'class': '(\w+)'", header)}
    elsewhere = {"SoftmaxClassifier", "FineTuned", "ConvFeatures", "ImpuritySelector"}  # no predictions, or need torch
    described = [learner for learner in learners() if learner.key.startswith("margrove.") and learner.file is not None]
    names = {learner.name for learner in described} - elsewhere
    assert names <= kept
    assert names <= set(NAMES)


def test_no_two_learners_of_a_task_have_one_place_on_the_menu():
    offers = [learner.offer for learner in learners() if learner.offer is not None and learner.offer.is_listed]
    places = [(offer.task, offer.place) for offer in offers if offer.task == "classify"]
    assert len(places) == len(set(places))
