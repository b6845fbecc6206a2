"""Run an old and a new build of Margrove alternately and compare their times.

    python benchmarks/against.py --old v0.1.0                   a revision and the working tree, as it is installed
    python benchmarks/against.py --old v0.1.0 --new main        two revisions
    python benchmarks/against.py --old HEAD --only 'SVC|tree'   some of the cases; no result is written

A revision is checked out and built once, under build/against. Each side is one process, which imports Margrove once and
runs the cases that it is sent. A case is measured in pairs, and the sides take turns at being first. If the pairs
disagree (quartiles of new / old more than 8 % apart), or differ by more than the bar of a case, as many pairs again are
run in fresh processes, twice at most: two processes of one build have differed by 9 % throughout. Cases use public
names only, so that both sides can run them. The bars are for the median of new / old. The exit status does not depend
on any time.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from measure import keep, machine

ROOT = Path(__file__).resolve().parents[1]
MEAN_BAR, CASE_BAR = 1.03, 1.08  # of new / old: the geometric mean of all cases, and each case
NOISY = 0.08  # between the quartiles of the pairs' ratios: more pairs are run
LEAST = 0.1  # seconds of one measurement; a shorter case is repeated within it

# The finder of an editable installation comes before sys.path, so it is removed. Such an installation keeps its core
# apart from its sources.
ENTER = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")]
sys.path.insert(0, {source!r})
import margrove
margrove.__path__.append({core!r})
"""

Work = Callable[[], Any]  # what is timed
Data = Callable[[], tuple[Any, ...]]  # X, y and perhaps weights
Prepare = Callable[[Path], Work]  # makes a case's work ready, in a folder of its own


def classes(n: int, d: int = 20, k: int = 2) -> tuple[Any, Any]:
    """Gaussian classes that overlap; the first column is curved."""
    rng = np.random.default_rng(n + d)
    y = np.arange(n) % k
    X = rng.normal(scale=0.3, size=(k, d))[y] + rng.normal(size=(n, d))
    X[:, 0] += X[:, 1] ** 2
    return X, y


def weighted(n: int) -> tuple[Any, ...]:
    return *classes(n), np.random.default_rng(n).random(n) + 0.5


def holes(n: int) -> tuple[Any, Any]:
    """A tenth of the cells is missing."""
    X, y = classes(n)
    return np.where(np.random.default_rng(n).random(X.shape) < 0.1, np.nan, X), y


def numbers(n: int, d: int = 10) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def sparse(n: int, d: int = 2000) -> tuple[Any, Any]:
    """About 20 cells a row that are not 0."""
    from scipy.sparse import random_array

    rng = np.random.default_rng(n)
    X = random_array((n, d), density=20 / d, format="csr", rng=rng)
    return X, (X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0).astype(int)


def kernel(n: int) -> tuple[Any, Any]:
    """A Gaussian kernel matrix."""
    X, y = classes(n)
    square = (X**2).sum(1)
    return np.exp(-0.05 * (square[:, None] + square - 2 * X @ X.T)), y


def table(n: int) -> tuple[Any, Any]:
    """Numbers, categories and missing cells, by way of a file."""
    from margrove import read_table

    with tempfile.TemporaryDirectory() as folder:
        read = read_table(csv(Path(folder), n), target="label")
    return read, read.labels()


def csv(folder: Path, n: int) -> Path:
    X, y = classes(n, 6, 3)
    words = np.array(["red", "green", "blue", "grey", ""])
    cells = [words[(np.abs(X[:, j]) * 2).astype(int) % 5] for j in (0, 1)] + [np.char.mod("%.4f", X[:, 2:])]
    lines = np.column_stack([*cells, np.array(["a", "b", "c"])[y]])
    text = "shade,hue,x1,x2,x3,x4,label\n" + "\n".join(map(",".join, lines)) + "\n"
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    return folder / "rows.csv"


def made(learner: str, **how: Any) -> Any:
    """Make an estimator by its public name; a parameter ``estimator`` is a pair of name and parameters."""
    import margrove

    if "estimator" in how:
        name, inner = how["estimator"]
        how["estimator"] = made(name, **inner)
    return getattr(margrove, learner)(**how)


def fit(learner: str, data: Data, method: str = "fit", **how: Any) -> Prepare:
    return lambda folder: partial(getattr(made(learner, **how), method), *data())


