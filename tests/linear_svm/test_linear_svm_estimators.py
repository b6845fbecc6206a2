"""LinearSVC and LinearSVR as people use them."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import LinearSVC, LinearSVCCV, LinearSVR, LinearSVRCV, Table, certify
from margrove.errors import ConvergenceWarning, EngineError, InputError, ParameterError


def test_penalty_and_loss_may_be_given_by_position():
    model = LinearSVC("l1", "hinge")
    assert (model.penalty, model.loss) == ("l1", "hinge")
    for learner in (LinearSVR, LinearSVCCV, LinearSVRCV):
        with pytest.raises(TypeError, match="positional"):
            learner("l1")


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="hinge", regularize_intercept=False),
        LinearSVC(penalty="l1", tol=1e-14),
        LinearSVC(multi_class="crammer_singer", tol=1e-14, max_iter=100_000),
        LinearSVR(),
        LinearSVR(loss="squared_epsilon_insensitive", warm_start=True),
        LinearSVCCV(Cs=[0.1, 1.0], cv=2),
        LinearSVRCV(Cs=[0.1, 1.0], cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def three(rng):
    codes = np.arange(90) % 3
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[codes] + rng.normal(size=(90, 2))
    return X, np.array(["ash", "beech", "oak"])[codes]


ENGINES = ["reference", "native"]


@pytest.mark.parametrize("engine", ENGINES)
def test_attributes_have_scikit_learns_shapes(engine, three):
    X, y = three
    model = LinearSVC(engine=engine, tol=1e-3).fit(X, y)
    assert model.coef_.shape == (3, 2)
    assert model.intercept_.shape == (3,)
    assert model.decision_function(X).shape == (90, 3)
    assert model.gap_.shape == model.primal_.shape == model.dual_.shape == (3,)
    assert isinstance(model.n_iter_, int)
    assert set(model.predict(X)) == {"ash", "beech", "oak"}
    assert not hasattr(model, "dual_coef_")
    two = LinearSVC(engine=engine, loss="hinge", tol=1e-3).fit(X, y == "oak")
    assert two.coef_.shape == (1, 2)
    assert two.decision_function(X).shape == (90,)
    assert two.dual_coef_.shape == (1, 90)
    line = LinearSVR(engine=engine, tol=1e-2).fit(X, X[:, 0])
    assert line.coef_.shape == (2,)
    assert line.intercept_.shape == (1,)
    for fitted in (model, two, line):
        assert fitted.status_ == "converged"
        assert fitted.engine_ == engine
        assert fitted.solver_
        assert fitted.certificate_.holds


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "learner",
    [LinearSVC(), LinearSVC(loss="hinge"), LinearSVC(penalty="l1"), LinearSVR(), LinearSVC(regularize_intercept=False)],
    ids=repr,
)
def test_weights_are_repeated_rows(learner, engine, rng):
    X, weight = rng.normal(size=(50, 3)), rng.integers(0, 4, size=50)
    y = X[:, 0] + rng.normal(size=50)
    y = y > 0 if isinstance(learner, LinearSVC) else y
    learner = clone(learner).set_params(engine=engine, tol=1e-3, max_iter=5000)
    weighted = clone(learner).fit(X, y, weight)
    repeated = clone(learner).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.primal_[0] == pytest.approx(repeated.primal_[0], rel=2e-3)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("learner", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVC(penalty="l1")], ids=repr)
def test_sparse_is_dense(learner, kind, rng):
    X = rng.normal(size=(80, 10)) * (rng.random((80, 10)) < 0.3)
    y = X[:, 0] + X[:, 1] > 0
    dense, sparse = (clone(learner).set_params(tol=1e-8, max_iter=10_000).fit(points, y) for points in (X, kind(X)))
    np.testing.assert_allclose(sparse.decision_function(kind(X)), dense.decision_function(X), atol=5e-3)
    assert sparse.primal_[0] == pytest.approx(dense.primal_[0], rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_unscaled_columns_converge_with_the_defaults(loss, rng):
    """Sizes from 1e-3 to 1e6 in one table."""
    X = rng.normal(size=(500, 10)) * 10.0 ** np.linspace(-3, 6, 10)
    y = (X / 10.0 ** np.linspace(-3, 6, 10)).sum(axis=1) + rng.normal(size=500) > 0
    model = LinearSVC(loss=loss).fit(X, y)
    assert model.status_ == "converged"
    assert certify(model, X, y).holds


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_unscaled_columns_and_values_converge_with_the_defaults(loss, rng):
    X = rng.normal(size=(500, 10)) * 10.0 ** np.linspace(-3, 6, 10)
    y = 1e3 * ((X / 10.0 ** np.linspace(-3, 6, 10)).sum(axis=1) + rng.normal(size=500)) + 1e4
    model = LinearSVR(loss=loss).fit(X, y)
    assert model.status_ == "converged"
    assert certify(model, X, y).holds


def test_a_free_intercept_follows_the_origin(rng):
    """Moved by a constant, the same machine; a penalised intercept is another one."""
    X = rng.normal(size=(100, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=100) > 0.3
    for loss in ("hinge", "squared_hinge"):
        free = [LinearSVC(loss=loss, regularize_intercept=False, tol=1e-8).fit(X + at, y) for at in (0, 5)]
        tied = [LinearSVC(loss=loss, tol=1e-8).fit(X + at, y) for at in (0, 5)]
        assert free[0].primal_[0] == pytest.approx(free[1].primal_[0], rel=1e-6)
        assert tied[1].primal_[0] > tied[0].primal_[0] * 1.01


def test_without_an_intercept_there_is_none(three):
    X, y = three
    assert LinearSVC(fit_intercept=False).fit(X, y).intercept_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("learner", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVC(penalty="l1")], ids=repr)
def test_a_warm_start_needs_fewer_steps_and_ends_at_the_same(learner, engine, rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0
    model = clone(learner).set_params(engine=engine, warm_start=True, tol=1e-3, max_iter=5000, solver="auto").fit(X, y)
    steps = model.n_iter_
    again = model.fit(X, y)
    assert again.n_iter_ <= steps
    assert again.certificate_.holds
    cold = clone(model).set_params(C=1.5, warm_start=False).fit(X, y)
    warm = model.set_params(C=1.5).fit(X, y)
    assert warm.primal_[0] == pytest.approx(cold.primal_[0], rel=2e-3)
    more = model.fit(np.vstack([X, X[:5]]), np.append(y, y[:5]))  # rows at the end
    assert more.certificate_.holds
    fewer = model.fit(X[:, :2], y)  # other columns: from the beginning
    assert fewer.coef_.shape == (1, 2)
    names = model.fit(X, np.where(y, "a", "b"))  # other classes
    assert names.certificate_.holds


def test_crammer_and_singer_starts_from_where_it_was(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    model = LinearSVC(multi_class="crammer_singer", engine="reference", warm_start=True, tol=1e-2).fit(X, y)
    assert model.n_iter_ > 0
    assert model.fit(X, y).n_iter_ == 0
    assert model.fit(X, y % 2).certificate_.holds  # other classes
    assert model.set_params(multi_class="ovr").fit(X, y % 2).certificate_.holds


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0}, "C is 0; it must be a number > 0"),
        ({"C": float("inf")}, "Only SVC and SVR accept C=inf"),
        ({"C": 1e101}, "C is 1e\\+101; it must be at most 1e\\+100"),
        ({"tol": 0}, "tol is 0; .* relative duality gap"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"loss": "logistic"}, "loss is 'logistic'; it must be one of 'hinge', 'squared_hinge'"),
        ({"penalty": "elasticnet"}, "penalty is 'elasticnet'; it must be one of 'l2', 'l1'"),
        ({"multi_class": "ovo"}, "multi_class is 'ovo'; it must be one of 'ovr', 'crammer_singer'"),
        ({"solver": "saga"}, "solver is 'saga'"),
        ({"dual": "yes"}, "dual is 'yes'; it must be one of 'auto', True, False"),
        ({"dual": 1}, "dual is 1; it must be one of 'auto', True, False"),
        ({"penalty": "l1", "dual": True}, "penalty='l1' does not support dual=True. Use dual='auto'"),
        ({"penalty": "l1", "solver": "newton"}, "penalty='l1' requires solver='auto'"),
        ({"loss": "hinge", "dual": False}, "dual is False, but loss='hinge' is not differentiable"),
        ({"dual": True, "solver": "newton"}, "solves the primal. Use dual='auto'"),
        ({"dual": False, "solver": "descent"}, "solves the dual. Use dual='auto'"),
        ({"fit_intercept": "no"}, "fit_intercept is 'no'; it must be True or False"),
        ({"regularize_intercept": None}, "regularize_intercept is None; it must be True or False"),
        ({"intercept_scaling": 0}, "intercept_scaling is 0; .* Use fit_intercept=False for no intercept"),
        ({"regularize_intercept": False, "multi_class": "crammer_singer"}, "needs a penalised intercept"),
        ({"class_weight": "even"}, "class_weight is 'even'"),
        ({"class_weight": {0: -1}}, "class_weight\\[0\\] is -1"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"engine": "abacus"}, "engine is 'abacus'"),
    ],
)
def test_bad_parameters_are_refused_with_the_fix(parameters, words):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(ParameterError, match=words):
        LinearSVC(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": -1}, "epsilon is -1"),
        ({"loss": "hinge"}, "loss is 'hinge'; it must be one of 'epsilon_insensitive'"),
        ({"dual": False}, "loss='epsilon_insensitive' is not differentiable"),
    ],
)
def test_regressions_that_cannot_be_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        LinearSVR(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])


def test_costs_too_large_for_float64_are_refused():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    with pytest.raises(ParameterError, match="C times the weight of a row is 1e\\+120"):
        LinearSVC(C=1e60).fit(X, y, [1e60, 1])
    with pytest.raises(ParameterError, match="C times the weight of a row is 1e\\+120"):
        LinearSVR(C=1e60).fit(X, y, [1e60, 1])


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.array([[1, "a"], [2, "b"]], dtype=object), [0, 1], r"X\[0, 1\] is text, 'a'. Put an encoder in front"),
        (np.array([["1", "2"], ["3", "b"]]), [0, 1], r"X\[1, 1\] is text, 'b'"),
        ([[1, 2], [b"c", 4]], [0, 1], r"X\[1, 0\] is text, b'c'"),
        (
            [[datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 2)]],
            [0, 1],
            r"X\[0, 0\] is a date.*Convert it to days",
        ),
    ],
    ids=repr,
)
def test_text_and_dates_are_named_by_their_cell(X, y, words):
    with pytest.raises(InputError, match=f"LinearSVC takes numbers, but {words}"):
        LinearSVC().fit(X, y)
    with pytest.raises(InputError, match=f"LinearSVC takes numbers, but {words}"):
        LinearSVC().partial_fit(X, y, classes=[0, 1])
    model = LinearSVC().fit(np.eye(2, len(X[0])), y)
    with pytest.raises(InputError, match=f"LinearSVC takes numbers, but {words}"):
        model.predict(X)


def test_labels_of_a_regression_are_named():
    for y in (np.array(["a", "b"]), np.array([1, "b"], dtype=object), ["1", "b"]):
        with pytest.raises(InputError, match=r"LinearSVR predicts numbers, but y\[[01]\] is text.*Use a classifier"):
            LinearSVR().fit(np.eye(2), y)


def test_numbers_as_text_are_numbers():
    as_text = LinearSVC().fit(np.array([["1", "2"], ["3", "4"]], dtype=object), [0, 1])
    np.testing.assert_array_equal(as_text.coef_, LinearSVC().fit([[1.0, 2.0], [3.0, 4.0]], [0, 1]).coef_)


@pytest.mark.parametrize("verbose", ["x", -1, 0.5, None])
def test_verbose_is_a_flag_or_a_count(verbose, three):
    with pytest.raises(ParameterError, match="verbose is"):
        LinearSVC(verbose=verbose).fit(*three)


def test_a_c_that_is_not_a_number_does_not_mention_the_hard_margin(three):
    for learner in (LinearSVC(C="1"), LinearSVC(C=None), LinearSVC(C=-1.0)):
        with pytest.raises(ParameterError, match=r"C is .*; it must be a number > 0\.$"):
            learner.fit(*three)
    with pytest.raises(ParameterError, match="hard margin"):
        LinearSVC(C=np.inf).fit(*three)


def test_bad_data_is_named():
    X, y = np.array([[0.0, 1.0], [1.0, np.nan]]), np.array([0, 1])
    with pytest.raises(InputError, match="contains NaN, first in row 1, column 1"):
        LinearSVC().fit(X, y)
    with pytest.raises(InputError, match="y contains only one class"):
        LinearSVC().fit(X[:, :1], [1, 1])
    with pytest.raises(InputError, match="sample_weight or class_weight is 0 for all rows of class 1"):
        LinearSVC().fit(X[:, :1], y, [1, 0])
    with pytest.raises(InputError, match="Put an encoder in front"):
        LinearSVC().fit(Table(block=X, names=["a", "b"], source="array"), y)
    with pytest.raises(InputError, match="columns contain text: colour"):
        LinearSVR().fit(pd.DataFrame({"colour": ["red", "blue"]}), [1.0, 2.0])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "learner", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVC(penalty="l1"), LinearSVR()], ids=repr
)
def test_hostile_tables_are_learnt_and_certified(learner, engine):
    """Constant and duplicate columns and rows, a row of zeros, more columns than rows, one column."""
    wide = np.zeros((4, 9))
    wide[:, 0], wide[1:, 1], wide[2:, 2], wide[:, 3] = 1, 2, 3, 7
    for X in (wide, np.repeat(wide, 3, axis=0), wide[:, 1:2], wide.astype(np.float32)):
        y = np.arange(len(X)) >= len(X) // 2
        model = clone(learner).set_params(engine=engine, max_iter=20_000).fit(X, y.astype(int))
        assert model.status_ == "converged"
        assert certify(model, X, y.astype(int)).holds


@pytest.mark.parametrize("y", [[0, 0, 1, 1], [0, 1, 1, 1]], ids=str)
@pytest.mark.parametrize(
    ("engine", "solver"),
    [
        ("reference", "auto"),
        ("native", "newton"),
        ("native", "row_newton"),
        ("native", "conjugate_gradients"),
        ("native", "descent"),
    ],
)
def test_a_table_of_zeros_is_no_obstacle(engine, solver, y):
    for parameters in ({}, {"fit_intercept": False}, {"regularize_intercept": False}):
        model = LinearSVC(engine=engine, solver=solver, loss="hinge", **parameters).fit(np.zeros((4, 1)), y)
        assert model.certificate_.holds


@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e3])
def test_tiny_and_large_costs_converge(C, rng):
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=100) > 0
    for learner in (LinearSVC(C=C), LinearSVC(C=C, loss="hinge"), LinearSVC("l1", C=C), LinearSVR(C=C)):
        assert learner.fit(X, y.astype(int)).certificate_.holds


def test_an_interrupted_fit_reports_its_gap_and_the_fix(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0
    words = "LinearSVC ended with status 'max_iter': relative gap .*, tol is 1e-10; raise max_iter"
    with pytest.warns(ConvergenceWarning, match=words):
        LinearSVC(loss="hinge", engine="reference", max_iter=2, tol=1e-10).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"in \d vs rest"):
        LinearSVC(engine="reference", max_iter=1, tol=1e-10).fit(X, np.arange(60) % 3)


def test_the_reference_does_not_support_time_limit(three):
    with pytest.raises(EngineError, match="does not support time_limit"):
        LinearSVC(engine="reference", time_limit=1).fit(*three)


def test_a_time_limit_leaves_a_model_with_its_gap(rng):
    X = rng.normal(size=(200, 30))
    y = X[:, 0] + rng.normal(size=200) > 0
    with pytest.warns(ConvergenceWarning, match="ended with status 'time_limit'"):
        model = LinearSVC(loss="hinge", tol=1e-14, C=100, max_iter=10**6, time_limit=1e-9).fit(X, y)
    assert model.coef_.shape == (1, 30)
    assert np.isfinite(model.gap_).all()


def test_verbose_prints_the_solver_and_the_result(three, capsys):
    LinearSVC(verbose=1).fit(*three)
    said = capsys.readouterr().out
    assert "[LinearSVC] 90 rows, 2 columns, dense float64; loss squared_hinge, penalty l2, 3 machines" in said
    assert "[LinearSVC] solver newton (90 rows" in said
    assert "relative gap" in said


def test_dual_settles_the_solver(three):
    X, y = three
    assert LinearSVC(dual=True).fit(X, y).solver_ == "descent"
    assert LinearSVC(dual=False).fit(X, y).solver_ == "newton"
    assert LinearSVC(dual=False, solver="conjugate_gradients").fit(X, y).solver_ == "conjugate_gradients"


def test_the_seed_settles_descent(three):
    X, y = three
    first, second, other = (LinearSVC(dual=True, random_state=seed, n_jobs=1).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


def test_sparsified_weights_predict_the_same(three):
    X, y = three
    model = LinearSVC("l1", C=0.05).fit(X, y)
    said, sparse_said = model.decision_function(X), None
    model.sparsify()
    assert sp.issparse(model.coef_)
    for points in (X, sp.csr_matrix(X)):
        sparse_said = model.decision_function(points)
        np.testing.assert_allclose(sparse_said, said, atol=1e-12)
    assert isinstance(model.densify().coef_, np.ndarray)


def test_margins_are_those_of_the_machines(three):
    X, y = three
    model = LinearSVC().fit(X, y == "oak")
    np.testing.assert_allclose(
        model.margins(X, y == "oak").geometric.ravel(),
        np.where(y == "oak", 1, -1) * model.decision_function(X) / np.linalg.norm(model.coef_),
    )


def test_a_large_fit_keeps_the_solvers_numbers(rng):
    X = rng.normal(size=(60_000, 10)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=60_000) > 0
    model = LinearSVC(solver="conjugate_gradients").fit(X, y)
    assert (model.certificate_.source, model.certificate_.holds) == ("solver", None)
    assert certify(model, X, y).holds


def test_a_memory_mapped_table_is_read_where_it_lies(tmp_path, rng):
    X = rng.normal(size=(300, 5)).astype(np.float32)
    y = X[:, 0] > 0
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(LinearSVC().fit(mapped, y).coef_, LinearSVC().fit(X, y).coef_)


@pytest.mark.parametrize("C", [1e-6, 1e-10, 1e-14])
def test_tiny_costs_do_not_end_at_the_zero_model(C):
    """With tiny costs the zero model has a small gap, but predicts one class."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 0
    model = LinearSVC(C=C).fit(X, y)
    peer = SklearnLinearSVC(C=C).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-4, atol=1e-3 * np.abs(peer.coef_).max())
    assert (model.predict(X) == peer.predict(X)).all()
    assert certify(model, X, y).holds
