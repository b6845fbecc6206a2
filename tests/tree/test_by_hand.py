"""Trees written by hand are whole trees: their arrays agree with one another, and rows find their way."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tree.by_hand import by_hand

from margrove.tree.problem import Cells


def test_counts_gains_and_children_agree():
    model = by_hand(([8, 2], ([0, 5], [1, 3], [1, 1])), n_tests=[4, 2], n_candidates=9)
    np.testing.assert_array_equal(model.value, [[10, 11], [8, 2], [2, 9], [0, 5], [1, 3], [1, 1]])
    np.testing.assert_array_equal(model.children(2), [3, 4, 5])
    np.testing.assert_array_equal(model.end, [6, 2, 6, 4, 5, 6])
    np.testing.assert_array_equal(model.n_tests, [4, 0, 2, 0, 0, 0])
    np.testing.assert_array_equal(model.n_candidates, [9, 0, 9, 0, 0, 0])
    for node in (0, 2):
        after = sum(model.weight[child] * model.impurity[child] for child in model.children(node)) / model.weight[node]
        assert model.gain[node] == pytest.approx(model.impurity[node] - after)


@pytest.mark.parametrize(("criterion", "impurity"), [("gini", 0.375), ("error", 0.25), ("entropy", 0.8112781)])
def test_impurities_by_hand(criterion, impurity):
    assert by_hand([1, 3], criterion=criterion).impurity[0] == pytest.approx(impurity)


def test_rows_go_to_the_branch_of_their_level():
    model = by_hand(([1, 0], [0, 1], [2, 0]))
    cells = Cells(model.columns, 4, (np.array([2, 0, 1, -1], dtype=np.int32),))
    np.testing.assert_array_equal(model.apply(cells), [3, 1, 2, 1])


def test_numbers_give_mean_and_variance():
    model = by_hand(([1.0, 3.0], [5.0]), criterion="squared_error")
    np.testing.assert_allclose(model.value[:, 0], [3, 2, 5])
    np.testing.assert_allclose(model.impurity, [8 / 3, 1, 0])
