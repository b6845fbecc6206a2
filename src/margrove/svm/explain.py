"""Explanations of support vector machines: by their weights where the kernel is linear, else by support vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.explanation import Explanation, Inputs, Kernels, Learned, Weights, sides_of_code
from margrove.status import Status
from margrove.svm.kernels import kernel_of
from margrove.svm.layout import code_of, coefficients_of

# Kernels whose matrices are never indefinite.
_SEMIDEFINITE = ("linear", "rbf", "laplacian", "chi2", "intersection")
_GRADES = ("easy", "marginal", "hard")


_NUMBERS = {  # that kernels have, other than γ alone
    "linear": (),
    "intersection": (),
    "precomputed": (),
    "poly": ("gamma", "coef0", "degree"),
    "sigmoid": ("gamma", "coef0"),
}


def kernel_words(model: Any) -> str:
    """The kernel of a model with the numbers that `fit` settled."""
    kernel = kernel_of(model)
    numbers = _NUMBERS.get(kernel.name, ("gamma",))
    return ", ".join([kernel.name, *(f"{name} {getattr(kernel, name):.4g}" for name in numbers)])


def explain_machine(model: Any) -> Explanation:
    """A machine of any of the forms."""
    is_linear = isinstance(model.kernel, str) and model.kernel == "linear"
    return LinearMachine(model) if is_linear else KernelMachine(model)


class _Machine(Explanation):
    @property
    def is_convex(self) -> bool:
        return isinstance(self.model.kernel, str) and self.model.kernel in _SEMIDEFINITE

    @property
    def kernel(self) -> str:
        return kernel_words(self.model)

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        found, model = super().data(inputs), self.model
        if self.classes is None:
            return found
        support = {name: int(count) for name, count in zip(self.classes, model.n_support_, strict=True)}
        loo, xi_alpha = self.loo_bounds or (None, None)
        return replace(found, n_training_rows=model.n_rows_, support=support, loo_bound=loo, xi_alpha_bound=xi_alpha)

    @property
    def loo_bounds(self) -> tuple[float, float] | None:
        # They are of the optimum, and of nothing else.
        if self.classes is None or self.model.status_ is not Status.CONVERGED:
            return None
        return self.model.loo_bound_, self.model.xi_alpha_bound_

    def lead(self, rows: Any, code: int, other: int) -> NDArray[np.float64]:
        machine, sign = self._pair(code, other)
        if machine is None:
            return super().lead(rows, code, other)
        return np.asarray(sign * np.asarray(self.model.machine_decision(rows))[:, machine])

    def grades(self) -> NDArray[np.str_]:
        words = np.asarray(self.model.kkt_)
        if words.ndim == 1:
            return words
        hardest = np.full(len(words), "", dtype=words.dtype)
        for word in _GRADES:
            hardest[(words == word).any(axis=1)] = word
        return hardest

    def _sides(self) -> list[tuple[str, str]]:
        return super()._sides() if self.classes is None else sides_of_code(code_of(self.model), self.classes)

    def _pair(self, code: int, other: int) -> tuple[int | None, int]:
        """The machine, of several, that only tells these two classes apart, and on which of its sides the first is."""
        if self.classes is None or len(self.classes) == 2:
            return None, 1
        matrix = code_of(self.model)
        is_of_two = np.abs(matrix).sum(axis=0) == 2
        alone = np.flatnonzero(is_of_two & (matrix[code] != 0) & (matrix[other] != 0))
        return (int(alone[0]), int(matrix[code, alone[0]])) if len(alone) else (None, 1)


class LinearMachine(_Machine, Weights):
    """A support vector machine with a linear kernel."""

    def weights(self, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
        machine, sign = self._pair(code, other)
        if machine is None:
            return super().weights(code, other)
        return np.asarray(sign * self._coef[machine]), float(sign * np.ravel(self.model.intercept_)[machine])


class KernelMachine(_Machine, Kernels):
    """A support vector machine with another kernel."""

    def _kernel(self, rows: Any, vectors: Any) -> NDArray[np.float64]:
        return kernel_of(self.model).matrix(rows, vectors)

    def _betas(self) -> NDArray[np.float64]:
        return super()._betas() if self.classes is None else coefficients_of(self.model)

    def _machine(self, code: int, other: int) -> tuple[int | None, int]:
        machine, sign = self._pair(code, other)
        return super()._machine(code, other) if machine is None else (machine, sign)
