"""Description length, by hand and by what must hold for every tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import entropy, laplace, norm
from tests.tree.by_hand import by_hand
from tests.tree.random_trees import LAW, written_trees, written_trees_of_numbers

from margrove.tree.description import description_length, leaf_bits, split_bits, subtree_bits, sums_of_subtrees


def test_bits_of_a_tree_worked_by_hand():
    # Two splits among d = 4 columns, with 8 and 2 tests; leaves of 8, 4 and 4 rows; two classes: one parameter.
    model = by_hand(([8, 0], ([3, 1], [0, 4])), n_columns=4, n_tests=[8, 2])
    splits = (1 + 2 + 3) + (1 + 2 + 1)
    leaves = (1 + 1.5) + (1 + 1) + (1 + 1)
    model_bits, data_bits = description_length(model)
    assert model_bits == pytest.approx(splits + leaves)
    assert data_bits == pytest.approx(4 * entropy([3, 1], base=2))


def test_the_classes_that_count_are_those_at_the_root():
    two, of_three = by_hand(([8, 0], [0, 8])), by_hand(([8, 0, 0], [0, 8, 0]))
    assert description_length(two) == description_length(of_three)
    three = by_hand(([8, 0, 0], [0, 8, 0], [0, 0, 1]))
    assert leaf_bits(three)[0][1] == 1 + 2 / 2 * 3


def test_subtrees_sum_up_to_the_root():
    model = by_hand(([8, 0], ([3, 1], [0, 4])), n_tests=3)
    model_bits, data_bits = subtree_bits(model)
    below = by_hand(([3, 1], [0, 4]), n_tests=3)
    assert (model_bits[2], data_bits[2]) == pytest.approx(description_length(below))
    assert model_bits[0] == pytest.approx(split_bits(model)[0] + model_bits[1] + model_bits[2])


def test_sums_of_subtrees_take_tables_too():
    model = by_hand((([1, 2], [3, 4]), [5, 6], ([7, 8], [9, 10], [11, 12])))
    own = np.where(model.is_leaf[:, None], model.value, 0.0)
    np.testing.assert_array_equal(sums_of_subtrees(model, own), model.value)


@LAW
@given(written_trees())
def test_bits_of_classes_are_never_negative_and_a_split_never_adds_data_bits(written):
    model = by_hand(written)
    model_bits, data_bits = subtree_bits(model)
    assert (model_bits >= 1).all()
    assert (data_bits >= 0).all()
    assert (data_bits <= leaf_bits(model)[1] + 1e-9).all()


def test_data_bits_of_numbers_are_those_of_the_normal_density():
    rows = np.array([1.0, 2.0, 4.0, 9.0, 9.5, 10.0])
    model = by_hand((rows[:3].tolist(), rows[3:].tolist()), criterion="squared_error")
    bits = 0.0
    for part in (rows[:3], rows[3:]):
        sigma = np.sqrt((3 * part.var() + rows.var()) / 4)
        bits -= norm.logpdf(part / rows.std(), part.mean() / rows.std(), sigma / rows.std()).sum() / np.log(2)
    model_bits, data_bits = description_length(model, criterion="squared_error")
    assert data_bits == pytest.approx(bits)
    assert model_bits == pytest.approx(3 + 2 * np.log2(3))


def test_data_bits_of_absolute_error_are_those_of_the_laplace_density():
    rows = np.array([1.0, 2.0, 9.0])
    distance = np.mean(np.abs(rows - 2))
    model = replace(by_hand(rows.tolist(), criterion="squared_error"), impurity=np.array([distance]))
    bits = -laplace.logpdf(rows / distance, 2 / distance, 1).sum() / np.log(2)
    assert description_length(model, criterion="absolute_error")[1] == pytest.approx(bits)


def test_bits_of_numbers_do_not_depend_on_their_unit():
    written = ([1.0, 2.0, 4.0], ([9.0, 9.5], [10.0]))
    other = ([100.0, 200.0, 400.0], ([900.0, 950.0], [1000.0]))
    lengths = [
        description_length(by_hand(tree, criterion="squared_error"), criterion="squared_error")
        for tree in (written, other)
    ]
    assert lengths[0] == pytest.approx(lengths[1])


def test_gaussian_entropy_gives_the_same_bits():
    model = by_hand(([1.0, 2.0, 4.0], [9.0, 9.5]), criterion="squared_error")
    as_entropy = replace(model, impurity=0.5 * (1 + np.log(2 * np.pi) + np.log(model.impurity)))
    expected = description_length(model, criterion="squared_error")
    assert description_length(as_entropy, criterion="gaussian_entropy") == pytest.approx(expected)


@LAW
@given(written_trees_of_numbers())
def test_bits_of_numbers_are_finite(written):
    model = by_hand(written, criterion="squared_error")
    assert np.isfinite(subtree_bits(model, criterion="squared_error")).all()


def test_equal_targets_take_no_data_bits():
    assert description_length(by_hand([2.0, 2.0], criterion="squared_error"), criterion="squared_error") == (2.0, 0.0)


def test_rows_of_less_than_unit_weight_cost_no_negative_bits():
    assert leaf_bits(by_hand([0.25, 0.25]))[0][0] == 1.0
