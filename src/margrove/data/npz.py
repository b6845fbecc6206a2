"""NumPy's .npz and .npy files, read without pickle, so that no code in them can run.

An archive holds the features as ``X_train``, ``X`` or ``data`` and the target as ``y_train``, ``y`` or
``target``. Features may be the four parts of a CSR matrix instead: ``X_train_data``, ``X_train_indices``,
``X_train_indptr``, ``X_train_shape``. ``classes`` gives the labels that a whole-number target counts, and
``feature_names`` the names of the columns.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from margrove.advice import Advice, Parameter, Setting
from margrove.data.columns import category_column, clip, named
from margrove.data.frames import as_features, as_table, check_finite, check_sparse
from margrove.data.memory import check_memory
from margrove.data.source import Content, binary_file, damage_refused
from margrove.data.table import Table
from margrove.data.target import Target

PAIRS = (("X_train", "y_train"), ("X", "y"), ("data", "target"))
_CSR_PARTS = ("data", "indices", "indptr", "shape")
_CURE = "Save it again with numpy.savez, as plain arrays."


def read_npy(content: Content) -> Table:
    """Read one array of two dimensions: the table without a target."""
    with damage_refused(content.name, "NumPy", _CURE):
        array = np.load(io.BytesIO(content.data), allow_pickle=False)
    table = as_table(_checked(array, content, "array"))
    return table.renamed(table.names, source=content.name)


def read_npz(content: Content, target: Target) -> Table:
    """Read an archive of arrays: the table, with its target where it has one and one is wanted. Raise `InputError` if
    the archive is damaged, holds Python objects, or has no features that can be recognised."""
    with damage_refused(content.name, "NumPy", _CURE):
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
            members = archive.namelist()
        if not all(member.endswith(".npy") for member in members):
            raise binary_file(content, "a ZIP archive, but no workbook and no .npz")
        with np.load(io.BytesIO(content.data), allow_pickle=False) as archive:
            arrays = _Arrays(content, archive)
            return _read_arrays(arrays, content, target)


class _Arrays:
    """The archive's arrays by name; each is decompressed on access."""

    def __init__(self, content: Content, archive: Any) -> None:
        self._content, self._archive = content, archive
        self.names: list[str] = list(archive.files)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> NDArray[Any]:
        check_memory(2 * self._archive.zip.getinfo(f"{name}.npy").file_size, self._content.name)
        try:
            array: NDArray[Any] = self._archive[name]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            problem = f"the array {name!r} cannot be read without running code it contains ({clip(str(error), 60)})"
            raise self._content.error(problem, cure="Save it as plain numbers or text, not as objects.") from None
        return array


def _read_arrays(arrays: _Arrays, content: Content, target: Target) -> Table:
    for features, labels in PAIRS:
        is_sparse = all(f"{features}_{part}" in arrays for part in _CSR_PARTS)
        if not (is_sparse or features in arrays):
            continue
        X = _csr(arrays, features, content) if is_sparse else _checked(arrays[features], content, features)
        table = as_table(X)
        names = [str(name) for name in arrays["feature_names"]] if "feature_names" in arrays else table.names
        table = table.renamed(names, source=content.name)
        if labels not in arrays or target is False:
            return table
        if target not in (None, labels, "y", "target"):
            cure = Advice("Leave ", Parameter("target"), " out, or set ", Setting("target", labels), ".")
            raise content.error(f"the target of this file is its array {labels!r}", cure=cure)
        return _with_labels(table, arrays, labels, content)
    problem = f"no features among the arrays {named(arrays.names)}"
    raise content.error(problem, cure="Call them X and y, or X_train and y_train.")


def _csr(arrays: _Arrays, name: str, content: Content) -> scipy.sparse.csr_matrix:
    cells, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in _CSR_PARTS)
    try:
        matrix = scipy.sparse.csr_matrix((cells, indices, indptr), shape=tuple(shape))
        check_sparse(matrix)
    except (ValueError, TypeError) as error:
        problem = f"the parts of the sparse matrix {name!r} do not fit together ({clip(str(error), 80)})"
        raise content.error(problem, cure="Write the file again.") from None
    return matrix


def _checked(array: NDArray[Any], content: Content, name: str) -> NDArray[Any]:
    if array.ndim != 2:
        shape = " × ".join(str(size) for size in array.shape)
        problem = f"the array {name!r} has {array.ndim} dimensions ({shape}); a table has rows and columns"
        raise content.error(problem, cure="Save it as X.reshape(len(X), -1).")
    if array.size == 0:
        raise content.error(f"the array {name!r} has no cells", cure="Was it fully written?")
    return array


def _with_labels(table: Table, arrays: _Arrays, name: str, content: Content) -> Table:
    y = arrays[name]
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.ndim != 1 or len(y) != table.n_rows:
        problem = f"the target {name!r} has shape {y.shape} for {table.n_rows} rows"
        raise content.error(problem, cure="Give one label per row.")
    notes = [f"The target is the array {name!r}."]
    if name == "y_train" and any(other.startswith("X_test") for other in arrays.names):
        notes.append("The test part of the file is not read.")
    if "classes" in arrays and y.dtype.kind in "iu":
        classes = arrays["classes"]
        if y.size and not (y.min() >= 0 and y.max() < len(classes)):
            problem = f"the target {name!r} runs from {y.min()} to {y.max()} over {len(classes)} classes"
            raise content.error(problem, cure="Write the file again.")
        target = category_column(name, y.astype(np.int64), classes.tolist())
    else:
        target = as_features(y.reshape(-1, 1)).columns[0].renamed(name)
    labelled = table.with_target(target, *notes)
    check_finite(labelled)
    return labelled
