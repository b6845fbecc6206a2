"""Code matrices: row r is the code word of class r, column s is the two-class problem of machine s.

c_rs = +1 puts class r on the positive side of machine s, −1 on its negative side; 0 leaves it out.

=============  ======================================  =======================  =====================================
code           machines, for K classes                 minimum distance         meaning
=============  ======================================  =======================  =====================================
one_vs_rest    K; 1 for two classes                    2                        "is it class i?"
one_vs_one     K (K − 1)/2                             see below                "class i or class j?", j as +1
binary         ⌈log2 K⌉                                1                        the number of the class, in bits
hadamard       N − 1, N the power of two from K on     N/2                      rows of Sylvester's matrix
exhaustive     2^(K−1) − 1, K ≤ 11                     2^(K−2)                  every split of the classes in two
random         n_bits                                  as drawn                 words of random bits
max_min        n_bits                                  the best of `TRIES`      random codes, the widest kept
=============  ======================================  =======================  =====================================

Distance (Allwein, Schapire and Singer, 2000): d(r, s) = Σ (1 − c_r c_s)/2, so a zero counts ½. Without zeros it is
Hamming's, and ⌊(d − 1)/2⌋ wrong machines are always corrected. See `errors_corrected` for codes with zeros.

Examples
--------
>>> from margrove.multiclass.codes import *
>>> one_vs_one(3)
array([[-1, -1,  0],
       [ 1,  0, -1],
       [ 0,  1,  1]], dtype=int8)
>>> binary(4).tolist()
[[-1, -1], [-1, 1], [1, -1], [1, 1]]
>>> [minimum_distance(code) for code in (one_vs_rest(5), hadamard(5), exhaustive(5))]
[2.0, 4.0, 8.0]
>>> [minimum_distance(draw(26, 15, random_state=0)) for draw in (random, max_min)]
[2.0, 4.0]
>>> errors_corrected(exhaustive(5)), errors_corrected(one_vs_one(5))
(3, 0)
>>> check_code([[1, 1], [1, -1], [1, 1]], ["a", "b", "c"])
Traceback (most recent call last):
margrove.errors.ParameterError: code: column 0 has no −1: a machine needs two sides. Remove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import hadamard as sylvester
from sklearn.utils import check_random_state

from margrove.errors import ParameterError, check_choice, check_seed, check_whole, listed, shown
from margrove.svm.layout import code_matrix

Code = NDArray[np.int8]  # (K, machines)

MOST_EXHAUSTIVE = 11  # classes: 1023 machines; with each class more they double
TRIES = 1000  # random codes of which "max_min" keeps the widest
_MOST_DRAWS = 10_000  # of a random code, until one is valid
_FEW_COLUMNS = 1 << 12  # splits of the classes that are numbered and drawn without replacement
_POINTER = "'hadamard' and 'max_min' give codes of large distance with fewer machines."

__all__ = [
    "TRIES",
    "binary",
    "check_code",
    "code_for",
    "distances",
    "errors_corrected",
    "exhaustive",
    "hadamard",
    "max_min",
    "minimum_distance",
    "one_vs_one",
    "one_vs_rest",
    "random",
]


def one_vs_rest(n_classes: int) -> Code:
    """Return a machine for each class against the rest; for two classes one machine, with the second class as +1."""
    return code_matrix("ovr", n_classes)


def one_vs_one(n_classes: int) -> Code:
    """Return a machine for each pair of classes i < j, with j as +1 as in scikit-learn; the others are 0."""
    code = code_matrix("ovo", n_classes)
    return code if n_classes == 2 else -code


def binary(n_classes: int) -> Code:
    """Return the number of each class in ⌈log2 K⌉ bits, the highest first: the fewest machines possible."""
    n_bits = fewest_bits(n_classes)
    return _signs(np.arange(n_classes)[:, None] >> np.arange(n_bits)[::-1] & 1)


def hadamard(n_classes: int) -> Code:
    """Return rows of Sylvester's matrix of order N ≥ K without the constant column: any two words are N/2 apart."""
    order = 2 ** fewest_bits(n_classes)
    return np.asarray(sylvester(order, dtype=np.int8)[:n_classes, 1:])


def exhaustive(n_classes: int) -> Code:
    """Return every split of the classes in two, 2^(K−1) − 1 machines: any two words are 2^(K−2) apart."""
    if n_classes > MOST_EXHAUSTIVE:
        raise ParameterError(
            f"code='exhaustive' has 2^(K − 1) − 1 machines, {2 ** (n_classes - 1) - 1:,} for {n_classes} classes; it "
            f"supports at most {MOST_EXHAUSTIVE} classes. {_POINTER}"
        )
    return _numbered(np.arange(1, 2 ** (n_classes - 1)), n_classes)


