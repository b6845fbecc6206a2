"""Every learner of Margrove with small settings, and what is observed of it on a table."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from tests.guards.state import PREDICTIONS, WORDS, digest_of_case, fitted_state, parts_of, summary
from tests.guards.tables import MAKERS, SMALL, Data, table
from threadpoolctl import threadpool_limits

import margrove as m

CLASSES, NUMBERS = "labels", "numbers"
TABLES = tuple(name for name in MAKERS if name != "tall")
_MORE = (*TABLES, "tall")
_FEW = tuple(name for name in TABLES if name not in ("unscaled", "huge", "many classes"))  # the rest takes seconds
_COUNTS = ("positive", "sparse", "ties", "blobs", "one class")
_ARRAYS = ("blobs", "mixed", "duplicates", "wide", "weighted", "float32", "missing cells")
Fit = Callable[[Any, Data, Any], Any]  # estimator, table, target → what is observed


def _fit(model: Any, data: Data, target: Any) -> Any:
    return model.fit(data.X, target, **_weights(data))


def _weights(data: Data) -> dict[str, Any]:
    return {} if data.weight is None else {"sample_weight": data.weight}


def _path(model: Any, data: Data, target: Any) -> Any:
    return model.path(data.X, target, Cs=[0.01, 1.0, 100.0], **_weights(data))


def _leave_one_out(model: Any, data: Data, target: Any) -> Any:
    return _fit(model, data, target).leave_one_out(data.X, target, **_weights(data))


def _pieces(data: Data, target: Any) -> list[tuple[Any, ...]]:
    """The table in pieces of 25 rows."""
    n = len(target)
    rows = [slice(first, min(first + 25, n)) for first in range(0, n, 25)]
    if data.weight is None:
        return [(data.X[each], target[each]) for each in rows]
    return [(data.X[each], target[each], data.weight[each]) for each in rows]


def _fit_stream(model: Any, data: Data, target: Any) -> Any:
    return model.fit_stream(_pieces(data, target), max_passes=30)


def _partial_fit(model: Any, data: Data, target: Any) -> Any:
    known = {"classes": np.unique(target)} if is_classifier(model) else {}
    for X, y, *weight in _pieces(data, target):
        model.partial_fit(X, y, **known, **({"sample_weight": weight[0]} if weight else {}))
    return model


def _precomputed(model: Any, data: Data, target: Any) -> Any:
    gram = data.X @ data.X.T
    model.fit(gram, target, **_weights(data))
    return Observed(model, gram[:60], gram, target)


def _again(model: Any, data: Data, target: Any) -> Any:
    """A warm start: fitted, then fitted with another C."""
    _fit(model, data, target)
    return _fit(model.set_params(C=2 * model.C), data, target)


def _encode(model: Any, data: Data, target: Any) -> Any:
    return model.fit(data.X, target)


def _pruning_path(model: Any, data: Data, target: Any) -> Any:
    return _fit(model, data, target).cost_complexity_path()


def _pictures(model: Any, data: Data, target: Any) -> Any:
    """ConvFeatures of the rows as grey pictures."""
    grey = np.resize(np.asarray(data.X, float), (6, 12, 12))
    pictures = np.repeat(np.uint8(255 * (grey - grey.min()) / (np.ptp(grey) or 1.0))[..., None], 3, axis=3)
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder, "edges.onnx")
        from margrove.transfer.tiny import write_tiny_network

        write_tiny_network(network)
        return {"codes": model.set_params(network=str(network)).fit_transform(pictures)}


def _scores(score: Callable[..., Any], data: Data, target: Any) -> Any:
    return {"scores": score(data.X, target, n_jobs=2, **_weights(data))}


@dataclass(frozen=True)
class Observed:
    """A model with the rows that it is to predict and to be certified on, where they are not the table's."""

    model: Any
    probe: Any
    X: Any
    target: Any


@dataclass(frozen=True)
class Learner:
    """An estimator with its parameters.

    Parameters
    ----------
    make : callable
        The estimator, not fitted; it is given ``n_jobs=2`` and an engine, where it has these parameters.
    target : str
        What it predicts.
    fit : callable
        How it is fitted.
    tables : tuple of str
        Those it is fitted on.
    chaotic : tuple of str
        Those on which another last bit of a float may change everything that follows. They are not compared on other
        machines.
    """

    make: Callable[[], Any]
    target: str = CLASSES
    fit: Fit = _fit
    tables: tuple[str, ...] = TABLES
    chaotic: tuple[str, ...] = ()

    @property
    def engines(self) -> tuple[str, ...]:
        made = self.make()
        return ("native", "reference") if "engine" in getattr(made, "get_params", dict)() else ("native",)

    def cases(self) -> Iterator[tuple[str, str]]:
        """Pairs (table, engine)."""
        for engine in self.engines:
            for name in self.tables if engine == "native" else SMALL:
                yield name, engine


