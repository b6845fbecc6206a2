"""Model files: one file that holds a fitted model and cannot run code. The store knows no family of learners.

``save`` has a model taken apart into plain JSON and arrays by the codec that the registry names for its class
(`codec`; most are a `schema`). `container` packs both into a safetensors file with a digest, `files` puts it on disk in
one step. ``load`` goes the other way, and believes nothing: the digest, the class, the parameters' names, every shape,
type and range are checked before a model is built.

Models of other libraries: ``from_sklearn`` and ``to_sklearn`` (`adoption`). ``write_onnx``, ``onnx_inputs``,
``write_libsvm_model`` and ``read_libsvm_model`` live elsewhere and are loaded when they are asked for here.
"""

from __future__ import annotations

from typing import Any

from margrove.learner import loaded
from margrove.store.adoption import from_sklearn, to_sklearn
from margrove.store.model_file import describe, load, save

_ELSEWHERE = {
    "onnx_inputs": "margrove.onnx.file",
    "read_libsvm_model": "margrove.svm.libsvm_file",
    "write_libsvm_model": "margrove.svm.libsvm_file",
    "write_onnx": "margrove.onnx.file",
}
__all__ = ["describe", "from_sklearn", "load", "save", "to_sklearn", *_ELSEWHERE]


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return loaded(f"{_ELSEWHERE[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
