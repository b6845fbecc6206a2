"""Tables in ONNX: text, truth values and missing cells go in as they are."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from tests.store.onnx_parity import assert_same, run

from margrove import (
    SVC,
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ImpuritySelector,
    LinearSVC,
    OneVsOneClassifier,
    TableEncoder,
    load_penguins,
    write_onnx,
)
from margrove.errors import InputError, ModelFileError
from margrove.onnx.table import MOST_INPUTS
from margrove.store import onnx_inputs

pytestmark = [
    pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning"),
]


def mixed(n: int = 80, seed: int = 3) -> tuple[pd.DataFrame, Any]:
    """Numbers, text, truth values, categories of numbers; a tenth of all cells missing."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey"], n)
    size = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": size,
            "colour": colour,
            "ripe": rng.integers(0, 2, n).astype(bool).astype(object),
            "grade": pd.Categorical(rng.integers(1, 4, n)),
            "weight": np.round(rng.normal(size=n), 1),
        }
    )
    y = np.where((size > 0) ^ np.isin(colour, ["red", "grey"]), "buy", "leave")
    for name in frame:
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame, y


MODELS: dict[str, Any] = {
    "svm": make_pipeline(TableEncoder(), SVC(probability=True)),
    "linear, indicators": make_pipeline(TableEncoder(add_indicator=True, impute="mean"), LinearSVC()),
    "not scaled, zero": make_pipeline(TableEncoder(standardise=False, impute="zero"), LinearSVC()),
    "selected columns": make_pipeline(ImpuritySelector(k=3), TableEncoder(), LinearSVC()),
    "selected numbers": make_pipeline(TableEncoder(), ImpuritySelector(k=3), LinearSVC()),
    "tree of selected columns": make_pipeline(ImpuritySelector(k=3), DecisionTreeClassifier()),
    "tree behind an encoder": make_pipeline(TableEncoder(), DecisionTreeClassifier()),
    "tree": DecisionTreeClassifier(),
    "tree, multi-way": DecisionTreeClassifier(categorical="multiway"),
    "tree, one against the rest": DecisionTreeClassifier(categorical="one_vs_rest"),
    "tree, gain ratio": DecisionTreeClassifier(split_score="gain_ratio"),
    "tree, intervals": DecisionTreeClassifier(split_values={"size": [-1.0, 0.0, 1.0]}),
    "tree, numbers as categories": DecisionTreeClassifier(categorical_features=["weight"]),
    "boost": AdaBoostClassifier(n_estimators=8),
    "pairs of trees": OneVsOneClassifier(DecisionTreeClassifier(max_depth=3)),
    "pairs of pipelines": OneVsOneClassifier(make_pipeline(TableEncoder(), LinearSVC())),
}


@pytest.mark.parametrize("name", MODELS)
def test_text_and_missing_cells_go_in_as_they_are(name):
    X, y = mixed()
    new, _ = mixed(seed=4)
    assert_same(MODELS[name].fit(X, y), new)


@pytest.mark.parametrize("name", MODELS)
def test_categories_unseen_in_training_are_read_as_ours_are(name):
    X, y = mixed()
    new, _ = mixed(seed=5)
    new["colour"] = new["colour"].where(new.index % 3 > 0, "violet")
    new["grade"] = np.where(new.index % 4 == 0, 9.0, 2.0)
    assert_same(MODELS[name].fit(X, y), new)


@pytest.mark.parametrize("name", ["svm", "tree", "boost"])
def test_an_empty_text_that_training_had_not_is_unseen_and_not_missing(name):
    X, y = mixed()
    new, _ = mixed(seed=5)
    new["colour"] = new["colour"].where(new.index % 3 > 0, "")
    assert_same(MODELS[name].fit(X, y), new)


