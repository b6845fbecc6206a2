"""Imports go one way. Every module has a layer and imports its own and lower ones; a family imports only the families
that it builds on; no certificate reaches a solver; the chains of imports inside a package are short."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

import margrove

SOURCE = Path(__file__).resolve().parents[2] / "src" / "margrove"

# From the bottom up: modules, packages with all that is in them (name/), or modules of any family (*.name).
LAYERS = (
    "_core advice errors words convergence status visible problem estimator learner explanation certificate run/ "
    "store/",
    "data/ onnx/ predictor",
    "search.grid search.folds *.problem *.model *.grove *.packed *.draws *.kernels *.layout *.codes *.proximal "
    "*.stream_problem *.search_problem *.r2 *.impurity *.association *.predictor",
    "*.reference *.kkt *.margins *.groups *.split *.thresholds *.significance *.description *.rounds *.chunks "
    "*.out_of_bag linear_svm.partitions svm.partitions",
    "*.bounds engine/ search/ *.certificate",
    # Estimators, and what they are made of.
    "svm.svc svm.svr svm.one_class svm.machine svm.classifier svm.training svm.solving svm.decision svm.checkpointing "
    "svm.scaling svm.path svm.leave_one_out svm.probability svm.search svm.folds "
    "linear.centroid linear.least_squares linear.perceptron linear.kernel_perceptron linear.classifier "
    "linear_svm.svc linear_svm.svr linear_svm.machine linear_svm.path linear_svm.streaming linear_svm.search "
    "tree.classifier tree.regressor tree.stump tree.estimator tree.settings tree.reading tree.prune "
    "tree.held_out tree.partitions tree.path tree.words tree.rules tree.export tree.c_source tree.python_source "
    "tree.sklearn_tree tree.sql_source forest.classifier forest.regressor forest.estimator forest.c_source "
    "forest.course forest.checkpointing "
    "boost.classifier boost.regressor boost.ensemble boost.fitting boost.base multiclass.classifiers "
    "multiclass.coded multiclass.machines multiclass.decoding calibrate.classifier calibrate.probability "
    "calibrate.threshold select.selector select.scores transfer/",
    "*.adopted *.libsvm_file *.libsvm_rows *.libsvm_text *.file *.onnx *.explain *.learners",
    "plots/",
    "app/ __main__",
)
# The families that each one builds on, besides itself.
FAMILIES: dict[str, set[str]] = {
    "svm": set(),
    "tree": set(),
    "linear": {"svm"},
    "linear_svm": {"svm", "linear"},
    "boost": {"tree"},
    "select": {"tree"},
    "multiclass": {"svm", "tree", "boost"},
    "calibrate": {"svm", "linear_svm", "multiclass"},
    "transfer": {"linear", "svm"},
    "forest": {"tree"},
}
LONGEST_CHAIN = 9  # modules of a package of which each imports the next


def layer(module: str) -> int:
    """Return the layer of a module, counted from the bottom."""
    name = module.removeprefix("margrove.")
    package, _, stage = name.partition(".")
    if package in FAMILIES and not stage:
        return 0  # a docstring
    for wanted in (name, f"*.{stage}" if package in FAMILIES else name, f"{package}/"):
        for number, names in enumerate(LAYERS):
            if wanted in names.split():
                return number
    raise AssertionError(f"{module} has no layer: name it in LAYERS")


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its name."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names[".".join(("margrove", *(part for part in parts if part != "__init__")))] = path
    del names["margrove"]  # the public names, which are loaded when they are used
    return names


def imported_by(nodes: Iterable[ast.AST], name: str) -> set[str]:
    """Return the modules of ours that these statements of a module import. A public name stands for its module."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "margrove":
            found |= {margrove._PUBLIC.get(alias.name, f"margrove.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & modules().keys()
            found |= submodules or {node.module}
    return {module for module in found if module.startswith("margrove.") and module != name}


@cache
def source_of(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text("utf-8"))


@cache
def imports_of(name: str) -> set[str]:
    """Return the modules of ours that a module imports anywhere, inside functions too."""
    return imported_by(ast.walk(source_of(name)), name)


def test_imports_go_down():
    wrong = [
        f"{name} imports {other}" for name in modules() for other in imports_of(name) if layer(other) > layer(name)
    ]
    assert wrong == []


def test_a_family_imports_only_what_it_builds_on():
    wrong = []
    for name in modules():
        family = name.split(".")[1]
        others = {other for other in imports_of(name) if other.split(".")[1] in FAMILIES.keys() - {family}}
        if family in FAMILIES:
            wrong += [f"{name} imports {other}" for other in others if other.split(".")[1] not in FAMILIES[family]]
        if family in ("store", "onnx", "search"):
            wrong += [f"{name} imports {other}" for other in others]
    assert wrong == []


def longest_chain(package: str) -> list[str]:
    """Return the longest chain of modules of a package of which each imports the next when it is imported."""
    inside = [name for name in modules() if name.startswith(f"{package}.")]

    @cache
    def chain(name: str) -> tuple[str, ...]:
        below = imported_by(source_of(name).body, name)
        return (name, *max((chain(other) for other in below if other in inside), key=len, default=()))

    return list(max(map(chain, inside), key=len))


@pytest.mark.parametrize("package", sorted({name.rpartition(".")[0] for name in modules()} - {"margrove"}))
def test_the_chain_of_imports_inside_a_package_is_short(package):
    assert len(longest_chain(package)) <= LONGEST_CHAIN


CERTIFICATES = [name for name in modules() if name.endswith(".certificate")]


def reached_from(name: str) -> set[str]:
    """Every module of ours that importing ``name`` brings in."""
    reached, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in reached or current not in modules():
            continue
        reached.add(current)
        waiting += imports_of(current)
    return reached


@pytest.mark.parametrize("name", CERTIFICATES)
def test_no_certificate_reaches_a_solver(name):
    suspects = {
        module for module in reached_from(name) if "engine" in module or "reference" in module or "_core" in module
    }
    assert not suspects


@pytest.mark.parametrize("name", CERTIFICATES)
def test_importing_a_certificate_loads_no_solver(name):
    """The same at run time, packages and all."""
    code = (
        f"import sys, {name}; print([m for m in sys.modules if m.startswith('margrove.engine') or m.endswith('_core')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [m for m in ast.literal_eval(found) if m.startswith("margrove")] == []


def test_only_the_native_engine_and_predictors_know_the_core():
    knowing = [name for name in modules() if "margrove._core" in imports_of(name)]
    assert [name for name in knowing if not name.endswith(".predictor")] == ["margrove.engine.native.core"]


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
    for name in margrove.__all__:
        assert getattr(margrove, name) is not None
    assert set(margrove.__all__) <= set(dir(margrove))
