"""C-SVC: by hand, against LIBSVM, and what the theory promises."""

from __future__ import annotations

import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from margrove import SVC, SVCCV, BasicLinearClassifier, NuSVC, certify, margins
from margrove.errors import ConvergenceWarning, DataWarning, InfeasibleError, InputError, ParameterError

TIGHT = 1e-6


def test_three_points_by_hand():
    # 0−, 1−, 2+ with C = 1. The hard margin's α = (0, 2, 2) is cut to (0, 1, 1): w = 1, no marginal row, −2 ≤ b ≤ −1.
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1])
    model = SVC(kernel="linear", tol=1e-9).fit(X, y)
    assert model.support_.tolist() == [1, 2]
    np.testing.assert_allclose(model.dual_coef_, [[-1, 1]])
    np.testing.assert_allclose(model.coef_, [[1]])
    np.testing.assert_allclose(model.intercept_, [-1.5])
    assert model.kkt_.tolist() == ["easy", "hard", "hard"]
    np.testing.assert_allclose(model.margin_, [2])
    assert model.certificate_["primal"] == pytest.approx(1.5)
    assert model.certificate_["dual"] == pytest.approx(1.5)
    assert model.loo_bound_ == pytest.approx(2 / 3)


def test_four_points_by_hand():
    # 0−, 1+, 2−, 3+ with C = 1. By symmetry f = w (x − 1.5); the middle rows are on the wrong side, so α = C there; the
    # outer ones are marginal: 1.5 w = 1, and w = 3a + 1 − 2 gives a = 5/9.
    X, y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1])
    model = SVC(kernel="linear", tol=1e-10).fit(X, y)
    alpha = np.zeros(4)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, [5 / 9, 1, 1, 5 / 9], atol=1e-9)
    np.testing.assert_allclose(model.coef_, [[2 / 3]], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-1], atol=1e-9)
    assert model.kkt_.tolist() == ["marginal", "hard", "hard", "marginal"]
    assert model.certificate_["primal"] == pytest.approx(26 / 9)
    assert model.certificate_["dual"] == pytest.approx(26 / 9)
    # C = 1/4 is too little for any margin to be kept: every α is C, w = 1/2, b halfway through [−1, −1/2].
    model = SVC(kernel="linear", C=0.25, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(np.abs(model.dual_coef_), 0.25)
    np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0]], [0.5, -0.75], atol=1e-9)
    assert model.certificate_["duality gap"] == pytest.approx(0, abs=1e-9)


PARITY = [
    {"gamma": 0.5},
    {"kernel": "linear", "C": 0.5},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.3},
    {"kernel": "sigmoid", "gamma": 0.05, "C": 0.3},
    {"class_weight": "balanced", "C": 10.0},
    {"class_weight": {0: 3.0}},
    {"decision_function_shape": "ovo"},
    {"break_ties": True},
]


@pytest.mark.parametrize("settings", PARITY, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_drop_in_for_scikit_learn(settings, n_classes, is_weighted, rng):
    X, y = load_iris(return_X_y=True)
    rows = np.flatnonzero(y >= 3 - n_classes)[::2]
    X, y = X[rows], y[rows]
    if settings.get("class_weight") == {0: 3.0} and n_classes == 2:
        settings = {**settings, "class_weight": {1: 3.0}}
    weight = rng.uniform(0.3, 2, size=len(y)) if is_weighted else None
    ours = SVC(tol=TIGHT, **settings).fit(X, y, sample_weight=weight)
    theirs = peers.SVC(tol=TIGHT, **settings).fit(X, y, sample_weight=weight)
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "classes_", "class_weight_", "support_vectors_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.dtype == other.dtype, name
        assert mine.shape[0] == other.shape[0] or name.startswith("support"), name
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert (ours.shape_fit_, ours.fit_status_) == (theirs.shape_fit_, 0)
    assert ours.kernel == "linear" or ours.gamma_ == pytest.approx(theirs._gamma)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if ours.kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    else:
        with pytest.raises(AttributeError, match="linear kernel"):
            _ = ours.coef_
    theirs.tol = 1e-4  # LIBSVM keeps kernel values in float32, and stops a little off
    proofs = [certify(model, X, y, sample_weight=weight) for model in (ours, theirs)]
    if ours.kernel != "sigmoid":  # which is not PSD: then no gap proves anything
        assert all(proof.holds for proof in proofs), "\n".join(map(str, proofs))
        np.testing.assert_allclose(proofs[0]["dual"], proofs[1]["dual"], rtol=1e-6)


def test_support_vectors_are_ordered_by_class(four_classes):
    X, y = four_classes
    ours, theirs = SVC(tol=TIGHT).fit(X, y), peers.SVC(tol=TIGHT).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])


