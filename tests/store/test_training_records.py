"""A model file keeps the training record, as plain data that nobody trusts."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from margrove import BasicLinearClassifier, TableEncoder, load, save
from margrove.errors import ModelFileError
from margrove.store import describe
from margrove.store.container import pack, unpack
from margrove.store.model_file import MOST_BYTES

X, Y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array(["low", "low", "high", "high"])
RECORD: dict[str, Any] = {
    "version": 1,
    "source": "<script>.csv",
    "leaderboard": [{"learner": "basic", "score": 0.5, "parameters": {"C": None}}],
    "estimate": {"rows": [0, 1], "scores": [[0.25, -1e-300], [3, 4.0]]},
}


def file_of(model: Any) -> io.BytesIO:
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return file


def fitted(record: Any = None) -> Any:
    model = BasicLinearClassifier().fit(X, Y)
    if record is not None:
        model.training_record_ = record
    return model


def test_a_record_survives_the_file() -> None:
    assert load(file_of(fitted(RECORD))).training_record_ == RECORD
    assert describe(file_of(fitted(RECORD)))["record"] == RECORD


def test_a_pipeline_keeps_its_record_too() -> None:
    model = make_pipeline(TableEncoder(), BasicLinearClassifier()).fit(X, Y)
    model.training_record_ = RECORD
    assert load(file_of(model)).training_record_ == RECORD


def test_a_model_without_a_record_has_none_in_the_file() -> None:
    model = load(file_of(fitted()))
    assert not hasattr(model, "training_record_")
    assert "record" not in describe(file_of(fitted()))


def test_a_long_record_is_stored_in_a_tensor_and_restored() -> None:
    record = {"estimate": {"scores": [[k / 7, -k / 3] for k in range(40_000)]}}
    file = file_of(fitted(record))
    header, tensors = unpack(file)
    assert header["record"] == {"$tensor": "training_record"}
    assert "training_record" in tensors
    file.seek(0)
    assert load(file).training_record_ == record


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([1, 2], "a JSON object was expected"),
        ({"score": float("nan")}, "not plain JSON"),
        ({"score": np.float32(1)}, "not plain JSON"),
        ({"when": object()}, "not plain JSON"),
        ({"text": "x" * (MOST_BYTES + 1)}, "are allowed"),
    ],
    ids=["list", "nan", "numpy", "object", "huge"],
)
def test_training_records_that_are_not_json_are_refused(record: Any, said: str) -> None:
    with pytest.raises(ModelFileError, match=said):
        save(fitted(record), io.BytesIO())


@pytest.mark.parametrize(
    "forged",
    ["text", [1], {"$tensor": "elsewhere", "more": 1}, {"$tensor": "training_record"}, {"score": float("inf")}],
    ids=str,
)
def test_a_forged_record_is_refused_or_only_data(forged: Any) -> None:
    header, tensors = unpack(file_of(fitted(RECORD)))
    del header["sha256"]
    header["record"] = "FORGED"
    text = json.dumps(header).replace('"FORGED"', json.dumps(forged))
    packed = _pack_raw(text, tensors)
    if forged == {"$tensor": "elsewhere", "more": 1}:  # an object like any other
        assert load(io.BytesIO(packed)).training_record_ == forged
        return
    with pytest.raises(ModelFileError):
        load(io.BytesIO(packed))


def _pack_raw(text: str, tensors: Any) -> bytes:
    """As `pack` does, but numbers that JSON does not have pass."""
    import hashlib

    import safetensors.numpy

    blank = "0" * 64
    header = {"margrove": '{"sha256":"' + blank + '",' + text[1:]}
    raw = bytearray(safetensors.numpy.save(tensors, header))
    place = raw.index(blank.encode())
    raw[place : place + 64] = hashlib.sha256(raw).hexdigest().encode()
    return bytes(raw)


def test_a_tensor_that_is_no_json_is_refused() -> None:
    header, tensors = unpack(file_of(fitted(RECORD)))
    del header["sha256"]
    header["record"] = {"$tensor": "training_record"}
    tensors["training_record"] = np.frombuffer(b"{not json", dtype=np.uint8)
    with pytest.raises(ModelFileError, match="training record is not JSON"):
        load(io.BytesIO(bytes(pack(header, tensors))))
