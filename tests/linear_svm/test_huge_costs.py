"""Where C·|x|² is huge: unscaled tables, separated by a plane. Rounding must not stop the solver."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from margrove import LinearSVC, LinearSVR, certify


def table(n: int, d: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n) > 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("n", "d"), [(60, 60), (100, 200), (150, 100)])
@pytest.mark.parametrize(("scale", "C"), [(1e2, 1.0), (1e2, 1e3), (1e4, 1.0), (1e4, 1e3), (1e6, 1.0)])
@pytest.mark.parametrize("solver", ["auto", "newton", "row_newton"])
def test_unscaled_tables_parted_by_a_plane_converge_and_are_certified(
    loss: str, n: int, d: int, scale: float, C: float, solver: str
) -> None:
    X, y = table(n, d)
    machine = LinearSVC(loss=loss, C=C, solver=solver).fit(scale * X, y)
    assert machine.status_ == "converged"
    assert certify(machine, scale * X, y).holds


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_on_their_margin_have_no_loss_however_large_c_is(fit_intercept: bool) -> None:
    X, y = table(80, 120)
    machine = LinearSVC(loss="hinge", C=1e9, fit_intercept=fit_intercept).fit(X, y)
    margins = np.where(y, 1, -1) * machine.decision_function(X)
    assert margins.min() >= 1  # not 1 - 1e-15, which C would magnify
    assert margins.min() <= 1 + 1e-9
    assert certify(machine, X, y).holds


@pytest.mark.parametrize(("seed", "solver"), [(69, "row_newton"), (201, "descent"), (69, "auto"), (201, "auto")])
@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
def test_margins_that_seem_exact_by_luck_are_certified_too(seed: int, solver: str, C: float) -> None:
    """The solver's own sum finds no loss at all, another order of it 1e-16, C times over."""
    rng = np.random.default_rng(seed)
    n, d, scale = int(rng.integers(4, 12)), int(rng.integers(20, 80)), 10 ** rng.uniform(0, 4)
    X, y = scale * rng.standard_normal((n, d)), np.arange(n) % 2
    machine = LinearSVC(loss="hinge", C=C, tol=1e-6, solver=solver, max_iter=10_000).fit(X, y)
    assert machine.status_ == "converged"
    assert certify(machine, X, y).holds


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_that_are_nearly_alike_converge_by_the_matrix_that_can(loss: str, seed: int) -> None:
    """Columns a thousand times farther from 0 than they are wide: products of rows lose the difference."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 20))
    y = X @ rng.normal(size=20) > 0
    X = 1e4 * (X + 1000)
    machine = LinearSVC(loss=loss, C=0.01).fit(X, y)
    assert machine.status_ == "converged"
    assert certify(machine, X, y).holds


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_numbers_that_can_be_met_exactly_converge(loss: str, C: float) -> None:
    rng = np.random.default_rng(3)
    X = 100 * rng.normal(size=(60, 90))
    y = X @ rng.normal(size=90) / 100
    machine = LinearSVR(loss=loss, C=C, epsilon=0.1).fit(X, y)
    assert machine.status_ == "converged"
    assert certify(machine, X, y).holds
