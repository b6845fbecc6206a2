"""Two Dask workers of one thread against the native engine with two threads, on the same rows.

    python benchmarks/dask_cluster.py [share]

LinearSVC of 5,000,000 × 100, a tree of depth 8 of 1,000,000 × 30, and SVC on the 60,000 rows of MNIST, even against odd
(``share`` of these rows, 1 by default), float32. The rows of the first two lie in dask arrays that are computed on the
workers before the clock starts; those of MNIST are sent from this process within each fit. Then the same fits with a
worker killed half-way: what that costs beyond the undisturbed fit, and one pass over the rows of a worker to compare it
with. Every model must have the same bytes. Last, 10,000,000 × 30 from a Parquet file on disk with two workers of
1.5 GB: seconds, and the largest memory of a worker.

This file is not called dask.py, because Python would then import it in place of Dask.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster, wait

from margrove import SVC, DecisionTreeClassifier, LinearSVC, save
from margrove.run.progress import watched
from measure import interleaved, shown, write
from svm import load

BARS = {"linear": 1.3, "tree": 1.5, "svc": 1.4}  # of the native engine's time
ROUND = 0.01  # seconds more for each round of SVC
SHAPES = {"linear": (5_000_000, 100), "tree": (1_000_000, 30)}
PARQUET_ROWS, PARQUET_COLUMNS, MEMORY = 10_000_000, 30, 1_500_000_000
PIECE = 125_000  # rows of a partition
RUNS = 3


def learner(name: str, **how: Any) -> Any:
    if name == "svc":
        return SVC(C=10, gamma=0.02, **how)
    return LinearSVC(**how) if name == "linear" else DecisionTreeClassifier(max_depth=8, **how)


def piece(number: int, rows: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows, labels by a few columns and noise."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((rows, d), dtype=np.float32)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(rows) > 0).astype(np.int8)


@contextmanager
def cluster(**settings: Any) -> Iterator[Client]:
    """Two workers of one thread, on the loopback interface."""
    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**how, **settings) as local, Client(local) as client:
        yield client


def content(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def against_native(name: str, share: float) -> dict[str, Any]:
    rows, d = round(SHAPES[name][0] * share), SHAPES[name][1]
    pieces = [piece(start, min(PIECE, rows - start), d) for start in range(0, rows, PIECE)]
    X, y = np.concatenate([X for X, _ in pieces]), np.concatenate([y for _, y in pieces])
    del pieces
    with cluster() as client:
        dX = da.concatenate([da.from_delayed(part, (size, d), np.float32) for part, size in _made(rows, d, 0)])
        dy = da.concatenate([da.from_delayed(part, (size,), np.int8) for part, size in _made(rows, d, 1)])
        dX, dy = client.persist([dX, dy])
        wait([dX, dy])
        found = compared(client, name, (X, y), (dX, dy))
        found["pass_seconds"], _ = seconds(lambda: wait(client.compute([dX.sum(), dy.sum()])))
    return {"data": f"{name} {rows:,} × {d}", **found}


def compared(client: Client, name: str, native: tuple[Any, Any], dask: tuple[Any, Any]) -> dict[str, Any]:
    """Seconds of both sides, and of a fit in the middle of which a worker is killed."""
    sides = {
        "native": lambda: learner(name, n_jobs=2).fit(*native),
        "dask": lambda: learner(name, engine="dask").fit(*dask),
    }
    best = interleaved(sides, RUNS)
    rounds: list[float] = []
    with watched(lambda progress: rounds.append(progress.done)):
        undisturbed = content(sides["dask"]())
    pids = list(client.run(os.getpid).values())
    timer = threading.Timer(best["dask"] / 2, os.kill, (pids[0], signal.SIGKILL))
    timer.start()
    killed, model = seconds(sides["dask"])
    timer.join()
    assert content(model) == undisturbed
    more = ROUND * max(rounds, default=0.0) if name == "svc" else 0.0
    return {
        "margrove_seconds": best["dask"],
        "native_seconds": best["native"],
        "ratio": best["dask"] / best["native"],
        "bar": BARS[name],
        "is_within_bar": best["dask"] <= BARS[name] * best["native"] + more,
        "killed_seconds": killed,
    }


def on_mnist(share: float) -> dict[str, Any]:
    X, y = load("MNIST even v odd")
    rows = round(len(X) * share)
    X, y = X[:rows].astype(np.float32), y[:rows]
    with cluster() as client:
        return {"data": f"svc {rows:,} × {X.shape[1]}", **compared(client, "svc", (X, y), (X, y))}


def _made(rows: int, d: int, which: int) -> Iterator[tuple[Any, int]]:
    import dask

    for start in range(0, rows, PIECE):
        size = min(PIECE, rows - start)
        yield dask.delayed(lambda *asked: piece(*asked)[which])(start, size, d), size


def from_parquet(name: str, path: Path) -> dict[str, Any]:
    peaks: dict[str, float] = {}
    with cluster(memory_limit=MEMORY) as client:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):
                for worker, info in client.scheduler_info(n_workers=-1)["workers"].items():
                    peaks[worker] = max(peaks.get(worker, 0.0), info["metrics"].get("memory", 0))

        thread = threading.Thread(target=watch)
        thread.start()
        took, model = seconds(lambda: learner(name, engine="dask").fit(str(path), "y"))
        ended.set()
        thread.join()
    return {
        "data": f"{name} from Parquet, {PARQUET_ROWS:,} × {PARQUET_COLUMNS}",
        "margrove_seconds": took,
        "bar_seconds": 600,
        "is_within_bar": took <= 600,
        "status": str(model.status_),
        "peak_mb": max(peaks.values()) / 1e6,
    }


def main(share: float) -> None:
    cases = [*(against_native(name, share) for name in SHAPES), on_mnist(share)]
    if share == 1:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            writer = None
            for start in range(0, PARQUET_ROWS, PIECE):
                X, y = piece(start, PIECE, PARQUET_COLUMNS)
                table = pa.table({**{f"x{j}": X[:, j] for j in range(PARQUET_COLUMNS)}, "y": y})
                writer = writer or pq.ParquetWriter(path, table.schema)
                writer.write_table(table)
            assert writer is not None
            writer.close()
            cases += [from_parquet(name, path) for name in SHAPES]
        bars = ", ".join(f"{name} {bar} ×" for name, bar in BARS.items())
        bar = f"of the native engine's time at most: {bars} + {ROUND * 1000:g} ms a round; from Parquet within 600 s"
        write("dask_cluster", bar, cases, "dask", "distributed")
    else:  # a trial
        print(*map(shown, cases), sep="\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