def test_votes_are_libsvms_and_ties_are_broken_on_demand(four_classes, rng):
    X, y = four_classes
    grid = rng.uniform(-3, 6, size=(4000, 2))
    ours, theirs = SVC(C=0.05, tol=TIGHT).fit(X, y), peers.SVC(C=0.05, tol=TIGHT).fit(X, y)
    assert (ours.predict(grid) == theirs.predict(grid)).mean() > 0.999  # but for points on a boundary
    ours.break_ties = theirs.break_ties = True
    assert (ours.predict(grid) == theirs.predict(grid)).mean() > 0.999
    np.testing.assert_array_equal(ours.predict(grid), ours.classes_[ours.decision_function(grid).argmax(axis=1)])
    ours.decision_function_shape = "ovo"
    with pytest.raises(ParameterError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        ours.predict(grid)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_one_vs_one_decides_by_the_sums_of_its_pairs(kernel, four_classes):
    """Each class's support vectors are met once; what is added up is what each pair alone would say."""
    X, y = four_classes
    points = X @ X.T if kernel == "precomputed" else X
    model = SVC(kernel=kernel, gamma=0.3, tol=TIGHT).fit(points, y)
    values = model.machine_decision(points)
    for machine, (i, j) in enumerate(combinations(range(4), 2)):
        rows = np.isin(y, model.classes_[[i, j]])
        some = points[np.ix_(rows, rows)] if kernel == "precomputed" else points[rows]
        pair = SVC(kernel=kernel, gamma=0.3, tol=TIGHT).fit(some, y[rows])
        np.testing.assert_allclose(values[rows, machine], -pair.decision_function(some), atol=1e-3)
    assert model.kkt_.shape == (120, 6)
    assert ((model.kkt_ == "").sum(axis=0) == 60).all()


def test_one_vs_rest_is_a_machine_per_class(four_classes):
    X, y = four_classes
    model = SVC(multiclass="ovr", gamma=0.3, tol=TIGHT).fit(X, y)
    assert model.certificate_.machines == tuple(f"{label} vs rest" for label in model.classes_)
    decision = model.decision_function(X)
    for k, label in enumerate(model.classes_):
        alone = SVC(gamma=0.3, tol=TIGHT).fit(X, y == label)
        np.testing.assert_allclose(decision[:, k], alone.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])
    assert model.dual_coef_.shape == (4, len(model.support_))
    assert certify(model, X, y).holds
    two = SVC(multiclass="ovr", gamma=0.3).fit(X, y == "oak")
    assert two.decision_function(X).shape == (120,)


def test_a_code_matrix_of_pairs_is_one_vs_one(four_classes):
    X, y = four_classes
    code = np.zeros((4, 6))
    for machine, (i, j) in enumerate(combinations(range(4), 2)):
        code[i, machine], code[j, machine] = 1, -1
    coded, paired = SVC(multiclass=code, gamma=0.3).fit(X, y), SVC(gamma=0.3).fit(X, y)
    np.testing.assert_allclose(coded.machine_decision(X), paired.machine_decision(X), atol=1e-9)
    np.testing.assert_array_equal(coded.support_, paired.support_)
    assert coded.dual_coef_.shape == (6, len(coded.support_))
    assert certify(coded, X, y).holds


