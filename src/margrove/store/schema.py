"""What a file must hold for each class that may be in one. This list is all that `load` can build.

Shapes are written in symbols that must mean the same number throughout a model:

=====  ==========================================================
K      labels, of a classifier
m      machines; see `margrove.store.machines`
r      rows of a support vector machine's ``dual_coef_``: see `margrove.svm.layout`
w      rows of a linear support vector classifier's ``coef_``
d      columns, ``n_features_in_``
n      rows the model was fitted on, ``n_rows_``
s, v   support vectors; weight vectors that vote: whatever the first array says
t      nodes of a tree, or of all trees of a grove; c children, l levels of all these nodes; k numbers in the value of a
       node
T, q   trees of a grove; rounds that were done, of which T are kept
h      rows held out
=====  ==========================================================
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from margrove.boost.classifier import AdaBoostClassifier
from margrove.boost.ensemble import LARGEST_RATE
from margrove.boost.r2 import LOSSES
from margrove.boost.regressor import AdaBoostRegressor
from margrove.data import TableEncoder
from margrove.data.text import LARGEST_WIDTH, MOST_WORDS, TEXT_FEATURES
from margrove.linear.centroid import BasicLinearClassifier
from margrove.linear.kernel_perceptron import KernelPerceptron
from margrove.linear.least_squares import LeastSquaresClassifier
from margrove.linear.perceptron import Perceptron
from margrove.linear.problem import VARIANTS
from margrove.linear_svm.problem import PENALTIES
from margrove.linear_svm.svc import LinearSVC
from margrove.linear_svm.svr import LinearSVR
from margrove.multiclass.bit_string import BitStringClassifier
from margrove.multiclass.decoding import DECODINGS
from margrove.multiclass.one_vs_one import OneVsOneClassifier
from margrove.multiclass.one_vs_rest import OneVsRestClassifier
from margrove.select.scores import KINDS
from margrove.select.selector import ImpuritySelector
from margrove.status import Status
from margrove.store.machines import Counting, by_code, linear_machines, one_vs_rest, single
from margrove.svm.kernels import NATIVE_KERNELS
from margrove.svm.kkt import HARD
from margrove.svm.one_class import OneClassSVM
from margrove.svm.svc import SVC, NuSVC
from margrove.svm.svr import SVR, NuSVR
from margrove.transfer.features import ConvFeatures
from margrove.transfer.fine_tuned import LOSSES as TUNING_LOSSES
from margrove.transfer.fine_tuned import SCHEDULES, FineTuned
from margrove.transfer.networks import DEVICES, POOLINGS, PRECISIONS
from margrove.transfer.softmax import SoftmaxClassifier
from margrove.tree.classifier import DecisionTreeClassifier
from margrove.tree.problem import CLASS_CRITERIA, VALUE_CRITERIA
from margrove.tree.regressor import DecisionTreeRegressor
from margrove.tree.stump import DecisionStump


@dataclass(frozen=True)
class Array:
    """One array of a fitted model. Floats are finite, unless it says otherwise."""

    name: str
    shape: str
    dtypes: tuple[str, ...] = ("float64",)
    given: tuple[str, tuple[Any, ...]] | None = None  # only where this parameter has one of these values
    is_optional: bool = False
    may_be_sparse: bool = False
    least: float | None = None  # no entry is smaller
    most: float | None = None  # no entry is larger
    below: str = ""  # every entry is smaller than each of these symbols
    rises_to: str = ""  # starts at 0, never falls, ends at this symbol
    sums_to: str = ""  # the entries add up to this symbol
    has_gaps: bool = False  # NaN where there is nothing to say, and perhaps infinite: `tree_check` knows where

    def applies(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a model with these parameters has this array."""
        return self.given is None or parameters[self.given[0]] in self.given[1]


@dataclass(frozen=True)
class Range:
    """Numbers that a parameter may have, where `predict` or `certify` looks at it."""

    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    types: tuple[type, ...] = (int, float)
    has_zero: bool = True


# A prediction starts as many threads as n_jobs says, and a system that cannot have them may end the process.
_THREADS = Range(-1024, 1024, (int, NoneType), has_zero=False)
_NUMBER = Range()


@dataclass(frozen=True)
class Scalar:
    """One number, word or truth value of a fitted model."""

    type: type
    least: float | None = None  # of a number; None is 0
    most: float = math.inf
    choices: tuple[Any, ...] = ()
    is_optional: bool = False
    is_word: bool = False  # of a text: lower-case letters, digits and underscores, at most 40


