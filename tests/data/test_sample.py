"""Labels become numbers, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.data.sample import number_classes

DTYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64]


@given(st.lists(st.integers(0, 100), min_size=1), st.sampled_from(DTYPES), st.sampled_from([0, 1, 27]))
def test_numbers_as_numpy_does(values, dtype, shift):
    y = np.array(values, dtype) + dtype(shift)
    classes, codes = number_classes(y)
    expected, inverse = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, inverse)
    assert classes.dtype == y.dtype


@pytest.mark.parametrize(
    "y",
    [
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2**64 - 1, 0, 2**64 - 2], np.uint64),
        np.array([2**64 - 1, 2**64 - 2], np.uint64),
        np.array([5, -5, 10**12, 5]),
        np.array(["b", "a", "b"]),
        np.array([True, False, True]),
        np.array([2.5, -1.0, 2.5]),
        np.array(["b", "a", "b"], dtype=object),
        np.array([-128, 127, 0], np.int8),
    ],
    ids=repr,
)
def test_extremes_and_other_kinds(y):
    classes, codes = number_classes(y)
    np.testing.assert_array_equal(classes[codes], y)
    np.testing.assert_array_equal(classes, np.unique(y))
