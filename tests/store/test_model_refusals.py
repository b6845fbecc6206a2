"""What cannot be saved or loaded is refused in one line: the file, the problem, the cure."""

from __future__ import annotations

import io
import json
import pickle
import re
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron as SklearnPerceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from margrove import (
    SVC,
    SVR,
    BasicLinearClassifier,
    KernelPerceptron,
    LeastSquaresClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    load,
    save,
)
from margrove.errors import ModelFileError
from margrove.store import container, describe

X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0], [5.0, 4.0]]), np.array([0, 0, 1, 1])


def refusal(function, *arguments):
    with pytest.raises(ModelFileError) as caught:
        function(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    assert text.endswith(".")
    return text


FOREIGN = {
    "nothing": b"",
    "three bytes": b"abc",
    "text": b"sepal_length,sepal_width,species\n5.1,3.5,setosa\n" * 20,
    "a pickle": pickle.dumps(BasicLinearClassifier().fit(X, Y)),
    "a zip": b"PK\x03\x04" + bytes(100),
    "zeros": bytes(4096),
    "a number for a header": (1).to_bytes(8, "little") + b"7",
    "no JSON": (9).to_bytes(8, "little") + b"{'a': 1} ",
    "no UTF-8": (4).to_bytes(8, "little") + b'{"\xff"',
    "safetensors of others": safetensors.numpy.save({"coef_": np.zeros((1, 2))}),
    "safetensors with other metadata": safetensors.numpy.save({"coef_": np.zeros(1)}, {"format": "pt"}),
    "safetensors with margrove's key": safetensors.numpy.save({"coef_": np.zeros(1)}, {"margrove": "yes"}),
    "safetensors with margrove's number": safetensors.numpy.save({"coef_": np.zeros(1)}, {"margrove": "7"}),
    "safetensors with margrove's object": safetensors.numpy.save({"coef_": np.zeros(1)}, {"margrove": "{}"}),
}


@pytest.mark.parametrize("function", [load, describe])
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(tmp_path, function, name):
    path = tmp_path / "model.margrove"
    path.write_bytes(FOREIGN[name])
    assert refusal(function, path).startswith(f"{path}: ")


def test_a_foreign_file_is_called_so(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(FOREIGN["text"])
    assert (
        refusal(load, path)
        == f"{path}: it is not a Margrove model file. Give a file that margrove.save or `margrove train` wrote."
    )
    path.write_bytes(FOREIGN["safetensors of others"])
    assert "it is a safetensors file, but not one of Margrove's" in refusal(load, path)


def test_missing_files_and_folders_are_refused(tmp_path):
    assert "there is no such file" in refusal(load, tmp_path / "absent.margrove")
    assert "it is a directory" in refusal(load, tmp_path)


def test_a_text_file_object_is_refused():
    assert "mode 'rb'" in refusal(load, io.StringIO("{}"))
    assert "mode 'wb'" in refusal(save, BasicLinearClassifier().fit(X, Y), io.StringIO())
    assert "neither a path nor a binary file" in refusal(load, 7)


def test_a_file_cut_at_any_byte_is_refused(perceptron, content):
    whole = content(perceptron)
    for length in range(len(whole)):
        assert refusal(load, io.BytesIO(whole[:length]))


def test_a_file_that_goes_on_is_refused(perceptron, content):
    for more in (b"\x00", b"\n", bytes(5000)):
        assert "goes on" in refusal(load, io.BytesIO(content(perceptron) + more))


def test_every_byte_counts(content, loaded):
    whole = content(LeastSquaresClassifier().fit(X, Y))
    loaded(whole)
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 1 << (place % 8)
        refusal(load, io.BytesIO(broken))


def test_a_flipped_weight_is_reported_as_damage(perceptron, content):
    broken = bytearray(content(perceptron))
    broken[-3] ^= 1
    text = refusal(load, io.BytesIO(broken))
    assert "damaged or was tampered with" in text
    assert "get another copy" in text


class Reluctant(io.RawIOBase):
    """A stream that would give bytes for ever, and counts them."""

    def __init__(self, start: bytes) -> None:
        self.start, self.given = start, 0

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size <= 1 << 20, "never asks for much at once"
        piece = self.start[self.given : self.given + size].ljust(size, b"\x00")
        self.given += size
        return piece


@pytest.mark.parametrize("length", [container.MOST_HEADER_BYTES + 1, 2**40, 2**63, 2**64 - 1])
def test_a_header_that_claims_to_be_huge_is_not_read(length):
    stream = Reluctant(length.to_bytes(8, "little") + b"{")
    refusal(load, stream)
    assert stream.given == 8


def test_an_array_that_claims_to_be_huge_takes_no_memory(perceptron, content, raw):
    whole = content(perceptron)
    length = int.from_bytes(whole[:8], "little")
    layout = json.loads(whole[8 : 8 + length])
    layout["coef_"] = {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}
    tracemalloc.start()
    assert "is cut off" in refusal(load, io.BytesIO(raw(layout, whole[8 + length :])))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.parametrize("place", ["outer", "inner"])
def test_json_nested_without_end_is_refused(raw, place):
    deep = b"[" * 200_000 + b"]" * 200_000
    if place == "outer":
        text = b'{"__metadata__":' + deep + b"}"
    else:
        text = json.dumps({"__metadata__": {"margrove": '{"model":' + deep.decode() + "}"}}).encode()
    refusal(load, io.BytesIO(raw(text)))


@pytest.mark.parametrize(
    "entry", [None, [], {}, {"data_offsets": [0]}, {"data_offsets": [0, "8"]}, {"data_offsets": [0, -8]}]
)
def test_arrays_without_a_place_are_refused(perceptron, content, raw, entry):
    whole = content(perceptron)
    length = int.from_bytes(whole[:8], "little")
    layout = json.loads(whole[8 : 8 + length])
    layout["coef_"] = entry
    assert "an array has no valid position" in refusal(load, io.BytesIO(raw(layout, whole[8 + length :])))


def test_a_newer_format_requires_an_upgrade(perceptron, content, forged):
    newer = forged(content(perceptron), lambda header, _: header.update(format=2, margrove="9.1"))
    text = refusal(load, io.BytesIO(newer))
    assert "written by a newer Margrove ('9.1')" in text
    assert "pip install --upgrade margrove" in text


@pytest.mark.parametrize("number", [0, -1, None, True, "1", 1.0])
def test_a_format_that_is_no_number_is_refused(perceptron, content, forged, number):
    odd = forged(content(perceptron), lambda header, _: header.update(format=number))
    assert "format number" in refusal(load, io.BytesIO(odd))


def test_older_formats_are_brought_up_to_date(monkeypatch, perceptron, content, loaded):
    old = content(perceptron)

    def rename(header, tensors):
        tensors["n_mistakes_"] = tensors["n_mistakes_"] + 1
        return header, tensors

    monkeypatch.setattr(container, "FORMAT", 3)
    monkeypatch.setattr(container, "UPGRADES", {1: rename, 2: rename})
    assert (loaded(old).n_mistakes_ == perceptron.n_mistakes_ + 2).all()
    assert describe(io.BytesIO(old))["format"] == 3


def test_every_format_but_the_last_has_an_upgrade():
    assert sorted(container.UPGRADES) == list(range(1, container.FORMAT))


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(Perceptron(), tmp_path / "model.margrove")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("learner", [KernelPerceptron, SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_function_is_refused_as_code(tmp_path, fit, learner):
    model = fit(learner(kernel=lambda A, B: A @ B.T), X, Y)
    text = refusal(save, model, tmp_path / "model.margrove")
    assert f"{learner.__name__}'s kernel is the function" in text
    assert "contains no code" in text
    assert list(tmp_path.iterdir()) == []


def test_other_peoples_estimators_are_refused_by_name(tmp_path):
    path = tmp_path / "model.margrove"
    model = make_pipeline(FunctionTransformer(), BasicLinearClassifier()).fit(X, Y)
    text = refusal(save, model, path)
    assert "FunctionTransformer is not a class" in text
    assert "TableEncoder" in text
    assert "sklearn.linear_model" in refusal(save, SklearnPerceptron().fit(X, Y), path)
    assert re.search("builtins.(dict|int)", refusal(save, {}, path))


def test_a_subclass_is_refused(tmp_path):
    class Mine(BasicLinearClassifier):
        pass

    assert "Mine is not a class" in refusal(save, Mine().fit(X, Y), tmp_path / "model.margrove")


def test_parameters_a_file_cannot_hold_are_refused_by_name(tmp_path):
    model = BasicLinearClassifier().fit(X, Y).set_params(n_jobs=np.array(["2"]))
    assert "BasicLinearClassifier's n_jobs is array(['2']" in refusal(save, model, tmp_path / "model.margrove")
    model.set_params(n_jobs=np.zeros(2))
    assert "n_jobs is array([0., 0.]); a number from" in refusal(save, model, tmp_path / "model.margrove")


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = BasicLinearClassifier().fit(X, Y)
    model.coef_[0, 0] = np.nan
    text = refusal(save, model, tmp_path / "model.margrove")
    assert "coef_ holds numbers that are not finite. Fit the model again" in text


def test_a_model_at_odds_with_its_parameters_is_not_saved(tmp_path, perceptron):
    text = refusal(save, perceptron.set_params(variant="voted"), tmp_path / "model.margrove")
    assert "the list of arrays has no 'makers_'. Fit the model again" in text


def test_a_fit_that_did_not_end_is_not_saved(tmp_path, perceptron):
    del perceptron.certificate_
    assert "did not finish" in refusal(save, perceptron, tmp_path / "model.margrove")


def test_a_header_too_large_to_be_read_is_not_written(monkeypatch, tmp_path, perceptron):
    monkeypatch.setattr(container, "MOST_HEADER_BYTES", 100)
    assert "its header would take" in refusal(save, perceptron, tmp_path / "model.margrove")


@pytest.mark.parametrize("labels", [np.array([b"a", b"b"]), np.array([1 + 2j, 3]), np.array([0, 1], dtype=object)])
def test_odd_labels_are_refused(tmp_path, labels):
    model = BasicLinearClassifier().fit(X, Y)
    model.classes_ = labels
    assert "cannot be saved" in refusal(save, model, tmp_path / "model.margrove")
