"""A model of pictures in a file: the network is named by its fingerprint, and no code is held."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from margrove import SVC, ConvFeatures, DecisionTreeClassifier, TableEncoder, certify, load, save, write_onnx
from margrove.errors import InputError, ModelFileError
from margrove.store import describe
from margrove.store.container import pack, unpack


def again(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return load(file)


def svm_on(edges, **given):
    codes = ConvFeatures(edges, size=12, **given)
    return Pipeline([("codes", codes), ("scale", TableEncoder()), ("learn", SVC())])


def test_a_loaded_pipeline_predicts_the_same(edges, stripes, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where the network is
    model = svm_on(edges, flip=True, crop=0.9, mean=(0.4, 0.5, 0.6), normalise="l2").fit(*stripes)
    loaded = again(model)
    np.testing.assert_array_equal(loaded.decision_function(stripes[0]), model.decision_function(stripes[0]))
    assert certify(loaded, *stripes).holds


def test_a_tree_on_named_maps_is_saved_and_loaded(edges, stripes, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    features = ConvFeatures(edges, size=12, named=True)
    model = Pipeline([("maps", features), ("tree", DecisionTreeClassifier(thresholds="gaussian"))]).fit(*stripes)
    loaded = again(model)
    assert str(loaded[-1].rules()) == str(model[-1].rules())
    assert (loaded.predict(stripes[0]) == model.predict(stripes[0])).all()


def test_the_file_names_the_network_and_neither_folder_nor_cache(edges, stripes, tmp_path):
    file = io.BytesIO()
    save(svm_on(edges, cache=tmp_path / "cache").fit(*stripes), file)
    file.seek(0)
    record = describe(file)["model"]["steps"][0][1]
    assert record["parameters"]["network"] == "edges.onnx"
    assert (record["parameters"]["cache"], record["parameters"]["download"]) == (None, False)
    assert len(record["network_digest"]) == 32
    assert str(tmp_path) not in json.dumps(record)


def test_a_missing_network_is_requested(edges, stripes, tmp_path, monkeypatch):
    loaded = again(svm_on(edges).fit(*stripes))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with pytest.raises(
        InputError, match=r"was not found \(edges\.onnx, fingerprint [0-9a-f]{32}\)\. Set it: set_params"
    ):
        loaded.predict(stripes[0])
    loaded[0].set_params(network=edges)
    assert loaded.score(*stripes) == 1.0


def forged(model, **changes):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    header, tensors = unpack(file)
    del header["sha256"]
    record = header["model"]["steps"][0][1]
    for name, value in changes.items():
        (record if name in record else record["parameters"])[name] = value
    return io.BytesIO(pack(header, tensors))


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "../../secret.onnx"},
        {"network": "/etc/passwd"},
        {"weights": "a/b.pth"},
        {"download": True},
        {"cache": "/tmp"},
        {"network_digest": "abc"},
        {"n_features_out": 3},
        {"n_features_out": 0},
        {"preparation": {"size": 10**9, "crop": 1.0, "mean": [0.5], "std": [0.5]}},
        {"preparation": {"size": 8, "crop": 1.0, "mean": [0.5], "std": [0.0]}},
        {"preparation": {"size": 8, "crop": 1.0, "mean": [0.5, 0.5], "std": [0.5, 0.5]}},
        {"batch_size": 0},
        {"layer": 5},
        {"pooling": "median"},
    ],
    ids=str,
)
def test_a_forged_record_is_refused(edges, stripes, changes):
    with pytest.raises(ModelFileError):
        load(forged(svm_on(edges).fit(*stripes), **changes))


def test_a_fine_tuned_network_is_saved_and_loaded(stripes):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from margrove import FineTuned

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(400, 2))
    model = FineTuned(net, size=12, epochs=2, learning_rate=0.01, random_state=0).fit(*stripes)
    loaded = again(model)
    with pytest.raises(InputError, match="the network of this FineTuned was not found"):
        loaded.predict(stripes[0])
    loaded.set_params(network=net)
    np.testing.assert_array_equal(loaded.decision_function(stripes[0]), model.decision_function(stripes[0]))
    assert loaded.course_ == model.course_
    assert certify(loaded, *stripes).holds
    with pytest.raises(InputError, match="not the one that this model was fitted with"):
        loaded.set_params(network=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(432, 2))).predict(stripes[0])


def test_pictures_have_no_form_in_onnx_and_the_learner_on_codes_has(edges, stripes):
    model = svm_on(edges).fit(*stripes)
    with pytest.raises(ModelFileError, match=r"ConvFeatures takes pictures.*write_onnx\(pipeline\[-1\]"):
        write_onnx(model, io.BytesIO())
    assert write_onnx(model[-1], io.BytesIO()).outputs == ["label", "scores"]
