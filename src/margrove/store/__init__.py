"""Model files: one file that holds a fitted model and cannot run code.

``save`` takes a model apart into plain JSON and arrays (`parts`), `container` packs both into a safetensors file with a
digest, `files` puts it on disk in one step. ``load`` goes the other way, and believes nothing: the digest, the class,
the parameters' names, every shape, type and range are checked against `schema` before a model is built.

Models of other worlds: ``write_libsvm_model`` and ``read_libsvm_model`` (`libsvm_file`), ``write_onnx`` and
``onnx_inputs`` (`margrove.onnx`), ``from_sklearn`` (`sklearn_models`).
"""

from __future__ import annotations

from margrove.onnx.file import onnx_inputs, write_onnx
from margrove.store.libsvm_file import read_libsvm_model, write_libsvm_model
from margrove.store.model_file import describe, load, save
from margrove.store.sklearn_models import from_sklearn

__all__ = [
    "describe",
    "from_sklearn",
    "load",
    "onnx_inputs",
    "read_libsvm_model",
    "save",
    "write_libsvm_model",
    "write_onnx",
]
