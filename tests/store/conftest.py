"""Fitted models of every kind a file may hold, and the tools of whoever tampers with files."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import Pipeline, make_pipeline

from margrove import (
    SVC,
    SVR,
    BasicLinearClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    KernelPerceptron,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    TableEncoder,
    load,
    save,
)
from margrove.data import Column, Table
from margrove.errors import ConvergenceWarning
from margrove.store.container import pack, unpack

ROWS, COLUMNS = 40, 3

LEARNERS: dict[str, Callable[[], Any]] = {
    "basic": BasicLinearClassifier,
    "basic, reference": lambda: BasicLinearClassifier(engine="reference"),
    "least squares": LeastSquaresClassifier,
    "perceptron": lambda: Perceptron(max_iter=5, random_state=0),
    "perceptron, reference": lambda: Perceptron(max_iter=5, random_state=0, engine="reference"),
    "averaged": lambda: Perceptron(variant="averaged", max_iter=5, tol=1e-3, random_state=0),
    "voted": lambda: Perceptron(variant="voted", max_iter=5, random_state=0),
    "kernel, rbf": lambda: KernelPerceptron(random_state=0),
    "kernel, rbf, reference": lambda: KernelPerceptron(max_iter=5, random_state=0, engine="reference"),
    "kernel, poly": lambda: KernelPerceptron(kernel="poly", coef0=1.0, degree=2, max_iter=5, random_state=0),
    "kernel, precomputed": lambda: KernelPerceptron(kernel="precomputed", max_iter=5, random_state=0),
    "svc": SVC,
    "svc, reference": lambda: SVC(engine="reference"),
    "svc, linear": lambda: SVC(kernel="linear", class_weight="balanced"),
    "svc, hard margin": lambda: SVC(C=float("inf"), sigma=0.2),
    "svc, one against the rest": lambda: SVC(kernel="poly", degree=2, coef0=1.0, multiclass="ovr"),
    "svc, values of the pairs": lambda: SVC(kernel="laplacian", decision_function_shape="ovo", n_jobs=1),
    "svc, precomputed": lambda: SVC(kernel="precomputed", break_ties=True),
    "nu-svc": lambda: NuSVC(nu=0.3),
    "svr": lambda: SVR(kernel="linear"),
    "svr, precomputed": lambda: SVR(kernel="precomputed", epsilon=0.0),
    "linear svc": LinearSVC,
    "linear svc, hinge": lambda: LinearSVC(loss="hinge", regularize_intercept=False, class_weight="balanced"),
    "linear svc, l1, reference": lambda: LinearSVC(penalty="l1", C=0.1, engine="reference", max_iter=50),
    "linear svc, crammer singer, reference": lambda: LinearSVC(
        multi_class="crammer_singer", engine="reference", max_iter=5
    ),
    "linear svr": lambda: LinearSVR(epsilon=0.1),
    "linear svr, squared": lambda: LinearSVR(loss="squared_epsilon_insensitive", fit_intercept=False),
    "nu-svr": lambda: NuSVR(nu=0.3, C=10.0),
    "one class": lambda: OneClassSVM(nu=0.2, gamma="median"),
    "one class, precomputed": lambda: OneClassSVM(kernel="precomputed"),
}
INPUTS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "csr_array float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def points(classes: int) -> tuple[Any, Any]:
    """Rows of integer labels that no line separates."""
    rng = np.random.default_rng(classes)
    return rng.normal(size=(ROWS, COLUMNS)), np.arange(ROWS) % classes


def fit_quietly(model: Any, X: Any, y: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **options)


def content_of(model: Any) -> bytes:
    """The file, in memory."""
    stream = io.BytesIO()
    save(model, stream)
    return stream.getvalue()


def loaded_from(content: bytes) -> Any:
    return load(io.BytesIO(content))


def forge(content: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """The file with its header and tensors changed, and with a digest that is right."""
    header, tensors = unpack(io.BytesIO(content))
    del header["sha256"]
    change(header, tensors)
    return bytes(pack(header, tensors))


def raw_file(header: Any, data: bytes = b"") -> bytes:
    """A safetensors file of any header at all."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def fit() -> Callable[..., Any]:
    return fit_quietly


@pytest.fixture
def content() -> Callable[[Any], bytes]:
    return content_of


@pytest.fixture
def loaded() -> Callable[[bytes], Any]:
    return loaded_from


@pytest.fixture
def forged() -> Callable[..., bytes]:
    return forge


@pytest.fixture
def raw() -> Callable[..., bytes]:
    return raw_file


# A Gram matrix is dense.
PAIRS = [f"{name} / {kind}" for name in LEARNERS for kind in INPUTS if not ("precomputed" in name and "csr" in kind)]


