"""LIBSVM and SVMlight files (``+1 3:0.5 7:1``), read by scikit-learn: sparse, the label is the target."""

from __future__ import annotations

import io
import re

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from margrove.advice import Advice, Parameter
from margrove.data.columns import Column, clip, is_number
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content
from margrove.data.table import Table
from margrove.data.target import Target
from margrove.errors import InputError

MOST_FEATURES = 20_000_000  # each has a name; an index beyond is more likely a misprint than a feature

_PAIR = re.compile(rb"(qid|\d+):(\S*)")


def read_svmlight(content: Content) -> Table:
    """Read a sparse table whose features are called by their index: feature_1, feature_2, …, and feature_0 where the
    file has an index 0. Raise `InputError` if a line is not a label and index:value pairs, or a value is infinite."""
    matrix, y = parse_svmlight(content)
    if matrix.shape[0] == 0:
        raise content.error("the file has no rows", cure="Each line is a label and its features.")
    return svmlight_table(content, matrix, y, first=first_index(matrix))


def check_label(target: Target, content: Content) -> None:
    """Raise `InputError` if the target asked for is not the label."""
    if target not in (None, False, "label"):
        problem = "the target of a LIBSVM file is the label that begins each line"
        raise content.error(problem, cure=Advice("Leave ", Parameter("target"), " out."))


def parse_svmlight(
    content: Content, n_features: int | None = None
) -> tuple[scipy.sparse.csr_matrix, NDArray[np.float64]]:
    """Return a CSR matrix, whose first column is that of the index 0, and the labels."""
    from sklearn.datasets import load_svmlight_file

    check_memory(48 * content.data.count(b":") + 32 * content.data.count(b"\n"), content.name)  # as measured
    try:
        # Indices are kept as they are written, so that two files of one problem agree on their names.
        X, y = load_svmlight_file(io.BytesIO(content.data), n_features=n_features, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise _fault(content, str(error)) from None
    if X.shape[1] > MOST_FEATURES:
        raise _fault(content, "")
    matrix = scipy.sparse.csr_matrix(X)
    matrix.sort_indices()
    return matrix, y


def first_index(matrix: scipy.sparse.csr_matrix) -> int:
    """Return 0 if a row has the index 0, otherwise 1."""
    return 0 if np.any(matrix.indices == 0) else 1


def svmlight_table(content: Content, matrix: scipy.sparse.csr_matrix, y: NDArray[np.float64], *, first: int) -> Table:
    """Return the rows of `parse_svmlight` as a table, whose columns begin with index ``first``."""
    check_memory(200 * matrix.shape[1], content.name)  # the names of the columns, as measured
    table = Table(
        block=matrix[:, first:],
        names=[f"feature_{index}" for index in range(first, matrix.shape[1])],
        target=Column("label", "numeric", y),
        source=content.name,
        notes=["The file is in LIBSVM format: the target is the label that begins each line."],
        absent_is_zero=True,
    )
    check_finite(table, lambda row: [place for place, text in _lines(content) if text][row])
    return table


def _lines(content: Content) -> list[tuple[int, bytes]]:
    """Return each line with its number, without comments."""
    lines = enumerate(content.data.splitlines(), start=1)
    return [(number, line.split(b"#")[0].strip()) for number, line in lines]


def _fault(content: Content, why: str) -> InputError:
    """Return the error about the first line that is not a label followed by index:value pairs."""
    for number, line in _lines(content):
        label, *pairs = line.split() or [b"0"]
        problem = f"the label {_show(label)} is not a number" if not is_number(label) else _pairs_problem(pairs)
        if problem is not None:
            cure = "Each line of a LIBSVM file is a label and pairs, such as +1 3:0.5 7:1."
            return content.error(problem, line=number, cure=cure)
    return content.error(f"the file cannot be read as LIBSVM ({clip(why, 100)})")


def _pairs_problem(pairs: list[bytes]) -> str | None:
    last = -1
    for pair in pairs:
        parts = _PAIR.fullmatch(pair)
        if parts is None:
            return f"{_show(pair)} is not a pair index:value"
        if not is_number(parts[2]):
            return f"the value in {_show(pair)} is not a number"
        if parts[1] == b"qid":
            continue
        index = int(parts[1])
        if index > MOST_FEATURES:
            return f"the index in {_show(pair)} is above {MOST_FEATURES:,}"
        if index <= last:
            return f"the index in {_show(pair)} does not increase: it follows {last}"
        last = index
    return None


def _show(text: bytes) -> str:
    return repr(clip(text.decode("utf-8", errors="replace")))
