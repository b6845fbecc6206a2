"""`margrove.auto` and `margrove.report`: what the commands do, on tables in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import margrove
from margrove.errors import InputError, MargroveWarning, ParameterError


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    colour = rng.choice(["red", "blue"], 200)
    kind = np.where(size + (colour == "red") + 0.3 * rng.normal(size=200) > 0.5, "big", "small")
    return pd.DataFrame({"size": size, "colour": colour, "kind": kind})


def test_auto_and_report_of_a_frame(frame, tmp_path):
    model = margrove.auto(frame, target="kind", model="tree", budget=5)
    assert model.score(frame.drop(columns="kind"), frame["kind"]) > 0.85
    assert model.certificate_.holds
    text = margrove.report(model, frame, frame["kind"], tmp_path / "kind.md", format="md")
    assert text.startswith("# How 'kind' is predicted")
    assert (tmp_path / "kind.md").read_text(encoding="utf-8") == text


def test_y_may_be_given_apart(frame):
    one = margrove.auto(frame, target="kind", model="basic")
    other = margrove.auto(frame.drop(columns="kind"), frame["kind"], model="basic")
    assert np.array_equal(one[-1].coef_, other[-1].coef_)
    assert np.array_equal(one[-1].coef_, margrove.auto(frame, "kind", model="basic")[-1].coef_)


def test_auto_estimates_numbers(frame):
    model = margrove.auto(frame[["colour"]], frame["size"], model="tree", metric="mae")
    record = model.training_record_["estimate"]
    assert record["metric"] == "mae"
    assert record["measure"] == "R²"


def test_rare_classes_are_noticed(frame):
    kind = np.where(np.arange(200) % 25 == 0, "odd", "usual")
    with pytest.warns(MargroveWarning, match="never predicts 'odd'"):
        margrove.auto(frame[["size"]], kind, model="tree", metric="accuracy")
    model = margrove.auto(frame[["size"]], kind, model="linear", budget=2)
    assert model[-1].class_weight == "balanced"
    assert model.training_record_["estimate"]["metric"] == "balanced_accuracy"


def test_messages_name_parameters_of_python(frame):
    with pytest.raises(ParameterError, match=r"^metric is 'acuracy'; it must be .* Did you mean"):
        margrove.auto(frame, target="kind", metric="acuracy")
    with pytest.raises(InputError, match="no column 'sort'"):
        margrove.auto(frame, target="sort")
    with pytest.raises(InputError, match=r"column 'kind': the targets are not numbers, .*\(task regress, or a metric"):
        margrove.auto(frame, "kind", metric="rmse")
    with pytest.raises(ParameterError, match=r"^budget is -1, and model auto needs time"):
        margrove.auto(frame, "kind", budget=-1)


def test_columns_that_are_left_out_are_named(frame):
    with pytest.warns(MargroveWarning, match="nearly every cell is different are left out: 'name'"):
        margrove.auto(frame.assign(name=[f"n{k}" for k in range(200)]), "kind", model="basic")
