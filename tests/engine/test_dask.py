"""The Dask engine: clusters, tables in partitions, and errors. The workers are threads of this process."""

from __future__ import annotations

import pickle
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.base import clone
from tests.engine.dask_clusters import OF_DASK, SETTINGS, bits_of_tree, processes, threads

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor, LinearSVC, LinearSVR, certify
from margrove.data import dask_partitions
from margrove.engine import Dask
from margrove.errors import EngineError, InputError, MissingExtraError, ParameterError

pytestmark = pytest.mark.filterwarnings(*OF_DASK)


@pytest.fixture
def table(rng):
    X = rng.normal(size=(300, 4))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=300) > 0).astype(int) + (X[:, 2] > 1)


def collections(X, y, rows=70):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def frame(X, y):
    return pd.DataFrame(X, columns=list("abcd")).assign(ripe=y)


# Where rows come from


def test_all_kinds_of_partitions_give_one_model(client, table, tmp_path):
    X, y = table
    expected = LinearSVC(tol=1e-9).fit(X, y)
    whole = frame(X, y)
    frames = dd.from_pandas(whole, npartitions=3)
    for number, part in enumerate(np.array_split(np.arange(300), 3)):
        whole.iloc[part].to_csv(tmp_path / f"{number}.csv", index=False, float_format="%.17g")
        pq.write_table(pa.table(whole.iloc[part]), tmp_path / f"{number}.parquet", row_group_size=60)
    given = {
        "arrays": collections(X, y),
        "columns apart": (da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=150)),
        "frame": (frames[list("abcd")], frames["ripe"]),
        "frame with its target": (frames, "ripe"),
        "CSV": (f"{tmp_path}/*.csv", "ripe"),
        "Parquet": (sorted(tmp_path.glob("*.parquet")), "ripe"),
        "memory": (X, y),
        "sparse": (sp.csr_matrix(X), y),
        "frame in memory": (whole[list("abcd")], y),
    }
    for name, (own_X, own_y) in given.items():
        model = LinearSVC(tol=1e-9, engine="dask").fit(own_X, own_y)
        assert np.allclose(model.coef_, expected.coef_, atol=1e-6), name
        assert model.certificate_.holds, name
        assert model.engine_ == "dask"
        has_names = name not in ("arrays", "columns apart", "memory", "sparse")
        assert list(getattr(model, "feature_names_in_", [])) == (list("abcd") if has_names else []), name


def test_weights_are_those_of_the_rows(client, table, rng):
    X, y = table
    weight = rng.integers(0, 3, size=300).astype(float)
    expected = LinearSVC(tol=1e-9, class_weight="balanced").fit(X, y, weight)
    model = LinearSVC(tol=1e-9, class_weight="balanced")
    model.fit(*collections(X, y), da.from_array(weight, chunks=70))
    assert np.allclose(model.coef_, expected.coef_, atol=1e-6)
    whole = dd.from_pandas(frame(X, y).assign(w=weight), npartitions=4)
    named = LinearSVC(tol=1e-9, class_weight="balanced").fit(whole, "ripe", "w")
    assert np.allclose(named.coef_, expected.coef_, atol=1e-6)


def test_auto_takes_dask_for_collections_alone(client, table):
    X, y = table
    assert LinearSVC().fit(X, y).engine_ == "native"
    assert LinearSVC().fit(*collections(X, y)).engine_ == "dask"


def test_an_empty_partition_counts_for_nothing(client, table):
    X, y = table
    dX, dy = da.from_array(X, chunks=((100, 0, 200), 4)), da.from_array(y, chunks=((100, 0, 200),))
    assert np.allclose(LinearSVC().fit(dX, dy).coef_, LinearSVC().fit(X, y).coef_, atol=1e-6)
    tree = DecisionTreeClassifier(engine="dask").fit(dX, dy)
    assert bits_of_tree(tree.nodes_) == bits_of_tree(DecisionTreeClassifier().fit(X, y).nodes_)


# Predictions and certificates


def test_predictions_of_collections_are_lazy(client, table):
    X, y = table
    dX, _ = collections(X, y)
    frames = dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]), npartitions=3)
    classifiers = [LinearSVC().fit(X, y), LinearSVC().fit(X, y == 1), DecisionTreeClassifier().fit(X, y)]
    for model in [*classifiers, LinearSVR().fit(X, X[:, 0]), DecisionTreeRegressor().fit(X, X[:, 0])]:
        for method in ("predict", "decision_function", "predict_proba"):
            if not hasattr(model, method):
                continue
            expected = getattr(model, method)(X)
            lazy = getattr(model, method)(dX)
            assert isinstance(lazy, da.Array)
            assert lazy.shape == expected.shape
            assert lazy.dtype == expected.dtype
            assert np.array_equal(lazy.compute(), expected)
            if not isinstance(model, LinearSVC | LinearSVR):  # scikit-learn warns of names that training had not
                assert np.array_equal(getattr(model, method)(frames).compute(), expected)


