"""Rows sent down the trees of a forest by the core, compared with a plain walk in doubles."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

from margrove import _core as core


def random_forest(rng, n_trees, n_columns, most_leaves):
    """Trees of random shape, chains among them; thresholds that floats cannot tell apart are."""
    arrays = {name: [] for name in ("feature", "threshold", "right", "missing_branch")}
    start, leaf_start = [0], [0]
    for t in range(n_trees):
        n_leaves = 0

        def grow(leaves, at, is_chain):
            nonlocal n_leaves
            if leaves == 1:
                for name, value in zip(arrays, (-1, np.nan, n_leaves, 0), strict=True):
                    arrays[name].append(value)
                n_leaves += 1
                return 1
            own = len(arrays["feature"])
            threshold = rng.choice([rng.integers(-4, 4), 0.1 * rng.integers(-9, 9), rng.normal(), 1e300, -1e-50])
            for name, value in zip(arrays, (rng.integers(n_columns), threshold, 0, rng.integers(2)), strict=True):
                arrays[name].append(value)
            left = 1 if is_chain else int(rng.integers(1, leaves))
            left = leaves - left if is_chain and rng.random() < 0.5 else left
            size = grow(left, at + 1, is_chain)
            arrays["right"][own] = at + 1 + size
            return 1 + size + grow(leaves - left, at + 1 + size, is_chain)

        grow(int(rng.integers(1, most_leaves + 1)), 0, t % 5 == 0)
        start.append(len(arrays["feature"]))
        leaf_start.append(leaf_start[-1] + n_leaves)
    types = {"feature": np.int32, "threshold": np.float64, "right": np.int32, "missing_branch": np.int8}
    made = {name: np.array(values, dtype=types[name]) for name, values in arrays.items()}
    return made | {"start": np.array(start), "leaf_start": np.array(leaf_start)}


def rows_near_thresholds(rng, forest, n, n_columns):
    """Cells that are thresholds, their neighbours as doubles and as floats, and anything else."""
    X = rng.normal(size=(n, n_columns))
    thresholds = forest["threshold"][forest["feature"] >= 0]
    if len(thresholds):
        near = rng.choice(thresholds, size=X.shape)
        beside = np.nextafter(near, rng.choice([-np.inf, np.inf], size=X.shape))
        kind = rng.integers(0, 5, size=X.shape)
        with np.errstate(over="ignore"):
            X = np.choose(kind, [X, near, beside, near.astype(np.float32).astype(float), np.rint(X)])
    return np.where(rng.random(X.shape) < 0.01, rng.choice([-np.inf, np.inf, -0.0, 1e-46], size=X.shape), X)


def walked(forest, X):
    """Return the leaf of each row in each tree."""
    rows, leaf = np.arange(len(X)), []
    for first in forest["start"][:-1]:
        at = np.full(len(X), first)
        while (is_inner := forest["feature"][at] >= 0).any():
            x = X[rows, forest["feature"][at]]
            passes = np.where(np.isnan(x), forest["missing_branch"][at] == 0, x <= forest["threshold"][at])
            at = np.where(is_inner, np.where(passes, at + 1, first + forest["right"][at]), at)
        leaf.append(forest["right"][at])
    return np.column_stack(leaf)


def problems():
    """Numbers of columns around what fits into vectors, and beyond; rows as floats and doubles, some with NaN."""
    for n_columns in (1, 2, 32, 33, 64, 65, 130, 256, 300):
        rng = np.random.default_rng(n_columns)
        forest = random_forest(rng, 6, n_columns, 150)
        X = rows_near_thresholds(rng, forest, 5000 if n_columns == 33 else 70, n_columns)  # of several blocks
        with np.errstate(over="ignore"):
            as_floats = X.astype(np.float32)
        for rows in (X, as_floats):
            yield forest, rows
            yield forest, np.where(rng.random(X.shape) < 0.1, rows.dtype.type(np.nan), rows)


def leaves_in_core(forest, X, points=core.dense_points):
    nodes = dict(forest) if np.isnan(X).any() else {name: forest[name] for name in forest if name != "missing_branch"}
    return core.forest_leaves(core.ForestTrees(**nodes), points(X), threads=2)


def check_problems():
    n_checked = 0
    for forest, X in problems():
        np.testing.assert_array_equal(leaves_in_core(forest, X), walked(forest, X.astype(float)))
        n_checked += 1
    return n_checked


def test_rows_end_in_the_leaves_of_a_plain_walk():
    assert check_problems() == 36


def test_and_so_do_they_without_avx_512():
    folder = os.path.dirname(__file__)
    code = f"import sys; sys.path.insert(0, {folder!r}); import test_walk; print(test_walk.check_problems())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MARGROVE_PLAIN": "1"},
    )
    assert done.stdout.split() == ["36"]


def test_sparse_rows_end_in_the_leaves_of_dense_ones(rng):
    forest = random_forest(rng, 5, 40, 100)
    X = np.where(rng.random((60, 40)) < 0.3, rng.normal(size=(60, 40)), 0)
    as_sparse = sp.csr_array(X)
    points = core.csr_points(
        as_sparse.data, as_sparse.indices.astype(np.int32), as_sparse.indptr.astype(np.int64), X.shape[1]
    )
    nodes = {name: forest[name] for name in forest if name != "missing_branch"}
    leaf = core.forest_leaves(core.ForestTrees(**nodes), points, threads=1)
    np.testing.assert_array_equal(leaf, walked(forest, X))


def test_sums_are_added_in_the_order_of_the_trees(rng):
    forest = random_forest(rng, 50, 10, 200)
    X = rng.normal(size=(300, 10))
    value = rng.normal(size=(int(forest["leaf_start"][-1]), 2)) * 10.0 ** rng.integers(-8, 8, size=(1, 2))
    nodes = {name: forest[name] for name in forest if name != "missing_branch"}
    trees, points = core.ForestTrees(**nodes), core.dense_points(X)
    leaf = core.forest_leaves(trees, points, threads=1)
    expected = np.zeros((300, 2))
    for t, first in enumerate(forest["leaf_start"][:-1]):
        expected += value[first + leaf[:, t]]
    for threads in (1, 2):
        np.testing.assert_array_equal(
            core.forest_sums(trees, points, value=value, place=None, threads=threads), expected
        )
