"""What every benchmark shares: interleaved runs, the least of several, JSON out.

These machines are noisy, so sides take turns within one process and each side's best run counts.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def interleaved(sides: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """The least seconds each side took, over ``runs`` rounds in which the sides take turns."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(runs):
        for name, work in sides.items():
            started = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def machine(*packages: str) -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("margrove", "numpy", "scikit-learn", *packages)},
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def write(benchmark: str, bar: str, cases: list[dict[str, Any]], *packages: str) -> None:
    """Put the cases into benchmarks/results/NAME.json and on the screen."""
    for case in cases:
        print(shown(case))
    keep({"benchmark": benchmark, "bar": bar, "machine": machine(*packages), "cases": cases})


def shown(case: Mapping[str, Any]) -> str:
    """A case in one line."""
    return "  ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in case.items()
    )


def keep(record: dict[str, Any]) -> None:
    """Put a record into benchmarks/results/NAME.json; a long run does so after every case, for it may be broken off."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (RESULTS / f"{record['benchmark']}.json").write_text(text, encoding="utf-8")