# Any engine may have fitted a model, also one that is not here: every engine predicts the same.
ENGINE_NAME = Scalar(str, is_word=True)


@dataclass(frozen=True)
class Learner:
    """An estimator: its constructor, what its parameters may be where that decides a prediction, and what `fit`
    leaves."""

    estimator: type
    arrays: tuple[Array, ...]
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=lambda: {"n_jobs": _THREADS})
    machines: Counting = one_vs_rest
    is_classifier: bool = True
    later: Mapping[str, Any] = field(default_factory=dict)  # parameters that older files lack, and what those mean


MOST_COLUMNS = 2**31 - 1  # the core counts the columns of sparse rows in 32 bits

_WHOLE = ("int64",)
_HALF_WHOLE = ("int32",)  # as scikit-learn's support vector machines have it
_SINGLE_OR_DOUBLE = ("float32", "float64")

_ENDED = {
    "status_": Scalar(Status, choices=tuple(Status)),
    "engine_": ENGINE_NAME,
}
_SOLVE = {"n_iter_": Scalar(int, least=0), **_ENDED}
_PLANE = (Array("coef_", "m d"), Array("intercept_", "m"))

_LAST = ("variant", ("last",))
_WALKED = ("variant", ("averaged", "voted"))
_VOTED = ("variant", ("voted",))
_POINTS = ("kernel", NATIVE_KERNELS)
_GRAM = ("kernel", ("precomputed",))

_SVM_ARRAYS = (
    Array("support_vectors_", "s d", _SINGLE_OR_DOUBLE, given=_POINTS, may_be_sparse=True),
    Array("support_vectors_", "0 0", given=_GRAM),
    Array("dual_coef_", "r s"),
    Array("intercept_", "m"),
    Array("support_", "s", _HALF_WHOLE, given=_POINTS, least=0, below="n"),
    Array("support_", "s", _HALF_WHOLE, given=_GRAM, least=0, below="n d"),  # columns of a Gram matrix, too
    Array("norm_", "m", given=_POINTS, least=0),
    Array("norm_", "m", given=_GRAM, least=0, has_gaps=True),  # not known of a model that was solved elsewhere
    Array("_grades", "n m", ("int8",), least=0, most=HARD),
)
_SVM_SCALARS = {"n_rows_": Scalar(int, least=1), "gamma_": Scalar(float, least=0.0)}
_KERNELS = {"kernel": (*NATIVE_KERNELS, "precomputed")}
_KERNEL_NUMBERS = {"n_jobs": _THREADS, "degree": _NUMBER, "coef0": _NUMBER}
_NOTHING = Range(types=(NoneType,))  # a path in it would be written to by the next fit
_SVM_RANGES = {**_KERNEL_NUMBERS, "tol": Range(least=0), "checkpoint": _NOTHING}
_PRICE = Range(0, math.inf)  # C
_SHARE = Range(0, 1)  # ν


_CALIBRATED = ("probability", (True,))


def _support_vector_classifier(estimator: type, later: Mapping[str, Any], **ranges: Range) -> Learner:
    return Learner(
        estimator,
        (
            *_SVM_ARRAYS,
            Array("n_support_", "K", _HALF_WHOLE, least=0, sums_to="s"),
            Array("class_weight_", "K", least=0),
            Array("n_iter_", "m", _WHOLE, least=0),
            Array("n_kernel_rows_", "m", _WHOLE, is_optional=True, least=0),  # older files lack it
            Array("label_order_", "K", _HALF_WHOLE, is_optional=True, least=0, below="K"),
            Array("probA_", "m", given=_CALIBRATED, most=0),
            Array("probB_", "m", given=_CALIBRATED),
        ),
        {
            **_ENDED,
            **_SVM_SCALARS,
            "loo_bound_": Scalar(float, most=1.0),
            "xi_alpha_bound_": Scalar(float, most=1.0),
            "solver_": Scalar(str, is_optional=True),  # older files lack it
        },
        choices={
            **_KERNELS,
            "decision_function_shape": ("ovr", "ovo"),
            "break_ties": (True, False),
            "probability": (True, False),
        },
        ranges={**_SVM_RANGES, **ranges},
        machines=by_code,
        later={"probability": False, "checkpoint": None, **later},
    )


