"""Two Dask workers of one thread against the native engine with two threads, on the same rows.

    python benchmarks/dask_cluster.py [share]

LinearSVC of 5,000,000 × 100 and a tree of depth 8 of 1,000,000 × 30 (``share`` of these rows, 1 by default), float32.
The rows lie in dask arrays that are computed on the workers before the clock starts. Then the same fits with a
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

from margrove import DecisionTreeClassifier, LinearSVC, save
from measure import interleaved, shown, write

BARS = {"linear": 1.3, "tree": 1.5}  # of the native engine's time
SHAPES = {"linear": (5_000_000, 100), "tree": (1_000_000, 30)}
PARQUET_ROWS, PARQUET_COLUMNS, MEMORY = 10_000_000, 30, 1_500_000_000
PIECE = 125_000  # rows of a partition
RUNS = 3


def learner(name: str, **how: Any) -> Any:
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
        sides = {
            "native": lambda: learner(name, n_jobs=2).fit(X, y),
            "dask": lambda: learner(name).fit(dX, dy),
        }
        best = interleaved(sides, RUNS)
        undisturbed = content(sides["dask"]())
        pids = list(client.run(os.getpid).values())
        timer = threading.Timer(best["dask"] / 2, os.kill, (pids[0], signal.SIGKILL))
        timer.start()
        killed, model = seconds(sides["dask"])
        timer.join()
        assert content(model) == undisturbed
        one_pass, _ = seconds(lambda: wait(client.compute([dX.sum(), dy.sum()])))
    return {
        "data": f"{name} {rows:,} × {d}",
        "margrove_seconds": best["dask"],
        "native_seconds": best["native"],
        "ratio": best["dask"] / best["native"],
        "bar": BARS[name],
        "killed_seconds": killed,
        "pass_seconds": one_pass,
    }


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
        "status": str(model.status_),
        "peak_mb": max(peaks.values()) / 1e6,
    }


def main(share: float) -> None:
    cases = [against_native(name, share) for name in SHAPES]
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
        write("dask_cluster", f"of native's time: {BARS}; Parquet within 600 s", cases, "dask", "distributed")
    else:  # a trial
        print(*map(shown, cases), sep="\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
