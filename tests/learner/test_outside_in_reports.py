"""A learner registered from outside is shown and gets a report; one that explains itself gets more."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

from margrove import TableEncoder, load_penguins, save
from margrove import learner as registry
from margrove.app.cli import app
from margrove.app.report.assemble import report_of
from margrove.app.report.blocks import Card
from margrove.app.report.markdown import to_markdown
from margrove.certificate import Certificate, Claim
from margrove.explanation import Explanation, Learned, Lesson, Weights, explanation_of
from margrove.learner import Learner, register
from margrove.status import Status
from margrove.store.arrays import Array
from margrove.store.schema import ENDED, Schema


class NearestMean(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearest."""

    def fit(self, X, y):
        X = np.asarray(X)
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        self.status_, self.engine_ = Status.CONVERGED, "native"
        self.certificate_ = _certified(self, X, y)
        return self

    def decision_function(self, X):
        scores = X @ self.means_.T - (self.means_**2).sum(axis=1) / 2
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        return self.classes_[(X @ self.means_.T - (self.means_**2).sum(axis=1) / 2).argmax(axis=1)]


class Explained(NearestMean):
    """The same, which explains itself."""


def _certified(model, X, y, sample_weight=None):
    off = np.array([abs(X[y == k].mean(axis=0) - m).max() for k, m in zip(model.classes_, model.means_, strict=True)])
    claim = Claim.bounded("distance from the mean", off, np.full(len(off), 1e-9), "0 when it is the mean")
    return Certificate(type(model).__name__, "converged", "recomputed", len(y), tuple(model.classes_), (claim,))


class Differences(Weights):
    """A linear model: the difference of two means."""

    @property
    def _coef(self):
        return self.model.means_

    def weights(self, code, other):
        means = self.model.means_
        b = -(means**2).sum(axis=1) / 2
        return means[code] - means[other], float(b[code] - b[other])

    def in_words(self):
        return "The nearest of the means of the classes."


@pytest.fixture(autouse=True)
def _registered():
    file = Schema((Array("means_", "K d"),), ENDED)
    described = (
        Learner(NearestMean, called="the nearest mean", certify=_certified, file=file),
        Learner(Explained, called="the nearest mean", certify=_certified, file=file, explain=Differences),
    )
    register(*described)
    yield
    for learner in described:
        del registry._registered[learner.key]


def of_penguins(learner):
    penguins = load_penguins()
    return Pipeline([("encode", TableEncoder()), ("learn", learner)]).fit(penguins, penguins.labels()), penguins


def test_a_learner_that_explains_nothing_gets_what_can_be_said_of_any_classifier():
    model, penguins = of_penguins(NearestMean())
    report = report_of(model, penguins)
    keys = [section.key for section in report.sections]
    assert report.subtitle.startswith("The nearest mean on ")
    assert keys == [
        *("summary", "quality", "what_matters", "examples", "proof"),
        *("data", "mistakes", "scores", "certificate", "about"),
    ]
    worth = next(section for section in report.sections if section.key == "what_matters").data
    assert worth["by"] == "loss"
    assert all(column["own"] is None for column in worth["columns"])
    assert "95 % interval" in to_markdown(report)


def test_a_learner_that_explains_itself_gets_more():
    model, penguins = of_penguins(Explained())
    report = report_of(model, penguins)
    parts = {section.key: section for section in report.sections}
    assert "The nearest of the means of the classes." in to_markdown(report)
    assert sum(column["own"] or 0 for column in parts["what_matters"].data["columns"]) == pytest.approx(1)
    assert [lesson["about"] for lesson in parts["model"].data["lessons"]] == model.classes_.tolist()
    for example in parts["examples"].data["examples"]:
        assert example["is_linear"]
        shown = sum(push["amount"] for push in example["pushes"])
        assert example["n_others"] or example["base"] + shown == pytest.approx(example["lead"])
    assert any(isinstance(block, Card) for block in parts["examples"].blocks)


@pytest.mark.parametrize(("learner", "kind"), [(NearestMean(), "columns"), (Explained(), "weights")])
def test_it_is_shown(learner, kind, tmp_path):
    model, _ = of_penguins(learner)
    save(model, tmp_path / "m.margrove")
    ran = CliRunner().invoke(app, ["show", str(tmp_path / "m.margrove"), "--json"])
    assert ran.exit_code == 0, ran.output
    assert f'"kind": "{kind}"' in ran.stdout
    assert CliRunner().invoke(app, ["show", str(tmp_path / "m.margrove")]).exit_code == 0


def test_a_model_without_a_description_has_an_explanation():
    class Stranger(NearestMean):
        pass

    model, penguins = of_penguins(Stranger())
    assert type(explanation_of(model)) is Explanation  # that of its parent, which has none
    del model[-1].certificate_, model[-1].status_, model[-1].engine_
    keys = [section.key for section in report_of(model, penguins).sections]
    assert "quality" in keys
    assert "proof" not in keys


def test_an_explanation_may_have_a_kind_of_its_own():
    class Means(Explanation):
        def data(self, inputs):
            return Learned("means", (Lesson("a", "b"),), 3)

    assert Means(None).data(None).size_words == "3 means"
