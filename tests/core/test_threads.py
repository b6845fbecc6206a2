"""The core's threads: the same results from any number of them, from several callers at once and in forked children."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from margrove import SVC, DecisionTreeClassifier


def made(rng):
    X = rng.normal(size=(4000, 12))
    return X, (X[:, 0] + rng.normal(size=4000) > 0).astype(int)


def test_callers_at_the_same_time_share_the_threads(rng):
    X, y = made(rng)
    alone = DecisionTreeClassifier(n_jobs=1).fit(X, y).nodes_.threshold
    with ThreadPoolExecutor(6) as callers:
        found = list(callers.map(lambda jobs: DecisionTreeClassifier(n_jobs=jobs).fit(X, y), [2, 3, 4, 8, 2, 3] * 3))
    for tree in found:
        np.testing.assert_array_equal(tree.nodes_.threshold, alone)


def test_more_threads_than_cores_or_pieces(rng):
    X, y = made(rng)
    one = SVC(n_jobs=1).fit(X[:400], y[:400])
    for jobs in (2, 5, 64):
        many = SVC(n_jobs=jobs).fit(X[:400], y[:400])
        np.testing.assert_array_equal(many.decision_function(X), one.decision_function(X))


def _threads_of_a_fit(X, y):
    DecisionTreeClassifier(n_jobs=2).fit(X, y)
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="/proc")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(rng):
    X, y = made(rng)
    DecisionTreeClassifier(n_jobs=2).fit(X, y)  # the parent has its threads
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_threads_of_a_fit, (X, y)).get(timeout=60) >= 2