_TREE = partial(m.DecisionTreeClassifier, random_state=0)
_TREE_OF_NUMBERS = partial(m.DecisionTreeRegressor, random_state=0)
_SVC, _LINEAR, _LINEAR_R = m.SVC, partial(m.LinearSVC, random_state=0), partial(m.LinearSVR, random_state=0)
_WALK = partial(m.Perceptron, random_state=0, max_iter=60)

LEARNERS: dict[str, Learner] = {
    "SVC": Learner(_SVC, tables=_MORE),
    "SVC of a line": Learner(lambda: _SVC(kernel="linear", C=10.0, class_weight="balanced"), tables=(*_FEW, "tall")),
    "SVC of a polynomial": Learner(lambda: _SVC(kernel="poly", coef0=1.0, multiclass="ovr", break_ties=True)),
    "SVC in double precision": Learner(lambda: _SVC(kernel="laplacian", precision="double", tol=1e-5, shrinking=False)),
    "SVC with probabilities": Learner(lambda: _SVC(probability=True, random_state=0), tables=_FEW),
    "SVC of a hard margin": Learner(lambda: _SVC(kernel="linear", C=np.inf), tables=_FEW),
    "SVC of histograms": Learner(
        lambda: _SVC(kernel="chi2", gamma="median", decision_function_shape="ovo"), tables=_COUNTS
    ),
    "SVC of intersections": Learner(lambda: _SVC(kernel="intersection"), tables=_COUNTS),
    "SVC of a sigmoid": Learner(lambda: _SVC(kernel="sigmoid", gamma=0.1)),
    "SVC of a Gram matrix": Learner(lambda: _SVC(kernel="precomputed"), fit=_precomputed, tables=_ARRAYS),
    "SVC stopped early": Learner(lambda: _SVC(max_iter=3, C=100.0)),
    "SVC warm": Learner(lambda: _SVC(warm_start=True), fit=_again),
    "SVC.path": Learner(_SVC, fit=_path),
    "SVC.leave_one_out": Learner(lambda: _SVC(kernel="linear"), fit=_leave_one_out, tables=_FEW),
    "NuSVC": Learner(lambda: m.NuSVC(nu=0.2), chaotic=("words",)),
    "SVR": Learner(m.SVR, NUMBERS),
    "SVR of a line": Learner(lambda: m.SVR(kernel="linear", epsilon=0.01), NUMBERS, tables=_FEW),
    "NuSVR": Learner(lambda: m.NuSVR(nu=0.3), NUMBERS),
    "OneClassSVM": Learner(lambda: m.OneClassSVM(nu=0.2)),
    "SVCCV": Learner(lambda: m.SVCCV(Cs=[0.1, 10.0], gammas=[0.01, 1.0], cv=3), tables=_FEW),
    "SVRCV": Learner(lambda: m.SVRCV(Cs=[0.1, 10.0], gammas=[0.1], epsilons=[0.1, 1.0], cv=3), NUMBERS, tables=_FEW),
    "LinearSVC": Learner(_LINEAR, tables=_MORE),
    "LinearSVC of the hinge": Learner(lambda: _LINEAR(loss="hinge", class_weight="balanced")),
    "LinearSVC with a free intercept": Learner(
        lambda: _LINEAR(loss="hinge", regularize_intercept=False), chaotic=("huge",)
    ),
    "LinearSVC of few columns": Learner(lambda: _LINEAR(penalty="l1")),
    "LinearSVC by Crammer and Singer": Learner(
        lambda: _LINEAR(multi_class="crammer_singer"), chaotic=("constant columns",)
    ),
    "LinearSVC by descent": Learner(lambda: _LINEAR(solver="descent", loss="hinge")),
    "LinearSVC by Newton's steps of rows": Learner(lambda: _LINEAR(solver="row_newton"), chaotic=("huge",)),
    "LinearSVC by conjugate gradients": Learner(lambda: _LINEAR(solver="conjugate_gradients")),
    "LinearSVC.path": Learner(_LINEAR, fit=_path, chaotic=("unscaled", "tiny")),
    "LinearSVC.path of few columns": Learner(lambda: _LINEAR(penalty="l1"), fit=_path),
    "LinearSVC.fit_stream": Learner(_LINEAR, fit=_fit_stream),
    "LinearSVC.fit_stream of the hinge": Learner(lambda: _LINEAR(loss="hinge"), fit=_fit_stream, tables=_MORE),
    "LinearSVC.partial_fit": Learner(_LINEAR, fit=_partial_fit, tables=_FEW),
    "LinearSVCCV": Learner(lambda: m.LinearSVCCV(Cs=[0.01, 1.0], cv=3, random_state=0)),
    "LinearSVR": Learner(_LINEAR_R, NUMBERS, tables=_MORE),
    "LinearSVR of squares": Learner(
        lambda: _LINEAR_R(loss="squared_epsilon_insensitive", epsilon=0.1, regularize_intercept=False), NUMBERS
    ),
    "LinearSVR.path": Learner(_LINEAR_R, NUMBERS, fit=_path),
    "LinearSVR.fit_stream": Learner(lambda: _LINEAR_R(epsilon=0.1), NUMBERS, fit=_fit_stream),
    "LinearSVR.partial_fit": Learner(lambda: _LINEAR_R(epsilon=0.1), NUMBERS, fit=_partial_fit, tables=_FEW),
    "LinearSVRCV": Learner(lambda: m.LinearSVRCV(Cs=[0.01, 1.0], epsilons=[0.0, 0.1], cv=3, random_state=0), NUMBERS),
    "BasicLinearClassifier": Learner(m.BasicLinearClassifier),
    "LeastSquaresClassifier": Learner(m.LeastSquaresClassifier),
    "SoftmaxClassifier": Learner(m.SoftmaxClassifier),
    "Perceptron": Learner(_WALK),
    "Perceptron averaged": Learner(lambda: _WALK(variant="averaged", class_weight="balanced")),
    "Perceptron voted": Learner(lambda: _WALK(variant="voted", shuffle=False)),
    "Perceptron.partial_fit": Learner(_WALK, fit=_partial_fit),
    "KernelPerceptron": Learner(lambda: m.KernelPerceptron(random_state=0, max_iter=60)),
    "DecisionTreeClassifier": Learner(_TREE),
    "DecisionTreeClassifier by description length": Learner(
        lambda: _TREE(criterion="entropy", complexity=0.7, prune="pessimistic"), tables=_MORE
    ),
    "DecisionTreeClassifier of subsets": Learner(
        lambda: _TREE(categorical="subset", thresholds="histogram", n_bins=16, split_score="gain_ratio", max_depth=4)
    ),
    "DecisionTreeClassifier of many ways": Learner(
        lambda: _TREE(categorical="multiway", prune="reduced_error", criterion="error", min_samples_leaf=3)
    ),
    "DecisionTreeClassifier cross-validated": Learner(
        lambda: _TREE(ccp_alpha="cv", max_leaf_nodes=12, class_weight="balanced", smoothing=1.0), tables=_FEW
    ),
    "DecisionTreeClassifier of some columns": Learner(
        lambda: _TREE(max_features="sqrt", thresholds="logistic", significance=0.2)
    ),
    "DecisionTreeClassifier.cost_complexity_path": Learner(_TREE, fit=_pruning_path),
    "DecisionTreeRegressor": Learner(_TREE_OF_NUMBERS, NUMBERS),
    "DecisionTreeRegressor of medians": Learner(
        lambda: _TREE_OF_NUMBERS(criterion="absolute_error", min_samples_leaf=4), NUMBERS
    ),
    "DecisionStump": Learner(m.DecisionStump),
    "AdaBoostClassifier": Learner(lambda: m.AdaBoostClassifier(n_estimators=8, random_state=0)),
    "AdaBoostClassifier of trees": Learner(
        lambda: m.AdaBoostClassifier(
            m.DecisionTreeClassifier(max_depth=2), n_estimators=8, early_stopping=True, random_state=0
        )
    ),
    "AdaBoostClassifier of means": Learner(
        lambda: m.AdaBoostClassifier(m.BasicLinearClassifier(), n_estimators=6, random_state=0)
    ),
    "AdaBoostRegressor": Learner(lambda: m.AdaBoostRegressor(n_estimators=3, random_state=0), NUMBERS),
    "AdaBoostRegressor of lines": Learner(
        lambda: m.AdaBoostRegressor(m.LinearSVR(random_state=0), n_estimators=4, loss="square", random_state=0),
        NUMBERS,
        chaotic=("huge",),
    ),
    "RandomForestClassifier": Learner(lambda: m.RandomForestClassifier(n_estimators=4, oob_score=True)),
    "RandomForestRegressor": Learner(lambda: m.RandomForestRegressor(n_estimators=4, max_features=0.5), NUMBERS),
    "ExtraTreesClassifier": Learner(lambda: m.ExtraTreesClassifier(n_estimators=4)),
    "ExtraTreesRegressor": Learner(lambda: m.ExtraTreesRegressor(n_estimators=4), NUMBERS),
    "OneVsRestClassifier": Learner(m.OneVsRestClassifier),
    "OneVsRestClassifier of trees": Learner(lambda: m.OneVsRestClassifier(m.DecisionTreeClassifier(max_depth=3))),
    "OneVsOneClassifier": Learner(lambda: m.OneVsOneClassifier(m.LinearSVC(random_state=0))),
    "BitStringClassifier": Learner(lambda: m.BitStringClassifier(code="random", random_state=0)),
    "BitStringClassifier by Hamming": Learner(
        lambda: m.BitStringClassifier(m.BasicLinearClassifier(), decoding="hamming")
    ),
    "CalibratedClassifier": Learner(m.CalibratedClassifier, tables=_FEW),
    "CalibratedClassifier of trees, tuned": Learner(
        lambda: m.CalibratedClassifier(m.DecisionTreeClassifier(max_depth=3), tuned_for="f1_macro", cv=3), tables=_FEW
    ),
    "ImpuritySelector": Learner(lambda: m.ImpuritySelector(k=2)),
    "ImpuritySelector of ratios": Learner(lambda: m.ImpuritySelector("gain_ratio", threshold=0.05)),
    "TableEncoder": Learner(lambda: m.TableEncoder(unseen="ignore"), fit=_encode),
    "ConvFeatures": Learner(lambda: m.ConvFeatures(size=12), fit=_pictures, tables=("blobs", "mixed", "float32")),
    "information_gain": Learner(lambda: m.information_gain, fit=_scores),
    "gini_gain": Learner(lambda: m.gini_gain, fit=_scores),
    "error_gain": Learner(lambda: m.error_gain, fit=_scores),
    "gain_ratio": Learner(lambda: m.gain_ratio, fit=_scores),
    "skew_adjusted_gain": Learner(lambda: m.skew_adjusted_gain, fit=_scores),
}


