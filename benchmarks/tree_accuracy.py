"""How accurate our trees are beside those of scikit-learn, R (rpart, partykit) and Weka (J48), on the same ten folds.

    python benchmarks/tree_accuracy.py                      all of it (about half an hour)
    python benchmarks/tree_accuracy.py --only vote          one set; the others stay as they were
    python benchmarks/tree_accuracy.py --sides c45 j48      only these; the others stay as they were

The peers that are no Python come from Debian, and one that is not there is named and left out:

    apt-get install --no-install-recommends r-base-core r-cran-rpart r-cran-partykit weka

Every side gets the same rows, the same columns as categories, and missing cells as missing. Times are the processor's,
of the fit alone on one thread, mean over the folds; J48 tells elapsed time only, of a Java machine that begins cold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from measure import RESULTS, keep, machine
from svm import DATA
from tree import one_hot_tree

BAR = (
    "10-fold accuracy: our settings in the manner of CART and of C4.5 no more than 0.01 below rpart, pruned by its"
    " folds, and J48"
)
# The columns that are numbers; all others are categories, whatever their cells look like. The class is the last column.
SETS: dict[str, tuple[str, ...]] = {
    "mushroom": (),
    "nursery": (),
    "car": (),
    "vote": (),
    "soybean": (),
    "adult": ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
}
PARTITION = "split"  # a column that says which rows others tested on, and tells nothing of the class
FOLDS = 10
LIMIT = 3600.0  # seconds that a peer may take for the ten folds of a set
WEKA = Path(os.environ.get("WEKA_JAR", "/usr/share/java/weka.jar"))
HERE = Path(__file__).parent
INSTALL = "apt-get install --no-install-recommends r-base-core r-cran-rpart r-cran-partykit weka"


class AbsentError(Exception):
    """A peer is not installed, or did not do its work; the message says which and why."""


@dataclass(frozen=True)
class Fold:
    """What one side made of one fold."""

    accuracy: float
    leaves: int
    seconds: float


@dataclass(frozen=True)
class Folds:
    """A set of data, cut into folds; ``folder`` holds them as files."""

    name: str
    cells: Any  # a data frame without the class
    classes: Any  # a column of it
    parts: list[tuple[np.ndarray, np.ndarray]]
    folder: Path


# ---- data


def read(name: str) -> tuple[Any, Any]:
    """The cells and the classes of a set: numbers as floats, categories as text, missing cells as NaN."""
    import pandas

    path = DATA / f"{name}.csv.gz"
    columns = pandas.read_csv(path, nrows=0).columns
    kinds = {column: float if column in SETS[name] else str for column in columns}
    frame = pandas.read_csv(path, dtype=kinds, keep_default_na=False, na_values=[""])
    frame = frame.drop(columns=[PARTITION], errors="ignore")
    return frame.iloc[:, :-1], frame.iloc[:, -1]


def cut(name: str, cells: Any, classes: Any, folder: Path, n_folds: int = FOLDS) -> Folds:
    """The folds, of each class the same share, and as files: trainK.csv, testK.csv, the same as ARFF, and kinds.txt."""
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")  # soybean has a class of 8 rows
        parts = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(classes, classes))
    frame = cells.assign(**{classes.name: classes})
    is_number = [kind.kind == "f" for kind in frame.dtypes]
    (folder / "kinds.txt").write_text("".join("numeric\n" if number else "character\n" for number in is_number))
    head = arff_head(name, frame)
    for k, rows in enumerate(parts):
        for role, part in zip(("train", "test"), (frame.iloc[at] for at in rows), strict=True):
            part.to_csv(folder / f"{role}{k}.csv", index=False)
            (folder / f"{role}{k}.arff").write_text(head + "".join(arff_lines(part)), encoding="utf-8")
    return Folds(name, cells, classes, parts, folder)


def arff_head(name: str, frame: Any) -> str:
    """What precedes the rows: each column with its levels, those of the whole set."""
    lines = [f"@relation {quoted(name)}"]
    for column, kind in frame.dtypes.items():
        levels = [] if kind.kind == "f" else sorted(frame[column].dropna().unique())
        words = f"{{{','.join(quoted(level) for level in levels)}}}" if levels else "numeric"
        lines.append(f"@attribute {quoted(column)} {words}")
    return "\n".join([*lines, "@data\n"])


def arff_lines(frame: Any) -> Iterator[str]:
    """The rows; a missing cell is a question mark."""
    for row in frame.itertuples(index=False):
        yield ",".join("?" if cell != cell else quoted(cell) if isinstance(cell, str) else repr(cell) for cell in row)
        yield "\n"


def quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# ---- sides


def ours(**settings: Any) -> Callable[[Folds], list[Fold]]:
    def run(folds: Folds) -> list[Fold]:
        from margrove import DecisionTreeClassifier

        return in_python(lambda: DecisionTreeClassifier(**settings, n_jobs=1), folds)

    return run


def c45_filled(folds: Folds) -> list[Fold]:
    """Missing cells of categories become the level that is most frequent in training, before the tree sees them."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    from margrove import DecisionTreeClassifier

    words = make_column_selector(dtype_exclude=np.number)

    def make() -> Any:
        filled = make_column_transformer((SimpleImputer(strategy="most_frequent"), words), remainder="passthrough")
        return make_pipeline(filled.set_output(transform="pandas"), DecisionTreeClassifier(**C45, n_jobs=1))

    return in_python(make, folds)