def _lone_machine(
    estimator: type,
    *more: Array,
    scalars: Mapping[str, Scalar] | None = None,
    later: Mapping[str, Any] | None = None,
    **ranges: Range,
) -> Learner:
    return Learner(
        estimator,
        (*_SVM_ARRAYS, Array("n_support_", "1", _HALF_WHOLE, least=0, sums_to="s"), *more),
        {**_SOLVE, **_SVM_SCALARS, **(scalars or {})},
        choices=_KERNELS,
        ranges={**_SVM_RANGES, **ranges},
        machines=single,
        is_classifier=False,
        later={"checkpoint": None, **(later or {})},
    )


# What the linear machines leave besides their weights. A solve that ended as nonfinite knows no gap.
_PROOF = (
    Array("dual_coef_", "r n", is_optional=True),
    Array("dual_steps_", "r k e", is_optional=True),
    Array("gap_", "m", has_gaps=True),
    Array("primal_", "m", has_gaps=True),
    Array("dual_", "m", has_gaps=True),
)
_LINEAR_SCALARS = {
    **_SOLVE,
    "solver_": Scalar(str),
    "engine_": ENGINE_NAME,
    "n_seen_": Scalar(int, least=1, is_optional=True),
}
_LINEAR_CHOICES = {"fit_intercept": (True, False), "regularize_intercept": (True, False)}
_LINEAR_RANGES = {"n_jobs": _THREADS, "tol": Range(least=0), "C": _PRICE, "intercept_scaling": Range(least=0)}

# The width of the tube may come out a rounding error below 0; of a model that was solved elsewhere it is not known.
_TUBE = Scalar(float, least=-sys.float_info.max, is_optional=True)

LEARNERS: dict[str, Learner] = {
    "BasicLinearClassifier": Learner(BasicLinearClassifier, _PLANE, _SOLVE),
    "LeastSquaresClassifier": Learner(LeastSquaresClassifier, _PLANE, _SOLVE),
    "SoftmaxClassifier": Learner(
        SoftmaxClassifier,
        _PLANE,
        {**_SOLVE, "engine_": Scalar(str, choices=("scikit-learn",))},
        ranges={"C": _PRICE, "tol": Range(least=0)},
    ),
    "Perceptron": Learner(
        Perceptron,
        (
            *_PLANE,
            Array("n_mistakes_", "m", _WHOLE, least=0),
            Array("alpha_", "n m", given=_LAST, is_optional=True, least=0),
            Array("makers_", "v", _WHOLE, given=_WALKED, least=0, below="n"),
            Array("times_", "v", _WHOLE, given=_WALKED, least=1),
            Array("starts_", "m+1", _WHOLE, given=_WALKED, rises_to="v"),
            Array("n_steps_", "m", _WHOLE, given=_WALKED, least=0),
            Array("prototypes_", "v d+1", given=_VOTED),
        ),
        {**_SOLVE, "n_rows_": Scalar(int, least=1), "is_warm_": Scalar(bool)},
        choices={"variant": VARIANTS},
        ranges={"n_jobs": _THREADS, "eta0": _NUMBER},
    ),
    "KernelPerceptron": Learner(
        KernelPerceptron,
        (
            Array("support_vectors_", "s d", _SINGLE_OR_DOUBLE, given=_POINTS, may_be_sparse=True),
            Array("support_vectors_", "0 0", given=_GRAM),
            Array("dual_coef_", "m s"),
            Array("intercept_", "m"),
            Array("support_", "s", _WHOLE, given=_POINTS, least=0, below="n"),
            Array("support_", "s", _WHOLE, given=_GRAM, least=0, below="n d"),  # columns of a Gram matrix, too
            Array("n_mistakes_", "m", _WHOLE, least=0),
            Array("norm_", "m", least=0),
        ),
        {**_SOLVE, "n_rows_": Scalar(int, least=1), "gamma_": Scalar(float, least=0.0)},
        choices=_KERNELS,
        ranges={**_KERNEL_NUMBERS, "eta0": _NUMBER},
    ),
    "SVC": _support_vector_classifier(SVC, {"warm_start": False}, C=_PRICE),
    "NuSVC": _support_vector_classifier(NuSVC, {}, nu=_SHARE),
    "SVR": _lone_machine(SVR, later={"warm_start": False}, C=_PRICE, epsilon=Range(least=0)),
    "LinearSVC": Learner(
        LinearSVC,
        (Array("coef_", "w d", may_be_sparse=True), Array("intercept_", "w"), *_PROOF),
        _LINEAR_SCALARS,
        choices={
            **_LINEAR_CHOICES,
            "penalty": PENALTIES,
            "loss": ("hinge", "squared_hinge"),
            "multi_class": ("ovr", "crammer_singer"),
        },
        ranges=_LINEAR_RANGES,
        machines=linear_machines,
    ),
    "LinearSVR": Learner(
        LinearSVR,
        (Array("coef_", "d"), Array("intercept_", "m"), *_PROOF),
        _LINEAR_SCALARS,
        choices={**_LINEAR_CHOICES, "loss": ("epsilon_insensitive", "squared_epsilon_insensitive")},
        ranges={**_LINEAR_RANGES, "epsilon": Range(least=0)},
        machines=single,
        is_classifier=False,
    ),
    "NuSVR": _lone_machine(NuSVR, C=_PRICE, nu=_SHARE, scalars={"epsilon_": _TUBE}),
    "OneClassSVM": _lone_machine(OneClassSVM, Array("offset_", "m"), nu=_SHARE),
}