def test_bits_decide_by_the_losses_of_the_code_words(four_classes):
    X, y = four_classes
    code = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    model = SVC(multiclass=code, gamma=0.3).fit(X, y)
    assert model.certificate_.machines == ("beech|oak vs ash|elm", "elm|oak vs ash|beech")
    values = model.machine_decision(X)
    losses = np.maximum(0, 1 - code[None] * values[:, None, :]).sum(axis=2)
    np.testing.assert_allclose(model.decision_function(X), -losses)
    np.testing.assert_array_equal(model.predict(X), model.classes_[losses.argmin(axis=1)])
    assert model.score(X, y) > 0.8
    assert certify(model, X, y).holds
    two = SVC(multiclass=[[-1, 1], [1, -1]], gamma=0.3).fit(X, y == "oak")
    np.testing.assert_array_equal(two.predict(X), SVC(gamma=0.3).fit(X, y == "oak").predict(X))
    assert certify(two, X, y == "oak").holds


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("bits", "multiclass is 'bits'; it must be one of 'ovo', 'ovr', or a code matrix"),
        (None, "multiclass is NoneType"),
        ([1, -1, 1], r"of shape \(3,\)"),
        ([[1], [-1], [2]], r"multiclass contains 2.0; a code matrix may contain only \+1, −1 and 0"),
        ([[1], [-1]], "multiclass has 2 rows; y has 3 classes"),
        ([[1], [1], [1]], "column 0 has no −1"),
        ([[1, 0], [1, 1], [-1, -1]], r"'a' and 'b' have opposite signs in no column"),
        ([[1, 1], [-1, -1], [-1, -1]], "'b' and 'c' have the same code word"),
    ],
)
def test_invalid_codes_are_refused(code, words):
    with pytest.raises(ParameterError, match=words):
        SVC(multiclass=code).fit(np.arange(6.0)[:, None], list("abcabc"))


def test_hard_margin_is_the_limit_of_soft_ones():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    hard = SVC(C=float("inf"), kernel="linear", tol=1e-6).fit(X, y)
    soft = SVC(C=1e6, kernel="linear", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(hard.margin_, soft.margin_, rtol=1e-5)
    np.testing.assert_allclose(hard.coef_, soft.coef_, atol=1e-4)
    assert hard.margin_[0] == pytest.approx(2 * margins(hard, X, y).smallest, rel=1e-5)
    assert set(hard.kkt_) == {"easy", "marginal"}
    assert hard.certificate_.holds
    assert hard.certificate_["duality gap"] == pytest.approx(0, abs=1e-5)
    hard.dual_coef_ = 1.1 * hard.dual_coef_
    assert not certify(hard, X, y).holds


def test_a_kernel_separates_classes_that_no_line_separates(four_classes):
    X, y = four_classes
    model = SVC(C=float("inf"), gamma=10.0).fit(X, y)
    assert (model.status_, model.score(X, y)) == ("converged", 1.0)
    assert certify(model, X, y).holds


def test_hulls_that_meet_are_shown():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(
        InfeasibleError, match=r"no hard margin for 1 vs 2.*row \d+.*finite C, or another kernel"
    ) as info:
        SVC(C=float("inf"), kernel="linear").fit(X, y)
    evidence = info.value.evidence
    assert evidence["machine"] == "1 vs 2"
    combinations = []
    for side, (rows, weights) in enumerate(zip(evidence["rows"], evidence["weights"], strict=True)):
        assert (y[rows] == side + 1).all()
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1)
        combinations.append(weights @ X[rows])
    gap = np.linalg.norm(combinations[0] - combinations[1])
    assert gap == pytest.approx(evidence["distance"], abs=1e-6)
    assert gap < 1e-4


def test_two_equal_rows_of_both_classes_have_no_hard_margin():
    with pytest.raises(InfeasibleError, match=r"1·row 1 = 1·row 0"):
        SVC(C=float("inf"), gamma=1.0).fit([[0.0], [0.0]], [0, 1])


def test_easy_rows_can_be_left_out(two_classes):
    X, y = two_classes
    model = SVC(gamma=0.5, tol=1e-8).fit(X, y)
    kept = model.kkt_ != "easy"
    assert 0 < kept.sum() < len(y)
    again = SVC(gamma=0.5, tol=1e-8).fit(X[kept], y[kept])
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-5)