def test_a_certificate_is_made_where_the_rows_are(client, table):
    X, y = table
    dX, dy = collections(X, y)
    for model in (LinearSVC(loss="hinge"), LinearSVC(loss="hinge", regularize_intercept=False)):
        model.fit(dX, dy)
        assert certify(model, dX, dy).holds
        model.coef_ = model.coef_ * 1.1
        assert not certify(model, dX, dy).holds
    model = LinearSVR(epsilon=0.1).fit(dX, dX[:, 0])
    assert certify(model, dX, dX[:, 0]).holds
    with pytest.raises(InputError, match="fitted in memory"):
        certify(LinearSVC(loss="hinge").fit(X, y), dX, dy)


# Errors


def test_a_collection_on_another_engine_is_refused_by_name(client, table):
    dX, dy = collections(*table)
    for model in (LinearSVC(engine="native"), DecisionTreeClassifier(engine="reference")):
        with pytest.raises(EngineError, match=r"reads rows in memory, and X is a dask array. Use engine='dask'"):
            model.fit(dX, dy)
    with pytest.raises(InputError, match=r"X is a dask array, and this method of SVC reads rows"):
        SVC().fit(dX, dy)
    with pytest.raises(InputError, match="y is a dask array"):
        LinearSVC(engine="native").fit(table[0], dy)


def test_without_dask_the_error_has_the_line_that_installs_it(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'margrove\[dask\]'"):
        LinearSVC(engine=Dask()).fit(*table)


@pytest.mark.parametrize("address", [3, ""])
def test_a_wrong_address_is_refused(address):
    with pytest.raises(ParameterError, match="address is"):
        Dask(address)


def test_an_address_without_a_scheduler_is_named(table, monkeypatch):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}),
        pytest.raises(EngineError, match=r"no Dask scheduler at 'tcp://127\.0\.0\.1:1'"),
    ):
        LinearSVC(engine=Dask("tcp://127.0.0.1:1")).fit(*table)


def test_an_engine_is_made_of_plain_values():
    model = LinearSVC(engine=Dask("tcp://10.0.0.5:8786"))
    assert clone(model).engine == model.engine == pickle.loads(pickle.dumps(model.engine))


def test_what_does_not_fit_together_is_named(client, table):
    X, y = table
    dX, dy = collections(X, y)
    frames = dd.from_pandas(frame(X, y), npartitions=3)
    for own_X, own_y, words in [
        (dX, y, "X is a dask array and y is of type ndarray"),
        (dX, dy[:200], "X has 300 rows and y has 200"),
        (frames, "colour", "y is 'colour', which is not a column of X"),
        ("/nowhere/*.csv", "ripe", "no file matches"),
        ("/nowhere/*.csv", None, "y is of type NoneType"),
        (da.ones(4), dy, "a table has two dimensions"),
    ]:
        with pytest.raises(InputError, match=words):
            LinearSVC(engine="dask").fit(own_X, own_y)
    with pytest.raises(InputError, match="X has 3 partitions and y has 2"):
        LinearSVC().fit(frames[["a"]], dd.from_pandas(frame(X, y), npartitions=2)["ripe"])
    with pytest.raises(InputError, match="X has 300 rows and y has shape"):
        LinearSVC(engine="dask").fit(X, y[:3])
    with pytest.raises(ParameterError, match="penalty is 'l1', which engine='dask' does not support"):
        LinearSVC(penalty="l1", engine="dask").fit(X, y)
    for name, value in {"solver": "descent", "dual": True, "warm_start": True}.items():
        with pytest.raises(ParameterError, match=f"{name} is .*, which engine='dask' does not support"):
            LinearSVC(engine="dask", **{name: value}).fit(X, y)
    with pytest.raises(EngineError, match="too large a Hessian"):
        LinearSVC(engine="dask").fit(np.ones((4, 2001)) * np.arange(4)[:, None], [0, 0, 1, 1])