def stream(rows: int) -> Prepare:
    """Fit from a file, in chunks."""

    def prepare(folder: Path) -> Work:
        from margrove import LinearSVC, read_chunks

        X, y = classes(rows)
        file, names = folder / "rows.csv", [*(f"x{j}" for j in range(X.shape[1])), "y"]
        np.savetxt(file, np.column_stack([X, y]), "%.5g", ",", header=",".join(names), comments="")
        return lambda: LinearSVC(tol=0.01).fit_stream(read_chunks(file, rows=5000, target="y"))

    return prepare


def fitted(learner: str, data: Data, use: Callable[[Any], Any], **how: Any) -> Prepare:
    """Do something with a fitted model and its rows."""

    def prepare(folder: Path) -> Work:
        import margrove

        X, y = data()
        model, file = made(learner, **how).fit(X, y), folder / "model.margrove"
        many = np.tile(X, (20, 1))
        return partial(use, SimpleNamespace(margrove=margrove, model=model, X=X, y=y, one=X[:1], many=many, file=file))

    return prepare


def process(code: str, *arguments: str) -> Prepare:
    """Start a Python that runs ``code`` with this side's Margrove, beside a table."""

    def prepare(folder: Path) -> Work:
        command = [sys.executable, "-c", ENTER.format(**WHERE) + code, *arguments]
        return partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL, cwd=csv(folder, 500).parent)

    return prepare


def certified(at: Any) -> Any:
    return at.margrove.certify(at.model, at.X, at.y)


def saved(at: Any) -> Any:
    at.margrove.save(at.model, at.file)
    return at.margrove.load(at.file)


WHERE: dict[str, str] = {}  # in a side's process: its sources and its core
TREE, BOOST = "DecisionTreeClassifier", "AdaBoostClassifier"
STUMP, SVM = (TREE, {"max_depth": 1}), ("SVC", {"C": 2.0})
TRAIN = "train rows.csv --model svm --budget 0 --folds 0 --no-report --json"
CASES: dict[str, Prepare] = {
    "SVC rbf": fit("SVC", partial(classes, 3000), C=10.0),
    "SVC linear": fit("SVC", partial(classes, 10_000), kernel="linear"),
    "SVC poly": fit("SVC", partial(classes, 3000), kernel="poly", coef0=1.0),
    "SVC precomputed": fit("SVC", partial(kernel, 2000), kernel="precomputed"),
    "SVC sparse": fit("SVC", partial(sparse, 2000)),
    "SVC multiclass": fit("SVC", partial(classes, 3000, 20, 10)),
    "SVC weighted": fit("SVC", partial(weighted, 5000)),
    "SVC probability": fit("SVC", partial(classes, 2500), probability=True),
    "SVC small": fit("SVC", partial(classes, 60, 4)),
    "SVC path": fit("SVC", partial(classes, 800), "path"),
    "SVCCV": fit("SVCCV", partial(classes, 1000), Cs=[0.1, 1, 10], gammas=[0.01, 0.1]),
    "NuSVC": fit("NuSVC", partial(classes, 3000), nu=0.4),
    "SVR": fit("SVR", partial(numbers, 3000)),
    "OneClassSVM": fit("OneClassSVM", partial(classes, 8000), nu=0.1),
    "LinearSVC hinge": fit("LinearSVC", partial(classes, 50_000), loss="hinge"),
    "LinearSVC squared hinge": fit("LinearSVC", partial(classes, 100_000)),
    "LinearSVC l1": fit("LinearSVC", partial(classes, 20_000, 50), penalty="l1"),
    "LinearSVC sparse": fit("LinearSVC", partial(sparse, 20_000)),
    "LinearSVC Crammer-Singer": fit("LinearSVC", partial(classes, 3000, 20, 5), multi_class="crammer_singer"),
    "LinearSVC small": fit("LinearSVC", partial(classes, 60, 4)),
    "LinearSVC stream": stream(20_000),
    "LinearSVC path": fit("LinearSVC", partial(classes, 10_000), "path"),
    "LinearSVCCV": fit("LinearSVCCV", partial(classes, 10_000)),
    "LinearSVR": fit("LinearSVR", partial(numbers, 50_000)),
    "Perceptron": fit("Perceptron", partial(classes, 20_000), max_iter=100, random_state=0),
    "KernelPerceptron": fit("KernelPerceptron", partial(classes, 2000), max_iter=50, random_state=0),
    "BasicLinearClassifier": fit("BasicLinearClassifier", partial(classes, 100_000)),
    "LeastSquaresClassifier": fit("LeastSquaresClassifier", partial(classes, 20_000)),
    "tree": fit(TREE, partial(classes, 50_000)),
    "tree weighted": fit(TREE, partial(weighted, 30_000)),
    "tree missing": fit(TREE, partial(holes, 30_000)),
    "tree table": fit(TREE, partial(table, 20_000), prune="pessimistic"),
    "tree bins": fit(TREE, partial(classes, 50_000), thresholds="histogram", max_leaf_nodes=255),
    "tree small": fit(TREE, partial(classes, 60, 4)),
    "tree regressor": fit("DecisionTreeRegressor", partial(numbers, 20_000)),
    "AdaBoost": fit(BOOST, partial(classes, 20_000), estimator=STUMP),
    "AdaBoost regressor": fit("AdaBoostRegressor", partial(numbers, 3000), n_estimators=20, random_state=0),
    "OneVsOne": fit("OneVsOneClassifier", partial(classes, 1500, 20, 6), estimator=SVM),
    "BitString": fit("BitStringClassifier", partial(classes, 1500, 20, 6), estimator=SVM),
    "ImpuritySelector": fit("ImpuritySelector", partial(classes, 30_000)),
    "SVC predict": fitted("SVC", partial(classes, 1500), lambda at: at.model.predict(at.many)),
    "SVC predict one": fitted("SVC", partial(classes, 1500), lambda at: at.model.predict(at.one)),
    "tree predict": fitted(TREE, partial(classes, 20_000), lambda at: at.model.predict(at.many)),
    "tree predict one": fitted(TREE, partial(classes, 20_000), lambda at: at.model.predict(at.one)),
    "AdaBoost predict": fitted(BOOST, partial(classes, 5000), lambda at: at.model.predict(at.many), estimator=STUMP),
    "SVC certify": fitted("SVC", partial(classes, 3000), certified),
    "tree certify": fitted(TREE, partial(classes, 1000), certified),
    "SVC save and load": fitted("SVC", partial(classes, 3000), saved),
    "tree save and load": fitted(TREE, partial(classes, 10_000), saved),
    "import margrove": process(""),
    "import SVC": process("from margrove import SVC, certify"),
    "margrove train": process("import runpy; runpy.run_module('margrove', run_name='__main__')", *TRAIN.split()),
}


