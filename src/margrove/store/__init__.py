"""Model files: one file that holds a fitted model and cannot run code. The store knows no family of learners.

``save`` has a model taken apart into plain JSON and arrays by the codec that the registry names for its class
(`codec`; most are a `schema`). `container` packs both into a safetensors file with a digest, `files` puts it on disk in
one step. ``load`` goes the other way, and believes nothing: the digest, the class, the parameters' names, every shape,
type and range are checked before a model is built.

Models of other libraries: ``from_sklearn`` and ``to_sklearn`` (`adoption`). ``write_onnx``, ``onnx_inputs``,
``write_libsvm_model`` and ``read_libsvm_model`` live elsewhere. All are loaded when they are asked for: a program that
only predicts loads no scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from margrove.learner import loaded

if TYPE_CHECKING:
    from margrove.store.adoption import from_sklearn as from_sklearn
    from margrove.store.adoption import to_sklearn as to_sklearn
    from margrove.store.model_file import describe as describe
    from margrove.store.model_file import load as load
    from margrove.store.model_file import save as save

_PLACES = {
    "describe": "margrove.store.model_file",
    "from_sklearn": "margrove.store.adoption",
    "load": "margrove.store.model_file",
    "onnx_inputs": "margrove.onnx.file",
    "read_libsvm_model": "margrove.svm.libsvm_file",
    "save": "margrove.store.model_file",
    "to_sklearn": "margrove.store.adoption",
    "write_libsvm_model": "margrove.svm.libsvm_file",
    "write_onnx": "margrove.onnx.file",
}
__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return loaded(f"{_PLACES[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
