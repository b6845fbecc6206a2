"""Hostile parameters of every estimator, drawn from a seeded generator: most of them valid, and none of them kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Draw = Callable[[Rng], Any]

KERNELS = ("linear", "rbf", "rbf", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed")
TIME_LIMIT = 1.0  # seconds


def _one_of(*choices: Any) -> Draw:
    return lambda rng: choices[rng.integers(len(choices))]


def _power(low: float, high: float) -> Draw:
    """10 to a whole power, often a moderate one."""
    return lambda rng: float(10.0 ** (rng.integers(-2, 4) if rng.random() < 0.5 else rng.integers(low, high + 1)))


def _hostile_c(rng: Rng) -> float:
    return float(np.inf) if rng.random() < 0.03 else _power(-15, 15)(rng)


def _class_weight(rng: Rng) -> Any:
    kind = rng.integers(6)
    by_label = {0: 2.0, 1: 1e-3, 2: 1e3, -1: 5.0, "a": 3.0}
    return ["balanced", "balanced", by_label, {0: 0.0}, {"absent": 1.0}, {0: 1e-300, 1: 1e300}][kind]


_SHARED: dict[str, Draw] = {
    "time_limit": _one_of(*[TIME_LIMIT] * 6, 1e-3, 1e-9),
    "n_jobs": _one_of(1, 1, 2),
    "engine": _one_of("auto", "auto", "auto", "reference", "native"),
}
_KERNEL: dict[str, Draw] = {
    **_SHARED,
    "kernel": _one_of(*KERNELS),
    "degree": _one_of(1, 2, 3, 3, 7, 2.5),
    "gamma": lambda rng: _one_of("scale", "scale", "auto", "median", _power(-12, 12)(rng))(rng),
    "coef0": _one_of(0.0, 1.0, -1.0, 1e6),
    "cache_size": _one_of("auto", 1, 200),
    "shrinking": _one_of(True, False),
    "precision": _one_of("auto", "single", "double"),
    "max_iter": _one_of(-1, -1, -1, -1, 0, 1, 100),
    "verbose": _one_of(False, False, False, True),
    "tol": _one_of(1e-3, 1e-3, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10),
}
_PAIRS: dict[str, Draw] = {
    **_KERNEL,
    "class_weight": lambda rng: None if rng.random() < 0.7 else _class_weight(rng),
    "multiclass": _one_of("ovo", "ovo", "ovr"),
    "decision_function_shape": _one_of("ovr", "ovo"),
    "break_ties": _one_of(False, True),
    "probability": _one_of(False, False, False, False, True),
    "random_state": _one_of(0, None),
}
_LINEAR: dict[str, Draw] = {
    **_SHARED,
    "fit_intercept": _one_of(True, True, False),
    "intercept_scaling": _one_of(1.0, 1.0, 1e-3, 1e3),
    "regularize_intercept": _one_of(True, True, False),
    "max_iter": _one_of(1000, 1000, 1000, 5000, 1),
    "solver": _one_of("auto", "auto", "auto", "newton", "row_newton", "conjugate_gradients", "descent"),
    "tol": _one_of(1e-4, 1e-4, 1e-2, 1e-6, 1e-8, 1e-10),
    "dual": _one_of("auto", True, False),
    "random_state": _one_of(0, None),
}
_TREE: dict[str, Draw] = {
    **_SHARED,
    "split_score": _one_of("gain", "gain", "gain_ratio", "skew_adjusted"),
    "thresholds": _one_of("exact", "exact", "histogram", "gaussian", "logistic"),
    "categorical": _one_of("auto", "auto", "multiway", "one_vs_rest", "subset"),
    "categorical_features": _one_of("from_dtype", "from_dtype", "from_dtype", [0], None),
    "split_values": _one_of(None, None, None, None, {0: (0.0, 1.0)}),
    "max_depth": _one_of(None, None, 1, 3, 100),
    "min_samples_split": _one_of(2, 2, 0.5, 5),
    "min_samples_leaf": _one_of(1, 1, 0.1, 3),
    "min_weight_fraction_leaf": _one_of(0.0, 0.0, 0.3),
    "max_features": _one_of(None, None, "sqrt", 0.5, 1),
    "max_leaf_nodes": _one_of(None, None, 2, 5),
    "min_impurity_decrease": _one_of(0.0, 0.0, 0.1),
    "min_gain": _one_of(0.0, 0.0, 1e-3),
    "complexity": _one_of(0.0, 0.0, 1e-3),
    "significance": _one_of(None, None, None, 0.05),
    "prune": _one_of(None, None, None, "pessimistic", "reduced_error", "mdl", "chi2", "binomial_test"),
    "ccp_alpha": _one_of(0.0, 0.0, 0.01, "cv"),
    "monotonic_cst": _one_of(None, None, None, {0: 1}),
    "n_bins": _one_of(255, 2),
    "random_state": _one_of(0, None),
}
_FOREST: dict[str, Draw] = {
    **{name: _TREE[name] for name in (*_SHARED, "categorical", "categorical_features", "split_values", "max_depth")},
    **{name: _TREE[name] for name in ("min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf")},
    **{name: _TREE[name] for name in ("max_features", "max_leaf_nodes", "min_impurity_decrease", "random_state")},
    "n_estimators": _one_of(1, 3, 8),
    "monotonic_cst": _TREE["monotonic_cst"],
}
_NUS: Draw = _one_of(0.5, 0.1, 0.01, 0.9, 1.0, 1e-6)
_SEARCHED: dict[str, Draw] = {
    "Cs": _one_of(None, [1.0], [0.1, 10.0], [1e-8, 1e8]),
    "cv": _one_of(2, 3, 5),
    "refit": _one_of(True, True, True, False),
}


def _without(given: dict[str, Draw], *names: str) -> dict[str, Draw]:
    return {name: draw for name, draw in given.items() if name not in names}


def _learners(rng: Rng) -> Any:
    """A learner for an ensemble or a scheme of machines."""
    import margrove

    kind = rng.integers(6)
    if kind == 0:
        return None
    name = ["LinearSVC", "SVC", "BasicLinearClassifier", "DecisionTreeClassifier", "Perceptron"][kind - 1]
    return getattr(margrove, name)(**parameters(name, rng, nonsense=0.0))


def _weak(rng: Rng) -> Any:
    import margrove

    kind = rng.integers(5)
    if kind < 2:
        return None
    if kind == 2:
        return margrove.DecisionTreeClassifier(max_depth=2)
    return margrove.BasicLinearClassifier() if kind == 3 else margrove.DecisionStump(**_few("DecisionStump", rng))


def _weak_of_numbers(rng: Rng) -> Any:
    import margrove

    kind = rng.integers(4)
    if kind < 2:
        return None
    return margrove.DecisionTreeRegressor(max_depth=2) if kind == 2 else margrove.LinearSVR(time_limit=0.2)


def _few(name: str, rng: Rng) -> dict[str, Any]:
    return parameters(name, rng, nonsense=0.0)


_CODED: dict[str, Draw] = {"estimator": _learners, "n_jobs": _one_of(1, 2), "verbose": _one_of(False, True)}
_BOOST: dict[str, Draw] = {
    **_SHARED,
    "n_estimators": _one_of(1, 5, 20),
    "learning_rate": _one_of(1.0, 1.0, 0.1, 10.0, 1e-6),
    "random_state": _one_of(0, None),
}

PARAMETERS: dict[str, dict[str, Draw]] = {
    "SVC": {**_PAIRS, "C": _hostile_c},
    "NuSVC": {**_PAIRS, "nu": _NUS},
    "SVR": {**_KERNEL, "C": _power(-15, 15), "epsilon": _one_of(0.1, 0.0, 1e-6, 1e3)},
    "NuSVR": {**_KERNEL, "C": _power(-15, 15), "nu": _NUS},
    "OneClassSVM": {**_KERNEL, "nu": _NUS},
    "LinearSVC": {
        **_LINEAR,
        "C": _power(-15, 15),
        "penalty": _one_of("l2", "l2", "l1"),
        "loss": _one_of("squared_hinge", "hinge"),
        "multi_class": _one_of("ovr", "ovr", "crammer_singer"),
        "class_weight": _PAIRS["class_weight"],
    },
    "LinearSVR": {
        **_LINEAR,
        "C": _power(-15, 15),
        "epsilon": _one_of(0.0, 0.1, 1e-6, 1e3),
        "loss": _one_of("epsilon_insensitive", "squared_epsilon_insensitive"),
    },
    "SVCCV": {**_without(_PAIRS, "gamma", "shrinking", "probability", "random_state"), **_SEARCHED},
    "SVRCV": {**_without(_KERNEL, "gamma", "shrinking"), **_SEARCHED, "epsilons": _one_of(None, [0.1, 1.0])},
    "LinearSVCCV": {
        **_LINEAR,
        **_SEARCHED,
        "penalty": _one_of("l2", "l1"),
        "loss": _one_of("squared_hinge", "hinge"),
        "class_weight": _PAIRS["class_weight"],
    },
    "LinearSVRCV": {
        **_LINEAR,
        **_SEARCHED,
        "epsilons": _one_of(None, [0.1, 1.0]),
        "loss": _one_of("epsilon_insensitive", "squared_epsilon_insensitive"),
    },
    "BasicLinearClassifier": _without(_SHARED, "time_limit"),
    "LeastSquaresClassifier": {
        **_without(_SHARED, "time_limit"),
        "fit_intercept": _one_of(True, False),
        "class_weight": _PAIRS["class_weight"],
    },
    "Perceptron": {
        **_SHARED,
        "eta0": _power(-12, 12),
        "fit_intercept": _one_of(True, False),
        "variant": _one_of("last", "averaged", "voted"),
        "max_iter": _one_of(1000, 5),
        "tol": _one_of(None, 1e-3),
        "shuffle": _one_of(True, False),
        "class_weight": _PAIRS["class_weight"],
        "random_state": _one_of(0, None),
    },
    "KernelPerceptron": {
        **_without(_KERNEL, "cache_size", "shrinking", "precision", "tol", "verbose"),
        "eta0": _power(-12, 12),
        "fit_intercept": _one_of(True, False),
        "max_iter": _one_of(1000, 5),
        "class_weight": _PAIRS["class_weight"],
        "random_state": _one_of(0, None),
    },
    "DecisionTreeClassifier": {
        **_TREE,
        "criterion": _one_of("gini", "gini", "entropy", "log_loss", "error"),
        "majority": _one_of(1.0, 0.9),
        "class_weight": _PAIRS["class_weight"],
        "smoothing": _one_of(0.0, 1.0),
    },
    "DecisionTreeRegressor": {
        **_TREE,
        "criterion": _one_of("squared_error", "squared_error", "absolute_error", "gaussian_entropy"),
    },
    "DecisionStump": {
        name: _TREE[name]
        for name in ("n_jobs", "engine", "split_score", "thresholds", "categorical", "min_samples_leaf", "split_values")
    },
    "AdaBoostClassifier": {
        **_BOOST,
        "estimator": _weak,
        "early_stopping": _one_of(False, False, True),
        "validation_fraction": _one_of(0.1, 0.5),
        "stop_at_bound": _one_of(0.0, 0.5),
    },
    "AdaBoostRegressor": {**_BOOST, "estimator": _weak_of_numbers, "loss": _one_of("linear", "square", "exponential")},
    "RandomForestClassifier": {
        **_FOREST,
        "criterion": _one_of("gini", "entropy", "error"),
        "class_weight": _PAIRS["class_weight"],
        "oob_score": _one_of(False, False, True),
    },
    "RandomForestRegressor": {**_FOREST, "criterion": _one_of("squared_error", "squared_error", "absolute_error")},
    "ExtraTreesClassifier": {**_FOREST, "criterion": _one_of("gini", "log_loss")},
    "ExtraTreesRegressor": _FOREST,
    "OneVsRestClassifier": _CODED,
    "OneVsOneClassifier": _CODED,
    "BitStringClassifier": {
        **_CODED,
        "code": _one_of("binary", "hadamard", "random", "exhaustive", "max_min"),
        "n_bits": _one_of(None, None, 3, 8),
        "decoding": _one_of("hinge", "hamming"),
        "random_state": _one_of(0, None),
    },
    "CalibratedClassifier": {
        "estimator": _learners,
        "tuned_for": _one_of(None, "balanced_accuracy", "f1_macro", "f1", "roc_auc"),
        "cv": _one_of(5, 2),
        "random_state": _one_of(0, None),
    },
    "ImpuritySelector": {
        "score_func": _one_of("information_gain", "gini_gain", "gain_ratio", "error_gain", "skew_adjusted_gain"),
        "k": _one_of(10, 1, 0.5, "all"),
        "threshold": _one_of(None, None, 0.1),
        "thresholds": _one_of("exact", "histogram"),
        "categorical": _one_of("multiway", "one_vs_rest"),
        "class_weight": _PAIRS["class_weight"],
        "n_jobs": _one_of(1, 2),
    },
    "TableEncoder": {
        "impute": _one_of("median", "mean", "zero"),
        "standardise": _one_of(True, False),
        "unseen": _one_of("warn", "ignore", "error"),
        "add_indicator": _one_of(False, True),
        "drop_identifiers": _one_of(True, False),
        "drop_constant": _one_of(True, False),
        "sparse_output": _one_of("auto", True, False),
        "text": _one_of(None, None, None, ["c0"]),
        "text_features": _one_of("tfidf", "hashing"),
        "min_df": _one_of(2, 1),
    },
}

_NONSENSE: Draw = _one_of(
    None, "nonsense", -1, 0, np.nan, np.inf, [], {}, object(), 10**400, 1e400, b"x", True, np.array([1, 2]), 1j, "1"
)


def parameters(name: str, rng: Rng, nonsense: float = 0.05) -> dict[str, Any]:
    """Parameters of the estimator: each drawn or left at its default, one of them sometimes replaced by nonsense."""
    drawn = PARAMETERS[name]
    kept = {"time_limit", "n_jobs", "C", "nu", "kernel"}
    share = rng.choice([0.1, 0.3, 0.8])
    given = {key: draw(rng) for key, draw in drawn.items() if key in kept or rng.random() < share}
    if rng.random() < nonsense:
        given[list(drawn)[rng.integers(len(drawn))]] = _NONSENSE(rng)
    elif given.get("engine") == "reference" and "cv" in drawn:  # it keeps no clock
        del given["engine"]
    elif given.get("engine") == "reference":
        given.pop("time_limit", None)
        if "max_iter" in drawn:
            given["max_iter"] = 1000
    return given
