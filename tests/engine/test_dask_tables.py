"""Tables of any kind in partitions: the encoding learned on the workers, and certificates made there. The workers are
threads of this process."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.pipeline import make_pipeline
from tests.engine.dask_clusters import OF_DASK

from margrove import (
    SVC,
    SVR,
    DecisionTreeClassifier,
    LinearSVC,
    OneClassSVM,
    RandomForestClassifier,
    TableEncoder,
    certify,
    read_table,
)
from margrove.data import regrouped
from margrove.errors import DataWarning, EngineError, InputError

pytestmark = pytest.mark.filterwarnings(*OF_DASK)


@pytest.fixture
def fruit(rng):
    """Numbers, categories, text and truth values, with missing cells, a constant and a column of names."""
    n = 240
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "note": rng.choice(["good tea", "bad pot", "good pot and tea"], n),
            "sweet": rng.choice([True, False], n),
            "same": 1.0,
            "name": [f"fruit {row}" for row in range(n)],
            "weight": (10.0 ** rng.uniform(-3, 3, size=n)).astype(np.float32),
        }
    )
    table.loc[rng.random(n) < 0.1, "size"] = np.nan
    table.loc[rng.random(n) < 0.1, "colour"] = None
    table.loc[:70, "weight"] = np.nan  # a partition without any
    return table, np.where(table["size"].fillna(0) + (table["colour"] == "red") > 0.5, "ripe", "raw")


@pytest.fixture
def files(fruit, tmp_path):
    table, y = fruit
    whole = table.assign(state=y)
    whole.to_csv(tmp_path / "whole.txt", index=False)
    for number, rows in enumerate(np.array_split(np.arange(len(whole)), 3)):
        whole.iloc[rows].to_csv(tmp_path / f"{number}.csv", index=False)
    return tmp_path


# Before the first test with a client.
def test_without_a_client_it_is_asked_for(fruit):
    with pytest.raises(EngineError, match="needs a Dask client, and there is none"):
        TableEncoder().fit(dd.from_pandas(fruit[0], npartitions=3))


ENCODINGS = [
    pytest.param({}, marks=pytest.mark.slow),
    {"text": "note", "sparse_output": True},
    pytest.param({"impute": "mean", "add_indicator": True}, marks=pytest.mark.slow),
]


@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
@pytest.mark.parametrize("parameters", ENCODINGS)
def test_an_encoding_has_the_bits_of_one_machine(client, fruit, parameters):
    table, _ = fruit
    one, many = TableEncoder(**parameters).fit(table), TableEncoder(**parameters)
    partitions = dd.from_pandas(table, npartitions=4)
    many.fit(partitions)
    assert many.columns_ == one.columns_
    assert many.dropped_ == one.dropped_
    assert many.feature_names_in_.tolist() == one.feature_names_in_.tolist()
    lazy = many.transform(partitions)
    assert isinstance(lazy, da.Array)
    expected, found = one.transform(table), lazy.compute()
    assert lazy.shape[1] == expected.shape[1]
    assert (found != expected).sum() == 0
    assert found.dtype == lazy.dtype == expected.dtype


@pytest.mark.slow
def test_columns_that_are_left_out_are_told(client, fruit):
    with pytest.warns(DataWarning) as caught:
        TableEncoder().fit(dd.from_pandas(fruit[0], npartitions=3))
    words = " ".join(str(each.message) for each in caught)
    assert "constant are left out: 'same'" in words
    assert "identifiers (nearly every cell is different) are left out: 'name'" in words


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
def test_a_pipeline_fits_predicts_and_is_certified_over_partitions(client, fruit, files):
    table, y = fruit
    expected = make_pipeline(TableEncoder(), LinearSVC(tol=1e-9)).fit(table, y)
    frames, labels = dd.from_pandas(table, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)
    model = make_pipeline(TableEncoder(), LinearSVC(tol=1e-9)).fit(frames, labels)
    assert model[-1].engine_ == "dask"
    assert np.allclose(model[-1].coef_, expected[-1].coef_, atol=1e-6)
    assert np.array_equal(model.predict(frames).compute(), expected.predict(table))
    assert certify(model, frames, labels).holds

    pattern = f"{files}/*.csv"
    of_files = make_pipeline(TableEncoder(), LinearSVC(tol=1e-9, engine="dask")).fit(pattern, "state")
    whole = read_table(files / "whole.txt")
    of_one = make_pipeline(TableEncoder(), LinearSVC(tol=1e-9)).fit(whole, whole.labels())
    assert of_files[0].columns_ == of_one[0].columns_
    assert of_files[0].target_ == "state"
    assert np.allclose(of_files[-1].coef_, of_one[-1].coef_, atol=1e-6)
    assert np.array_equal(of_files.predict(pattern).compute(), of_one.predict(whole))
    assert certify(of_files, pattern, "state").holds


def test_bad_cells_are_named_by_file_line_and_column(client, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1.5,0\n2.5,1\n" * 20)
    for cells, words in [
        ("red,1\n2.5,0\n", r"b.csv, line 3, column 'x': 'red' is not a number; .* numeric in .*a.csv"),
        ("inf,1\n2.5,0\n", r"b.csv, line 3, column 'x': the number is infinite"),
        ("2.5,\n2.5,0\n", r"b.csv, line 3, column 'y': 1 of 3 target cells is missing"),
    ]:
        (tmp_path / "b.csv").write_text(f"x,y\n1.5,0\n{cells}")
        for pattern in (f"{tmp_path}/*.csv", sorted(tmp_path.glob("*.csv"), reverse=True)):
            with pytest.raises(InputError, match=words):
                TableEncoder().fit(pattern, "y")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
def test_what_cannot_be_encoded_is_named(client, fruit, tmp_path):
    frames = dd.from_pandas(fruit[0], npartitions=3)
    with pytest.raises(InputError, match="there is no column 'body' to read text from"):
        TableEncoder(text="body").fit(frames)
    with pytest.raises(InputError, match=r"no column is left to learn from \(n_samples = 240\)"):
        TableEncoder().fit(frames[["same"]])
    with pytest.raises(InputError, match=r"partition \d of X is sparse"):
        TableEncoder(sparse_output=True).fit(TableEncoder(sparse_output=True).fit(fruit[0]).transform(frames))
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the target 'y' is not a column"):
        TableEncoder().fit(f"{tmp_path}/*.parquet", "y")


# Certificates


def certified(model, X, y):
    """Return the certificates of a model of rows in memory, there and over partitions."""
    dX = da.from_array(X, chunks=((90, 0, len(X) - 90), X.shape[1]))
    dy = None if y is None else da.from_array(y, chunks=(dX.chunks[0],))
    model.fit(X) if y is None else model.fit(X, y)
    return certify(model, X, y), certify(model, dX, dy), dX, dy


def values_of(certificate):
    return {claim.name: claim.values for claim in certificate.claims}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (SVC(C=10.0), "classes"),
        pytest.param(SVR(), "numbers", marks=pytest.mark.slow),
        pytest.param(OneClassSVM(nu=0.2), None, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_kernel_machines_are_certified_where_the_rows_are(client, rng, model, target):
    X = rng.normal(size=(200, 3))
    classes = (X[:, 0] + rng.normal(size=200) > 0).astype(int) + (X[:, 1] > 1)
    expected, found, dX, dy = certified(model, X, {"classes": classes, "numbers": X[:, 0], None: None}[target])
    assert found.holds
    assert found.n_rows == 200
    for name, values in values_of(expected).items():
        assert values_of(found)[name] == pytest.approx(values, rel=1e-6, abs=1e-9), name
    model.dual_coef_ = model.dual_coef_ * 1.1
    assert not certify(model, dX, dy).holds
    model.support_ = np.roll(model.support_, 1)
    assert not certify(model, dX, dy).claim("the rows are those it was fitted on").holds


@pytest.mark.slow
def test_kernels_without_a_formula_are_refused(client, rng):
    X = rng.normal(size=(20, 2))
    model = SVC(kernel="precomputed").fit(X @ X.T, X[:, 0] > 0)
    with pytest.raises(InputError, match="kernel is 'precomputed', whose values cannot be computed over partitions"):
        certify(model, da.from_array(X @ X.T, chunks=(10, 20)), da.from_array(X[:, 0] > 0, chunks=10))


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        pytest.param(RandomForestClassifier(n_estimators=3, random_state=0), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_trees_are_certified_by_one_worker(client, rng, monkeypatch, model):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    expected, found, dX, dy = certified(model, X, y)
    assert found.holds
    assert found == expected
    flipped = da.from_array(1 - y, chunks=dy.chunks)
    assert not certify(model, dX, flipped).holds
    monkeypatch.setattr(regrouped, "_room", lambda dask_worker: 1000)
    with pytest.raises(InputError, match=r"all rows in one worker: they take 4\.8e-06 GB, and a third of the memory"):
        certify(model, dX, dy)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
def test_a_tree_of_files_is_certified(client, files):
    pattern = f"{files}/*.csv"
    tree = DecisionTreeClassifier(max_depth=4, engine="dask").fit(pattern, "state")
    assert certify(tree, pattern, "state").holds
