"""The cost of installing and beginning: sizes of wheels, a predict-only import, a model from the wheel, `make run`.

    python benchmarks/install.py [sizes] [weight] [wheel] [run]

Without a name all parts are measured; each replaces its own cases in results/install.json. `sizes` downloads the
wheels of the peers. `weight` starts fresh processes: the least of several imports after `import numpy`, and its memory.
`wheel` needs dist/ (`make wheels`) and a warm cache of pip. `run` clones this repository and types `make run` in it,
without ccache; then it changes one file of the core. Other work on the machine counts: each case has the load, and of
`make run` also the seconds that its processes computed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import RESULTS, keep, machine, shown

ROOT = Path(__file__).resolve().parents[1]
BAR = (
    "wheel ≤ 3 MB; predict-only import ≤ 0.08 s and ≤ 25 MB above import numpy; from pip install of the wheel to a "
    "certified model ≤ 30 s; make run from a clean clone ≤ 150 s (goal 90 s), after one changed .cpp ≤ 15 s"
)
PEERS = ("scikit-learn", "lightgbm", "xgboost", "ydf", "catboost")
MB = 1_000_000
RUNS = 9
IMPORT = """
import sys, time
def memory():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) * 1024
import numpy
before, started, cpu = memory(), time.perf_counter(), time.process_time()
{code}
print(time.perf_counter() - started, time.process_time() - cpu, memory() - before)
"""
IMPORTS = {
    "load_predictor": "from margrove import load_predictor",
    "load_predictor, a file and a row": "from margrove import load_predictor\n"
    "load_predictor({path!r}).predict([[0.0] * 30])",
    "load": "from margrove import load",
    "load, a file and a row": "from margrove import load\nload({path!r}).predict([[0.0] * 30])",
    "sklearn.svm": "import sklearn.svm",
}


def sizes() -> list[dict[str, Any]]:
    wheels = {path.name: path.stat().st_size for path in (ROOT / "dist").glob("*.whl")}
    with tempfile.TemporaryDirectory() as folder:
        for peer in PEERS:
            _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, peer)
        wheels |= {path.name: path.stat().st_size for path in Path(folder).glob("*.whl")}
    return [
        {"name": name, "megabytes": size / MB, "bar": 3.0 if name.startswith("margrove") else None}
        for name, size in sorted(wheels.items(), key=lambda each: each[1])
    ]


def weight() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.margrove")
        fit = "from margrove import SVC, save\nfrom sklearn.datasets import load_breast_cancer as data\n"
        _run(sys.executable, "-c", f"{fit}save(SVC(gamma=1e-3).fit(*data(return_X_y=True)), {path!r})")
        cases = []
        for name, code in IMPORTS.items():
            script = IMPORT.format(code=code.format(path=path))
            found = [tuple(map(float, _output(sys.executable, "-c", script).split())) for _ in range(RUNS)]
            seconds, computed, memory = (min(each) for each in zip(*found, strict=True))
            bars = {"bar_s": 0.08, "bar_mb": 25.0} if name == "load_predictor" else {}
            case = {"name": name, "seconds": seconds, "cpu_s": computed, "megabytes": memory / MB}
            cases.append(case | bars | _load())
    return cases


def wheel() -> list[dict[str, Any]]:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = sorted((ROOT / "dist").glob(f"*-{tag}-*{platform.machine()}.whl"))
    if not found:
        sys.exit(f"There is no wheel for {tag} in dist/. Run: make wheels")
    with tempfile.TemporaryDirectory() as folder:
        _run(sys.executable, "-m", "venv", folder)
        started, before = time.perf_counter(), _computed()
        _run(f"{folder}/bin/python", "-m", "pip", "install", "--quiet", str(found[0]))
        installed = time.perf_counter()
        _run(f"{folder}/bin/margrove", "train", "--model", "tree", "-o", f"{folder}/penguins.margrove", cwd=folder)
        _run(f"{folder}/bin/margrove", "certify", f"{folder}/penguins.margrove", cwd=folder)
        ended = time.perf_counter()
    times = {"seconds": ended - started, "install_s": installed - started, "cpu_s": _computed() - before}
    return [{"name": "pip install of the wheel, train and certify on penguins", **times, "bar": 30.0, **_load()}]


def run() -> list[dict[str, Any]]:
    os.environ |= {"CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        _run("git", "clone", "--quiet", str(ROOT), folder)
        started, before = time.perf_counter(), _computed()
        _run("make", "run", cwd=folder)
        first = {"seconds": time.perf_counter() - started, "cpu_s": _computed() - before, "bar": 150.0, **_load()}
        file = Path(folder) / "core" / "svm" / "block_smo.cpp"
        file.write_text(file.read_text() + "\n// A change.\n")
        started, before = time.perf_counter(), _computed()
        _run("make", ".venv/.installed", cwd=folder)
        again = {"seconds": time.perf_counter() - started, "cpu_s": _computed() - before, "bar": 15.0, **_load()}
    return [{"name": "make run from a clean clone", **first}, {"name": "a rebuild after one changed .cpp", **again}]


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {"sizes": sizes, "weight": weight, "wheel": wheel, "run": run}


def _load() -> dict[str, Any]:
    return {"load": os.getloadavg()[0]}


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(*command: str, cwd: str | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if not re.match("PYTHONDONT|MAKE", name)}
    subprocess.run(command, check=True, cwd=cwd or ROOT, env=environment, stdout=subprocess.DEVNULL)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, cwd=tempfile.gettempdir(), capture_output=True, text=True).stdout


def main() -> None:
    path = RESULTS / "install.json"
    cases = json.loads(path.read_text("utf-8"))["cases"] if path.exists() else []
    for part in sys.argv[1:] or PARTS:
        measured = [{"part": part, **case} for case in PARTS[part]()]
        cases = [case for case in cases if case["part"] != part] + measured
        for case in measured:
            print(shown(case), flush=True)
        keep({"benchmark": "install", "bar": BAR, "machine": machine(), "cases": cases})


if __name__ == "__main__":
    main()