def as_the_command_line(folds: Folds) -> list[Fold]:
    """What `margrove train --model tree` sets."""
    from margrove.app.options.menu import choice_named

    return ours(**choice_named("tree").defaults)(folds)


def sklearn(folds: Folds) -> list[Fold]:
    return in_python(one_hot_tree, folds)


def in_python(make: Callable[[], Any], folds: Folds) -> list[Fold]:
    done = []
    for train, test in folds.parts:
        started = time.process_time()
        model = make().fit(folds.cells.iloc[train], folds.classes.iloc[train])
        seconds = time.process_time() - started
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*unseen in training")  # each fold may have some
            predicted = model.predict(folds.cells.iloc[test])
        accuracy = float(np.mean(predicted == np.asarray(folds.classes.iloc[test])))
        tree = model[-1] if hasattr(model, "steps") else model
        done.append(Fold(accuracy, int(tree.get_n_leaves()), seconds))
    return done


def r(side: str) -> Callable[[Folds], list[Fold]]:
    def run(folds: Folds) -> list[Fold]:
        package = "partykit" if side == "ctree" else "rpart"
        r_version(package)
        lines = output(["Rscript", "--vanilla", str(HERE / "tree_accuracy.R"), str(folds.folder), side]).split()
        done = {}
        for line in lines:
            fold, right, leaves, seconds = line.split(",")
            done[int(fold)] = Fold(int(right) / len(folds.parts[int(fold)][1]), int(leaves), float(seconds))
        return [done[k] for k in range(len(folds.parts))]

    return run


def j48(folds: Folds) -> list[Fold]:
    weka_version()
    done = []
    for k, (_, test) in enumerate(folds.parts):
        files = ["-t", str(folds.folder / f"train{k}.arff"), "-T", str(folds.folder / f"test{k}.arff")]
        told = output(["java", "-cp", str(WEKA), "weka.classifiers.trees.J48", *files])
        right = int(last_number_behind("Correctly Classified Instances", told))
        leaves = int(last_number_behind("Number of Leaves  :", told))
        done.append(Fold(right / len(test), leaves, last_number_behind("Time taken to build model:", told)))
    return done


def j48_level(folds: Folds) -> list[Fold]:
    """Missing cells of categories are a level of their own, as they are to us."""
    cells = folds.cells.copy()
    for column in cells.select_dtypes(exclude="number"):
        cells[column] = cells[column].fillna("(missing)")
    with tempfile.TemporaryDirectory() as folder:
        return j48(cut(folds.name, cells, folds.classes, Path(folder), len(folds.parts)))


def last_number_behind(words: str, text: str) -> float:
    """What Weka says of the training rows comes first, and of the test rows last."""
    return float(text.rsplit(words, 1)[1].split()[0])


