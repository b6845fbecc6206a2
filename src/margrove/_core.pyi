"""Margrove's native core."""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


def set_blas(sgemm: CapsuleType, dgemm: CapsuleType) -> None: ...

class KernelKind(enum.Enum):
    linear = 0

    rbf = 1

    poly = 2

    sigmoid = 3

    laplacian = 4

    chi2 = 5

    intersection = 6

class KernelSpec:
    def __init__(self, kind: KernelKind, *, gamma: float, coef0: float, degree: float) -> None: ...

class Points:
    @property
    def n(self) -> int: ...

    @property
    def d(self) -> int: ...

@overload
def dense_points(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Points: ...

@overload
def dense_points(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Points: ...

@overload
def csr_points(data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int) -> Points: ...

@overload
def csr_points(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int) -> Points: ...

def class_sums(points: Points, *, label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int, threads: int) -> NDArray[numpy.float64]: ...

def kernel_decision(points: Points, support: Points, dual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, kernel: KernelSpec, threads: int) -> NDArray[numpy.float64]: ...

class Walk:
    def __init__(self, *, sign: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seeds: Sequence[int], eta: float, fit_intercept: bool, shuffle: bool) -> None: ...

class WalkStanding:
    @property
    def separated(self) -> bool: ...

    @property
    def stalled(self) -> bool: ...

    @property
    def passes(self) -> int: ...

    @property
    def mistakes(self) -> int: ...

    @property
    def pass_mistakes(self) -> int: ...

class PerceptronState:
    @property
    def w(self) -> NDArray[numpy.float64]: ...

    @property
    def b(self) -> float: ...

    @property
    def alpha(self) -> NDArray[numpy.float64]: ...

    @property
    def steps(self) -> int: ...

    @property
    def lag_w(self) -> NDArray[numpy.float64]: ...

    @property
    def lag_b(self) -> float: ...

    @property
    def prototypes(self) -> NDArray[numpy.float64]: ...

    @property
    def times(self) -> NDArray[numpy.int64]: ...

    @property
    def makers(self) -> NDArray[numpy.int64]: ...

class Variant(enum.Enum):
    last = 0

    averaged = 1

    voted = 2

class Perceptron:
    def __init__(self, points: Points, walk: Walk, *, variant: Variant, patience: int, tolerance: float, kept_bytes: int) -> None: ...

    def run(self, max_passes: int, seconds: float, threads: int) -> None: ...

    def start_from(self, machine: int, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float) -> None: ...

    def standing(self, machine: int) -> WalkStanding: ...

    def out_of_room(self, machine: int) -> bool: ...

    def state(self, machine: int) -> PerceptronState: ...

class PenalisedPerceptron:
    def __init__(self, points: Points, walk: Walk, *, alpha: float, l1_ratio: float, patience: int, tolerance: float) -> None: ...

    def run(self, max_passes: int, seconds: float, threads: int) -> None: ...

    def start_from(self, machine: int, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float) -> None: ...

    def standing(self, machine: int) -> WalkStanding: ...

    def state(self, machine: int) -> PerceptronState: ...

class KernelPerceptron32:
    def run(self, max_passes: int, seconds: float) -> int: ...

    def supply(self, i: int, row: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def standing(self, machine: int) -> WalkStanding: ...

    def alpha(self, machine: int) -> NDArray[numpy.float64]: ...

    def decision(self, machine: int) -> NDArray[numpy.float64]: ...

class KernelPerceptron64:
    def run(self, max_passes: int, seconds: float) -> int: ...

    def supply(self, i: int, row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def standing(self, machine: int) -> WalkStanding: ...

    def alpha(self, machine: int) -> NDArray[numpy.float64]: ...

    def decision(self, machine: int) -> NDArray[numpy.float64]: ...

def kernel_perceptron_on_points(points: Points, walk: Walk, *, kernel: KernelSpec, cache_bytes: int, threads: int) -> KernelPerceptron32 | KernelPerceptron64: ...

@overload
def kernel_perceptron_on_gram(gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], walk: Walk) -> KernelPerceptron32 | KernelPerceptron64: ...

@overload
def kernel_perceptron_on_gram(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], walk: Walk) -> KernelPerceptron32 | KernelPerceptron64: ...

def kernel_perceptron_on_supply(n: int, walk: Walk, *, cache_bytes: int) -> KernelPerceptron64: ...

class LeaveOneOutFloat:
    def run(self, seconds: float) -> bool: ...

    @property
    def done(self) -> int: ...

    def support(self) -> NDArray[numpy.int64]: ...

    def values(self) -> NDArray[numpy.float64]: ...

    def is_converged(self) -> NDArray[numpy.uint8]: ...

@overload
def leave_one_out_on_gram(gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, max_steps: int, threads: int) -> LeaveOneOutFloat | LeaveOneOutDouble: ...

@overload
def leave_one_out_on_gram(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, max_steps: int, threads: int) -> LeaveOneOutFloat | LeaveOneOutDouble: ...

class LeaveOneOutDouble:
    def run(self, seconds: float) -> bool: ...

    @property
    def done(self) -> int: ...

    def support(self) -> NDArray[numpy.int64]: ...

    def values(self) -> NDArray[numpy.float64]: ...

    def is_converged(self) -> NDArray[numpy.uint8]: ...

def gram_matrix_float(points: Points, kernel: KernelSpec, threads: int) -> NDArray[numpy.float32]: ...

def gram_matrix_double(points: Points, kernel: KernelSpec, threads: int) -> NDArray[numpy.float64]: ...

class UnitState:
    @property
    def values(self) -> NDArray[numpy.float64]: ...

    @property
    def violation(self) -> NDArray[numpy.float64]: ...

    @property
    def seconds(self) -> NDArray[numpy.float64]: ...

    @property
    def support(self) -> NDArray[numpy.int64]: ...

    @property
    def is_converged(self) -> NDArray[numpy.bool_]: ...

class Search:
    def add_machine(self, *, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_fold(self, *, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], held_out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_unit(self, *, kernel: int, fold: int, shift: float, C: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, seconds: float) -> bool: ...

    @property
    def solved(self) -> int: ...

    def take(self, unit: int) -> UnitState | None: ...

TILE: int = 4096

def search_on_points(points: Points, *, kernels: Sequence[KernelSpec], by_products: bool, is_double: bool, tol: float, working_set: int, threads: int, max_steps: int) -> Search: ...

@overload
def search_on_gram(gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, tol: float, working_set: int, threads: int, max_steps: int) -> Search: ...

@overload
def search_on_gram(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, tol: float, working_set: int, threads: int, max_steps: int) -> Search: ...

MOST_OF_THEM: float = 0.7

class Precision(enum.Enum):
    auto = 0

    single = 1

    double = 2

class DualEnding(enum.Enum):
    running = 0

    converged = 1

    imprecise = 2

class DualState:
    @property
    def alpha(self) -> NDArray[numpy.float64]: ...

    @property
    def v(self) -> NDArray[numpy.float64]: ...

    @property
    def is_v_known(self) -> bool: ...

    @property
    def violation(self) -> float: ...

    @property
    def objective(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def rows_computed(self) -> int: ...

    @property
    def ending(self) -> DualEnding: ...

class Duals:
    def add(self, *, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], point: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], by_sign: bool, hulls: bool, uppers: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, max_steps: int, seconds: float) -> bool: ...

    @property
    def ended(self) -> int: ...

    @property
    def violation(self) -> float: ...

    def steps_ended(self, machine: int) -> int: ...

    def alpha(self, machine: int) -> NDArray[numpy.float64]: ...

    def state(self, machine: int, step: int = 0) -> DualState: ...

def duals_on_points(points: Points, *, kernel: KernelSpec, precision: Precision, tol: float, hulls_meet: float, cache_bytes: int, working_set: int, threads: int, shrinking: bool) -> Duals: ...

@overload
def duals_on_gram(gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, tol: float, hulls_meet: float, cache_bytes: int, working_set: int, threads: int, shrinking: bool) -> Duals: ...

@overload
def duals_on_gram(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, tol: float, hulls_meet: float, cache_bytes: int, working_set: int, threads: int, shrinking: bool) -> Duals: ...

LEAST_WEIGHT: float = 1e-100

EQUAL_VOTES: float = 1e-12

class BoostEnd(enum.Enum):
    none = 0

    all_rounds = 1

    perfect = 2

    chance = 3

    bound = 4

class Booster:
    def __init__(self, columns: list[Column | NumberColumns | SparseColumns], *, n: int, label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], growth: Growth, sorted: SortedColumns | None, n_rounds: int, learning_rate: float, stop_at_bound: float, threads: int) -> None: ...

    def repeat_round(self, judged: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, seconds: float, rounds: int) -> bool: ...

    def take(self) -> dict[str, NDArray]: ...

    def end(self) -> BoostEnd: ...

    def rounds_done(self) -> int: ...

def set_symmetric_blas(gemm: CapsuleType, syrk: CapsuleType, potrf: CapsuleType, potrs: CapsuleType) -> None: ...

class LinearMethod(enum.Enum):
    newton = 0

    conjugate_gradients = 1

    descent = 2

    row_newton = 3

class LinearEnding(enum.Enum):
    going = 0

    converged = 1

    most_steps = 2

    stalled = 3

    nonfinite = 4

class LinearState:
    @property
    def w(self) -> NDArray[numpy.float64]: ...

    @property
    def beta(self) -> NDArray[numpy.float64]: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def ending(self) -> LinearEnding: ...

    @property
    def b(self) -> float: ...

class PathState(LinearState):
    @property
    def method(self) -> LinearMethod: ...

    @property
    def is_implied(self) -> bool: ...

class LinearSet:
    def __init__(self, points: Points, *, method: LinearMethod, otherwise: LinearMethod, patience: int, tol: float, most_steps: int, seed: int, keeps_beta: bool, violation: float, threads: int) -> None: ...

    def add(self, *, target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], is_of_signs: bool, is_squared: bool, epsilon: float, has_intercept: bool, rho: float, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float, beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factors: Sequence[float]) -> None: ...

    def run(self, seconds: float) -> bool: ...

    def path(self, machine: int) -> list[PathState]: ...

    @property
    def ended(self) -> int: ...

    @property
    def gap(self) -> float: ...

