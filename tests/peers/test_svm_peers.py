"""C-SVC against LIBSVM on real tables, by the dual objective: not worse, or it says that it is not done."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers

from margrove import SVC, certify

SETS = ["iris", "sonar", "pima", "segment", "phoneme", "pendigits", "usps", "letter", "spambase", "covtype_sample"]
ROWS = 300
MOST_ROWS = 2000


def some_rows(X, y, n):
    """Evenly spread rows of classes that have at least two among them."""
    rows = np.linspace(0, X.shape[0] - 1, min(n, X.shape[0])).astype(int)
    classes, counts = np.unique(y[rows], return_counts=True)
    rows = rows[np.isin(y[rows], classes[counts > 1])]
    X = X[rows]
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64), y[rows]


def compare(X, y, C, *, is_scaled):
    if is_scaled:
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    ours = SVC(C=C, tol=1e-6, time_limit=30).fit(X, y)
    theirs = peers.SVC(C=C, tol=1e-6, gamma=ours.gamma_, max_iter=1_000_000, cache_size=500).fit(X, y)
    proof = certify(ours, X, y)
    assert proof.holds or ours.status_ != "converged", str(proof)
    mine, other = (np.atleast_1d(each["dual"]) for each in (proof, certify(theirs, X, y)))
    if ours.status_ == "converged":
        assert (mine >= other - 1e-6 * np.abs(other)).all(), (mine - other) / np.abs(other)


@pytest.mark.filterwarnings("ignore::margrove.errors.MargroveWarning", "ignore:Solver terminated early")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("is_scaled", [True, False])
def test_not_worse_than_libsvm(name, C, is_scaled, real_arrays):
    compare(*some_rows(*real_arrays(name), ROWS), C, is_scaled=is_scaled)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.MargroveWarning", "ignore:Solver terminated early")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [1e-3, 1e-1, 1.0, 1e2, 1e5])
@pytest.mark.parametrize("is_scaled", [True, False])
def test_not_worse_than_libsvm_on_more_rows(name, C, is_scaled, real_arrays):
    compare(*some_rows(*real_arrays(name), MOST_ROWS), C, is_scaled=is_scaled)