def test_a_small_c_tends_to_the_direction_of_the_means(rng):
    X = np.vstack([rng.normal(0, 1, (30, 3)), rng.normal(1, 1, (70, 3))])
    y = np.repeat([0, 1], [30, 70])
    w = SVC(kernel="linear", C=1e-6, class_weight="balanced").fit(X, y).coef_[0]
    means = BasicLinearClassifier().fit(X, y).coef_[0]
    assert w @ means / np.linalg.norm(w) / np.linalg.norm(means) == pytest.approx(1, abs=1e-9)
    w = SVC(kernel="linear", C=1e-6).fit(X, y).coef_[0]  # with unequal counts it does not
    assert w @ means / np.linalg.norm(w) / np.linalg.norm(means) < 0.9999


def test_c_bounds_the_influence_of_an_outlier(rng):
    """A row of the left class stands just before the right one: the hard margin squeezes through, a small C stays."""
    X = np.vstack([rng.normal(-2, 0.2, (20, 2)), rng.normal(2, 0.2, (20, 2)), [[1.2, 1.2]]])
    y = np.append(np.repeat([0, 1], 20), 0)

    def crossing(model):  # where the boundary meets the line through both centres
        return -model.intercept_[0] / model.coef_.sum()

    dragged = SVC(kernel="linear", C=float("inf")).fit(X, y)
    capped = SVC(kernel="linear", C=0.01, tol=1e-6).fit(X, y)
    assert crossing(dragged) > 1.2
    assert abs(crossing(capped)) < 0.3
    assert capped.kkt_[-1] == "hard"
    assert np.abs(capped.dual_coef_).max() == 0.01  # no dual coefficient is above C
    assert np.abs(dragged.dual_coef_).max() > 1
    assert capped.margin_[0] > 4 * dragged.margin_[0]


def test_leave_one_out_is_bounded(rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=40) > 0).astype(int)
    for settings in ({"gamma": 0.5, "C": 1.0}, {"kernel": "linear", "C": 0.1}, {"gamma": 2.0, "C": 10.0}):
        model = SVC(tol=1e-6, **settings).fit(X, y)
        errors = sum(
            int(SVC(tol=1e-6, **settings).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] != y[i])
            for i in range(40)
        )
        assert errors / 40 <= model.xi_alpha_bound_ <= model.loo_bound_
        assert model.loo_bound_ == len(model.support_) / 40
        assert certify(model, X, y)["leave-one-out bound"] == model.loo_bound_


def test_the_bound_counts_support_vectors_of_any_machine(four_classes):
    X, y = four_classes
    model = SVC(gamma=0.5).fit(X, y)
    assert model.loo_bound_ == len(model.support_) / 120
    assert model.xi_alpha_bound_ <= model.loo_bound_


def test_margins_have_a_column_per_machine(four_classes):
    X, y = four_classes
    ours, theirs = SVC(gamma=0.5, tol=TIGHT).fit(X, y), peers.SVC(gamma=0.5, tol=TIGHT).fit(X, y)
    found = ours.margins(X, y)
    assert found.geometric.shape == (120, 6)
    assert (np.isnan(found.geometric).sum(axis=1) == 3).all()  # each class is in three pairs of six
    np.testing.assert_allclose(margins(theirs, X, y).geometric, found.geometric, atol=1e-4)
    np.testing.assert_allclose(found.geometric * ours.norm_, found.functional)
    assert found.smallest.shape == (6,)
    assert (np.nanmin(found.functional[ours.kkt_ == "easy"]) >= 1 - 1e-4).all()
    sparse = peers.SVC(gamma=0.5, tol=TIGHT).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(margins(sparse, sp.csr_matrix(X), y).geometric, found.geometric, atol=1e-4)
    assert SVC().fit(X, y == "oak").margins(X, y == "oak").geometric.shape == (120,)