def random(n_classes: int, n_bits: int | None = None, random_state: int | np.random.RandomState | None = None) -> Code:
    """Return words of random bits: any two differ, and no column is constant, or another one, or its complement. None
    is ⌈10 log2 K⌉ bits (Allwein, Schapire and Singer), or all the 2^(K−1) − 1 columns there are."""
    n_bits = settle_bits(n_classes, n_bits)
    generator = _generator(random_state)
    # With few bits, words drawn one by one would often be equal; with many, columns might.
    draw = _drawn_words if n_bits <= 2 * fewest_bits(n_classes) else _drawn_columns
    for _ in range(_MOST_DRAWS):
        code = draw(n_classes, n_bits, generator)
        if _fault(code) is None:
            return code
    raise ParameterError(
        f"n_bits is {n_bits}, and none of {_MOST_DRAWS:,} random codes for {n_classes} classes was valid. Use "
        f"another n_bits; {_POINTER}"
    )


def _generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    check_seed("random_state", random_state)
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def max_min(n_classes: int, n_bits: int | None = None, random_state: int | np.random.RandomState | None = None) -> Code:
    """Return the one of `TRIES` random codes whose nearest words are furthest apart; of equals the first."""
    generator = _generator(random_state)
    return max((random(n_classes, n_bits, generator) for _ in range(TRIES)), key=minimum_distance)


def fewest_bits(n_classes: int) -> int:
    """Return ⌈log2 K⌉: fewer bits have fewer words than classes."""
    return max(1, (n_classes - 1).bit_length())


def most_bits(n_classes: int) -> int:
    """Return 2^(K−1) − 1, the number of splits of the classes in two."""
    return int(2 ** (n_classes - 1) - 1)


def settle_bits(n_classes: int, n_bits: int | None) -> int:
    """Return the number of machines of a random code."""
    least, most = fewest_bits(n_classes), most_bits(n_classes)
    if n_bits is None:
        return min(most, math.ceil(10 * math.log2(n_classes)))
    check_whole("n_bits", n_bits, least=1)
    if n_bits < least:
        raise ParameterError(
            f"n_bits is {n_bits}; {n_classes} classes need at least {least}, or two would have the same code word."
        )
    if n_bits > most:
        raise ParameterError(
            f"n_bits is {n_bits}; {n_classes} classes can be split in two in only {most} ways, so another machine "
            "would repeat one of these."
        )
    return int(n_bits)


_BY_NAME: dict[str, Callable[[int], Code]] = {
    "one_vs_rest": one_vs_rest,
    "one_vs_one": one_vs_one,
    "binary": binary,
    "hadamard": hadamard,
    "exhaustive": exhaustive,
}
_DRAWN: dict[str, Callable[[int, int | None, Any], Code]] = {"random": random, "max_min": max_min}
CODES = (*_BY_NAME, *_DRAWN)


def code_for(
    code: Any, classes: NDArray[Any], n_bits: int | None = None, random_state: int | np.random.RandomState | None = None
) -> Code:
    """Return the code of that name for these classes, or the given matrix, checked: a row for each class in sorted
    order; of a data frame whose index names the classes, in any order."""
    if isinstance(code, str) and code in _DRAWN:
        return _DRAWN[code](len(classes), n_bits, random_state)
    if n_bits is not None:
        name = code if isinstance(code, str) else "a matrix"
        raise ParameterError(
            f"n_bits is {shown(n_bits)}, and code is {name!r}, whose length is fixed. Omit n_bits, or use "
            "code='random' or 'max_min'."
        )
    if isinstance(code, str):
        check_choice("code", code, CODES, also="a matrix of +1, −1 and 0")
        return _BY_NAME[code](len(classes))
    return check_code(code, classes)


def _drawn_words(n_classes: int, n_bits: int, generator: np.random.RandomState) -> Code:
    """Return different words, whatever their columns are."""
    if n_bits <= 20:
        words = generator.permutation(2**n_bits)[:n_classes]
        return _signs(words[:, None] >> np.arange(n_bits) & 1)
    return _signs(generator.randint(0, 2, size=(n_classes, n_bits)))


def _drawn_columns(n_classes: int, n_bits: int, generator: np.random.RandomState) -> Code:
    """Return different columns, whatever their words are."""
    most = most_bits(n_classes)
    flips = generator.choice(np.array([-1, 1], np.int8), size=n_bits)
    if most <= _FEW_COLUMNS:
        return np.asarray(_numbered(1 + generator.permutation(most)[:n_bits], n_classes) * flips)
    return _signs(generator.randint(0, 2, size=(n_classes, n_bits)))  # of so many, hardly ever two are the same


def _numbered(numbers: NDArray[np.int64], n_classes: int) -> Code:
    """Return splits of the classes by number: the first class is −1, and each bit is the side of one of the others."""
    others = np.arange(n_classes - 1)[:, None]
    first = np.full((1, len(numbers)), -1, np.int8)
    return np.concatenate([first, _signs(numbers[None, :] >> others & 1)])


def _signs(bits: NDArray[Any]) -> Code:
    return np.asarray(2 * bits - 1, dtype=np.int8)


def distances(code: ArrayLike) -> NDArray[np.float64]:
    """Return d(r, s) = Σ (1 − c_r c_s)/2 of any two words, shape (K, K): a zero, in either word, counts ½."""
    words = np.asarray(code, dtype=np.float64)
    return np.asarray((words.shape[1] - words @ words.T) / 2)


