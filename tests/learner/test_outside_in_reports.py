"""A learner registered from outside is shown and gets a report; one that explains itself gets more."""

from __future__ import annotations

import json

import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from margrove import TableEncoder, load_penguins, save
from margrove import learner as registry
from margrove.app.cli import app
from margrove.app.report.markdown import to_markdown
from margrove.app.report.writing import report_of
from margrove.explanation import Explanation, ModelSummary, Weights, explanation_of
from margrove.learner import Learner
from tests.learner.test_outside import MEANS, NearestMean, certify_means

FOR_ANY = ["summary", "quality", "what_matters", "proof", "data", "mistakes", "scores", "certificate", "about"]


class ExplainedMeans(NearestMean):
    """The nearest mean by scores that are linear, x·m − ‖m‖²/2, and with their explanation."""

    def decision_function(self, X):
        return X @ self.means_.T - (self.means_**2).sum(axis=1) / 2


class Differences(Weights):
    """The weights are the means."""

    @property
    def _coef(self):
        return self.model.means_

    def weights(self, code, other):
        means = self.model.means_
        b = -(means**2).sum(axis=1) / 2
        return means[code] - means[other], float(b[code] - b[other])

    def description(self):
        return "The nearest of the means of the classes."


@pytest.fixture(autouse=True)
def _described():
    learner = Learner(ExplainedMeans, "nearest means", certify=certify_means, file=MEANS, explain=Differences)
    registry.register(learner)
    yield
    del registry._registered[learner.key]


def of_penguins(learner):
    penguins = load_penguins()
    return make_pipeline(TableEncoder(), learner).fit(penguins, penguins.labels()), penguins


def test_learner_without_an_explanation_gets_the_general_report():
    model, penguins = of_penguins(NearestMean())
    report = report_of(model, penguins)
    assert report.subtitle.startswith("A nearest mean on ")
    assert [section.key for section in report.sections] == FOR_ANY
    importances = report.to_dict()["what_matters"]
    assert importances["by"] == "loss"
    assert all(column["own"] is None for column in importances["columns"])
    assert "95 % interval" in to_markdown(report)
    assert "Certificate held when it was saved" in to_markdown(report)


def test_learner_with_an_explanation_gets_more_sections():
    model, penguins = of_penguins(ExplainedMeans())
    report = report_of(model, penguins)
    data = report.to_dict()
    assert {section.key for section in report.sections} == {*FOR_ANY, "examples", "model"}
    assert "The nearest of the means of the classes." in to_markdown(report)
    assert sum(column["own"] or 0 for column in data["what_matters"]["columns"]) == pytest.approx(1)
    assert [machine["positive"] for machine in data["model"]["machines"]] == model.classes_.tolist()
    for example in data["examples"]["examples"]:
        assert example["is_linear"]
        shown = sum(each["amount"] for each in example["contributions"])
        assert example["n_others"] or example["base"] + shown == pytest.approx(example["lead"])


@pytest.mark.parametrize(("learner", "kind"), [(NearestMean(), "columns"), (ExplainedMeans(), "weights")])
def test_learner_is_shown(learner, kind, tmp_path):
    model, _ = of_penguins(learner)
    save(model, tmp_path / "m.margrove")
    ran = CliRunner().invoke(app, ["show", str(tmp_path / "m.margrove"), "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["class"] == type(learner).__name__
    assert found["learned"]["kind"] == kind
    assert found["status"] == "converged"
    printed = CliRunner().invoke(app, ["show", str(tmp_path / "m.margrove")])
    assert printed.exit_code == 0
    assert "predicts 'species'" in printed.stdout


def test_a_model_without_a_certificate_has_a_report_without_a_proof():
    model, penguins = of_penguins(NearestMean())
    del model[-1].certificate_
    keys = [section.key for section in report_of(model, penguins).sections]
    assert keys == [key for key in FOR_ANY if key not in ("proof", "certificate")]


def test_a_class_without_a_description_is_explained_as_any():
    class Stranger(NearestMean):
        pass

    assert type(explanation_of(Stranger())) is Explanation
    assert explanation_of(object()).called == "object"


def test_an_explanation_may_have_a_kind_of_its_own():
    assert ModelSummary("means", (), 3).size_words == "3 means"