def test_a_column_on_another_scale_is_named(rng):
    pd = pytest.importorskip("pandas")
    X = rng.normal(size=(50, 4))
    y = np.arange(50) % 2
    X[:, 2] *= 1e6
    with pytest.warns(DataWarning, match="the scale of column 2 is over 100 times.*StandardScaler"):
        model = SVC().fit(X, y)
    assert certify(model, X, y).holds
    with pytest.warns(DataWarning, match="the scale of income is over"):
        SVC().fit(pd.DataFrame(X, columns=["a", "b", "income", "d"]), y)
    with pytest.warns(DataWarning, match="the scale of column 2 is over"):
        SVC().fit(sp.csr_matrix(X), y)
    with pytest.warns(DataWarning, match="column 1 is over"):
        SVC().fit(X[:, [0, 2]], y)


def test_a_column_on_another_scale_is_named_once(rng):
    X = rng.normal(size=(60, 4))
    X[:, 2] *= 1e6
    y = X[:, 2] > 0
    for learner in (
        SVCCV(Cs=[1.0], gammas=[0.1], cv=3),  # the search and its refit
        GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=3),
        NuSVC(probability=True, nu=0.2),
        make_pipeline(SVC()),
        make_pipeline(SVC()),  # another fit of the same line
    ):
        with pytest.warns(DataWarning, match="the scale of column 2 is over") as caught:
            learner.fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_ordinary_tables_give_no_warning(rng):
    y = np.arange(200) % 2
    SVC().fit(np.eye(8)[rng.integers(0, 8, 200)], y)  # one-hot
    rare = sp.random(200, 300, density=0.01, random_state=0)
    common = sp.csr_matrix(1 + rng.random((200, 1)))  # one word in every text, the others in few
    SVC().fit(sp.hstack([common, rare]).tocsr(), y)
    SVC().fit(np.hstack([rng.normal(size=(200, 2)), np.ones((200, 1))]), y)


def test_bad_parameters_are_refused_before_any_work():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    with pytest.raises(InputError, match="requires values ≥ 0, and column 0 contains -1"):
        SVC(kernel="chi2").fit(-X, y)
    with pytest.raises(InputError, match="only one class"):
        SVC().fit(X, [1, 1])
    with pytest.raises(InputError, match="sample_weight or class_weight is 0 for all rows of class 1"):
        SVC().fit(X, y, sample_weight=[1.0, 0.0])
    with pytest.raises(InputError, match="must be square"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(ParameterError, match="C times the weight of a row is inf; it must be"):
        SVC(C=1e308).fit(X, y, sample_weight=[100.0, 1.0])
    with pytest.raises(ParameterError, match="class_weight is 'fair'; it must be 'balanced', a dict"):
        SVC(class_weight="fair").fit(X, y)
    with pytest.raises(InputError, match=r"the distances in X overflow. Scale the columns, or set gamma to"):
        SVC(gamma="median").fit(1e200 * X, y)
    with pytest.raises(ParameterError, match="decision_function_shape='ovo' requires multiclass='ovo'"):
        SVC(multiclass="ovr", decision_function_shape="ovo").fit(X, y)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1.0, 1e100])
def test_the_hard_margin_at_any_place_and_scale(offset, scale, rng):
    shift = np.array([1, 0])
    low, high = rng.uniform(-1, 0, (50, 2)) - shift, rng.uniform(0, 1, (50, 2)) + shift
    X, y = np.vstack([low, high]), np.repeat([0, 1], 50)
    wanted = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y).margin_[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = SVC(C=np.inf, kernel="linear", tol=1e-6).fit((X + offset) * scale, y)
    # So far away float64 cannot tell f to 1e-6, and the certificate says so.
    assert found.status_ == ("converged" if offset < 1e6 else "stalled")
    assert certify(found, (X + offset) * scale, y).holds == (offset < 1e6)
    assert found.margin_[0] == pytest.approx(wanted * scale, rel=1e-4)
    assert found.score((X + offset) * scale, y) == 1


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_sparse_rows_far_from_the_origin_keep_their_distances(kernel, rng):
    X = 1e7 + 3 * np.round(rng.normal(size=(200, 3)), 3)
    y = rng.integers(0, 2, size=200)
    gamma = 1.0 if kernel == "rbf" else 1e7
    dense = SVC(kernel=kernel, gamma=gamma).fit(X, y)
    sparse = SVC(kernel=kernel, gamma=gamma).fit(sp.csr_matrix(X), y)
    assert sparse.status_ == "converged"
    assert certify(sparse, sp.csr_matrix(X), y).holds
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=2e-3)


