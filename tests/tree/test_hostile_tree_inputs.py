"""Trees on difficult tables: mixed types, huge numbers, infinite cells, shared memory."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed

from margrove import DecisionTreeClassifier, DecisionTreeRegressor, certify
from margrove.errors import InputError


@pytest.fixture
def table(rng):
    X = rng.integers(0, 100, size=(300, 6))
    return X, (X[:, 2] > 40).astype(int) + (X[:, 4] > 70)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X.astype(np.int64),
        lambda X: X.astype(np.uint8),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.float32),
        lambda X: np.asfortranarray(X, dtype=np.float64),
        lambda X: np.repeat(X.astype(float), 2, axis=1)[:, ::2],
        lambda X: np.repeat(X.astype(np.float32), 2, axis=0)[::2],
        lambda X: X.astype(float)[::-1][::-1],
        lambda X: X.astype(">f8"),
        lambda X: X.tolist(),
        lambda X: sp.csc_matrix(X),
        lambda X: sp.csr_array(X.astype(np.int32)),
        lambda X: sp.coo_matrix(X.astype(np.float32)),
    ],
    ids=[
        "int64",
        "uint8",
        "float16",
        "float32",
        "fortran",
        "gaps",
        "rows",
        "reversed",
        "big",
        "lists",
        "csc",
        "csr",
        "coo",
    ],
)
def test_the_same_numbers_give_the_same_tree(make, table):
    X, y = table
    given = make(X)
    plain = DecisionTreeClassifier().fit(X.astype(float), y)
    tree = DecisionTreeClassifier().fit(given, y)
    np.testing.assert_array_equal(tree.nodes_.threshold, plain.nodes_.threshold)
    np.testing.assert_array_equal(tree.predict(given), y)


def test_read_only_and_memory_mapped_tables_are_left_alone(table, tmp_path):
    X, y = table[0].astype(float), table[1]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y.flags.writeable = False
    assert DecisionTreeClassifier().fit(mapped, y).score(mapped, y) == 1
    np.testing.assert_array_equal(mapped, X)


def test_a_cell_stored_in_parts_is_their_sum():
    """A sparse matrix may hold a cell twice; in training and in prediction its value is the sum."""
    columns = np.zeros(40, int)
    parts = np.tile([100.0, -99.0], 20) * np.repeat(np.arange(20), 2)  # adds up to the row's number
    X = sp.csr_matrix((parts, columns, np.arange(0, 41, 2)), shape=(20, 2))
    assert not X.has_canonical_format
    y = np.arange(20) > 11
    tree = DecisionTreeClassifier().fit(X, y)
    assert tree.nodes_.threshold[0] == 11.5
    np.testing.assert_array_equal(tree.predict(X), y)
    assert X.nnz == 40  # the user's own is left as it is


def test_booleans_and_numbers_of_any_size_are_distinguished():
    for values in (
        [-1e308, 1e308],
        [5e-324, 1e-323],
        [-5e-324, 0.0],
        [1e300, 1.0000000000000002e300],
        [2**53, 2**53 + 2],
    ):
        X = np.array(values)[:, None]
        for learner in (DecisionTreeClassifier(), DecisionTreeRegressor()):
            np.testing.assert_array_equal(learner.fit(X, [0, 1]).predict(X), [0, 1])
    X = np.array([[True], [False]])
    np.testing.assert_array_equal(DecisionTreeClassifier().fit(X, [0, 1]).predict(X), [0, 1])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_infinite_cells_are_refused_with_their_place(value, make):
    X = np.ones((5, 3))
    X[3, 1] = value
    with pytest.raises(InputError, match=r"'x1'.*row 3 is infinite"):
        DecisionTreeClassifier().fit(make(X), [0, 1, 0, 1, 0])


@pytest.mark.parametrize("criterion", ["squared_error", "gaussian_entropy", "absolute_error"])
@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_an_offset_of_the_target_changes_no_split(criterion, offset, rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(-4, 5, 200) / 4
    near = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y)
    far = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y + offset)
    np.testing.assert_array_equal(near.nodes_.feature, far.nodes_.feature)
    np.testing.assert_allclose(far.nodes_.gain, near.nodes_.gain, rtol=1e-9)
    np.testing.assert_allclose(far.predict(X) - offset, near.predict(X), atol=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_targets_whose_squares_overflow_are_refused(size):
    with pytest.raises(InputError, match=r"y holds numbers up to .* Multiply y"):
        DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [0, size, 2 * size])


def test_gaussian_entropy_of_very_different_weights_is_certified():
    weight = [8.87e-8, 9.28e10, 4.4e-9, 5.8e-8, 0.12, 6.9e-9, 2.3e-6, 4.6e-4, 918.0, 2.1e-8]
    x = np.array([0.147, 0.122, -0.047, 0.619, -0.122, -0.21, -2.04, 0.227, -0.106, 0.038])[:, None]
    y = [-1.26370939, -0.07358887, 1.78708081, -13.46498792, -4.45289162, -15.9459367, 11.96, 8.2, 9.24, -14.93]
    tree = DecisionTreeRegressor(criterion="gaussian_entropy").fit(x, y, sample_weight=weight)
    assert certify(tree, x, y, weight).holds


def test_a_tree_is_sent_to_another_process(table, tmp_path):
    X, y = table
    tree = DecisionTreeClassifier().fit(X, y)
    (tmp_path / "tree.pkl").write_bytes(pickle.dumps((tree, X)))
    script = "import pickle, sys; tree, X = pickle.load(open(sys.argv[1], 'rb')); print(tree.predict(X).sum())"
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "tree.pkl")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(process.stdout) == y.sum()


def _fitted_sum(X, y):
    return int(DecisionTreeClassifier().fit(X, y).predict(X).sum())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_children_and_threads_fit_too(rng):
    X = rng.normal(size=(5_000, 12))  # enough for threads of the parent, which a child has not
    y = (X[:, 0] > 0).astype(int)
    assert _fitted_sum(X, y) == y.sum()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_fitted_sum, (X, y)).get(timeout=60) == y.sum()
    assert Parallel(n_jobs=2, prefer="threads")(delayed(_fitted_sum)(X, y) for _ in range(4)) == [y.sum()] * 4


@pytest.mark.slow
def test_a_million_rows_take_seconds(rng):
    X = rng.normal(size=(1_000_000, 10)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    started = time.monotonic()
    tree = DecisionTreeClassifier(max_depth=10).fit(X, y)
    assert tree.decision_path(X).shape[0] == 1_000_000
    assert time.monotonic() - started < 60
    assert tree.score(X, y) > 0.97


@pytest.mark.parametrize("form", ["frame", "sparse", "array"])
def test_infinite_cells_take_a_branch_in_prediction(form):
    X, y = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
    make = {"frame": lambda cells: pd.DataFrame(cells, columns=["x"]), "sparse": sp.csr_matrix, "array": np.asarray}[
        form
    ]
    tree = DecisionTreeClassifier().fit(make(X), y)
    assert tree.predict(make(np.array([[-np.inf], [np.inf]]))).tolist() == [0, 1]
