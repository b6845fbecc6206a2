"""Measure the shape of the code: its size, its walks, its types, and who knows an engine by name.

    python benchmarks/house.py                                    the sources here, under the label "after"
    python benchmarks/house.py --root FOLDER --label before       those of another checkout

Lines are counted with and without comments, docstrings and blank lines. A walk is one call on 60 rows, made a second
time: the files of Margrove that it enters, its Python calls, and its switches from one file to another. The longest
import chain of a package is counted in modules, over its own top-level imports. Other labels in
benchmarks/results/house.json stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from against import ENTER
from measure import RESULTS, keep

ENGINES = "native|reference|stream|gpu|dask"
INNER = (ast.stmt, ast.ExceptHandler, ast.match_case)  # statements, and what holds them
LONG = 60  # lines: a longer function usually hides a noun
TRAIN = """
import runpy
sys.argv = ["margrove", *"train --model svm --budget 0 --folds 0 --no-report --quiet -o -".split()]
try:
    runpy.run_module("margrove", run_name="__main__")
except SystemExit as end:
    if end.code:
        raise
print(*(name for name in sys.modules if name.split(".")[0] == "margrove"), file=sys.stderr)
"""


def code_lines(text: str) -> int:
    """Count the lines of Python that hold code: no comments, docstrings or blank lines."""
    tree = ast.parse(text)
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    filled = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            filled.update(range(token.start[0], token.end[0] + 1))
    for node in docstrings(tree):
        filled.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(filled)


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            value = getattr(node.body[0], "value", None) if node.body else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and isinstance(node.body[0], ast.Expr):
                yield value


def cpp_code_lines(text: str) -> int:
    """Count the lines of C++ that are left without comments and blank lines."""
    pattern = r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')|//[^\n]*|/\*.*?\*/'
    bare = re.sub(pattern, lambda found: found[1] or "", text, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in bare.splitlines())


def modules(package: Path) -> dict[str, Path]:
    """Every module of Margrove by its full name."""
    names = {path: path.relative_to(package.parent).with_suffix("").parts for path in sorted(package.rglob("*.py"))}
    return {".".join(part for part in parts if part != "__init__"): path for path, parts in names.items()}


def imported(nodes: Any) -> Iterator[str]:
    """Name what the import statements among ``nodes`` may load; in ``from a import b`` that is a and a.b."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def longest_chains(trees: dict[str, ast.Module], paths: dict[str, Path]) -> dict[str, int]:
    """Count the modules of the longest import chain inside each package; ``__init__`` does not count."""
    inner = {name: name.split(".")[1] for name in trees if name.count(".") > 1 and paths[name].stem != "__init__"}

    @cache
    def depth(name: str) -> int:
        below = {other for other in imported(trees[name].body) if inner.get(other) == inner[name] and other != name}
        return 1 + max(map(depth, below), default=0)

    packages = sorted({*inner.values()})
    return {package: max(depth(name) for name in inner if inner[name] == package) for package in packages}


