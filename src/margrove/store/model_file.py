"""`save`, `load` and `describe`.

The training record of a model is optional plain JSON, written by anybody. `margrove.app.provenance` knows what its keys
mean; here it is only checked that it is an object of finite JSON values of a modest size.
"""

from __future__ import annotations

import json
import warnings
from importlib.metadata import version
from typing import Any

from margrove.errors import MargroveWarning
from margrove.store import long_lists
from margrove.store.arrays import Arrays
from margrove.store.codec import put_together, take_apart
from margrove.store.container import FORMAT, pack
from margrove.store.fault import FaultError, shown
from margrove.store.files import Target, naming, write
from margrove.store.saved import DAMAGED, FIELD, MOST_BYTES, TENSOR, read_file

RECORD = "training_record_"  # the attribute of a model


def save(model: Any, path: Target) -> None:
    """Write a fitted model to a file that `load` reads: a safetensors file, by convention ``.margrove``.

    The file at ``path`` is replaced in one step: whatever happens meanwhile, there is the old one or the new one. The
    same model always gives the same bytes. What a file cannot hold is a `ModelFileError`. Two things that no prediction
    needs are saved as None, with a `MargroveWarning`: a ``random_state`` that is a generator, and a pipeline's
    ``memory``.

    Parameters
    ----------
    model : fitted estimator
        A learner or transformer of Margrove's, or a scikit-learn ``Pipeline`` of these.
    path : str, path or binary file
        Where to. A binary file is written to and left open.

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
        if (history := getattr(model, RECORD, None)) is not None:
            header[FIELD] = _checked_record(history)
            long_lists.move_field(header, FIELD, arrays.tensors, TENSOR)
        content = pack(header, arrays.tensors)
        for words in arrays.left_out:
            warnings.warn(words, MargroveWarning, stacklevel=2)
        write(path, content)


def load(path: Target) -> Any:
    """Read a model that `save` wrote. No code in the file is run: there is no place for any.

    Parameters
    ----------
    path : str, path or binary file
        A file that is empty, foreign, cut off, damaged, or written by a newer Margrove is a `ModelFileError`.

    Returns
    -------
    The fitted model, which predicts the same to the last bit.

    Examples
    --------
    >>> import io
    >>> from margrove import load
    >>> load(io.BytesIO(b""))
    Traceback (most recent call last):
    margrove.errors.ModelFileError: the stream: it is empty. Give a file that margrove.save or `margrove train` wrote.
    """
    with naming(path, DAMAGED):
        header, tensors = read_file(path)
        model = put_together(header["model"], Arrays(tensors))
        if tensors:
            raise FaultError(f"it holds the array {min(tensors)!r}, which the model does not use")
        if FIELD in header:
            setattr(model, RECORD, _checked_record(header[FIELD]))
        return model


def describe(path: Target) -> dict[str, Any]:
    """Return the header of a model file as a plain dict, without building the model.

    The digest and the format are checked, what the header says of the model is not: that is for `load`.

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
    with naming(path, DAMAGED):
        header, tensors = read_file(path)
        shapes = {
            name: {"dtype": tensor.dtype.name, "shape": list(tensor.shape)} for name, tensor in sorted(tensors.items())
        }
        return {**header, "tensors": shapes}


def _checked_record(record: Any) -> Any:
    if not isinstance(record, dict):
        raise FaultError(f"its training record is {shown(record)}; a JSON object was expected")
    try:
        size = len(json.dumps(record, allow_nan=False, separators=(",", ":")).encode())
    except (TypeError, ValueError) as error:
        raise FaultError(f"its training record is not plain JSON: {error}") from error
    if size > MOST_BYTES:
        raise FaultError(
            f"its training record takes {size:,} bytes; {MOST_BYTES:,} are allowed",
            "Remove entries from training_record_.",
        )
    return record
