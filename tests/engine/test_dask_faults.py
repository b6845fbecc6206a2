"""Workers die while models are fitted, and the files of the models have the same bytes."""

from __future__ import annotations

import os
import signal
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from tests.engine.dask_clusters import OF_DASK, SETTINGS, dying, processes, threads

from margrove import (
    SVC,
    AdaBoostClassifier,
    AdaBoostRegressor,
    Checkpoint,
    DecisionTreeClassifier,
    LinearSVC,
    RandomForestClassifier,
    certify,
    save,
)
from margrove.data import dask_partitions
from margrove.engine.dask import svm
from margrove.engine.dask import tree as spread
from margrove.errors import EngineError
from margrove.run.progress import watched

pytestmark = pytest.mark.filterwarnings(*OF_DASK)
N = 20_000


def _table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 12))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=N) > 0).astype(int) + (X[:, 3] > 1)


@pytest.fixture
def tables():
    """Rows that Dask can make again, and rows that only this process has."""
    X, y = _table()
    return [(da.from_array(X, chunks=(2500, 12)), da.from_array(y, chunks=2500)), (X, y)]


@pytest.fixture(autouse=True)
def _small_nodes(monkeypatch):
    monkeypatch.setattr(spread, "FEW_ROWS", 1000)
    monkeypatch.setattr(spread, "FEW_SHARE", 4)


def _models():
    return [
        LinearSVC(loss="hinge", engine="dask", tol=1e-6),
        DecisionTreeClassifier(engine="dask", max_depth=6),
        RandomForestClassifier(n_estimators=12, max_depth=6, engine="dask"),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, engine="dask"),
        AdaBoostRegressor(n_estimators=3, engine="dask", random_state=0),
    ]


def _bytes(model, table, folder):
    save(model.fit(*table), folder / "model.margrove")
    return (folder / "model.margrove").read_bytes()


def test_without_a_client_the_error_says_how_to_get_one():
    with pytest.raises(EngineError, match=r"there is none. Create one first: client = dask.distributed.Client"):
        LinearSVC(engine="dask").fit(*_table())


def _killed(fits, folder, schedules):
    """Fit each model on its table while workers die; return how many died."""
    n_killed = 0
    with processes(2) as (cluster, client):
        cluster.adapt(minimum=2, maximum=2)  # Dask gives up a worker that dies while it starts
        for model, table in fits:
            began = time.monotonic()
            expected = _bytes(model, table, folder)
            seconds = time.monotonic() - began
            for seed in schedules:
                with dying(cluster, np.random.default_rng(seed), seconds) as killed:
                    assert _bytes(model, table, folder) == expected, f"schedule {seed}"
                n_killed += len(killed)
                client.wait_for_workers(2)
    return n_killed


def _kernel_machine(tables):
    X, y = tables[1]
    return SVC(C=10, engine="dask"), (X[:1500], y[:1500])


def test_models_have_the_same_bytes_when_workers_die(tables, tmp_path):
    linear, tree, *_ = _models()
    fits = [(linear, tables[0]), (linear, tables[1]), (tree, tables[0]), (tree, tables[1]), _kernel_machine(tables)]
    assert _killed(fits, tmp_path, range(1)) > 0


@pytest.mark.slow
def test_models_have_the_same_bytes_in_200_schedules(tables, tmp_path):
    fits = [*((model, table) for model in _models() for table in tables), _kernel_machine(tables)]
    assert _killed(fits, tmp_path, range(19)) > 50  # 11 × 19 schedules


def _dies_at_first(block, deaths):
    with open(deaths, "ab") as file:
        file.write(b"x")
    if deaths.stat().st_size <= 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.slow
def test_what_dask_gives_up_is_computed_again(tables, tmp_path):
    X, y = tables[0]
    deaths = tmp_path / "deaths"
    first = X[:2500].map_blocks(_dies_at_first, deaths=deaths, dtype=float, meta=np.empty((0, 0)))
    model = LinearSVC(engine="dask")
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), processes(2) as (_, client):
        held = client.compute(first.to_delayed().item())  # while anybody wants it, Dask keeps its error
        wait(held)
        assert held.status == "error"
        assert model.fit(da.concatenate([first, X[2500:]]), y).status_ == "converged"
    assert certify(model, *tables[1]).holds
    assert deaths.stat().st_size >= 3


@pytest.mark.slow
def test_models_have_the_same_bytes_for_any_number_of_workers(tables, tmp_path):
    found = set()
    for n_workers in (1, 2, 3, 7):
        with processes(n_workers):
            found.add(tuple(_bytes(model, tables[0], tmp_path) for model in _models()))
    assert len(found) == 1


@pytest.mark.slow
def test_workers_may_join(tables, tmp_path):
    with processes(1) as (cluster, _):
        expected = [_bytes(model, tables[0], tmp_path) for model in _models()]
    with processes(1) as (cluster, _):
        cluster.scale(3)
        assert [_bytes(model, tables[0], tmp_path) for model in _models()] == expected


@pytest.mark.slow
@pytest.mark.parametrize("place", range(6))
def test_a_scheduler_that_is_lost_meanwhile_ends_in_an_error(tables, tmp_path, place, monkeypatch):
    monkeypatch.setattr(svm, "WORKING_SET", 64)  # several rounds
    monkeypatch.setattr(dask_partitions, "_WAIT", 0.001)  # seconds: the first report comes before the end of any fit
    checkpoint = Checkpoint(tmp_path / "checkpoint", interval=0)
    kernel_machine = SVC(C=10, engine="dask", checkpoint=checkpoint)
    model, (X, y) = [*((model, tables[1]) for model in _models()), (kernel_machine, _kernel_machine(tables)[1])][place]
    expected = _bytes_of_local(model, (X, y), tmp_path)
    path = tmp_path / "checkpoint"
    with LocalCluster(n_workers=2, processes=False, **SETTINGS) as cluster:
        seen = []

        def lose(progress):
            seen.append(progress)
            if len(seen) == (3 if place == 5 else 1):
                cluster.close()

        with (
            Client(cluster.scheduler_address, timeout=1),
            watched(lose),
            pytest.raises(EngineError, match=r"the connection to the Dask scheduler \(.*\) is lost. Start the cluster"),
        ):
            model.fit(X, y)
    assert path.exists() is (model is kernel_machine)
    assert _bytes_of_local(model, (X, y), tmp_path) == expected or model is kernel_machine
    if model is kernel_machine:
        assert certify(model, X, y).holds
        assert not path.exists()


def _bytes_of_local(model, table, folder):
    with threads(2):
        return _bytes(model, table, folder)
