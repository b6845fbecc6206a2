"""The text of a LIBSVM model file, written and parsed; nothing here depends on Margrove's estimators.

::

    svm_type c_svc              one of SVM_TYPES
    kernel_type rbf             one of KERNEL_TYPES; then degree, gamma, coef0 as far as the kernel has them
    nr_class 3                  2 where there are no classes
    total_sv 4
    rho 0.1 0.2 0.3             of each pair of labels (0, 1), (0, 2), (1, 2): f = Σ coefficient · K − rho
    label 2 1 3                 in the order of their first row: f > 0 speaks for the first label of the pair
    probA, probB                of each pair, if it was trained with -b 1
    nr_sv 1 2 1                 of each label
    SV
    0.5 0 1:0.25 3:-1           nr_class − 1 coefficients, then the columns that are not 0, counted from 1
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown

SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
KERNEL_TYPES = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_KERNEL_PARAMETERS = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
MOST_INDEX = 2**31 - 1  # LIBSVM's columns are C's int, and so are its labels
_HEAD_LINES = 64  # LIBSVM writes fifteen at most
_LONGEST_LINE = 1 << 28  # bytes: ten million columns
_CURE = "Write it again with svm-train, svm_save_model or write_libsvm_model."
_ENTRIES_PER_CELL = 4  # a table with fewer entries than a quarter of its cells is kept sparse …
_FEW_CELLS = 1 << 20  # … unless it is small


@dataclass
class LibsvmModel:
    """The numbers of a model file."""

    svm_type: str
    kernel_type: str
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0
    rho: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # (pairs,)
    labels: NDArray[np.int64] | None = None  # (K,), of a classifier
    n_support: NDArray[np.int64] | None = None  # (K,), of a classifier
    dual_coef: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  # (K − 1, s)
    vectors: Any = None  # (s, d), dense or CSR; of a precomputed kernel (s,): numbers of training rows, from 1
    prob_a: NDArray[np.float64] | None = None  # (pairs,)
    prob_b: NDArray[np.float64] | None = None  # (pairs,); None for a regression
    left_out: list[str] = field(default_factory=list)  # words of the header for which there is no use here

    @property
    def is_classifier(self) -> bool:
        """True if it has labels."""
        return self.svm_type in ("c_svc", "nu_svc")


def written(model: LibsvmModel) -> bytes:
    """Return the model as text, every number with all its digits."""
    k = 2 if model.labels is None else len(model.labels)
    lines = [f"svm_type {model.svm_type}", f"kernel_type {model.kernel_type}"]
    lines += [f"{name} {getattr(model, name)!r}" for name in _KERNEL_PARAMETERS.get(model.kernel_type, ())]
    lines += [f"nr_class {k}", f"total_sv {model.dual_coef.shape[1]}", _line("rho", model.rho)]
    optional = {"label": model.labels, "probA": model.prob_a, "probB": model.prob_b, "nr_sv": model.n_support}
    lines += [_line(name, numbers) for name, numbers in optional.items() if numbers is not None]
    lines.append("SV")
    for coefficients, cells in zip(model.dual_coef.T, _written_rows(model), strict=True):
        lines.append(" ".join([*map(repr, coefficients.tolist()), *cells]))
    return ("\n".join(lines) + "\n").encode("ascii")


def _line(name: str, numbers: NDArray[Any]) -> str:
    return " ".join([name, *map(repr, numbers.tolist())])


def _written_rows(model: LibsvmModel) -> Iterator[list[str]]:
    if model.kernel_type == "precomputed":
        yield from ([f"0:{number}"] for number in model.vectors.tolist())
        return
    for row in sp.csr_matrix(model.vectors.astype(np.float64)):
        row.sort_indices()
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        yield [f"{index + 1}:{value!r}" for index, value in pairs if value != 0]


def parsed(stream: BinaryIO) -> LibsvmModel:
    """Return the model in the text; a `FaultError` names the line of what is wrong."""
    lines = _lines(stream)
    words = _head(lines)
    model = LibsvmModel(
        _choice(words, "svm_type", SVM_TYPES),
        _choice(words, "kernel_type", KERNEL_TYPES),
        degree=_whole(words, "degree", least=1, default=3),
        gamma=_number(words, "gamma", least=0.0, default=1.0),
        coef0=_number(words, "coef0", default=0.0),
    )
    k = _whole(words, "nr_class", least=2)
    n_support = _whole(words, "total_sv", least=0)
    pairs = k * (k - 1) // 2 if model.is_classifier else 1
    if not model.is_classifier and k != 2:
        raise FaultError(f"line {words['nr_class'][0]}: nr_class is {k}; 2 was expected for {model.svm_type}", _CURE)
    model.rho = _numbers(words, "rho", pairs)
    if model.is_classifier:
        model.labels = _labels(words, k)
        model.n_support = _counts(words, k, n_support)
        if "probA" in words and "probB" in words:
            model.prob_a, model.prob_b = _numbers(words, "probA", pairs), _numbers(words, "probB", pairs)
    elif "probA" in words:
        model.left_out.append("probA, the noise width of a regression")
    if "prob_density_marks" in words:
        model.left_out.append("prob_density_marks, the probabilities of a one-class machine")
    _read_vectors(lines, model, k - 1, n_support)
    return model


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; empty ones are passed over."""
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise FaultError(f"line {number}: it is longer than {_LONGEST_LINE:,} bytes", _CURE)
        try:
            text = line.decode("ascii").strip()
        except UnicodeDecodeError as error:
            raise FaultError(f"line {number}: this is not the text of a LIBSVM model", _NOT_A_MODEL) from error
        if text:
            yield number, text


