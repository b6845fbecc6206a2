"""Explanations of kernel machines: by their weights where the kernel is linear, else by support vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.explanation import Explanation, Inputs, MachineSummary, ModelSummary, Support, Weights, sides_of_code
from margrove.status import Status
from margrove.svm.kernels import kernel_of
from margrove.svm.layout import code_of, coefficients_of, dense

_SEMIDEFINITE = ("linear", "rbf", "laplacian", "chi2", "intersection")  # their matrices are never indefinite
_GRADES = ("easy", "marginal", "hard")
_PARAMETERS = {  # of kernels with others than γ alone
    "linear": (),
    "intersection": (),
    "precomputed": (),
    "poly": ("gamma", "coef0", "degree"),
    "sigmoid": ("gamma", "coef0"),
}


def explain_machine(model: Any) -> Explanation:
    """Explain a support vector machine of any form."""
    is_linear = isinstance(model.kernel, str) and model.kernel == "linear"
    return LinearKernelMachine(model) if is_linear else KernelMachine(model)


class Kernels(Explanation):
    """The explanation of a kernel machine, f(x) = Σ β K(x, support vector) + b."""

    _boundary = "A curved boundary"

    @property
    def kernel(self) -> str:
        kernel = kernel_of(self.model)
        names = _PARAMETERS.get(kernel.name, ("gamma",))
        return ", ".join([kernel.name, *(f"{name} {getattr(kernel, name):.4g}" for name in names)])

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        machines = [
            MachineSummary(*side, n_rows_positive=int((beta > 0).sum()), n_rows_negative=int((beta < 0).sum()))
            for side, beta in zip(self._sides(), self._betas(), strict=True)
        ]
        return ModelSummary("rows", tuple(machines), len(self.model.support_), self.model.n_rows_)

    def description(self) -> str:
        of_all = f" of {self.model.n_rows_:,}" if self.model.n_rows_ else ""
        shape = "A curve" if self.task == "numbers" else self._boundary
        kept = f"the {len(self.model.support_):,}{of_all} training rows that it keeps"
        return f"{shape}: it compares each row with {kept} ({self.called})."

    def support(self, row: Any, code: int, other: int) -> Support | None:
        machine, sign = self._machine(code, other)
        if callable(self.model.kernel) or self.model.kernel == "precomputed" or machine is None:
            return None
        vectors = self.model.support_vectors_
        kernel = np.asarray(kernel_of(self.model).matrix(row, vectors), np.float64).ravel()
        return Support(np.asarray(self.model.support_), vectors, kernel, sign * self._betas()[machine] * kernel)

    def _betas(self) -> NDArray[np.float64]:
        """Return β of each machine."""
        return dense(self.model.dual_coef_)

    def _machine(self, code: int, other: int) -> tuple[int | None, int]:
        """Return the machine that scores the class, and the sign of the class in it."""
        n_machines = len(self._betas())
        if n_machines == 1:
            return 0, 1 if self.classes is None or code == 1 else -1
        return (code, 1) if n_machines == len(self.model.classes_) else (None, 1)


class _SupportVectors(Explanation):
    """The common part of the explanations of support vector machines, linear or not."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.is_convex = isinstance(model.kernel, str) and model.kernel in _SEMIDEFINITE

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        found, model = super().data(inputs), self.model
        if self.classes is None:
            return found
        support = {name: int(count) for name, count in zip(self.classes, model.n_support_, strict=True)}
        loo, xi_alpha = self.loo_bounds or (None, None)
        return replace(found, n_training_rows=model.n_rows_, support=support, loo_bound=loo, xi_alpha_bound=xi_alpha)

    @property
    def loo_bounds(self) -> tuple[float, float] | None:
        # They hold at the optimum only.
        if self.classes is None or self.model.status_ is not Status.CONVERGED:
            return None
        return self.model.loo_bound_, self.model.xi_alpha_bound_

    def lead(self, rows: Any, code: int, other: int) -> NDArray[np.float64]:
        machine, sign = self._pair(code, other)
        if machine is None:
            return super().lead(rows, code, other)
        return np.asarray(sign * np.asarray(self.model.machine_decision(rows))[:, machine])

    def grades(self) -> NDArray[np.str_]:
        grades = np.asarray(self.model.kkt_)
        if grades.ndim == 1:
            return grades
        hardest = np.full(len(grades), "", dtype=grades.dtype)
        for grade in _GRADES:
            hardest[(grades == grade).any(axis=1)] = grade
        return hardest

    def _sides(self) -> list[tuple[str, str]]:
        return super()._sides() if self.classes is None else sides_of_code(code_of(self.model), self.classes)

    def _pair(self, code: int, other: int) -> tuple[int | None, int]:
        """Return the machine, of several, between these two classes alone, and the sign of the first in it."""
        if self.classes is None or len(self.classes) == 2:
            return None, 1
        matrix = code_of(self.model)
        is_of_two = np.abs(matrix).sum(axis=0) == 2
        alone = np.flatnonzero(is_of_two & (matrix[code] != 0) & (matrix[other] != 0))
        return (int(alone[0]), int(matrix[code, alone[0]])) if len(alone) else (None, 1)


class LinearKernelMachine(_SupportVectors, Weights):
    """The explanation of a support vector machine with a linear kernel."""

    kernel = "linear"

    def weights(self, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
        machine, sign = self._pair(code, other)
        if machine is None:
            return super().weights(code, other)
        return np.asarray(sign * self._coef[machine]), float(sign * np.ravel(self.model.intercept_)[machine])


class KernelMachine(_SupportVectors, Kernels):
    """The explanation of a support vector machine with another kernel."""

    _boundary = "A curved boundary with the widest possible margin"

    def _betas(self) -> NDArray[np.float64]:
        return super()._betas() if self.classes is None else coefficients_of(self.model)

    def _machine(self, code: int, other: int) -> tuple[int | None, int]:
        machine, sign = self._pair(code, other)
        return super()._machine(code, other) if machine is None else (machine, sign)