def engine_names(tree: ast.Module) -> Iterator[int]:
    """Find the lines that know an engine by name, docstrings apart: a literal, a message, or an import of its module.

    "stream" has other meanings too: it counts where its statement says "engine".
    """
    skipped = {id(node) for node in docstrings(tree)}
    for statement in ast.walk(tree):
        if not isinstance(statement, INNER):
            continue
        if any(re.match(rf"margrove\.engine\.({ENGINES})", name) for name in imported([statement])):
            yield statement.lineno
        says_engine = "engine" in "".join(map(ast.unparse, own_parts(statement))).lower()
        for node in (node for part in own_parts(statement) for node in ast.walk(part)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                is_name = re.fullmatch(ENGINES, node.value) and (node.value != "stream" or says_engine)
                if is_name or re.search(rf"\bengine=['\"]?({ENGINES})\b", node.value):
                    yield node.lineno


def own_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return what belongs to a statement itself, without the statements inside it."""
    return [part for part in ast.iter_child_nodes(statement) if not isinstance(part, INNER)]


def any_annotations(tree: ast.Module) -> int:
    """Count the annotations of parameters, results and variables that contain ``Any``."""
    found = 0
    for node in ast.walk(tree):
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        names = ast.walk(annotation) if annotation else ()
        found += any(isinstance(name, ast.Name) and name.id == "Any" for name in names)
    return found


def long_functions(tree: ast.Module) -> int:
    """Count the functions above 60 lines, docstrings apart."""
    length = {id(node): (node.end_lineno or 0) - node.lineno + 1 for node in docstrings(tree)}
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            without = length.get(id(getattr(node.body[0], "value", None)), 0)
            found += (node.end_lineno or 0) - node.lineno + 1 - without > LONG
    return found


def walks(package: Path) -> dict[str, dict[str, int]]:
    """Take the four walks."""
    from sklearn.datasets import make_blobs

    from margrove import SVC, DecisionTreeClassifier, certify

    X, y = make_blobs(60, centers=2, random_state=0)
    model = SVC().fit(X, y)
    return {
        "SVC().fit(X, y)": walk(package, lambda: SVC().fit(X, y)),
        "DecisionTreeClassifier().fit(X, y)": walk(package, lambda: DecisionTreeClassifier().fit(X, y)),
        "certify(model, X, y)": walk(package, lambda: certify(model, X, y)),
        "svc.predict(X)": walk(package, lambda: model.predict(X)),
    }


def walk(package: Path, call: Callable[[], Any]) -> dict[str, int]:
    """Count the files of Margrove that a warm call enters, its Python calls, and its switches of file."""
    entered: list[str] = [""]

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{package}/"):
            entered.append(frame.f_code.co_filename)

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    switches = sum(one != other for one, other in pairwise(entered))
    return {"files": len({*entered[1:]}), "calls": len(entered) - 1, "switches": switches}


def measured(root: Path) -> dict[str, Any]:
    """Measure a checkout."""
    package = root / "src" / "margrove"
    core = next(file for file in files("margrove") or () if file.name.startswith("_core")).locate()
    enter = ENTER.format(source=str(package.parent), core=str(core.parent))
    exec(enter)
    paths = modules(package)
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    cpp = [path.read_text(encoding="utf-8") for path in (root / "core").rglob("*.?pp")]
    outside = [name for name in trees if not f"{name}.".startswith("margrove.engine.")]
    lines = {name: sorted({*engine_names(trees[name])}) for name in outside}
    places = [f"{paths[name].relative_to(root)}:{line}" for name in outside for line in lines[name]]
    train = subprocess.run(
        [sys.executable, "-c", enter + TRAIN], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return {
        "python": {
            "files": len(texts),
            "lines": sum(len(text.splitlines()) for text in texts.values()),
            "code_lines": sum(map(code_lines, texts.values())),
        },
        "cpp": {
            "files": len(cpp),
            "lines": sum(len(text.splitlines()) for text in cpp),
            "code_lines": sum(map(cpp_code_lines, cpp)),
            "static_casts": sum(text.count("static_cast<") for text in cpp),
        },
        "walks": walks(package),
        "any": {
            "colon_any": sum(len(re.findall(r": Any\b", text)) for text in texts.values()),
            "annotations": sum(map(any_annotations, trees.values())),
        },
        "functions_above_60_lines": sum(map(long_functions, trees.values())),
        "longest_import_chain": longest_chains(trees, paths),
        "modules_of_train": len(train.stderr.splitlines()[-1].split()),
        "engine_by_name": places,
    }


def shown(record: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Flatten a measurement into names and values; a list counts as its length."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from shown(value, (*path, key))
        else:
            yield " · ".join((*path, key)), str(len(value) if isinstance(value, list) else value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure")
    parser.add_argument("--label", default="after", help="under which the numbers are kept")
    given = parser.parse_args()
    file = RESULTS / "house.json"
    labels = json.loads(file.read_text(encoding="utf-8"))["labels"] if file.is_file() else {}
    labels[given.label] = measured(given.root.resolve())
    keep({"benchmark": "house", "labels": labels})
    columns = {label: dict(shown(record)) for label, record in labels.items()}
    print(" " * 53, *(f"{label:>12}" for label in columns))
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        print(f"{name:53}", *(f"{column.get(name, ''):>12}" for column in columns.values()))
    print("An engine is known by name at", *labels[given.label]["engine_by_name"], sep="\n  ")


if __name__ == "__main__":
    main()