_NOT_A_MODEL = "Pass a file that svm-train, svm_save_model or write_libsvm_model wrote; margrove.load reads our own."


class _Words(dict[str, tuple[int, list[str]]]):
    """By the first word of a line of the header: its number, and its other words."""

    def __missing__(self, name: str) -> tuple[int, list[str]]:
        raise FaultError(f"its header has no {name}", _CURE)


def _head(lines: Iterator[tuple[int, str]]) -> _Words:
    """The lines before the word SV, by their first word."""
    known = {"svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "nr_sv"}
    known |= {"probA", "probB", "prob_density_marks"}
    words = _Words()
    for number, text in lines:
        first, *others = text.split()
        if first == "SV" and not others:
            return words
        if first not in known or len(words) > _HEAD_LINES:
            raise FaultError(f"line {number}: {shown(first)} is not a field of a LIBSVM model's header", _NOT_A_MODEL)
        if first in words:
            raise FaultError(f"line {number}: {first} was already on line {words[first][0]}", _CURE)
        words[first] = number, others
    if not words:
        raise FaultError("it is empty", _NOT_A_MODEL)
    raise FaultError("it ends before its support vectors: there is no line 'SV'", _CURE)


def _choice(words: _Words, name: str, allowed: tuple[str, ...]) -> str:
    line, given = words[name]
    if len(given) != 1 or given[0] not in allowed:
        raise FaultError(
            f"line {line}: {name} is {shown(' '.join(given))}; one of {', '.join(allowed)} was expected", _CURE
        )
    return given[0]


def _whole(words: _Words, name: str, *, least: int, default: int | None = None) -> int:
    if default is not None and name not in words:
        return default
    line, given = words[name]
    if len(given) != 1:
        raise FaultError(f"line {line}: {name} has {len(given)} values; one was expected", _CURE)
    return _as_whole(line, name, given[0], least)


def _as_whole(line: int, name: str, text: str, least: int = -MOST_INDEX - 1, most: int = MOST_INDEX) -> int:
    # int() would take '1_000' and digits of other scripts, and thousands of them.
    value = int(text) if re.fullmatch("[+-]?[0-9]{1,11}", text) else None
    if value is None or not least <= value <= most:
        raise FaultError(
            f"line {line}: {name} is {shown(text)}; a whole number from {least} to {most} was expected", _CURE
        )
    return value


def _number(words: _Words, name: str, *, least: float = -math.inf, default: float) -> float:
    if name not in words:
        return default
    line, given = words[name]
    value = _as_number(line, name, " ".join(given))
    if value < least:
        raise FaultError(f"line {line}: {name} is {value:g}; it must not be below {least:g}", _CURE)
    return value


def _as_number(line: int, name: str, text: str) -> float:
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FaultError(f"line {line}: {name} is {shown(text)}; a finite number was expected", _CURE)
    return value


def _numbers(words: _Words, name: str, count: int) -> NDArray[np.float64]:
    line, given = words[name]
    if len(given) != count:
        raise FaultError(f"line {line}: {name} has {len(given)} numbers; {count} were expected", _CURE)
    return np.array([_as_number(line, name, text) for text in given], dtype=np.float64)


def _labels(words: _Words, k: int) -> NDArray[np.int64]:
    line, given = words["label"]
    labels = np.array([_as_whole(line, "a label", text) for text in given], dtype=np.int64)
    if len(labels) != k or len(np.unique(labels)) != k:
        raise FaultError(f"line {line}: label has {len(np.unique(labels))} different labels; nr_class is {k}", _CURE)
    return labels


def _counts(words: _Words, k: int, total: int) -> NDArray[np.int64]:
    line, given = words["nr_sv"]
    counts = np.array([_as_whole(line, "nr_sv", text, least=0) for text in given], dtype=np.int64)
    if len(counts) != k or counts.sum() != total:
        raise FaultError(
            f"line {line}: nr_sv has {len(counts)} numbers that sum to {counts.sum()}; nr_class is {k} and total_sv is "
            f"{total}",
            _CURE,
        )
    return counts


def _read_vectors(lines: Iterator[tuple[int, str]], model: LibsvmModel, width: int, total: int) -> None:
    coefficients: list[list[float]] = []
    starts, indices, values = [0], [], []
    is_given = model.kernel_type == "precomputed"
    for line, text in lines:
        if len(coefficients) == total:
            raise FaultError(f"line {line}: it has more support vectors than total_sv, {total}", _CURE)
        words = text.split()
        if len(words) < width:
            raise FaultError(f"line {line}: it has {len(words)} fields, and {width} coefficients come first", _CURE)
        coefficients.append([_as_number(line, "a coefficient", word) for word in words[:width]])
        last = -1 if is_given else 0
        for word in words[width:]:
            index, _, value = word.partition(":")
            last_index, last = last, _as_whole(line, "the number of a column", index, least=0 if is_given else 1)
            if last <= last_index:
                raise FaultError(
                    f"line {line}: column {last} follows column {last_index}; columns must be in ascending order", _CURE
                )
            indices.append(last)
            values.append(_as_number(line, f"column {last}", value))
        starts.append(len(indices))
    if len(coefficients) != total:
        raise FaultError(f"it has {len(coefficients)} support vectors, and total_sv is {total}: it was cut off", _CURE)
    model.dual_coef = np.array(coefficients, dtype=np.float64).reshape(total, width).T.copy()
    if is_given:
        model.vectors = _serials(starts, indices, values)
        return
    columns = np.array(indices, dtype=np.int64) - 1
    d = int(columns.max(initial=0)) + 1
    matrix = sp.csr_matrix((np.array(values, dtype=np.float64), columns, starts), shape=(total, d))
    is_small = total * d <= max(_FEW_CELLS, _ENTRIES_PER_CELL * len(values))
    model.vectors = matrix.toarray() if is_small else matrix


def _serials(starts: list[int], indices: list[int], values: list[float]) -> NDArray[np.int64]:
    """The numbers of training rows, from 1: the value of column 0 of each support vector."""
    numbers = []
    for row, (start, end) in enumerate(itertools.pairwise(starts)):
        value = values[start] if end > start and indices[start] == 0 else math.nan
        if not (1 <= value <= MOST_INDEX and float(value).is_integer()):
            raise FaultError(
                f"support vector {row + 1} of a precomputed kernel has no row number (0:number) of 1 or more", _CURE
            )
        numbers.append(int(value))
    if len(set(numbers)) != len(numbers):
        raise FaultError("two support vectors of a precomputed kernel have the same row number", _CURE)
    return np.array(numbers, dtype=np.int64)
