"""`plot_impurities`: the library's impurities over the share of one class."""

from __future__ import annotations

import numpy as np
import pytest

from margrove.errors import ParameterError
from margrove.plots import plot_impurities
from margrove.tree.impurity import entropy, error, gini


def test_the_curves_are_the_librarys_impurities():
    lines = plot_impurities().lines
    for line, impurity in zip(lines, (entropy, gini, error), strict=True):
        share = line.get_xdata()
        np.testing.assert_array_equal(line.get_ydata(), impurity(np.column_stack([share, 1 - share])))


def test_scaled_all_reach_one_half_at_one_half():
    for line in plot_impurities(scaled=True).lines:
        assert line.get_ydata().max() == 0.5
        assert line.get_xdata()[line.get_ydata().argmax()] == 0.5


@pytest.mark.parametrize("criteria", ["gini", [], ["ginni"]])
def test_unknown_impurities_are_refused(criteria):
    with pytest.raises(ParameterError, match="a list of entropy, gini, error"):
        plot_impurities(criteria)
