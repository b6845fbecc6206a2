"""Code matrices: their distances by brute force, what they correct, and what is refused."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.errors import ParameterError
from margrove.multiclass import codes, reference
from margrove.multiclass.codes import check_code, code_for, errors_corrected, minimum_distance
from margrove.multiclass.decoding import losses

SIZES = range(2, 27)
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
WITHOUT_ZEROS = {"one_vs_rest": codes.one_vs_rest, "binary": codes.binary, "hadamard": codes.hadamard}


def all_codes(k):
    made = {name: make(k) for name, make in {**WITHOUT_ZEROS, "one_vs_one": codes.one_vs_one}.items()}
    made["random"] = codes.random(k, random_state=0)
    made["short random"] = codes.random(k, codes.fewest_bits(k), random_state=0)
    if k <= codes.MOST_EXHAUSTIVE:
        made["exhaustive"] = codes.exhaustive(k)
    return made


@pytest.mark.parametrize("k", SIZES)
def test_every_code_of_ours_is_one_that_would_be_accepted(k):
    for name, code in all_codes(k).items():
        assert code.dtype == np.int8, name
        np.testing.assert_array_equal(check_code(code, LETTERS[:k]), code, err_msg=name)


@pytest.mark.parametrize("k", SIZES)
def test_distances_are_those_of_brute_force(k):
    for name, code in all_codes(k).items():
        words = code.tolist()
        assert minimum_distance(code) == reference.minimum_distance(words), name
        found = codes.distances(code)
        for i, j in combinations(range(k), 2):
            assert found[i, j] == found[j, i] == reference.distance(words[i], words[j])


@pytest.mark.parametrize("k", SIZES)
def test_the_table_of_the_docstring_is_true(k):
    order = 2 ** codes.fewest_bits(k)
    shapes = {name: code.shape[1] for name, code in all_codes(k).items()}
    assert shapes["binary"] == shapes["short random"] == int(np.ceil(np.log2(k)))
    assert shapes["one_vs_one"] == k * (k - 1) // 2
    assert shapes["one_vs_rest"] == (1 if k == 2 else k)
    assert minimum_distance(codes.one_vs_rest(k)) == (1 if k == 2 else 2)
    assert minimum_distance(codes.binary(k)) == 1
    assert (shapes["hadamard"], minimum_distance(codes.hadamard(k))) == (order - 1, order // 2)
    assert minimum_distance(codes.one_vs_one(k)) == (k * (k - 1) / 2 - 1) / 2 + 1
    if k <= codes.MOST_EXHAUSTIVE:
        assert (shapes["exhaustive"], minimum_distance(codes.exhaustive(k))) == (2 ** (k - 1) - 1, 2 ** (k - 2))


def test_the_exhaustive_code_of_more_than_eleven_classes_is_refused_with_a_pointer():
    with pytest.raises(ParameterError, match=r"2,047 for 12 classes; it supports at most 11 classes. 'hadamard'"):
        code_for("exhaustive", LETTERS[:12])


@pytest.mark.parametrize("k", [3, 4, 5])
def test_every_number_of_bits_that_is_possible_can_be_drawn(k):
    for n_bits in range(codes.fewest_bits(k), codes.most_bits(k) + 1):
        assert codes.random(k, n_bits, random_state=1).shape == (k, n_bits)


@given(st.integers(2, 26), st.data())
def test_a_random_code_is_valid_and_follows_its_seed(k, data):
    n_bits = data.draw(st.integers(codes.fewest_bits(k), min(40, codes.most_bits(k))))
    seed = data.draw(st.integers(0, 2**31))
    code = codes.random(k, n_bits, seed)
    np.testing.assert_array_equal(code, codes.random(k, n_bits, seed))
    check_code(code, LETTERS[:k])


def test_max_min_is_at_least_as_wide_as_any_code_it_was_chosen_from():
    generator = np.random.RandomState(3)
    drawn = [minimum_distance(codes.random(10, 12, generator)) for _ in range(codes.TRIES)]
    assert minimum_distance(codes.max_min(10, 12, 3)) == max(drawn) > np.median(drawn)


# ---- what a code corrects


def flips_of(word, most):
    """Yield machine outputs with at most ``most`` errors among those trained on the class; the others are arbitrary."""
    known, unknown = np.flatnonzero(word), np.flatnonzero(word == 0)
    for count in range(most + 1):
        for wrong in combinations(known, count):
            for others in product((-1, 1), repeat=len(unknown)):
                output = word.astype(float)
                output[list(wrong)] *= -1
                output[unknown] = others
                yield output


@pytest.mark.parametrize(
    "code",
    [
        codes.hadamard(5),
        codes.exhaustive(4),
        codes.binary(6),
        codes.one_vs_rest(4),
        codes.one_vs_one(4),
        np.array([[1, 1, 1, 1, 1, 0], [-1, -1, -1, 1, 0, 1], [1, -1, 1, -1, -1, -1]]),
    ],
    ids=lambda code: f"{code.shape[0]} x {code.shape[1]}",
)
def test_that_many_errors_are_corrected_and_not_always_one_more(code):
    sure = errors_corrected(code)

    def is_always_right(most):
        outputs = [(r, output) for r, word in enumerate(code) for output in flips_of(word, most)]
        paid = losses(np.array([output for _, output in outputs]), code, "hamming")
        own = paid[np.arange(len(outputs)), [r for r, _ in outputs]]
        paid[np.arange(len(outputs)), [r for r, _ in outputs]] = np.inf
        return bool((own < paid.min(axis=1)).all())  # strictly: a tie is not a correct prediction

    assert is_always_right(sure)
    assert not is_always_right(sure + 1)


@pytest.mark.parametrize("k", SIZES)
def test_without_zeros_the_errors_corrected_are_half_of_the_distance(k):
    for make in WITHOUT_ZEROS.values():
        assert errors_corrected(make(k)) == (minimum_distance(make(k)) - 1) // 2


def test_zeros_promise_less_than_their_distance():
    """One machine of the pair decides between two classes, whatever the distance is; and a class that hardly any
    machine knows may lose to what the others say by chance."""
    assert (minimum_distance(codes.one_vs_one(26)), errors_corrected(codes.one_vs_one(26))) == (163, 0)
    assert errors_corrected([[1, 0, 0, 0], [-1, 1, 1, 1], [-1, -1, 1, -1]]) == -1


# ---- what is refused


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1, 1], [1, -1], [1, 1]], "column 0 has no −1"),
        ([[-1, 1], [0, -1], [-1, 1]], "column 0 has no [+]1"),
        ([[1, 1], [-1, -1], [1, 1]], "rows 0 and 2, the classes 'a' and 'c', have the same code word"),
        ([[1, 0], [-1, 1], [0, -1]], "rows 0 and 2, the classes 'a' and 'c', have opposite signs in no column"),
        ([[1, 1, 1], [-1, 1, -1], [1, -1, 1]], "column 2 is the same as column 0"),
        ([[1, 1, -1], [-1, 1, 1], [1, -1, -1]], "column 2 is the complement of column 0"),
        ([[0, 1, 0], [1, -1, -1], [-1, -1, 1]], "column 2 is the complement of column 0"),
        ([[1, 2], [1, -1], [-1, 1]], "contains 2.0 in row 0, column 1"),
        ([[1, np.nan], [1, -1], [-1, 1]], "contains nan in row 0, column 1"),
        ([[1], [-1]], "has 2 rows; y has 3 classes"),
        ([1, -1, 1], "of shape"),
        (None, "code is None, of type NoneType"),
        ("bynary", "code is 'bynary'; it must be one of 'one_vs_rest'"),
    ],
)
def test_an_invalid_code_is_refused_with_its_fault(matrix, words):
    with pytest.raises(ParameterError, match=words):
        code_for(matrix, LETTERS[:3])


MATRIX = np.array([[1, 1], [-1, 1], [1, -1]])  # of the classes in sorted order


@pytest.mark.parametrize(
    ("classes", "index"),
    [
        (LETTERS[:3], ["c", "a", "b"]),
        (np.array([10, 20, 30]), [30, 10, 20]),
        (np.array([10, 20, 30]), ["30", "10", "20"]),  # as a file has them
        (np.array([0, 1, 2]), [2, 0, 1]),  # numbers that are labels are labels
        (np.array([0.5, 1.0, 1.5]), ["1.5", "0.5", "1.0"]),
    ],
)
def test_the_index_of_a_frame_puts_its_rows_in_the_order_of_the_classes(classes, index):
    frame = pd.DataFrame(MATRIX[[2, 0, 1]], index=index)
    np.testing.assert_array_equal(code_for(frame, classes), MATRIX)


@pytest.mark.parametrize("frame", [pd.DataFrame(MATRIX), pd.DataFrame(MATRIX, index=[0, 1, 2]), pl.DataFrame(MATRIX)])
def test_a_frame_without_names_is_in_the_order_of_the_classes(frame):
    np.testing.assert_array_equal(code_for(frame, LETTERS[:3]), MATRIX)


@pytest.mark.parametrize(
    "index", [["a", "b", "d"], ["a", "b", "b"], [1, 2, 3], [0, 2, 1], [("a", 1), ("b", 1), ("c", 1)]]
)
def test_an_index_that_is_not_the_classes_is_refused(index):
    frame = pd.DataFrame(MATRIX, index=pd.Index(index))
    with pytest.raises(ParameterError, match=r"index, .* is neither the classes of y, 'a', 'b', 'c', nor 0, 1, 2, …"):
        code_for(frame, LETTERS[:3])


def test_a_fault_of_a_frame_names_its_rows_and_classes():
    frame = pd.DataFrame([[1, 1], [-1, -1], [1, 1]], index=["c", "b", "a"])
    with pytest.raises(ParameterError, match="rows 0 and 2, the classes 'c' and 'a', have the same code word"):
        code_for(frame, LETTERS[:3])


@pytest.mark.parametrize(
    ("n_bits", "words"), [(1, "3 classes need at least 2"), (4, "in only 3 ways"), (2.5, "whole number"), (0, "≥ 1")]
)
def test_bits_that_no_code_has_are_refused(n_bits, words):
    with pytest.raises(ParameterError, match=words):
        code_for("random", LETTERS[:3], n_bits)


def test_bits_beside_a_code_that_has_its_own_are_refused():
    with pytest.raises(ParameterError, match="n_bits is 5, and code is 'hadamard', whose length is fixed"):
        code_for("hadamard", LETTERS[:3], 5)


def test_a_code_of_zeros_and_ones_is_refused_with_the_fix():
    with pytest.raises(ParameterError, match=r"code contains no −1.*pass 2 \* code - 1"):
        check_code([[0, 1], [1, 0], [1, 1]], np.array(["a", "b", "c"]))
