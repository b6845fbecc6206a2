"""The perceptron whose w shrinks at every step."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peers
from sklearn.datasets import load_iris, make_blobs

from margrove import Perceptron, Status, certify, load, save
from margrove.errors import ConvergenceWarning, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")

PENALTIES = [
    {"penalty": "l2", "alpha": 0.01},
    {"penalty": "l1", "alpha": 0.003},
    {"penalty": "elasticnet", "alpha": 0.01, "l1_ratio": 0.4},
    {"penalty": "l1", "alpha": 0.2, "eta0": 0.5},
    {"penalty": "l2", "alpha": 30.0, "fit_intercept": False},  # shrinks to 0 at once
]


@pytest.fixture(scope="module")
def overlapping():
    """Two classes that no plane separates, so that scikit-learn, which goes on behind a clean pass, does the same."""
    X, y = load_iris(return_X_y=True)
    return X[50:], y[50:]


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_walk_is_scikit_learns(penalty, engine, overlapping):
    X, y = overlapping
    weight = np.linspace(0.5, 2, len(y))
    for given in (None, weight):
        ours = Perceptron(shuffle=False, max_iter=9, engine=engine, **penalty).fit(X, y, given)
        theirs = peers.Perceptron(shuffle=False, max_iter=9, tol=None, **penalty).fit(X, y, sample_weight=given)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
        np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
        assert (ours.engine_, ours.status_) == (engine, Status.MAX_ITER)
    sparse = Perceptron(shuffle=False, max_iter=9, engine=engine, **penalty).fit(sp.csr_array(X), y, weight)
    np.testing.assert_allclose(sparse.coef_, ours.coef_)


@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=str)
def test_pieces_shrink_as_in_scikit_learn(penalty, overlapping):
    X, y = overlapping
    ours, theirs = Perceptron(shuffle=False, **penalty), peers.Perceptron(shuffle=False, **penalty)
    for rows in (slice(0, 70), slice(70, 100), slice(0, 100)):
        for model in (ours, theirs):
            model.partial_fit(X[rows], y[rows], classes=[1, 2])
    np.testing.assert_allclose(ours.coef_, theirs.coef_)
    again = Perceptron(shuffle=False, warm_start=True, max_iter=1, **penalty).fit(X, y)
    first = again.coef_.copy()
    assert not np.array_equal(again.fit(X, y).coef_, first)


def test_l1_ratio_is_only_of_elasticnet(overlapping):
    X, y = overlapping
    for share, name in ((0, "l2"), (1, "l1")):
        net = Perceptron(penalty="elasticnet", l1_ratio=share, max_iter=5).fit(X, y)
        np.testing.assert_array_equal(net.coef_, Perceptron(penalty=name, max_iter=5).fit(X, y).coef_)
    plain = Perceptron(max_iter=5).fit(X, y)
    for same in ({"l1_ratio": 0.9, "alpha": 5.0}, {"penalty": "l1", "alpha": 0.0}):
        np.testing.assert_array_equal(Perceptron(max_iter=5, **same).fit(X, y).coef_, plain.coef_)
    np.testing.assert_array_equal(Perceptron(max_iter=5, random_state=0).fit(X, y).coef_, plain.coef_)


def test_a_machine_has_converged_when_the_shrunken_w_separates(tmp_path):
    X, y = make_blobs(60, centers=[[0, 0], [6, 6]], random_state=1)
    model = Perceptron(penalty="l2", alpha=0.001).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert not hasattr(model, "alpha_")
    certificate = certify(model, X, y)
    assert certificate.holds
    assert [claim.name for claim in certificate.claims] == ["rows on the wrong side", "margin"]
    assert model.certificate_.holds
    save(model, tmp_path / "model.margrove")
    again = load(tmp_path / "model.margrove")
    assert again.get_params() == model.get_params()
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    model.coef_ = -model.coef_
    assert certify(model, X, y).holds is False


def test_a_penalty_that_is_too_large_never_converges_and_says_so(overlapping):
    X, y = overlapping
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(penalty="l2", alpha=2.0, max_iter=3).fit(X, y)
    assert certify(model, X, y).holds is False
    stalled = Perceptron(penalty="l1", alpha=0.1, tol=1e-3, n_iter_no_change=3).fit(X, y)
    assert stalled.status_ is Status.STALLED
    assert stalled.n_iter_ < 200
    limited = Perceptron(penalty="l1", max_iter=10**6, time_limit=0.05).fit(X, y)
    assert limited.status_ is Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"penalty": "l3"}, "penalty is 'l3'; it must be one of"),
        ({"alpha": -1.0}, "alpha is -1"),
        ({"l1_ratio": 1.5}, "l1_ratio is 1.5"),
        ({"penalty": "l1", "variant": "averaged"}, "penalty needs variant='last'; it is 'averaged'"),
    ],
)
def test_penalties_that_cannot_be_are_refused(wrong, words, overlapping):
    with pytest.raises(ParameterError, match=words):
        Perceptron(**wrong).fit(*overlapping)
