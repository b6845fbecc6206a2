"""Linear SVMs of 5,000,000 × 100 float32 numbers on disk (2 GB): time, gap, and the process's own memory.

    python benchmarks/linear_stream.py [rows]

Two ways: `fit` on the memory-mapped array, and `fit_stream` over it in chunks; the squared hinge and the hinge, to a
relative gap of 1 %, one thread. Each runs in a process of its own. The memory is RssAnon of /proc/self/status, sampled
every 20 ms from before the fit to after it: pages of the mapped file are the system's to drop, and are not counted. The
baseline, Python and its packages, is in it, and told as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import write

ROWS, COLUMNS = 5_000_000, 100
TOL = 0.01
BAR_MB = 500
PIECE = 100_000  # rows made at a time


def make(folder: Path, rows: int) -> None:
    """Gaussian rows, labels by a plane and noise: a tenth of them is on the wrong side."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, COLUMNS))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (rows,))
    plane = np.random.default_rng(0).normal(size=COLUMNS).astype(np.float32)
    for start in range(0, rows, PIECE):
        rng = np.random.default_rng(start + 1)
        part = rng.standard_normal((min(PIECE, rows - start), COLUMNS), dtype=np.float32)
        value = part @ plane + 3 * rng.standard_normal(len(part), dtype=np.float32)
        X[start : start + len(part)] = part
        y[start : start + len(part)] = value > 0
    X.flush()
    y.flush()


def anonymous_mb() -> float:
    """RssAnon of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no RssAnon: this benchmark needs Linux")


def measured(folder: Path, way: str, loss: str) -> dict[str, Any]:
    """One fit, watched."""
    from margrove import LinearSVC

    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
    before = anonymous_mb()
    seen, is_over = [before], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            seen.append(anonymous_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = LinearSVC(loss=loss, tol=TOL, n_jobs=1)
    start = time.perf_counter()
    try:
        if way == "fit":
            model.fit(X, y)
        else:
            model.fit_stream((X, y))
    finally:
        seconds = time.perf_counter() - start
        is_over.set()
        watcher.join()
    return {
        "way": way,
        "loss": loss,
        "seconds": round(seconds, 2),
        "anonymous_mb": round(max(seen), 1),
        "baseline_mb": round(before, 1),
        "relative_gap": float(model.gap_[0]),
        "passes": int(model.n_iter_),
        "solver": model.solver_,
        "status": str(model.status_),
        "is_within_bar": bool(max(seen) < BAR_MB and model.gap_[0] <= TOL),
    }


def main(rows: int) -> None:
    cases = []
    with tempfile.TemporaryDirectory(prefix="margrove-stream-") as folder:
        make(Path(folder), rows)
        for loss in ("squared_hinge", "hinge"):
            for way in ("fit", "fit_stream"):
                command = [sys.executable, __file__, "--one", folder, way, loss]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                cases.append({"rows": rows, "columns": COLUMNS, **json.loads(told.splitlines()[-1])})
                print(cases[-1], flush=True)
    write("linear_stream", f"anonymous memory < {BAR_MB} MB, relative gap ≤ {TOL}", cases, "numpy", "scipy")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(Path(sys.argv[2]), sys.argv[3], sys.argv[4])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
