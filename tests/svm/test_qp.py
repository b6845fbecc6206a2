"""The same dual through a general QP solver, an interior-point method that knows no SMO, no pairs and no
blocks: for every form, the objectives agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from margrove.engine import Effort, Native
from margrove.svm import problem as forms
from margrove.svm.kernels import Kernel
from margrove.svm.problem import Dual, DualProblem
from margrove.svm.reference import smo

clarabel = pytest.importorskip("clarabel", reason="pip install 'margrove[test]' brings the QP solver")

GAP = 1e-6  # relative: what the objectives may differ by
TOL = 1e-6
KERNELS = [Kernel("linear"), Kernel("rbf", gamma=0.5), Kernel("poly", gamma=0.5, coef0=1.0, degree=2)]


def least_value(machine: Dual, gram: np.ndarray) -> float:
    """min ½αᵀQα + pᵀα with yᵀα = δ (and Σα = M where the form has that) and 0 ≤ α ≤ C."""
    m = len(machine.y)
    y = machine.y.astype(float)
    Q = y[:, None] * gram[np.ix_(machine.point, machine.point)] * y[None, :]
    equalities = np.vstack([y, np.ones(m)]) if machine.by_sign else y[None, :]
    capped = np.flatnonzero(np.isfinite(machine.upper))
    A = sp.vstack([sp.csc_matrix(equalities), -sp.identity(m), sp.identity(m, format="csr")[capped]], format="csc")
    b = np.concatenate([equalities @ machine.alpha, np.zeros(m), machine.upper[capped]])
    cones = [clarabel.ZeroConeT(len(equalities)), clarabel.NonnegativeConeT(m + len(capped))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(sp.csc_matrix(np.triu(Q)), machine.p, A, b, cones, settings).solve()
    assert "Solved" in str(solution.status)
    return float(solution.obj_val)


def close(value: float, least: float) -> bool:
    return abs(value - least) <= GAP * (1 + abs(least))


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3))
    X[50:] = X[:10]  # some rows twice, a few of them with another label
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=60) > 0, 1, -1).astype(np.int8)
    return X, y, X[:, 0] - X[:, 2] + 0.3 * rng.normal(size=60), rng.uniform(0.2, 3.0, size=60)


def machines(y, z, upper) -> dict[str, Dual]:
    return {
        "classification": forms.classification(y, upper),
        "classification, large C": forms.classification(y, 100 * upper),
        "ν-classification": forms.nu_classification(y, upper, 0.4),
        "one class": forms.one_class(upper, 0.3),
        "regression": forms.regression(z, upper, 0.1),
        "regression, no tube": forms.regression(z, upper, 0.0),
        "ν-regression": forms.nu_regression(z, upper, 0.4),
    }


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", machines(*[np.ones(2, np.int8)] * 2, np.ones(2)))
def test_block_solver_reference_and_qp_agree(rows, kernel, form):
    X, y, z, upper = rows
    machine = machines(y, z, upper)[form]
    problem = DualProblem(X, kernel, (machine,), tol=TOL, precision="double")
    least = least_value(machine, kernel.matrix(X, X))
    for (solution,) in (Native().solve(problem, Effort(n_jobs=1)), smo(problem)):
        assert solution.status == "converged"
        assert close(solution.objective, least)


def test_the_hard_margin_and_the_qp_agree(rng):
    """The nearest points of two hulls, solved by us, are the dual without bounds, solved by the QP."""
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 6])
    y = np.repeat(np.array([-1, 1], np.int8), 20)
    model = SVC(C=float("inf"), kernel="linear", tol=TOL).fit(X, y)
    least = least_value(forms.classification(y, np.full(40, np.inf)), X @ X.T)
    assert close(-model.certificate_["dual"], least)


def learners(y, z, weight) -> dict[str, tuple]:
    """A learner, what it is fitted to, and the form it stands for."""
    return {
        "SVC": (SVC(C=2.0), y, forms.classification(y, 2.0 * weight)),
        "NuSVC": (NuSVC(nu=0.3), y, forms.nu_classification(y, weight, 0.3)),
        "SVR": (SVR(C=2.0, epsilon=0.05), z, forms.regression(z, 2.0 * weight, 0.05)),
        "NuSVR": (NuSVR(C=2.0, nu=0.3), z, forms.nu_regression(z, 2.0 * weight, 0.3)),
        "OneClassSVM": (OneClassSVM(nu=0.2), None, forms.one_class(weight, 0.2)),
    }


@pytest.mark.parametrize("name", learners(*[np.ones(2, np.int8)] * 2, np.ones(2)))
def test_the_dual_of_a_certificate_is_the_qps(rows, name):
    X, y, z, weight = rows
    model, target, machine = learners(y, z, weight)[name]
    model.set_params(gamma=0.5, tol=TOL).fit(X, target, sample_weight=weight)
    least = least_value(machine, Kernel("rbf", gamma=0.5).matrix(X, X))
    assert model.certificate_.holds
    assert close(-model.certificate_["dual"], least)


def test_every_pair_of_classes_has_the_qps_dual(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = SVC(C=3.0, gamma=0.7, tol=TOL).fit(X, y)
    gram = Kernel("rbf", gamma=0.7).matrix(X, X)
    for (i, j), dual in zip([(0, 1), (0, 2), (1, 2)], model.certificate_["dual"], strict=True):
        pair = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[pair] == i, 1, -1).astype(np.int8)
        assert close(-dual, least_value(forms.classification(sign, np.full(len(pair), 3.0), pair), gram))