def test_a_small_cache_holds_fewer_rows_than_a_batch(rng):
    X = rng.normal(size=(3000, 6))
    X[::3] += 1000  # float32 is not enough: the rows are kept in float64
    y = rng.integers(0, 2, size=3000)
    for points in (X, sp.csr_matrix(X)):
        model = SVC(C=10, gamma=1.0, cache_size=3).fit(points, y)
        assert model.status_ == "converged"
        assert certify(model, points, y).holds


@pytest.mark.parametrize("learner", [SVC(C=100.0, gamma=0.05), SVC(C=np.inf, gamma=0.3), NuSVC(nu=0.3, gamma=0.1)])
def test_an_interrupted_fit_claims_nothing(learner, rng):
    X, y = rng.normal(size=(1500, 20)), rng.integers(0, 5, 1500)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = clone(learner).set_params(time_limit=1e-4, n_jobs=1).fit(X, y)
    worst = np.max(certify(model, X, y)["violation"])
    assert model.certificate_.holds is not True
    assert np.max(model.certificate_["violation"]) >= worst * (1 - 1e-6)


@pytest.mark.parametrize("kernel", ["laplacian", "chi2"])
def test_far_rows_of_the_kernels_of_differences_are_checked(kernel, rng):
    X = np.abs(rng.normal(size=(1500, 4)))
    X[-6:] += 1e8
    y = rng.integers(0, 2, size=1500)
    model = SVC(C=10, kernel=kernel, gamma=1.0).fit(X, y)
    assert certify(model, X, y).holds is (model.status_ == "converged")


def test_a_fit_without_a_solution_leaves_nothing_behind():
    model = SVC(C=np.inf, kernel="linear")
    with pytest.raises(InfeasibleError):
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])


def test_the_xi_alpha_estimate_needs_a_marginal_row(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    model = SVC(C=0.01, gamma=0.5, tol=1e-8).fit(X, y)
    assert not (model.kkt_ == "marginal").any()
    assert model.xi_alpha_bound_ == model.loo_bound_


def test_weights_are_kept_only_with_their_support_vectors(two_classes):
    X, y = two_classes
    model = SVC(kernel="linear").fit(X, y)
    first = model.coef_
    assert model.coef_ is first
    model.dual_coef_ = 2 * model.dual_coef_
    np.testing.assert_allclose(model.coef_, 2 * first)
    assert pickle.loads(pickle.dumps(model)).coef_.shape == first.shape


def test_scikit_learns_own_parameters_are_taken(two_classes):
    X, y = two_classes
    model = SVC(**peers.SVC(probability="deprecated").get_params()).fit(X, y)
    assert not hasattr(model, "predict_proba")


def test_no_limit_of_steps_is_ten_million(monkeypatch, two_classes):
    monkeypatch.setattr("margrove.svm.problem.MOST_STEPS", 5)
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match=r"[0-9,]+ steps were not enough: check the scale of the columns"):
        SVC(tol=1e-12, C=1e6, gamma=5.0, kernel="linear").fit(np.concatenate([X, X * 1e3]), np.concatenate([y, y]))


def test_a_hard_margin_below_rounding_is_infeasible(rng):
    X = np.concatenate([np.linspace(0, 1, 20), np.linspace(1 + 1e-7, 2, 20)])[:, None]
    with pytest.raises(InfeasibleError, match=r"they are 1e-07 apart; distances below .* count as 0 here"):
        SVC(C=np.inf, kernel="linear").fit(X, np.repeat([0, 1], 20))


def test_nu_with_an_indefinite_kernel_has_no_hulls_to_meet():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NuSVC(kernel="sigmoid", nu=0.3).fit(X, y)
    assert model.predict(X).shape == y.shape


def test_coefficients_of_sparse_rows_are_sparse(two_classes):
    X, y = two_classes
    dense, sparse = (SVC(kernel="linear", tol=1e-8).fit(rows, y) for rows in (X, sp.csr_matrix(X)))
    assert sp.issparse(sparse.coef_)
    assert sp.issparse(sparse.dual_coef_)
    np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-5)
