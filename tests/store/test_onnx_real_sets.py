"""ONNX files of ten real sets: text, missing cells and unseen categories as they come, on rows held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tests.conftest import shared_data
from tests.store.onnx_parity import assert_same

from margrove import (
    SVC,
    AdaBoostClassifier,
    DecisionTreeClassifier,
    LinearSVC,
    OneVsOneClassifier,
    Table,
    TableEncoder,
    read_table,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning"),
]

TABLES = ("adult", "bank_marketing", "titanic", "mushroom", "credit_approval", "hypothyroid", "soybean", "car")
ARRAYS = ("letter", "segment", "digits", "spambase")
MOST_ROWS = 800
LEFT_OUT = ("split", "boat", "body")

MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(),
    "multi-way tree": DecisionTreeClassifier(categorical="multiway"),
    "boost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=20),
    "linear": make_pipeline(TableEncoder(), LinearSVC()),
    "rbf": make_pipeline(TableEncoder(), SVC(C=10.0)),
    "pairs": make_pipeline(TableEncoder(), OneVsOneClassifier(DecisionTreeClassifier(max_depth=4))),
}


def rows_of(name: str) -> tuple[Any, Any]:
    folder = shared_data()
    if folder is None or not any((folder / f"{name}{ending}").is_file() for ending in (".npz", ".csv.gz")):
        pytest.skip(f"the real data set {name} is not here")
    if name in ARRAYS:
        with np.load(folder / f"{name}.npz") as z:
            return z["X_train"].reshape(len(z["y_train"]), -1).astype(np.float64), z["y_train"]
    table = read_table(folder / f"{name}.csv.gz")
    return table.select([column for column in table.names if column not in LEFT_OUT]), table.labels()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", [*TABLES, *ARRAYS])
def test_a_real_set_is_predicted_as_we_do(name, model):
    X, y = rows_of(name)
    order = np.random.default_rng(0).permutation(len(y))[: 2 * MOST_ROWS]
    train, test = np.sort(order[::2]), np.sort(order[1::2])
    take = X.take if isinstance(X, Table) else X.__getitem__
    assert_same(MODELS[model].fit(take(train), y[train]), take(test))
