"""The problems of the linear learners, as data: points, signs, weights. No solver lives here.

Given n points x_i and labels in K classes. Two classes make one *machine* (the second class is +1); K > 2 make K
machines, one class against the rest. Machine m decides by f_m(x) = w_m·x + b_m.

basic linear    w = mean of the positive rows − mean of the negative rows, boundary halfway between them
least squares   min over w, b of  Σ s_i (w·x_i + b − y_i)²; of many solutions the shortest, in units of the columns
perceptron      find w, b with y_i (w·x_i + b) > 0 for every i; with a penalty, w shrinks at every step
dual perceptron find α ≥ 0 with y_i f(x_i) > 0,  f(x) = η Σ α_j s_j y_j (K(x_j, x) + 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import RowsProblem
from margrove.status import Status
from margrove.svm.kernels import Kernel

Variant = Literal["last", "averaged", "voted"]
VARIANTS: tuple[Variant, ...] = ("last", "averaged", "voted")
S = TypeVar("S")

ROUNDING_OF_A_MEAN = 1e-13  # a column that differs less than this from its mean, relative to it, is constant


def column_sizes(centred: NDArray[np.float64], mean: NDArray[np.float64], mass: float) -> NDArray[np.float64]:
    """Return the norm of each centred column; ∞ for one that is constant but for rounding: its weight is 0."""
    largest = np.abs(centred).max(axis=0, initial=0)
    largest[largest == 0] = 1.0
    norm = largest * np.linalg.norm(centred / largest, axis=0)
    return np.where(norm <= ROUNDING_OF_A_MEAN * np.abs(mean) * np.sqrt(mass), np.inf, norm)


def normalised(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights divided by a power of two near the largest. Weighted means do not change, and products with
    tiny weights do not underflow."""
    return np.asarray(np.ldexp(weight, -np.frexp(weight.max())[1]))


def machine_names(classes: NDArray[Any]) -> tuple[str, ...]:
    """Return the names of the machines: the classes that each one separates."""
    if len(classes) == 2:
        return (f"{classes[1]} vs {classes[0]}",)
    return tuple(f"{label} vs rest" for label in classes)


@dataclass(frozen=True)
class CentroidProblem(RowsProblem["LinearSolution"]):
    """The difference of the class means."""

    codes: NDArray[np.int32]  # (n,), classes numbered from 0
    n_classes: int
    weight: NDArray[np.float64] | None = None  # (n,)


@dataclass(frozen=True)
class LeastSquaresProblem(RowsProblem["LinearSolution"]):
    """Least squares on the signs."""

    sign: NDArray[np.int8]  # (machines, n)
    weight: NDArray[np.float64] | None = None  # (n,)
    fit_intercept: bool = True


@dataclass(frozen=True)
class WalkProblem(RowsProblem[S]):
    """A separating function, found by visiting the rows and correcting mistakes. Base class of both perceptrons'."""

    sign: NDArray[np.int8]  # (machines, n); 0 leaves a row out
    weight: NDArray[np.float64] | None = None  # (n,), the size of a row's corrections
    eta: float = 1.0
    fit_intercept: bool = True
    shuffle: bool = True
    max_iter: int = 1000
    seeds: tuple[int, ...] = (0,)  # one per machine


@dataclass(frozen=True)
class PerceptronProblem(WalkProblem["PerceptronSolution"]):
    """A separating w. With a penalty (variant "last" only) w shrinks at every step: by the factor 1 − η α (1 − ρ), and
    towards 0 by η α ρ."""

    variant: Variant = "last"
    tol: float | None = None  # stop when the mistakes of a pass have not fallen by tol · n ...
    n_iter_no_change: int = 5  # ... for so many passes
    start: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None  # w (machines, d), b (machines,)
    alpha: float = 0.0  # 0 is no penalty
    l1_ratio: float = 0.15  # ρ

    @property
    def is_penalised(self) -> bool:
        """True if w shrinks."""
        return self.alpha > 0


@dataclass(frozen=True)
class KernelPerceptronProblem(WalkProblem["KernelPerceptronSolution"]):
    """The perceptron through a Gram matrix, which X is itself for kernel "precomputed"."""

    kernel: Kernel = field(kw_only=True)
    cache_bytes: int = 1 << 30


@dataclass(frozen=True)
class LinearSolution:
    """w and b of each machine, and why the solve ended."""

    coef: NDArray[np.float64]  # (machines, d)
    intercept: NDArray[np.float64]  # (machines,)
    status: Status = Status.CONVERGED
    n_iter: int = 1


@dataclass(frozen=True)
class Walk:
    """All corrections of one machine of the averaged or the voted perceptron, in order, so that they can be made
    again. The averaged vector is Σ step_m x_m (T − t_m + 1)/T over the corrections m, T being the steps in all;
    the vector after correction m has a vote for each of the t_{m+1} − t_m steps it lived."""

    makers: NDArray[np.int64]  # (k,), the row that was corrected
    times: NDArray[np.int64]  # (k,), at which step, from 1
    steps: int  # T
    prototypes: NDArray[np.float64]  # (k, d + 1), (w, b) after each correction; voted only


@dataclass(frozen=True)
class PerceptronSolution(LinearSolution):
    """A linear solution with α: w = η Σ α_i s_i y_i x_i. With a penalty w is no such sum, and there is no α."""

    alpha: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  # (machines, n)
    mistakes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # (machines,)
    last_pass: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # mistakes of the last pass
    walks: tuple[Walk, ...] = ()  # averaged and voted


@dataclass(frozen=True)
class KernelPerceptronSolution:
    """α of each machine."""

    alpha: NDArray[np.float64]  # (machines, n)
    decision: NDArray[np.float64]  # (machines, n), f(x_i) as the solver left it
    mistakes: NDArray[np.int64]  # (machines,)
    status: Status
    n_iter: int
