"""What would read outside memory is refused by the core itself, whoever calls it."""

from __future__ import annotations

import numpy as np
import pytest

from margrove.engine.native.core import core


def csr(column=(0, 1), start=(0, 1, 2), d=2):
    return core.csr_points(np.ones(2), np.array(column, np.int32), np.array(start, np.int64), d)


def test_a_sound_matrix_is_taken():
    assert (csr().n, csr().d) == (2, 2)


@pytest.mark.parametrize(
    "parts",
    [
        {"column": (0, 2)},
        {"column": (-1, 0)},
        {"start": (0, 2, 1)},
        {"start": (0, 1, 3)},
        {"start": (1, 1, 2)},
        {"d": 1},
    ],
)
def test_csr_that_leaves_its_arrays_is_refused(parts):
    with pytest.raises(ValueError, match="CSR"):
        csr(**parts)


@pytest.mark.parametrize(("sign_shape", "weight"), [((1, 3), np.empty(0)), ((2, 4), np.empty(0)), ((1, 4), np.ones(3))])
def test_perceptron_refuses_signs_and_weights_of_another_length(sign_shape, weight):
    points = core.dense_points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"sign|weight"):
        core.Perceptron(points, np.ones(sign_shape, np.int8), weight, [0], 1.0, True, True, 0, 0, 0.0, 0)


def test_labels_outside_the_classes_are_refused():
    points = core.dense_points(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="label"):
        core.class_sums(points, np.array([0, 2], np.int32), np.empty(0), 2, 1)


def test_gram_matrix_must_be_square():
    with pytest.raises(ValueError, match="square"):
        core.kernel_perceptron_on_gram(np.zeros((2, 3)), np.ones((1, 2), np.int8), np.empty(0), [0], 1.0, True, True)


def test_points_live_as_long_as_the_solver():
    solver = core.Perceptron(
        core.dense_points(np.array([[1.0], [-1.0]])),
        np.array([[1, -1]], np.int8),
        np.empty(0),
        [0],
        1.0,
        True,
        True,
        0,
        0,
        0.0,
        0,
    )
    solver.run(10, 1.0, 1)
    assert solver.standing(0)[0]


@pytest.mark.parametrize(
    ("column", "label", "weight", "words"),
    [
        ((0, 0, np.zeros(2), 0, np.empty(0), None), [0, 1, 1], [], "another number of rows"),
        ((2, 0, np.array([0, 1, 2], np.int32), 2, np.empty(0), None), [0, 1, 1], [], "beyond the column's levels"),
        ((0, 0, np.zeros(1), 0, np.empty(0), np.array([3], np.int32)), [0, 1, 1], [], "ascend within the table"),
        ((0, 0, np.zeros(3), 0, np.empty(0), None), [0, 1, 2], [], "beyond the classes"),
        ((0, 0, np.zeros(3), 0, np.empty(0), None), [0, 1, 1], [1.0], "weight must be"),
    ],
)
def test_columns_that_leave_their_table_are_refused(column, label, weight, words):
    with pytest.raises(ValueError, match=words):
        core.best_column_tests([column], 3, np.array(label, np.int32), 2, np.array(weight, float), 0, 0, 0, 1)
