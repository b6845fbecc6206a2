"""Problems whose smallest value is 0 or nearly so, because a free intercept alone has no loss."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from margrove import LinearSVC, LinearSVCCV, LinearSVR, certify, load, save
from margrove.data import read_chunks
from margrove.errors import InputError
from margrove.linear_svm.problem import LinearMachine, LinearSvmProblem, centred, relative_gap

VALUE_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
# y and ε: some b leaves no loss
FLAT = {
    "all equal": (np.full(60, 5.0), 0.0),
    "all equal, far away, no short fraction": (np.full(60, 1e6 + 1 / 3), 0.0),
    "all equal, in a tube": (np.full(60, 5.0), 0.1),
    "within the tube": (5 + 0.1 * np.sin(np.arange(60)), 0.2),
    "at both edges of the tube": (np.tile([4.75, 5.25], 30), 0.25),
    "around zero": (0.1 * np.sin(np.arange(60)), 0.2),
}


@pytest.fixture
def X(rng):  # noqa: N802, as it is called everywhere
    return rng.normal(size=(60, 4))


def halves(*parts):
    return [tuple(part[:30] for part in parts), tuple(part[30:] for part in parts)]


@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("loss", VALUE_LOSSES)
@pytest.mark.parametrize("solver", ["auto", "newton", "conjugate_gradients", "descent", "reference", "stream"])
def test_an_intercept_without_loss_converges_and_is_certified(solver, loss, flat, X):
    y, epsilon = FLAT[flat]
    model = LinearSVR(loss=loss, epsilon=epsilon, regularize_intercept=False)
    if solver == "stream":
        model.fit_stream(halves(X, y))
    elif solver == "reference":
        model.set_params(engine="reference").fit(X, y)
    else:
        model.set_params(solver=solver).fit(X, y)
    assert model.status_ == "converged"
    assert model.gap_[0] == model.primal_[0] == model.dual_[0] == 0
    assert not model.coef_.any()
    assert np.abs(model.predict(X) - y).max() <= epsilon * (1 + 1e-12)
    assert certify(model, X, y).holds
    assert certify(model, halves(X, y)).holds


@pytest.mark.parametrize("loss", VALUE_LOSSES)
def test_a_certificate_of_a_flat_model_still_finds_a_change(loss, X):
    y, epsilon = FLAT["within the tube"]
    model = LinearSVR(loss=loss, epsilon=epsilon, regularize_intercept=False).fit(X, y)
    model.coef_ = model.coef_ + 1e-3
    assert not certify(model, X, y).holds
    model = LinearSVR(loss=loss, epsilon=epsilon, regularize_intercept=False).fit(X, y)
    model.intercept_ = model.intercept_ + 0.15
    assert not certify(model, X, y).holds


@pytest.mark.parametrize("loss", VALUE_LOSSES)
@pytest.mark.parametrize(("noise", "tol"), [(1e-6, 1e-4), (1e-9, 1e-4), (1e-11, 1e-3)])  # b has no more digits
def test_targets_far_from_zero_that_differ_by_little_are_fitted(noise, tol, loss, X, rng):
    y = 5 + noise * (X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60))
    C = 1 / noise if loss == "epsilon_insensitive" else 1.0  # a cost at which the model follows the noise
    model = LinearSVR(loss=loss, regularize_intercept=False, C=C, tol=tol).fit(X, y)
    assert model.status_ == "converged"
    assert certify(model, X, y).holds


def test_a_free_regression_is_the_same_wherever_zero_lies(X, rng):
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60)
    here = LinearSVR(regularize_intercept=False, tol=1e-8).fit(X, y)
    for offset in (1e3, -1e6):
        there = LinearSVR(regularize_intercept=False, tol=1e-8).fit(X, y + offset)
        assert there.primal_[0] == pytest.approx(here.primal_[0], rel=1e-7)
        np.testing.assert_allclose(there.predict(X) - offset, here.predict(X), atol=1e-3)
        warm = there.set_params(warm_start=True).fit(X, y + offset)
        assert warm.n_iter_ <= 1
        assert warm.status_ == "converged"


def test_only_rows_that_count_have_a_middle():
    machine = LinearMachine(np.array([5.0, 6.0, 7.0, 900.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    problem = LinearSvmProblem(np.ones((4, 1)), (machine,), loss="epsilon_insensitive", intercept=np.inf)
    moved, (middle,) = centred(problem)
    assert middle == 6
    assert moved.machines[0].target.tolist() == [-1.0, 0.0, 1.0, 894.0]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_class_that_a_fold_lacks_has_no_loss(loss, engine, X):
    codes = np.arange(60) % 3
    splits = [(np.flatnonzero(codes != 0), np.arange(60))]
    search = LinearSVCCV(
        Cs=[0.1, 1.0], cv=splits, loss=loss, regularize_intercept=False, engine=engine, max_iter=10_000, refit=False
    ).fit(X, codes)
    assert search.cv_results_["is_converged"].all()


def test_a_penalised_intercept_leaves_targets_where_they_are():
    machine = LinearMachine(np.array([5.0, 6.0]), np.ones(2))
    problem = LinearSvmProblem(np.ones((2, 1)), (machine,), loss="epsilon_insensitive", intercept=1.0)
    assert centred(problem) == (problem, [0.0])


def test_a_gap_below_rounding_is_zero_and_a_dual_value_above_the_primal_fails():
    assert relative_gap(1.0, 1.0 + 1e-15) == 0
    assert relative_gap(1.0, 1.0 - 1e-15) == pytest.approx(1e-15, rel=0.2)
    assert relative_gap(1.0, 1.1) == pytest.approx(-0.1)
    assert relative_gap(0.0, 0.0) == 0


@pytest.mark.parametrize("loss", VALUE_LOSSES)
def test_a_stream_without_any_weight_is_refused_as_fit_refuses_it(loss, X):
    y, none = np.arange(60.0), np.zeros(60)
    with pytest.raises(InputError, match="weight > 0"):
        LinearSVR(loss=loss).fit(X, y, none)
    with pytest.raises(InputError, match=r"every row of every chunk has weight 0.*weight > 0"):
        LinearSVR(loss=loss).fit_stream(halves(X, y, none))


def test_a_flat_stream_is_saved_with_its_proof(tmp_path, X):
    y, epsilon = FLAT["within the tube"]
    path = tmp_path / "flat.csv"
    rows = [",".join(map(repr, [*row, target])) for row, target in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,c,d,y", *rows]))
    chunks = read_chunks(path, target="y", rows=20)
    model = LinearSVR(epsilon=epsilon, regularize_intercept=False).fit_stream(chunks)
    save(model, tmp_path / "flat.margrove")
    assert certify(load(tmp_path / "flat.margrove"), chunks).holds


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("regularize_intercept", [True, False])
@pytest.mark.parametrize("d", [3, 5000])
def test_a_sparse_table_without_a_single_number_is_a_table_like_any_other(loss, regularize_intercept, d):
    X, y = sp.csr_matrix((20, d)), np.arange(20) % 4 == 0
    model = LinearSVC(loss=loss, regularize_intercept=regularize_intercept).fit(X, y)
    assert model.status_ == "converged"
    assert certify(model, X, y).holds
    assert not model.coef_.any()
    assert LinearSVCCV(loss=loss, Cs=[0.1, 1], cv=2).fit(X, y).cv_results_["is_converged"].all()