@pytest.mark.parametrize("name", ["svm", "tree, multi-way", "boost"])
def test_rows_where_everything_is_missing_get_a_prediction(name):
    X, y = mixed()
    nothing = X.astype(object).iloc[:3].copy()
    nothing.loc[:, :] = None
    assert_same(MODELS[name].fit(X, y), nothing)


def test_a_column_without_missing_cells_in_training_may_miss_some_later():
    X, y = mixed()
    whole = X.dropna()
    for model in (MODELS["svm"], MODELS["tree"], MODELS["tree, multi-way"]):
        assert_same(model.fit(whole, y[whole.index]), X)


@pytest.mark.parametrize("levels", [["a", "b"], [1, 2]])
def test_a_category_that_some_machine_has_not_seen_is_what_it_is_to_the_others(levels):
    """Of two classes alone every cell is missing: the machine of this pair knows no level."""
    rng = np.random.default_rng(0)
    y = np.repeat(["x", "y", "z"], 20)
    word = np.where(y == "z", np.tile(levels, 30).astype(object), None)
    X = pd.DataFrame({"word": pd.Categorical(word, categories=levels), "size": rng.normal(size=60)})
    model = OneVsOneClassifier(DecisionTreeClassifier()).fit(X, y)
    assert any(not machine.nodes_.columns[0].levels for machine in model.estimators_)
    assert_same(model, X)


def test_inputs_are_the_columns_by_name_and_kind():
    X, y = mixed()
    for name in ("svm", "tree"):
        written = write_onnx(MODELS[name].fit(X, y), io.BytesIO())
        kinds = {fact["name"]: fact["kind"] for fact in written.inputs}
        assert kinds == {
            "size": "number",
            "colour": "text",
            "ripe": "truth value",
            "grade": "number",
            "weight": "number",
        }
        types = {each.name: each.type.tensor_type.elem_type for each in written.proto.graph.input}
        assert types == {"size": 11, "colour": 8, "ripe": 11, "grade": 11, "weight": 11}  # double, string


def test_columns_left_out_by_the_encoder_are_not_inputs():
    X, y = mixed()
    X = X.assign(always="same")
    written = write_onnx(MODELS["svm"].fit(X, y), io.BytesIO())
    assert "always" not in {fact["name"] for fact in written.inputs}


def test_the_empty_string_may_be_a_level():
    X, y = mixed()
    X["colour"] = X["colour"].astype(object).replace("blue", "")
    X["ripe"] = X["colour"].replace("", "(missing)")
    for name in ("svm", "tree"):
        model = MODELS[name].fit(X, y)
        assert_same(model, X)
        words = {fact["name"]: fact.get("missing") for fact in write_onnx(model, io.BytesIO()).inputs}
        assert (words["colour"], words["ripe"]) == ("(missing)", "")


def test_columns_may_be_called_as_the_outputs_are():
    X, y = mixed()
    X = X.rename(columns={"size": "label", "colour": "scores", "grade": "X", "weight": "/Add_1"})
    found = run(MODELS["svm"].fit(X, y), X)
    assert list(found) == ["label_", "scores_", "probabilities"]


def test_a_column_without_a_name_is_refused():
    X, y = mixed()
    with pytest.raises(ModelFileError, match="a column has no name"):
        write_onnx(DecisionTreeClassifier().fit(X.rename(columns={"size": ""}), y), io.BytesIO())


def test_free_text_is_refused_by_name():
    X = pd.DataFrame({"stars": [5.0, 1, 4, 2] * 3, "body": ["good tea", "bad pot", "good pot", "bad tea"] * 3})
    model = make_pipeline(TableEncoder(text="body", drop_identifiers=False), LinearSVC()).fit(X, [1, 0, 1, 0] * 3)
    with pytest.raises(ModelFileError, match=r"the column 'body' is free text.*Leave it out of text"):
        write_onnx(model, io.BytesIO())