EQUAL_GAIN: float = 1e-12

LEAST_LEVEL: float = 2.220446049250313e-16

VARIANCE_FLOOR: float = 1e-09

RIDGE: float = 0.001

NUDGE: float = 1e-09

class Test(enum.Enum):
    threshold = 0

    intervals = 1

    multiway = 2

    subset = 3

    one_vs_rest = 4

class Column:
    def __init__(self, *, test: Test, monotone: int, cells: Annotated[NDArray, dict(shape=(None,), device='cpu', writable=False)], n_codes: int, cuts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

class NumberColumns:
    def __init__(self, cells: Annotated[NDArray, dict(shape=(None, None), device='cpu', writable=False)]) -> None: ...

class SparseColumns:
    def __init__(self, *, cells: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Criterion(enum.Enum):
    gini = 0

    entropy = 1

    error = 2

    squared_error = 3

    gaussian_entropy = 4

    absolute_error = 5

    poisson = 6

class SplitScore(enum.Enum):
    gain = 0

    gain_ratio = 1

    skew_adjusted = 2

class Thresholds(enum.Enum):
    every = 0

    gaussian = 1

    logistic = 2

    random = 3

class Growth:
    def __init__(self, *, criterion: Criterion, split_score: SplitScore, thresholds: Thresholds, variance_floor: float, max_depth: int | None, min_samples_split: int, min_samples_leaf: int, min_weight_leaf: float, max_leaf_nodes: int | None, max_features: int | None, min_impurity_decrease: float, min_gain: float, majority: float, complexity: float, n_bins: int, seed: int | None) -> None: ...

class SortedColumns:
    def __init__(self, columns: list[Column | NumberColumns | SparseColumns], *, n: int, n_bins: int, may_leave_out: bool, threads: int) -> None: ...

    def run(self, seconds: float) -> bool: ...

class TreeGrower:
    def __init__(self, columns: list[Column | NumberColumns | SparseColumns], *, n: int, label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, number: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], outputs: Sequence[int], growth: Growth, sorted: SortedColumns | None, threads: int) -> None: ...

    def run(self, seconds: float) -> bool: ...

    def rows_settled(self) -> int: ...

    def take(self) -> dict[str, NDArray]: ...

def best_column_tests(columns: list[Column | NumberColumns | SparseColumns], *, n: int, label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], criterion: Criterion, thresholds: Thresholds, n_bins: int, threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64]]: ...

