"""Changes of a model file by somebody who knows its format; `forge` of conftest gives them a valid digest."""

from __future__ import annotations

import io

import numpy as np
import pytest

from margrove import load
from margrove.errors import ModelFileError


def refuse(content, words):
    """Assert that `load` refuses a file, in one line with these words."""
    with pytest.raises(ModelFileError, match=words) as caught:
        load(io.BytesIO(content))
    assert "\n" not in str(caught.value)


def put(**values):
    return lambda header, tensors: header["model"].update(values)


def put_parameter(**values):
    return lambda header, tensors: header["model"]["parameters"].update(values)


def put_scalar(**values):
    return lambda header, tensors: header["model"]["scalars"].update(values)


def put_tensor(name, change):
    def change_tensor(header, tensors):
        tensors[name] = np.ascontiguousarray(change(tensors[name].copy()))

    return change_tensor


def entry(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def drop_tensor(name):
    return lambda header, tensors: tensors.pop(name)
