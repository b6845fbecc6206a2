"""A learner registered from outside with an offer is a choice of the commands `train` and `compare`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from margrove import learner as registry
from margrove.app.cli import app
from margrove.learner import Learner, Offer
from tests.learner.test_outside import MEANS, NearestMean, certify_means


@pytest.fixture(autouse=True)
def _offered():
    offer = Offer("nearest", "the class whose mean is nearest")
    registry.register(Learner(NearestMean, "a nearest mean", certify=certify_means, file=MEANS, offer=offer))


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_trained_saved_certified_and_predicts(tmp_path):
    model = tmp_path / "m.margrove"
    trained = json.loads(run("train", "--model", "nearest", "-o", model, "--json"))
    assert trained["learner"] == "nearest"
    assert trained["certificate"]["learner"] == "NearestMean"
    assert trained["certificate"]["holds"] is True
    assert "NearestMean" in run("show", model)
    assert list(tmp_path.glob("*.html"))


def test_it_is_compared_with_the_others():
    names = [entry["learner"] for entry in json.loads(run("compare", "--json"))["learners"]]
    assert names[-1] == "nearest"
