"""Whatever is given as X, y or sample_weight, trees, boosts and codes fit it or raise a `MargroveError`."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import margrove as m
from margrove.errors import InputError, InputTypeError, MargroveError, as_input_error

N = 12
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 3
LEARNERS = {
    "tree": m.DecisionTreeClassifier(),
    "tree, gaussian": m.DecisionTreeClassifier(thresholds="gaussian", ccp_alpha="cv", complexity=0.5),
    "regressor": m.DecisionTreeRegressor(),
    "stump": m.DecisionStump(),
    "boost": m.AdaBoostClassifier(n_estimators=2),
    "boost, early": m.AdaBoostClassifier(n_estimators=2, early_stopping=True),
    "boost of numbers": m.AdaBoostRegressor(n_estimators=2),
    "one against the rest": m.OneVsRestClassifier(m.DecisionStump()),
    "pairs": m.OneVsOneClassifier(m.DecisionStump()),
    "bits": m.BitStringClassifier(m.DecisionStump()),
    "selector": m.ImpuritySelector(k=1),
}
CELLS = {
    "None": None,
    "object": object(),
    "list": [1, 2],
    "dict": {},
    "complex": 1j,
    "signalling NaN": decimal.Decimal("sNaN"),
    "10^400": 10**400,
    "2^70": 2**70,
    "date": datetime.date(2020, 1, 1),
    "type": int,
    "bytes": b"x",
}


def with_cell(cell):
    cells = X.astype(object)
    cells[1, 1] = cell
    return cells


TABLES = {
    **{f"a cell that is {name}": with_cell(cell) for name, cell in CELLS.items()},
    **{f"a list with {name}": [[cell, 1.0], *[[2.0, 3.0]] * (N - 1)] for name, cell in CELLS.items()},
    **{f"a frame with {name}": pd.DataFrame({"a": [cell, *[1.0] * (N - 1)]}) for name, cell in CELLS.items()},
    "None": None,
    "a number": 5,
    "text": "abc",
    "an object": object(),
    "a dict": {"a": 1},
    "a generator": (i for i in range(3)),
    "no dimensions": np.array(1.0),
    "three dimensions": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "lists of different lengths": [[1, 2], [3]] * 6,
    "records": np.zeros(N, dtype=[("a", float), ("b", int)]),
    "bytes without a type": np.zeros((N, 2), dtype="V4"),
    "complex numbers": sp.csr_matrix(X + 1j),
    "beyond float64": np.full((N, 2), np.longdouble("1e400")),
    "a lazy frame": pl.DataFrame(X).lazy(),
    "names twice": pd.DataFrame(X, columns=["a", "a", "b"]),
    "structs": pl.DataFrame({"a": [{"x": 1}] * N}),
}
TARGETS = {
    **{f"a list with {name}": [cell, *Y[1:].tolist()] for name, cell in CELLS.items()},
    "None": None,
    "a number": 5,
    "an object": object(),
    "two columns": np.c_[Y, Y],
    "too short": Y[:-1],
    "nothing": [],
    "NaN": np.where(Y == 1, np.nan, Y),
    "all 10^400": [10**400] * N,
    "records": np.zeros(N, dtype=[("a", float)]),
    "no times": np.array(["NaT", "2021", "2022"] * 4, dtype="M8[Y]"),
}
WEIGHTS = {
    "zeros": np.zeros(N),
    "tiny": np.full(N, 5e-324),
    "huge": np.full(N, 1e308),
    "one row and next to nothing": np.r_[1.0, np.full(N - 1, 1e-300)],
    "orders of magnitude": 10.0 ** np.linspace(-90, 90, N),
    "an object": object(),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_odd_data_is_fitted_or_refused(name):
    is_regression = "numbers" in name or name == "regressor"
    target = Y * 1.0 if is_regression else Y
    calls = [
        *((f"X: {what}", (table, target)) for what, table in TABLES.items()),
        *((f"y: {what}", (X, given)) for what, given in TARGETS.items()),
        *((f"sample_weight: {what}", (X, target, weight)) for what, weight in WEIGHTS.items()),
        *((f"{k} rows", (X[:k], target[:k])) for k in (1, 2, 3)),
    ]
    raw = []
    for what, data in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                clone(LEARNERS[name]).fit(*data)
            except MargroveError:
                pass
            except Exception as error:
                raw.append(f"{what}: {error!r}")
    assert raw == []


@pytest.mark.parametrize("rate", [1.0, 5.0])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_boost_whose_errors_weigh_next_to_nothing_is_certified(engine, rate):
    """An error of 10⁻³⁰⁰ has a vote whose exponential is no number: no row weighs less than 10⁻¹⁰⁰ of all."""
    y = np.r_[0, 1, 0, 1, Y[4:] % 2]
    weight = np.r_[1.0, 1.0, np.full(N - 2, 1e-300)]
    model = m.AdaBoostClassifier(n_estimators=4, learning_rate=rate, engine=engine).fit(X, y, weight)
    assert m.certify(model, X, y, weight).holds
    assert str(model.certificate_)


def test_boosted_trees_predict_the_right_class_where_another_weighs_nothing():
    y = np.where(X[:, 0] > 0, 2, np.where(X[:, 1] > 0, 1, 0))
    weight = (y > 0) * 1.0
    model = m.AdaBoostClassifier(m.DecisionTreeClassifier(max_depth=2, prune="mdl"), n_estimators=3)
    model.fit(X, y, weight)
    tree = m.DecisionTreeClassifier(max_depth=2).fit(X, y, weight)
    rows = weight > 0
    assert np.isin(model.predict(X[rows]), (1, 2)).all()
    assert model.score(X[rows], y[rows]) >= tree.score(X[rows], y[rows]) - 0.2
    assert m.certify(model, X, y, weight).holds


def test_an_exact_test_of_a_table_of_enormous_weights_takes_no_memory():
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    weight = np.array([2.0**80, 3.0, 1.0, 2.0**60])
    selector = m.ImpuritySelector(k=1).fit(x, y, weight)
    assert 0 <= selector.p_values_[0] <= 1


def test_what_is_raised_while_data_is_read_is_an_input_error():
    @as_input_error
    def read(error):
        raise error("found")

    for error, wanted in ((TypeError, InputTypeError), (ValueError, InputError), (OverflowError, InputError)):
        with pytest.raises(wanted) as caught:
            read(error)
        assert "found" in str(caught.value)
        assert isinstance(caught.value.__cause__, error)
    with pytest.raises(TypeError):
        read(TypeError)
