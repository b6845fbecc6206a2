"""`write_onnx` and `onnx_inputs`: models for ONNX runtimes, and the rows that these take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.alignment import as_trained, check_names
from margrove.data.columns import MISSING
from margrove.data.frames import as_array, as_features
from margrove.data.table import Table
from margrove.errors import InputError
from margrove.onnx.graph import onnx_package
from margrove.store.fault import FaultError
from margrove.store.files import Target, naming, open_for_reading, write

if TYPE_CHECKING:
    from margrove.onnx.model import Export

_INPUTS = "margrove.inputs"


def write_onnx(model: Any, path: Target) -> Export:
    """Write a fitted model as an ONNX file: any ONNX runtime then predicts as it does, in float64.

    Inputs are the columns of the training table, by name and each of shape (n, 1), or one matrix ``X``. A number or a
    truth value (1 or 0) is a double, NaN where it is missing. Text is a string, "" where it is missing (where "" is a
    level, another word, which the file's metadata tell). Outputs are ``label``, ``scores`` (`decision_function`) and
    ``probabilities`` as far as the model has them, of a regression ``prediction``; "_" follows where a column has that
    name.

    Parameters
    ----------
    model : fitted estimator
        Any learner of ours but those with a callable or precomputed kernel, alone or at the end of a ``Pipeline`` with
        `TableEncoder`, `ImpuritySelector` or scikit-learn's scalers before it; a search, whose best model is written.
        Not a `TableEncoder` with columns of free text.
    path : str, path or binary file
        Where to. The file there is replaced in one step. A binary file is written to and left open.

    Returns
    -------
    Export
        ``inputs``: name, kind and missing word of each; ``outputs``: their names; ``proto``: the model itself.

    Examples
    --------
    >>> import io
    >>> from margrove import DecisionTreeClassifier, load_penguins, write_onnx
    >>> penguins = load_penguins()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> written = write_onnx(tree, io.BytesIO())
    >>> written.inputs[0], written.outputs
    ({'name': 'island', 'kind': 'text', 'missing': ''}, ['label', 'probabilities'])
    """
    from margrove.onnx.model import export  # only for those who export

    with naming(path, "Fit the model again."):
        made = export(model)
        write(path, made.proto.SerializeToString())
        return made


def onnx_inputs(path: Target, X: Any) -> dict[str, NDArray[Any]]:
    """Return the rows of a table as the inputs of an ONNX file of `write_onnx`, for ``InferenceSession.run``.

    Parameters
    ----------
    path : str, path or binary file
        The ONNX file.
    X : data frame, Table or array
        Columns are found by name where the file has names.

    Examples
    --------
    >>> import io
    >>> from margrove import DecisionTreeClassifier, load_penguins, write_onnx
    >>> from margrove.store import onnx_inputs
    >>> penguins, file = load_penguins(), io.BytesIO()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> _ = write_onnx(tree, file), file.seek(0)
    >>> onnx_inputs(file, penguins)["island"][:2].tolist()
    [['Torgersen'], ['Torgersen']]
    """
    with naming(path, "Give a file that margrove.write_onnx wrote."):
        facts = _facts(path)
    if facts[0]["kind"] == "numbers":
        return {facts[0]["name"]: _matrix(X, facts[0]["columns"])}
    table = X if isinstance(X, Table) else as_features(X)
    check_names(table, [fact["name"] for fact in facts], known=table.names)
    return {fact["name"]: _column(table, fact)[:, None] for fact in facts}


def _facts(path: Target) -> list[dict[str, Any]]:
    with open_for_reading(path) as stream:
        content = stream.read()
    onnx = onnx_package()
    try:
        proto = onnx.load_model_from_string(content)
    except Exception as error:  # protobuf's own kinds differ from version to version
        raise FaultError("it is not an ONNX file") from error
    properties = {each.key: each.value for each in proto.metadata_props}
    if _INPUTS not in properties:
        raise FaultError("it is an ONNX file of another program: it does not describe its inputs")
    facts: list[dict[str, Any]] = json.loads(properties[_INPUTS])
    return facts


def _matrix(X: Any, names: list[str]) -> NDArray[np.float64]:
    if isinstance(X, Table) or hasattr(X, "columns"):
        table = X if isinstance(X, Table) else as_features(X)
        check_names(table, names, known=table.names)
        X = table.select(names)
        if X.sparse is None and X.block is None:
            X = np.column_stack([_column(X, {"name": name, "kind": "number"}) for name in names])
        else:
            X = X.block if X.sparse is None else X.sparse
    cells = X.toarray() if sp.issparse(X) else as_array(X)
    if cells.ndim != 2 or cells.shape[1] != len(names):
        raise InputError(f"X has shape {cells.shape}; rows of {len(names)} columns were expected")
    return np.asarray(cells, dtype=np.float64)


def _column(table: Table, fact: dict[str, Any]) -> NDArray[Any]:
    kind = {"number": "numeric", "truth value": "boolean", "text": "text"}[fact["kind"]]
    column = as_trained(table, {"name": fact["name"], "kind": kind})
    if kind == "numeric":
        return column.values.astype(np.float64)
    if kind == "boolean":
        return np.where(column.values == MISSING, np.nan, column.values.astype(np.float64))
    # A cell that happens to be the word for a missing one is no level of the model's, or the word would be another.
    levels = [f"{level}\0" if level == fact["missing"] else level for level in column.levels]
    words = np.array([*levels, fact["missing"]], dtype=object)
    return np.asarray(words[column.values])  # a missing cell is −1, the last
