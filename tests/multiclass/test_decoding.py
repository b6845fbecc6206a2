"""Decoding by hand, against the book, and the law of probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from margrove.multiclass import codes, reference
from margrove.multiclass.decoding import (
    DECODINGS,
    chosen,
    code_probabilities,
    losses,
    pair_probabilities,
    rest_probabilities,
    votes,
)

# Few and round, so that ties are everywhere.
ROUND = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
SHARES = st.sampled_from([0.0, 1e-300, 0.25, 0.5, 0.75, 1 - 1e-16, 1.0])


def test_a_code_word_of_four_bits_decoded_by_hand():
    """Three classes, f = (0.5, −2, 1, 0). Word a = + − + +: only the last machine has no opinion. Word b = − − + −:
    the first is against it. Word c does not know the second."""
    code = np.array([[1, -1, 1, 1], [-1, -1, 1, -1], [1, 0, -1, -1]])
    f = np.array([[0.5, -2.0, 1.0, 0.0]])
    np.testing.assert_allclose(losses(f, code, "hamming"), [[0.5, 1.5, 0 + 0.5 + 1 + 0.5]])
    np.testing.assert_allclose(losses(f, code, "hinge"), [[0.5 + 0 + 0 + 1, 1.5 + 0 + 0 + 1, 0.5 + 1 + 2 + 1]])
    e = np.exp
    exponential = [e(-0.5) + e(-2) + e(-1) + 1, e(0.5) + e(-2) + e(-1) + 1, e(-0.5) + 1 + e(1) + 1]
    np.testing.assert_allclose(losses(f, code, "exponential"), [exponential])
    np.testing.assert_allclose(losses(f, code, "linear"), [[-3.5, -2.5, 0.5]])


def test_hamming_and_hinge_may_differ():
    """Two machines are weakly for the second class, one strongly for the first."""
    code = np.array([[1, 1, 1], [-1, -1, -1]])
    f = np.array([[-0.1, -0.1, 0.9]])
    assert chosen(-losses(f, code, "hamming"))[0] == 1
    assert chosen(-losses(f, code, "hinge"))[0] == 0


def test_votes_by_hand():
    """Pairs (0,1), (0,2), (1,2): 1 beats 0 by 3, 0 beats 2 by 1, 2 beats 1 by 2. One vote each: sums −2, 1, 1."""
    scores = votes(np.array([[3.0, -1.0, 2.0]]), codes.one_vs_one(3))
    np.testing.assert_allclose(scores, [[1 - 2 / 9, 1 + 1 / 6, 1 + 1 / 6]])


def some_code(draw, k, may_have_zeros=True):
    kinds = ["random", "one_vs_rest", "hadamard", *(["one_vs_one"] if may_have_zeros else [])]
    name = draw(st.sampled_from(kinds))
    return codes.code_for(name, np.arange(k), random_state=draw(st.integers(0, 99)) if name == "random" else None)


@given(st.integers(2, 7), st.sampled_from(DECODINGS), st.data())
def test_decoding_is_that_of_the_book_ties_included(k, decoding, data):
    code = some_code(data.draw, k)
    values = data.draw(arrays(np.float64, (5, code.shape[1]), elements=ROUND))
    paid = losses(values, code, decoding)
    for row, value in zip(paid, values, strict=True):
        expected = reference.decode(value.tolist(), code.tolist(), decoding)
        # Sums of exponentials in another order differ in the last bit, and what ties is then anybody's.
        if decoding == "exponential":
            np.testing.assert_allclose(row[expected], row.min(), rtol=1e-12)
        else:
            assert row.argmin() == expected


@given(st.integers(2, 7), st.sampled_from(DECODINGS), st.data())
def test_the_most_probable_class_is_the_decoded_one(k, decoding, data):
    code = some_code(data.draw, k)
    values = data.draw(arrays(np.float64, (5, code.shape[1]), elements=ROUND))
    q = data.draw(arrays(np.float64, values.shape, elements=SHARES))
    predicted = chosen(-losses(values, code, decoding))
    assert_is_law(code_probabilities(q, code, predicted), predicted, k)


@given(st.integers(2, 7), st.data())
def test_the_most_probable_class_is_that_of_the_most_votes(k, data):
    code = codes.one_vs_one(k)
    values = data.draw(arrays(np.float64, (5, code.shape[1]), elements=ROUND))
    q = data.draw(arrays(np.float64, values.shape, elements=SHARES))
    predicted = chosen(values.ravel() if k == 2 else votes(values, code))
    assert_is_law(pair_probabilities(q, k, predicted), predicted, k)


@given(st.integers(2, 7), st.data())
def test_the_most_probable_class_is_that_of_the_surest_machine(k, data):
    values = data.draw(arrays(np.float64, (5, 1 if k == 2 else k), elements=ROUND))
    q = data.draw(arrays(np.float64, values.shape, elements=SHARES))
    predicted = chosen(values.ravel() if k == 2 else values)
    assert_is_law(rest_probabilities(q, predicted), predicted, k)


def assert_is_law(p, predicted, k):
    assert p.shape == (len(predicted), k)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p.argmax(axis=1), predicted)


def test_probabilities_of_a_code_by_hand():
    """Two bits, ¾ and ½ for their positive sides: the words −−, −+, +− have ¼·½, ¼·½, ¾·½."""
    p = code_probabilities(np.array([[0.75, 0.5]]), np.array([[-1, -1], [-1, 1], [1, -1]]), np.array([2]))
    np.testing.assert_allclose(p, [[0.2, 0.2, 0.6]])


def test_a_machine_trained_without_a_class_gives_it_one_half():
    code = np.array([[-1, -1], [1, 0], [1, 1]])
    p = code_probabilities(np.array([[0.9, 0.8]]), code, np.array([2]))
    weights = np.array([0.1 * 0.2, 0.9 * 0.5, 0.9 * 0.8])
    np.testing.assert_allclose(p, [weights / weights.sum()])


def test_machines_that_all_predict_negative_give_equal_probabilities():
    np.testing.assert_allclose(rest_probabilities(np.zeros((1, 4)), np.array([0])), [[0.25] * 4], rtol=1e-8)


@pytest.mark.parametrize("value", [-1e300, 1e300, -1e5, 1e5])
def test_enormous_values_are_decoded(value):
    code = codes.one_vs_rest(3)
    f = np.array([[value, 0.0, 0.0]])
    for decoding in DECODINGS:
        paid = losses(f, code, decoding)
        assert np.isfinite(paid).all()
        assert (paid.argmin() == 0) == (value > 0)