class Trees:
    def __init__(self, *, feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], child_start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], child: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], level_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], level_branch: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_branch: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], default_branch: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_trees: int) -> None: ...

def apply_tree_to_rows(tree: Trees, points: Points, *, threads: int) -> NDArray[numpy.int32]: ...

def apply_tree_to_columns(tree: Trees, columns: list[Column | NumberColumns | SparseColumns], *, n: int, threads: int) -> NDArray[numpy.int32]: ...

def sum_up_numbers(tree: Trees, *, leaf: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], number: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: float) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]: ...

def votes_of_rows(trees: Trees, points: Points, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], vote: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, threads: int) -> NDArray[numpy.float64]: ...

def votes_of_columns(trees: Trees, columns: list[Column | NumberColumns | SparseColumns], *, n: int, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], vote: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, threads: int) -> NDArray[numpy.float64]: ...

class ForestTrees:
    def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_branch: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

def forest_sums(trees: ForestTrees, points: Points, *, value: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, threads: int) -> NDArray[numpy.float64]: ...

def forest_leaves(trees: ForestTrees, points: Points, *, threads: int) -> NDArray[numpy.int32]: ...

class ForestGrower:
    def __init__(self, cells: NumberColumns, *, n: int, label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_classes: int, number: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], growth: Growth, n_trees: int, first: int, seed: int, n_drawn: int, min_weight_share: float = 0.0, threads: int) -> None: ...

    def run(self, seconds: float) -> bool: ...

    def trees_done(self) -> int: ...

    def take(self) -> dict[str, NDArray]: ...

class Loss(enum.Enum):
    hinge = 0

    squared_hinge = 1

    epsilon_insensitive = 2

    squared_epsilon_insensitive = 3

class LinearProgress:
    @property
    def ending(self) -> LinearEnding: ...

    @property
    def steps(self) -> int: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

class JointState:
    @property
    def w(self) -> NDArray[numpy.float64]: ...

    @property
    def beta(self) -> NDArray[numpy.float64]: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def ending(self) -> LinearEnding: ...

    @property
    def b(self) -> NDArray[numpy.float64]: ...

class L1Svm:
    def __init__(self, points: Points, *, loss: Loss, intercept: float, epsilon: float, tol: float, max_steps: int) -> None: ...

    def add(self, *, target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, seconds: float, threads: int) -> bool: ...

    def standing(self, machine: int) -> LinearProgress: ...

    def finish(self, machine: int) -> LinearState: ...

class CrammerSinger:
    def __init__(self, points: Points, *, codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int, constant: float, tol: float, max_passes: int, seed: int) -> None: ...

    def run(self, seconds: float, threads: int) -> bool: ...

    def standing(self) -> LinearProgress: ...

    def finish(self, threads: int) -> JointState: ...