# The arrays of one tree, `margrove.tree.model`; how they hang together is for `tree_check`.
TREE_ARRAYS = (
    Array("feature", "t", _HALF_WHOLE, least=-1, below="d"),
    Array("threshold", "t", has_gaps=True),
    Array("child", "c", _HALF_WHOLE),
    Array("child_start", "t+1", _HALF_WHOLE, rises_to="c"),
    Array("level_branch", "l", _HALF_WHOLE, least=-1),
    Array("level_start", "t+1", _WHOLE, rises_to="l"),
    Array("missing_branch", "t", _HALF_WHOLE, least=-1),
    Array("default_branch", "t", _HALF_WHOLE, least=-1),
    Array("n_rows", "t", _WHOLE, least=1),
    Array("weight", "t", least=0),
    Array("impurity", "t"),
    Array("gain", "t", has_gaps=True),
    Array("n_tests", "t", has_gaps=True, least=0),  # infinite for the subsets of a thousand levels and more
    Array("n_candidates", "t", has_gaps=True, least=0),
    Array("value", "t k"),
    # Of subset tests; files of trees without such a column do not have them, nor do the first ones written.
    Array("n_levels", "t", is_optional=True, least=0),
    Array("association", "t", is_optional=True, has_gaps=True, least=0),
    Array("inverse_weight", "t", is_optional=True, least=0),
)
_TREE_SCALARS = {**_ENDED, "ccp_alpha_": Scalar(float, least=0.0)}


def _tree(estimator: type, criteria: tuple[str, ...], *, is_classifier: bool = True) -> Learner:
    return Learner(
        estimator,
        (),
        _TREE_SCALARS,
        choices={"criterion": criteria},
        ranges={"n_jobs": _THREADS, **({"smoothing": Range(least=0)} if is_classifier else {})},
        machines=single,
        is_classifier=is_classifier,
    )


_CLASS_CRITERIA = (*CLASS_CRITERIA, "log_loss")
TREES: dict[str, Learner] = {
    "DecisionTreeClassifier": _tree(DecisionTreeClassifier, _CLASS_CRITERIA),
    "DecisionTreeRegressor": _tree(DecisionTreeRegressor, VALUE_CRITERIA, is_classifier=False),
    "DecisionStump": _tree(DecisionStump, _CLASS_CRITERIA),
}

SELECTOR = ImpuritySelector
SELECTOR_CHOICES: dict[str, tuple[Any, ...]] = {"score_func": tuple(KINDS)}
SELECTOR_ARRAYS = (
    Array("scores_", "d", has_gaps=True),
    Array("p_values_", "d", has_gaps=True, least=0, most=1),
    Array("gains_", "d", has_gaps=True),
    Array("best_thresholds_", "d", has_gaps=True),
    Array("support_", "d", _HALF_WHOLE, least=0, most=1),
)
TRANSFORM_OUTPUTS = (None, "default", "pandas", "polars")  # of scikit-learn's set_output

# The arrays of several trees, `margrove.boost.model.Grove`, and what was seen in each round.
GROVE_ARRAYS = (*TREE_ARRAYS, Array("start", "T+1", _WHOLE, rises_to="t"))
_ROUNDS = (Array("error", "q", least=0, most=1), Array("vote", "q", least=0))
_BOOST_SCALARS = {**_ENDED, "n_rows_": Scalar(int, least=1)}
_BOOST_RANGES = {
    "n_jobs": _THREADS,
    "n_estimators": Range(1, types=(int,)),
    "learning_rate": Range(0, LARGEST_RATE),
}