def minimum_distance(code: ArrayLike) -> float:
    """Return the least distance between the words of two classes."""
    apart = distances(code)
    return float(apart[np.triu_indices(len(apart), 1)].min())


def errors_corrected(code: ArrayLike) -> int:
    """Return how many machines that know a row's class may be wrong while Hamming decoding is still right.

    Without zeros it is ⌊(d − 1)/2⌋. The value of a machine for a class that it never saw is arbitrary, so with zeros
    only this is guaranteed: for the true class r, another class s and e errors, decoding is right if 2 e < D + (a −
    b)/2, where D counts the machines that separate r from s, a those that know r and not s, b those that know s and not
    r. −1: nothing is guaranteed, even if all of them are right."""
    words = np.asarray(code, dtype=np.float64)
    known = (words != 0).astype(np.float64)
    parting = (known @ known.T - words @ words.T) / 2
    only_first = known @ (1 - known).T
    lead = parting + (only_first - only_first.T) / 2
    np.fill_diagonal(lead, np.inf)
    return max(-1, math.ceil(float(lead.min()) / 2) - 1)


def check_code(code: Any, classes: NDArray[Any]) -> Code:
    """Return a given matrix as a code for these classes. Raises `ParameterError` with the rows or columns at fault."""
    try:
        matrix = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(
            f"code is {shown(code)}, of type {type(code).__name__}; it must be one of {listed(CODES)}, or a matrix of "
            "shape (classes, machines)."
        )
    strange = ~np.isin(matrix, (-1, 0, 1))
    if strange.any():
        row, column = (int(at) for at in np.argwhere(strange)[0])
        raise ParameterError(
            f"code contains {shown(matrix[row, column])} in row {row}, column {column}; it must be +1, −1 or 0."
        )
    if len(matrix) != len(classes):
        raise ParameterError(
            f"code has {len(matrix)} rows; y has {len(classes)} classes; each needs a row: {listed(classes[:8])}."
        )
    if not (matrix < 0).any():
        raise ParameterError(
            "code contains no −1; the two sides of a machine are +1 and −1, and 0 excludes a class from it. For a code "
            "of zeros and ones pass 2 * code - 1."
        )
    words = matrix.astype(np.int8)
    places = _named_places(code, classes)
    fault = _fault(words, classes if places is None else classes[places])
    if fault is not None:
        raise ParameterError(f"code: {fault}")
    return words if places is None else words[np.argsort(places)]


def _named_places(code: Any, classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return the position in ``classes`` of each row of a data frame whose index names them, as they are or as text.
    None: the rows have no names, or the default numbers of a frame, and are in the order of the classes."""
    index = getattr(code, "index", None)
    if index is None or not hasattr(code, "columns"):
        return None
    names, labels = list(index), classes.tolist()
    for given, known in ((names, labels), (map(str, names), map(str, labels))):  # a file makes text of every name
        place_of = {label: place for place, label in enumerate(known)}
        found = [place_of.get(name) for name in given]
        if set(found) == set(range(len(labels))):
            return np.array(found, dtype=np.intp)
    if names == list(range(len(names))):
        return None
    raise ParameterError(
        f"code is a data frame whose index, {listed(names[:8])}, is neither the classes of y, {listed(classes[:8])}, "
        "nor 0, 1, 2, …. Name each row by its class, or sort the rows by class and remove the names with "
        "code.reset_index(drop=True)."
    )


def _fault(code: Code, classes: NDArray[Any] | None = None) -> str | None:
    """Return what is wrong with a code, or None."""
    for sign, is_there in (("+1", (code > 0).any(axis=0)), ("−1", (code < 0).any(axis=0))):
        if not is_there.all():
            return f"column {int(np.argmin(is_there))} has no {sign}: a machine needs two sides. Remove it."
    words = code.astype(np.int32)
    is_separated = (words @ words.T) < (words**2 @ (words**2).T)  # somewhere +1 meets −1
    np.fill_diagonal(is_separated, True)
    if not is_separated.all():
        i, j = (int(at) for at in np.argwhere(~is_separated)[0])
        names = "" if classes is None else f", the classes {shown(classes[i])} and {shown(classes[j])},"
        what = "have the same code word" if (code[i] == code[j]).all() else "have opposite signs in no column"
        return f"rows {i} and {j}{names} {what}, so no machine separates them."
    # Up to its sign a column is the one whose first entry that is not 0 is +1.
    leads = code[np.argmax(code != 0, axis=0), np.arange(code.shape[1])]
    first_with: dict[bytes, int] = {}
    for column, content in enumerate((code * leads).T):
        earlier = first_with.setdefault(content.tobytes(), column)
        if earlier != column:
            is_same = leads[earlier] == leads[column]
            relation = "the same as" if is_same else "the complement of"
            return f"column {column} is {relation} column {earlier}, so its machine is redundant. Remove one of them."
    return None