def test_a_table_of_penguins_goes_in_as_a_table():
    penguins = load_penguins()
    for model in (make_pipeline(TableEncoder(), SVC()), DecisionTreeClassifier(max_depth=3)):
        assert_same(model.fit(penguins, penguins.labels()), penguins)


def test_arrays_of_text_have_an_input_for_each_column():
    X, y = mixed()
    cells = X[["size", "colour"]].to_numpy(dtype=object)
    for model in (MODELS["svm"], MODELS["tree"]):
        assert_same(model.fit(cells, y), cells)
        assert [fact["name"] for fact in write_onnx(model, io.BytesIO()).inputs] == ["x0", "x1"]


def test_selected_columns_of_an_array_are_found_by_position():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 3] > 0
    model = make_pipeline(ImpuritySelector(k=2), TableEncoder(), DecisionTreeClassifier()).fit(X, y)
    assert_same(model, X)
    (fact,) = write_onnx(model, io.BytesIO()).inputs
    assert fact == {"name": "X", "kind": "numbers", "columns": ["x0", "x1", "x2", "x3", "x4"]}


def test_very_many_named_numbers_are_one_matrix():
    rng = np.random.default_rng(0)
    names = [f"gene {j}" for j in range(MOST_INPUTS + 1)]
    X = pd.DataFrame(rng.normal(size=(30, len(names))), columns=names)
    model = LinearSVC().fit(X, X["gene 7"] > 0)
    (fact,) = write_onnx(model, io.BytesIO()).inputs
    assert fact["columns"] == names
    assert_same(model, X)


def test_frames_of_numbers_are_named_inputs_for_any_learner():
    X, y = mixed()
    X = X[["size", "weight"]].dropna()
    model = LinearSVC().fit(X, y[X.index])
    assert [fact["name"] for fact in write_onnx(model, io.BytesIO()).inputs] == ["size", "weight"]
    assert_same(model, X)


def test_numbers_of_a_category_of_a_regression():
    X, _ = mixed()
    z = np.arange(len(X)) / 7.0
    assert_same(DecisionTreeRegressor(max_depth=4).fit(X, z), X)


def test_a_table_that_lacks_a_column_is_refused(tmp_path):
    X, y = mixed()
    write_onnx(MODELS["tree"].fit(X, y), tmp_path / "t.onnx")
    with pytest.raises(InputError, match="'colour'"):
        onnx_inputs(tmp_path / "t.onnx", X.drop(columns="colour"))
    with pytest.raises(InputError, match="not a number"):
        onnx_inputs(tmp_path / "t.onnx", X.assign(size="large"))


def test_inputs_of_a_matrix_are_checked(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    write_onnx(LinearSVC().fit(X, [0, 0, 0, 1, 1, 1]), tmp_path / "l.onnx")
    assert onnx_inputs(tmp_path / "l.onnx", X.astype(np.float32))["X"].dtype == np.float64
    with pytest.raises(InputError, match="2 columns were expected"):
        onnx_inputs(tmp_path / "l.onnx", X[:, :1])


def test_files_of_other_programs_are_refused(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"no")
    with pytest.raises(ModelFileError, match="not an ONNX file"):
        onnx_inputs(tmp_path / "no.onnx", np.zeros((1, 1)))
    with pytest.raises(ModelFileError, match="there is no such file"):
        onnx_inputs(tmp_path / "none.onnx", np.zeros((1, 1)))
    written = write_onnx(LinearSVC().fit([[0.0], [1.0]], [0, 1]), io.BytesIO())
    del written.proto.metadata_props[:]
    with pytest.raises(ModelFileError, match="of another program"):
        onnx_inputs(io.BytesIO(written.proto.SerializeToString()), np.zeros((1, 1)))


def test_the_metadata_describe_the_inputs():
    X, y = mixed()
    written = write_onnx(MODELS["tree"].fit(X, y), io.BytesIO())
    properties = {each.key: each.value for each in written.proto.metadata_props}
    assert json.loads(properties["margrove.inputs"]) == written.inputs