def observe(learner: Learner, name: str, engine: str) -> dict[str, Any]:
    """What is recorded of one case: the error; or digests of everything public, and a summary."""
    data = table(name)
    target = getattr(data, learner.target)
    model = learner.make()
    if isinstance(model, BaseEstimator):
        # Schemes of machines start processes of their own for n_jobs=2, which takes seconds and hides their warnings.
        given = {"engine": engine, "n_jobs": 1 if hasattr(model, "estimator") else 2}
        model.set_params(**{key: value for key, value in given.items() if key in model.get_params()})
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            subject = learner.fit(model, data, target)
        except Exception as error:  # whatever it is, it is the behaviour
            return {"error": type(error).__name__, "message": str(error)}
        seen = subject if isinstance(subject, Observed) else Observed(subject, data.probe, data.X, target)
        state, told = _state(seen)
    sentences = [f"{each.category.__name__}: {each.message}" for each in caught]
    state[WORDS] = [state.get(WORDS), sentences]
    return {"digest": digest_of_case(state), "parts": parts_of(state), "summary": told}


def _state(seen: Observed) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything public of what was fitted, and its summary."""
    model = seen.model
    if isinstance(model, dict):
        return dict(model), {"status": ""}
    if hasattr(model, "models"):  # a path
        state = {f"models.{index}": fitted_state(each) for index, each in enumerate(model.models)}
        last, told = _state(Observed(model.models[-1], seen.probe, seen.X, seen.target))
        return {"Cs": model.Cs, "status": model.status, **state, **last}, told
    if not isinstance(model, BaseEstimator):  # a record, such as of leave-one-out
        return {"record": model}, {"status": str(getattr(model, "status", ""))}
    state = fitted_state(model)
    for method in PREDICTIONS:
        if hasattr(model, method):
            state[method] = _called(getattr(model, method), seen.probe)
    certificate = None
    if hasattr(model, "certificate_"):
        certificate = state["certified"] = _called(m.certify, model, seen.X, seen.target)
        state[WORDS] = [[claim.words for claim in model.certificate_.claims]]
    predicted = state.get("predict")
    is_certified = isinstance(certificate, m.Certificate)
    is_predicted = not isinstance(predicted, str)
    return state, summary(model, certificate if is_certified else None, predicted if is_predicted else None)


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, or its error as text."""
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@cache
def observed(name: str) -> dict[str, dict[str, Any]]:
    """Every case of a learner, by "table" or "table, reference"."""
    learner = LEARNERS[name]
    return {
        each if engine == "native" else f"{each}, {engine}": observe(learner, each, engine)
        for each, engine in learner.cases()
    }
