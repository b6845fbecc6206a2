"""`save`, `load` and `describe`."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from typing import Any

from margrove.errors import MargroveWarning
from margrove.store import long_lists
from margrove.store.arrays import Arrays
from margrove.store.check import check_fields
from margrove.store.codec import put_together, take_apart
from margrove.store.container import pack, unpack
from margrove.store.fault import FaultError
from margrove.store.files import Target, naming, open_for_reading, write
from margrove.store.training_record import FIELD, give_record, move_in, take_record
from margrove.store.versions import FORMAT, Header, Tensors, bring_up_to_date


def save(model: Any, path: Target) -> None:
    """Write a fitted model to a file that `load` reads: a safetensors file, by convention ``.margrove``.

    The file at ``path`` is replaced in one step: whatever happens meanwhile, there is the old one or the new one. The
    same model always gives the same bytes. A ``training_record_``, which ``margrove train`` hangs on its models, is
    kept: how the model came about, as plain JSON values. What a file cannot hold is refused. Two things that no
    prediction needs are saved as None, with a `MargroveWarning`: a ``random_state`` that is a generator, and a
    pipeline's ``memory``.

    Parameters
    ----------
    model : fitted estimator
        A `BasicLinearClassifier`, `LeastSquaresClassifier`, `Perceptron`, `KernelPerceptron`, `SVC`, `NuSVC`, `SVR`,
        `NuSVR`, `OneClassSVM`, `DecisionTreeClassifier`, `DecisionTreeRegressor`, `DecisionStump`, an
        `AdaBoostClassifier` or `AdaBoostRegressor` over these trees, a `OneVsRestClassifier`, `OneVsOneClassifier` or
        `BitStringClassifier` of these, `SoftmaxClassifier`, `FineTuned`, `TableEncoder`, `ImpuritySelector`,
        `ConvFeatures` (its network by name and fingerprint), or a scikit-learn ``Pipeline`` of these.
    path : str, path or binary file
        Where to. A binary file is written to and left open.

    Raises
    ------
    ModelFileError
        If the model cannot be held in a file without code, or the file cannot be written.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier, load, save
    >>> model = BasicLinearClassifier().fit(np.array([[0.0], [1.0], [4.0], [5.0]]), ["low", "low", "high", "high"])
    >>> file = io.BytesIO()
    >>> save(model, file)
    >>> _ = file.seek(0)
    >>> load(file).predict([[0.5], [4.5]])
    array(['low', 'high'], dtype='<U4')
    """
    with naming(path, "Fit the model again before saving it."):
        arrays = Arrays()
        record = take_apart(model, arrays)
        put_together(record, Arrays(dict(arrays.tensors)))  # never write what `load` would refuse
        long_lists.move_out(record, arrays.tensors)
        header = {"format": FORMAT, "margrove": version("margrove"), "model": record}
        take_record(model, header, arrays.tensors)
        content = pack(header, arrays.tensors)
        for words in arrays.left_out:
            warnings.warn(words, MargroveWarning, stacklevel=2)
        write(path, content)


def load(path: Target) -> Any:
    """Read a model that `save` wrote. No code in the file is run: there is no place for any.

    The loaded model predicts the same to the last bit, and has the same parameters, ``certificate_``, ``status_`` and
    names.

    Parameters
    ----------
    path : str, path or binary file

    Returns
    -------
    The fitted model.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is empty, foreign, cut off, damaged, tampered with, or written by a newer
        Margrove.

    Examples
    --------
    >>> import io
    >>> from margrove import load
    >>> load(io.BytesIO(b""))
    Traceback (most recent call last):
    margrove.errors.ModelFileError: the stream: it is empty. Give a file that margrove.save wrote.
    """
    with naming(path, _DAMAGED):
        header, tensors = _read(path)
        model = put_together(header["model"], Arrays(tensors))
        if tensors:
            raise FaultError(f"it holds the array {min(tensors)!r}, for which the model has no use")
        give_record(model, header)
        return model


def describe(path: Target) -> dict[str, Any]:
    """The header of a model file as a plain dict, without building the model.

    The digest and the format are checked, what the header says of the model is not: that is for `load`.

    Parameters
    ----------
    path : str, path or binary file

    Returns
    -------
    dict
        ``format``, ``margrove`` (the version that wrote it), ``sha256``, ``model`` (a record: ``class``,
        ``parameters``, ``labels``, ``certificate``, …; a pipeline's has ``steps``) and ``tensors`` (name → ``dtype``
        and ``shape``); of a model that ``margrove train`` made also ``record``, how it came about.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier, save
    >>> from margrove.store import describe
    >>> file = io.BytesIO()
    >>> save(BasicLinearClassifier().fit(np.array([[0.0], [1.0]]), [0, 1]), file)
    >>> _ = file.seek(0)
    >>> header = describe(file)
    >>> header["model"]["class"], header["tensors"]["coef_"]
    ('BasicLinearClassifier', {'dtype': 'float64', 'shape': [1, 1]})
    """
    with naming(path, _DAMAGED):
        header, tensors = _read(path)
        shapes = {
            name: {"dtype": tensor.dtype.name, "shape": list(tensor.shape)} for name, tensor in sorted(tensors.items())
        }
        return {**header, "tensors": shapes}


_DAMAGED = "Do not use this file: get another copy, or save the model again."


def _read(path: Target) -> tuple[Header, Tensors]:
    with open_for_reading(path) as stream:
        header, tensors = unpack(stream)
    header, tensors = bring_up_to_date(header, tensors)
    check_fields(header, {"sha256", "format", "margrove", "model"} | (header.keys() & {FIELD}), "its header")
    move_in(header, tensors)
    long_lists.move_in(header["model"], tensors)
    return header, tensors
