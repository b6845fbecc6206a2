"""The direction of imports (DESIGN, Layout), held by walking the sources.

errors, status, problem, run, visible, store ← data, onnx ← family/problem ← family/reference, engine ←
family/certificate (problem only) ← search ← family/estimators ← family/file, onnx, learners; plots ← app
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "margrove"
FAMILIES = ("linear", "linear_svm", "svm", "tree", "boost", "multiclass", "select", "transfer")


def layer(module: str) -> int:
    """How high a module stands; it may import its own layer and those below."""
    room, _, stage = module.removeprefix("margrove.").partition(".")
    if room in (
        "advice",
        "errors",
        "status",
        "problem",
        "estimator",
        "run",
        "certificate",
        "learner",
        "explanation",
        "store",
        "visible",
        "_core",
    ):
        return 0
    if room in ("data", "onnx"):
        return 1
    if room in FAMILIES:
        stages = {
            "kernels": 2,
            "layout": 2,
            "codes": 2,
            "problem": 2,
            "proximal": 2,
            "stream_problem": 2,
            "chunks": 3,
            "r2": 2,
            "model": 2,
            "search_problem": 2,
            "impurity": 2,
            "association": 2,
            "kkt": 3,
            "sums": 3,
            "margins": 3,
            "groups": 3,
            "split": 3,
            "thresholds": 3,
            "reference": 3,
            "rounds": 3,
            "significance": 3,
            "description": 3,
        }
        return {**stages, "certificate": 4, "file": 6, "onnx": 6, "learners": 6}.get(stage, 5)
    if room == "search":  # the families' searches build on it
        return 1 if stage in ("grid", "folds") else 4
    return {"engine": 4, "plots": 6, "app": 7}.get(room, 8)


def imports_of(path: Path) -> set[str]:
    package = ("margrove", *path.relative_to(SOURCE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            is_package = module == "margrove" or (SOURCE / Path(*module.split(".")[1:]) / "__init__.py").is_file()
            found |= {f"{module}.{name.name}" for name in node.names} if is_package else {module}
    return {name for name in found if name.startswith("margrove.")}


def modules() -> list[tuple[str, Path]]:
    names = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names.append((".".join(("margrove", *(part for part in parts if part != "__init__"))), path))
    return [(name, path) for name, path in names if name != "margrove"]


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_go_down(name, path):
    for imported in imports_of(path):
        assert layer(imported) <= layer(name), f"{name} imports {imported}"


CERTIFIERS = [(name, path) for name, path in modules() if name.endswith(".certificate")]


def reached_from(name: str) -> set[str]:
    """Every module of ours that importing ``name`` brings in."""
    paths = dict(modules())
    reached, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in reached or current not in paths:
            continue
        reached.add(current)
        waiting += imports_of(paths[current])
    return reached


@pytest.mark.parametrize("name", [name for name, _ in CERTIFIERS])
def test_no_certificate_reaches_a_solver(name):
    suspects = {
        module for module in reached_from(name) if "engine" in module or "reference" in module or "_core" in module
    }
    assert not suspects


@pytest.mark.parametrize("name", [name for name, _ in CERTIFIERS])
def test_importing_a_certificate_loads_no_solver(name):
    """The same at run time, packages and all."""
    code = (
        f"import sys, {name}; print([m for m in sys.modules if m.startswith('margrove.engine') or m.endswith('_core')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [m for m in ast.literal_eval(found) if m.startswith("margrove")] == []


def test_only_the_native_engine_knows_the_core():
    for name, path in modules():
        if "margrove._core" in imports_of(path):
            assert name == "margrove.engine.native.core"


def test_the_search_knows_no_family():
    for name, path in modules():
        if name.startswith("margrove.search"):
            assert not {each for each in imports_of(path) if each.split(".")[1] in FAMILIES}


def families_loaded_by(code: str) -> set[str]:
    """The families of which that code loads more than their descriptions."""
    code = f"import sys\n{code}\nprint([m for m in sys.modules if m.startswith('margrove.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    parts = [module.split(".") for module in ast.literal_eval(found)]
    return {part[1] for part in parts if part[1] in FAMILIES and len(part) > 2 and part[2] != "learners"}


@pytest.mark.parametrize("package", ["store", "onnx.model", "onnx.file"])
def test_the_store_and_onnx_load_no_family(package):
    assert families_loaded_by(f"import margrove.{package}") == set()


def test_loading_a_model_loads_its_own_family_alone():
    file = SOURCE.parents[1] / "tests" / "store" / "golden" / "format1-svc.margrove"
    families = families_loaded_by(f"import margrove\nmargrove.load({str(file)!r})")
    assert "svm" in families
    assert families <= families_loaded_by("import margrove.svm.svc") <= {"svm", "linear_svm"}


def test_every_public_name_exists():
    import margrove

    for name in margrove.__all__:
        assert getattr(margrove, name) is not None
    assert set(margrove.__all__) <= set(dir(margrove))


def test_parameters_by_position_are_published_in_the_order_in_which_they_are_bound():
    from dataclasses import field

    from sklearn.base import BaseEstimator

    from margrove.estimator import estimator

    @estimator
    class Base(BaseEstimator):
        a: int = field(default=1, kw_only=False)
        c: int = 3

    @estimator
    class Derived(Base):
        b: int = field(default=2, kw_only=False)
        d: int = 4

    assert list(inspect.signature(Derived).parameters) == ["a", "b", "d", "c"]
    assert (Derived(10).a, Derived(10).b) == (10, 2)