@pytest.fixture(params=PAIRS)
def learner_and_points(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """An unfitted learner, and a function from a number of classes to X and y of some kind."""
    name, kind = request.param.split(" / ")

    def make(classes: int) -> tuple[Any, Any]:
        X, y = points(classes)
        return INPUTS[kind](X @ X.T if "precomputed" in name else X), y

    return LEARNERS[name](), make


@pytest.fixture
def table() -> tuple[Any, Any]:
    """A data frame with text, missing cells, a Boolean and a constant column; labels of text."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {
            "größe": rng.normal(size=ROWS),
            "island": rng.choice(["Biscoe", "Dream", "Torgersen"], size=ROWS),
            "is_old": rng.integers(0, 2, size=ROWS).astype(bool),
            "mass": np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(4000, 800, size=ROWS)),
        }
    )
    return frame, np.where(np.arange(ROWS) % 2, "yes", "no")


@pytest.fixture
def pipeline(table: tuple[Any, Any]) -> Pipeline:
    model = make_pipeline(TableEncoder(), Perceptron(variant="averaged", max_iter=5, random_state=0))
    return fit_quietly(model, *table)


@pytest.fixture
def perceptron() -> Perceptron:
    return fit_quietly(LEARNERS["perceptron"](), *points(3))


@pytest.fixture
def voted() -> Perceptron:
    return fit_quietly(LEARNERS["voted"](), *points(3))


@pytest.fixture
def kernel_perceptron() -> KernelPerceptron:
    return fit_quietly(LEARNERS["kernel, rbf"](), *points(3))


@pytest.fixture
def sparse_kernel_perceptron() -> KernelPerceptron:
    X, y = points(3)
    return fit_quietly(LEARNERS["kernel, rbf"](), sp.csr_matrix(X), y)


@pytest.fixture
def svc() -> SVC:
    return SVC(gamma=0.5).fit(*points(3))


@pytest.fixture
def sparse_svc() -> SVC:
    X, y = points(3)
    return SVC(gamma=0.5).fit(sp.csr_matrix(X), y)


@pytest.fixture
def gram_svc() -> SVC:
    X, y = points(3)
    return SVC(kernel="precomputed").fit(X @ X.T, y)


@pytest.fixture
def svr() -> SVR:
    return SVR(gamma=0.5).fit(*points(3))


@pytest.fixture
def nu_svr() -> NuSVR:
    return NuSVR(gamma=0.5).fit(*points(3))


@pytest.fixture
def one_class() -> OneClassSVM:
    return OneClassSVM(gamma=0.5).fit(points(2)[0])


def table_of_every_kind(n: int = 60, seed: int = 11) -> tuple[Table, Any]:
    """Numbers, intervals, text, truth values and missing cells; three classes that they tell apart but for noise."""
    rng = np.random.default_rng(seed)
    mass, length = rng.normal(4000, 800, size=n), rng.normal(size=n)
    island, sex = rng.integers(0, 4, size=n).astype(np.int32), rng.integers(0, 2, size=n).astype(np.int8)
    mass[rng.random(n) < 0.15] = np.nan
    island[rng.random(n) < 0.15] = -1
    y = (island > 1).astype(int) + (length > 0.4)
    y = np.where(rng.random(n) < 0.15, rng.integers(0, 3, size=n), y)
    columns = [
        Column("mass", "numeric", mass),
        Column("größe", "numeric", length),
        Column("island", "category", island, ("Biscoe", "Dream", "Torgersen", "ünï")),
        Column("is_old", "boolean", sex),
    ]
    return Table(columns, source="islands"), np.array(["a", "b", "c"])[y]


TREES: dict[str, Callable[[], Any]] = {
    "tree": DecisionTreeClassifier,
    "tree, pruned": lambda: DecisionTreeClassifier(prune="pessimistic", smoothing=1.0),
    "tree, by folds": lambda: DecisionTreeClassifier(ccp_alpha="cv", criterion="log_loss"),
    "tree, many branches": lambda: DecisionTreeClassifier(
        categorical="multiway", split_values={"mass": [3500, 4500], 1: (0.0,)}, split_score="gain_ratio"
    ),
    "tree, one level against the rest": lambda: DecisionTreeClassifier(categorical="one_vs_rest", max_leaf_nodes=5),
    "tree, reference": lambda: DecisionTreeClassifier(engine="reference", class_weight="balanced", majority=0.9),
    "tree, held out": lambda: DecisionTreeClassifier(prune="reduced_error", random_state=3),
    "tree, one leaf": lambda: DecisionTreeClassifier(significance=1e-9),
    "regressor": lambda: DecisionTreeRegressor(max_depth=3, monotonic_cst={"größe": 1}),
    "regressor, pruned": lambda: DecisionTreeRegressor(criterion="gaussian_entropy", prune="mdl"),
    "regressor, medians": lambda: DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
    "stump": DecisionStump,
}


def fitted_tree(name: str) -> tuple[Any, Table, Any]:
    """A tree of `TREES`, fitted, and what it was fitted on."""
    X, y = table_of_every_kind()
    if name.startswith("regressor"):
        y = X["größe"].values + (y == "a")
    return TREES[name]().fit(X, y), X, y


@pytest.fixture(params=TREES)
def any_tree(request: pytest.FixtureRequest) -> tuple[Any, Table, Any]:
    return fitted_tree(request.param)


@pytest.fixture
def tree() -> DecisionTreeClassifier:
    """Pruned, so that there are two sets of arrays; of thresholds, intervals and levels."""
    X, y = table_of_every_kind()
    model = DecisionTreeClassifier(prune="pessimistic", categorical="multiway", split_values={"mass": [3500.0, 4500.0]})
    return model.fit(X, y)


@pytest.fixture
def tree_regressor() -> DecisionTreeRegressor:
    return fitted_tree("regressor")[0]


@pytest.fixture
def gram_perceptron() -> KernelPerceptron:
    X, y = points(3)
    return fit_quietly(LEARNERS["kernel, precomputed"](), X @ X.T, y)