def output(command: Sequence[str]) -> str:
    """What a peer prints, in the locale of the files."""
    where = {**os.environ, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=where, check=False)
    except FileNotFoundError:
        raise AbsentError(f"{command[0]} is not installed: {INSTALL}") from None
    except subprocess.TimeoutExpired:
        raise AbsentError(f"not done after {LIMIT:.0f} s") from None
    if done.returncode:
        raise AbsentError((done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"])[-1])
    return done.stdout


def r_version(package: str) -> str:
    ask = f'if (requireNamespace("{package}", quietly = TRUE)) cat(format(packageVersion("{package}")))'
    found = output(["Rscript", "--vanilla", "-e", ask])
    if not found:
        raise AbsentError(f"R has no package {package}: {INSTALL}")
    return found


def weka_version() -> str:
    if not WEKA.is_file():
        raise AbsentError(f"{WEKA} is not there (WEKA_JAR says where it is): {INSTALL}")
    return output([shutil.which("java") or "java", "-cp", str(WEKA), "weka.core.Version"]).split()[0]


C45 = {
    "criterion": "entropy",
    "split_score": "gain_ratio",
    "categorical": "multiway",
    "prune": "pessimistic",
    "prune_level": 0.25,
}
CART = {"criterion": "gini", "categorical": "subset", "prune": "cost_complexity", "ccp_alpha": "cv", "random_state": 0}
SIDES: dict[str, Callable[[Folds], list[Fold]]] = {
    "default": ours(),
    "command_line": as_the_command_line,
    "cart": ours(**CART),
    "c45": ours(**C45),
    "c45_price": ours(**C45, complexity=0.5),
    "sklearn": sklearn,
    "rpart": r("rpart"),
    "rpart_1se": r("rpart_1se"),
    "ctree": r("ctree"),
    "j48": j48,
    "c45_filled": c45_filled,
    "j48_level": j48_level,
}
OF_MISSING_CELLS = ("c45_filled", "j48_level")  # which tell how much they matter, where there are any
VERSIONS: dict[str, Callable[[], str]] = {
    "rpart": lambda: r_version("rpart"),
    "partykit": lambda: r_version("partykit"),
    "Weka": weka_version,
}


# ---- the run


def in_short(done: list[Fold]) -> dict[str, Any]:
    accuracy = [fold.accuracy for fold in done]
    return {
        "accuracy": float(np.mean(accuracy)),
        "standard_error": float(np.std(accuracy, ddof=1) / np.sqrt(len(accuracy))),
        "leaves": float(np.mean([fold.leaves for fold in done])),
        "seconds": float(np.mean([fold.seconds for fold in done])),
        "folds": accuracy,
    }


def measured(folds: Folds, sides: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each side made of the folds; of one that could not, why."""
    found = {}
    has_missing = bool(folds.cells.isna().any(axis=None))
    for side in sides:
        if side in OF_MISSING_CELLS and not has_missing:
            continue
        try:
            found[side] = in_short(SIDES[side](folds))
        except AbsentError as why:
            found[side] = {"absent": str(why)}
        told = "  ".join(f"{key}={value:.4g}" for key, value in found[side].items() if isinstance(value, float))
        print(f"{folds.name}  {side}  {told or 'left out: ' + found[side]['absent']}", flush=True)
    return found


def versions() -> dict[str, str]:
    found = {}
    for name, ask in VERSIONS.items():
        try:
            found[name] = ask()
        except AbsentError as why:
            found[name] = f"absent ({why})"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*SETS], help="these sets; the others stay as they were")
    parser.add_argument("--sides", nargs="+", choices=[*SIDES], help="these sides; the others stay as they were")
    given = parser.parse_args()
    path = RESULTS / "tree_accuracy.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"cases": []}
    cases = {case["data"]: case for case in before["cases"]}
    about = machine("pandas") | {"peers": versions()}
    for name in given.only or SETS:
        cells, classes = read(name)
        with tempfile.TemporaryDirectory() as folder:
            folds = cut(name, cells, classes, Path(folder))
            sides = cases.get(name, {}).get("sides", {}) | measured(folds, given.sides or [*SIDES])
        cases[name] = {
            "data": name,
            "rows": len(cells),
            "columns": cells.shape[1],
            "classes": int(classes.nunique()),
            "missing": int(cells.isna().sum().sum()),
            "sides": {side: sides[side] for side in SIDES if side in sides},
        }
        in_order = [cases[name] for name in SETS if name in cases]
        keep({"benchmark": "tree_accuracy", "bar": BAR, "machine": about, "cases": in_order})


if __name__ == "__main__":
    main()