def serve(source: str, core: str) -> None:
    """Read requests (a case and how often to run it, 0 to prepare it) and reply with seconds; a line of JSON each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a case prints must not mix with the replies
    WHERE.update(source=source, core=core)
    exec(ENTER.format(**WHERE))
    warnings.simplefilter("ignore")
    import margrove

    print(json.dumps(margrove.__file__), file=out, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        work: Work = int
        for line in sys.stdin:
            name, repeats = json.loads(line)
            if not repeats:
                work = CASES[name](Path(tempfile.mkdtemp(dir=scratch)))
                work()
            gc.collect()
            started = time.perf_counter()
            for _ in range(repeats or 1):
                work()
            print(json.dumps((time.perf_counter() - started) / (repeats or 1)), file=out, flush=True)


class Side:
    """One build, in a process of its own."""

    def __init__(self, revision: str, source: Path, core: Path) -> None:
        self.revision, self.source = revision, source
        self.command = [sys.executable, __file__, "--serve", str(source), str(core)]
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        pipe = subprocess.PIPE
        self.process: Any = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, env=environment)
        found = self.reply("import margrove")
        if Path(found) != self.source / "margrove" / "__init__.py":
            raise SystemExit(f"{self.revision} imported {found} instead of the package in {self.source}.")

    def seconds(self, name: str, repeats: int) -> float:
        print(json.dumps([name, repeats]), file=self.process.stdin, flush=True)
        return float(self.reply(name))

    def reply(self, name: str) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{name} failed on {self.revision}; its traceback is above.")
        return json.loads(line)

    def end(self) -> None:
        self.process.communicate()  # closes its input


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def built(revision: str) -> Side:
    """Check out and build a revision unless that was done before; the core goes beside its sources."""
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    tree = ROOT / "build" / "against" / commit[:12]
    if not tree.is_dir():
        git("worktree", "add", "--force", "--detach", str(tree), commit)
    package = tree / "src" / "margrove"
    if not [*package.glob("_core.*.so")]:
        print(f"Building {commit[:12]}: a few minutes, once", flush=True)
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}", "-GNinja"]
        subprocess.run(["cmake", "-S", tree, "-B", tree / "build", *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", tree / "build"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--install", tree / "build", "--prefix", tree / "src", "--strip"], check=True)
    return Side(commit[:12], tree / "src", package)


def installed() -> Side:
    """Take the working tree, with the core that is installed."""
    spec = find_spec("margrove._core")
    if spec is None or spec.origin is None:
        raise SystemExit("The working tree is not installed. Run: make run")
    core = Path(spec.origin)
    newer = [file for file in (ROOT / "core").rglob("*.?pp") if file.stat().st_mtime > core.stat().st_mtime]
    if newer:
        print(f"Warning: the installed core is older than {len(newer)} of its sources, such as {newer[0].name}.")
    return Side(git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"), ROOT / "src", core.parent)


def compared(name: str, old: Side, new: Side, pairs: int) -> dict[str, Any]:
    """Measure a case: the median seconds of both sides, and the quartiles of new / old over the pairs."""
    seconds: dict[Side, list[float]] = {old: [], new: []}
    repeats = 0
    while True:
        least = min(side.seconds(name, 0) for side in (old, new))
        repeats = repeats or max(1, math.ceil(LEAST / least))
        for turn in range(pairs):
            for side in (old, new) if turn % 2 else (new, old):
                seconds[side].append(side.seconds(name, repeats))
        quartiles = np.quantile(np.divide(seconds[new], seconds[old]), [0.25, 0.5, 0.75]).round(3).tolist()
        is_clear = quartiles[2] - quartiles[0] <= NOISY and 1 / CASE_BAR <= quartiles[1] <= CASE_BAR
        if is_clear or len(seconds[old]) >= 3 * pairs:
            break
        for side in (old, new):
            side.end()
            side.start()
    medians = [float(np.median(seconds[side])) for side in (old, new)]
    return {
        "name": name,
        "old_s": medians[0],
        "new_s": medians[1],
        "ratio_of_medians": medians[1] / medians[0],
        "ratio": quartiles[1],  # of the pairs, which noise that lasts longer than a pair does not change
        "quartiles": quartiles,
        "pairs": len(seconds[old]),
        "repeats": repeats,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", default="HEAD", help="a revision")
    parser.add_argument("--new", help="a revision; none: the working tree, as it is installed")
    parser.add_argument("--pairs", type=int, default=9, help="a case")
    parser.add_argument("--only", help="cases whose name has this regular expression in it")
    given = parser.parse_args()
    old, new = built(given.old), built(given.new) if given.new else installed()
    print(f"old {old.revision}, new {new.revision}")
    found = []
    for name in CASES:
        if re.search(given.only or "", name):
            case = compared(name, old, new, given.pairs)
            times = (
                f"{case['old_s']:9.5f} s {case['new_s']:9.5f} s  {case['ratio_of_medians']:.3f}  {case['quartiles']}"
            )
            is_above = case["ratio"] > CASE_BAR
            print(f"{name:25} {times}  {case['pairs']} pairs{'  above the bar' if is_above else ''}", flush=True)
            found.append(case)
    old.end()
    new.end()
    mean = math.exp(np.mean([math.log(case["ratio"]) for case in found]))
    above = [case["name"] for case in found if case["ratio"] > CASE_BAR]
    print(f"geometric mean {mean:.3f}, {'above' if mean > MEAN_BAR else 'within'} the bar of {MEAN_BAR}")
    print(f"above the bar of {CASE_BAR}: {', '.join(above) or 'none'}")
    if not given.only:
        record = {
            "benchmark": "against",
            "bar": f"median of new / old: geometric mean of the cases ≤ {MEAN_BAR}, none above {CASE_BAR}",
            "machine": machine(),
            "old": old.revision,
            "new": new.revision,
            "geometric_mean": mean,
            "worst": max(found, key=lambda case: case["ratio"])["name"],
            "above": above,
            "ratios": found,
        }
        keep(record)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:4])
    else:
        main()
