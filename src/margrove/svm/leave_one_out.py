"""Exact leave-one-out: the machine solved without each of its support vectors, and its value on that row.

A row with α = 0 can be left out of a machine without a change, so only support vectors need a solve, which starts from
the solution with them. ``loo_bound_`` bounds the error without any solve. Both are of the same problem with one row
less: γ and the bounds C_i of the other rows stay, also those of ``class_weight="balanced"``, which a fit of the other
rows would compute anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.engine import solve
from margrove.errors import InputError, warn_early
from margrove.estimator import with_parameters
from margrove.status import Status, worst
from margrove.svm.kernels import Matrix, kernel_of
from margrove.svm.kkt import AT_UPPER, HARD
from margrove.svm.layout import coefficients_of
from margrove.svm.problem import Dual, LeaveOneOutProblem
from margrove.svm.solving import kernel_cache

if TYPE_CHECKING:
    from margrove.svm.svc import SVC


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of each row by the model fitted without it.

    Attributes
    ----------
    values : array of shape (n, machines)
        f of each machine fitted without the row; NaN where the solve was stopped.
    predicted : array of shape (n,)
        The class of each row by the machines without it.
    is_wrong : array of shape (n,)
    error : float
        The leave-one-out error, γ and C_i fixed; NaN where solves were stopped, because the rows that need none are
        the easy ones.
    bound : float
        ``loo_bound_`` of the model: at least ``error``.
    n_solves : int
        The number of machines that were solved again.
    status : Status
        ``converged``, or the worst status of the model and of the solves.
    """

    values: NDArray[np.float64]
    predicted: NDArray[Any]
    is_wrong: NDArray[np.bool_]
    error: float
    bound: float
    n_solves: int
    status: Status


def leave_one_out(model: SVC, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> LeaveOneOut:
    """Compute `SVC.leave_one_out`."""
    model._check()
    reader = with_parameters(model)
    if isinstance(model.kernel, str):
        reader.set_params(gamma=model.gamma_, sigma=None)  # as it was fitted, whatever was set since
    sample = reader._read(X, y, sample_weight)
    _check_same(model, sample.X, sample.classes)
    machines = reader._machines(sample)
    beta = np.zeros((len(machines.duals), sample.X.shape[0]))
    beta[:, model.support_] = coefficients_of(model)
    is_bound = model._grades.T == HARD
    solved = tuple(_with_alpha(*each) for each in zip(machines.duals, beta, is_bound, strict=True))
    for dual, name in zip(solved, machines.names, strict=True):
        if min((dual.y > 0).sum(), (dual.y < 0).sum()) < 2:
            raise InputError(
                f"{name} has only one row on one of its sides, and cannot be fitted without it",
                cure="Remove the class, or add rows of it.",
            )
    problem = LeaveOneOutProblem(
        machines.data.points,
        machines.data.solver_kernel,
        solved,
        tol=float(model.tol),
        cache_bytes=kernel_cache(model.cache_size),
        precision=model.precision,
    )
    found = solve(problem, model.engine, model._effort())
    values = np.array(model.machine_decision(X))
    for k, (dual, left) in enumerate(zip(solved, found, strict=True)):
        is_support = dual.alpha > 0
        values[dual.point[is_support], k] = left.values[is_support]
    status = next((left.status for left in found if left.status is not Status.CONVERGED), Status.CONVERGED)
    if status is Status.CONVERGED and not all(left.is_converged for left in found):
        status = Status.STALLED
    status = worst((model.status_, status))
    predicted = model._decided(values)
    is_known = np.asarray(np.isfinite(values).all(axis=1))
    is_wrong = np.asarray(is_known & (predicted != sample.classes[sample.codes]))
    if status is not Status.CONVERGED:
        known = f", so its error is not exact: {int(is_known.sum())} of {len(is_known)} rows were evaluated"
        warn_early("leave_one_out", status, known, status.advice_on("rest"))
    return LeaveOneOut(
        values,
        predicted,
        is_wrong,
        float(is_wrong.mean()) if is_known.all() else float("nan"),
        float(model.loo_bound_),
        int(sum((dual.alpha > 0).sum() for dual in solved)),
        status,
    )


def _with_alpha(dual: Dual, beta: NDArray[np.float64], was_bound: NDArray[np.bool_]) -> Dual:
    """Return the dual at its solution, α from ``beta``; raise `InputError` if that is no solution of this dual."""
    given = dual.y * beta[dual.point]
    alpha = np.clip(given, 0.0, dual.upper)
    total = float(alpha.sum())
    is_moved = was_bound[dual.point] & (alpha < (1 - 2 * AT_UPPER) * dual.upper)
    is_other = np.abs(given - alpha).max(initial=0) > 1e-9 * total or abs(float(dual.y @ alpha)) > 1e-6 * (1 + total)
    if is_other or is_moved.any():
        raise InputError(
            "y, the weights or C differ from those the model was fitted with", cure="Pass the same ones as in fit."
        )
    return Dual(dual.y, dual.p, dual.upper, alpha, dual.point)


def _check_same(model: Any, X: Matrix, classes: NDArray[Any]) -> None:
    """Raise `InputError` unless the rows are those of ``fit``: α belongs to them."""
    is_same = X.shape[0] == model.n_rows_ and np.array_equal(classes, model.classes_)
    if is_same and kernel_of(model).name != "precomputed":
        kept, given = model.support_vectors_, X[model.support_]
        gap = kept != given
        is_same = not (gap.nnz if hasattr(gap, "nnz") else gap.any())
    if not is_same:
        raise InputError(
            "X and y are not the rows that the model was fitted on", cure="Pass the training rows, unchanged."
        )