BOOSTS: dict[str, Learner] = {
    "AdaBoostClassifier": Learner(
        AdaBoostClassifier,
        (
            *_ROUNDS,
            Array("training_error", "q", least=0),
            Array("validation_error", "q", is_optional=True, least=0),
            Array("validation_rows", "h", _WHOLE, is_optional=True, least=0),
        ),
        _BOOST_SCALARS,
        choices={"early_stopping": (True, False), "warm_start": (True, False)},
        ranges={**_BOOST_RANGES, "stop_at_bound": Range(0), "validation_fraction": _SHARE},
        machines=single,
    ),
    "AdaBoostRegressor": Learner(
        AdaBoostRegressor,
        _ROUNDS,
        _BOOST_SCALARS,
        choices={"loss": LOSSES},
        ranges={**_BOOST_RANGES, "learning_rate": Range(0)},
        machines=single,
        is_classifier=False,
    ),
}

_SCHEME_RANGES = {"n_jobs": Range(-(2**31), 2**31, (int, NoneType)), "estimator": _NOTHING}
# Their arrays are those of their machines; see `coded_parts`.
CODED: dict[str, Learner] = {
    "OneVsRestClassifier": Learner(OneVsRestClassifier, (), ranges=_SCHEME_RANGES),
    "OneVsOneClassifier": Learner(OneVsOneClassifier, (), ranges=_SCHEME_RANGES),
    "BitStringClassifier": Learner(BitStringClassifier, (), choices={"decoding": DECODINGS}, ranges=_SCHEME_RANGES),
}

# Pictures: a network is named, never held; see `transfer_parts`.
FEATURES = ConvFeatures
FEATURES_CHOICES: dict[str, tuple[Any, ...]] = {
    "pooling": POOLINGS,
    "device": DEVICES,
    "precision": PRECISIONS,
    "flip": (True, False),
    "named": (True, False),
    "download": (False,),
}
_BATCH = Range(1, 1 << 20, (int,))
FEATURES_RANGES = {"batch_size": _BATCH, "cache": _NOTHING}
TUNED = FineTuned
TUNED_CHOICES: dict[str, tuple[Any, ...]] = {
    "loss": TUNING_LOSSES,
    "schedule": SCHEDULES,
    "device": DEVICES,
    "precision": PRECISIONS,
    "download": (False,),
}
TUNED_RANGES = {"batch_size": _BATCH, "checkpoint": _NOTHING, "n_blocks": Range(0, 1 << 20, (int, NoneType))}
TUNED_SCALARS = {
    "status_": _ENDED["status_"],
    "engine_": Scalar(str, choices=("torch",)),
    "n_iter_": Scalar(int, least=0),
    "training_loss_": Scalar(float, least=0.0),
}

ENCODER = TableEncoder
ENCODER_CHOICES: dict[str, tuple[Any, ...]] = {
    "impute": ("median", "mean", "zero"),
    "unseen": ("warn", "error", "ignore"),
    "sparse_output": (True, False, "auto"),
    "text_features": TEXT_FEATURES,
}
ENCODER_RANGES = {"min_df": Range(1, types=(int,)), "max_features": Range(1, LARGEST_WIDTH, (int,))}
# Files from before there was text.
ENCODER_LATER: dict[str, Any] = {
    "text": None,
    "text_features": "tfidf",
    "min_df": 2,
    "max_features": MOST_WORDS,
}

_OF_NUMBERS: dict[str, type] = {
    "name": str,
    "index": int,
    "kind": str,
    "fill": float,
    "mean": float,
    "scale": float,
    "indicator": bool,
}

# What is said of each column that an encoder keeps; see `margrove.data.encoding` and `margrove.data.text`.
COLUMN_FIELDS: dict[str, dict[str, type]] = {
    "numeric": _OF_NUMBERS,
    "boolean": _OF_NUMBERS,
    "category": {"name": str, "index": int, "kind": str, "levels": list, "missing_seen": bool},
    "text": {
        "name": str,
        "index": int,
        "kind": str,
        "features": str,
        "n_columns": int,
        "words": list,
        "idf": list,
    },
}
DROPPED_FIELDS: dict[str, type] = {"name": str, "index": int, "why": str}