def test_a_bad_cell_is_named_by_file_line_and_column(client, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1.5,0\n2.5,1\n" * 20)
    (tmp_path / "b.csv").write_text("x,y\n1.5,0\n,1\n2.5,1\n")
    with pytest.raises(InputError, match=r"b.csv, line 3, column 'x': the cell is missing"):
        LinearSVC(engine="dask").fit(f"{tmp_path}/*.csv", "y")
    (tmp_path / "b.csv").write_text("x,y\n1.5,0\nred,1\nblue,1\n")
    with pytest.raises(InputError, match=r"b.csv.*categories.*'x'"):
        LinearSVC(engine="dask").fit(f"{tmp_path}/*.csv", "y")
    with pytest.raises(InputError, match=r"b.csv, line 3, column 'x': 'red' is .* category here, and numeric in .*a"):
        DecisionTreeClassifier(engine="dask").fit(f"{tmp_path}/*.csv", "y")


def test_a_bad_cell_of_an_array_names_its_partition(client, table):
    X, y = table
    X[150, 2] = np.nan
    with pytest.raises(InputError, match=r"partition 2 of X: Input X contains NaN, first in row 10, column 2"):
        LinearSVC().fit(*collections(X, y))


def test_partitions_with_other_columns_are_named(client, tmp_path):
    (tmp_path / "a.csv").write_text("x,z,y\n" + "1.5,1,0\n2.5,2,1\n" * 4)
    (tmp_path / "b.csv").write_text("z,x,y\n" + "1.5,1,0\n2.5,2,1\n" * 4)
    for model in (LinearSVC(engine="dask"), DecisionTreeClassifier(engine="dask")):
        with pytest.raises(InputError, match=r"b.csv has the columns z, x, and the first has x, z"):
            model.fit(f"{tmp_path}/*.csv", "y")


def test_a_file_that_cannot_be_read_again_is_named(client, tmp_path, table):
    X, y = table
    for number in range(3):
        frame(X, y).to_csv(tmp_path / f"{number}.csv", index=False)
    with Dask().partitions(f"{tmp_path}/*.csv", "ripe", None) as parts:
        assert parts.map(lambda part: part.X.n_rows) == [300] * 3
        (tmp_path / "1.csv").unlink()
        for key in parts.keys:
            key.release()
        with pytest.raises(InputError, match=r"1.csv: there is no such file"):
            parts.map(lambda part: part.X.n_rows)


@pytest.mark.slow
def test_a_task_that_kills_its_workers_ends_with_its_name(monkeypatch):
    monkeypatch.setattr(dask_partitions, "_MOST_LOSSES", 1)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), processes(1) as (_, client):
        keys = [dask_partitions.Tasks(client).submit("rows 0 to 9", _die)]
        with pytest.raises(EngineError, match="rows 0 to 9 cannot be computed: Dask has given it up 2 times"):
            dask_partitions.last_of(dask_partitions.Tasks(client).results(keys))


def _die():
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_without_margrove_is_named(table):
    blocked = "import sys; sys.modules['margrove'] = None"
    with processes(1, preload=blocked), pytest.raises(EngineError, match=r"cannot import margrove .*Install it there"):
        LinearSVC(engine="dask").fit(*table)


def test_a_cluster_without_workers_is_waited_for_and_named(table, monkeypatch):
    monkeypatch.setattr(dask_partitions, "_PATIENCE", 0.2)
    with threads(0), pytest.raises(EngineError, match=r"the Dask cluster has had no worker for 0.2 seconds"):
        LinearSVC(engine="dask").fit(*table)


def test_workers_of_another_version_are_named(client, table, monkeypatch):
    monkeypatch.setattr(dask_partitions, "eval", lambda text: "0.0.1", raising=False)
    with pytest.raises(EngineError, match=r"the worker .* has margrove 0.0.1, and this process has .*Install the same"):
        LinearSVC(engine="dask").fit(*table)


def test_a_cluster_of_this_machine_is_started_and_stopped(table):
    model = LinearSVC(engine=Dask("local")).fit(*table)
    assert np.allclose(model.coef_, LinearSVC().fit(*table).coef_, atol=1e-6)


def test_a_lost_scheduler_ends_in_an_error(table):
    X, y = table
    with LocalCluster(n_workers=1, processes=False, **SETTINGS) as cluster:
        own = Client(cluster.scheduler_address, timeout=1)
        with own, Dask().partitions(X, y, None) as parts:
            cluster.close()
            with pytest.raises(EngineError, match="the connection to the Dask scheduler"):
                parts.map(len)
