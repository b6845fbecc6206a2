"""The base class of SVC and NuSVC: many classes by several machines, and their joint decision."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, InPython, Setting
from margrove.certificate import read_only
from margrove.data.sample import Sample, class_weights, read_sample, weights_by_row
from margrove.errors import ParameterError, check_choice, check_flag, check_seed, warn_early
from margrove.estimator import checked, estimator, fitted
from margrove.run.effort import Effort
from margrove.run.threads import blas_held_back
from margrove.search.folds import Splits
from margrove.status import Status
from margrove.svm.decision import matched, weighted_sums
from margrove.svm.kernels import NONNEGATIVE, Matrix, kernel_of
from margrove.svm.kkt import MARGINAL, count_support
from margrove.svm.layout import (
    check_code,
    check_multiclass,
    class_slices,
    code_matrix,
    coefficients_of,
    decided,
    joined,
    lies_by_pairs,
    machine_names,
    pairs_of,
    scores_of,
)
from margrove.svm.machine import SupportVectorMachine
from margrove.svm.margins import Margins, margins
from margrove.svm.probability import by_code, coupled, fitted_sigmoid, splits_for, with_law
from margrove.svm.problem import Dual
from margrove.svm.solving import Solved, solve_machines
from margrove.svm.training import PosedMachines, TrainingData, read_rows, rows_of_machines, training_data, weighted_rows

_UNCALIBRATED = "predict_proba is not available when fitted with probability=False. Fit again."
_CALIBRATED_BY = {  # whether a fold is done
    True: " after {} of {}: predict_proba is calibrated on their rows",
    False: " before the first was done: predict_proba knows only the predicted class and the class frequencies",
}
_COEF_CELLS = 1 << 24  # weights of all machines held at once to predict with a linear kernel


def _gives_probabilities(model: SupportVectorClassifier) -> bool:
    if not model._is_calibrated:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


def _deprecated(name: str) -> Any:
    """Return a read-only property that warns that scikit-learn removes the attribute; `_calibration` does not warn."""
    kept = read_only(name)

    def get(model: Any) -> Any:
        check_is_fitted(model)
        words = (
            f"Attribute `{name}` was deprecated in version 1.9 of scikit-learn and will be removed in its version 1.11"
        )
        warnings.warn(f"{words}; use predict_proba.", FutureWarning, stacklevel=2)
        return kept.fget(model) if name in model.__dict__ else np.empty(0)

    return property(get, kept.fset)


@estimator
class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """Base class of the support vector classifiers."""

    class_weight: Mapping[Any, float] | str | None = None
    decision_function_shape: str = checked(check_choice, allowed=("ovo", "ovr"), default="ovr")
    break_ties: bool = checked(check_flag, default=False)
    random_state: int | np.random.RandomState | None = checked(check_seed, default=None)
    multiclass: str | ArrayLike = checked(check_multiclass, default="ovo")
    probability: bool | str = checked(check_flag, also=("deprecated",), default=False)  # scikit-learn's default

    classes_: NDArray[Any] = fitted()
    class_weight_: NDArray[np.float64] = fitted()
    n_iter_: NDArray[np.int64] = fitted()
    n_kernel_rows_: NDArray[np.int64] = fitted()
    solver_: str = fitted()
    loo_bound_: float = fitted()
    xi_alpha_bound_: float = fitted()
    probA_ = _deprecated("probA_")  # noqa: N815 scikit-learn's names
    probB_ = _deprecated("probB_")  # noqa: N815
    # Of a LIBSVM model that was read: its labels in the order it knew them, as places in ``classes_``. It decides ties.
    label_order_: NDArray[np.int32] = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the widest margin of each machine. ``sample_weight`` multiplies the bound of each row.

        Raises
        ------
        InfeasibleError
            With ``C=inf``, if the convex hulls of two sides meet (its ``evidence`` shows where); with a ν that is
            larger than the smaller side of some machine allows, or that leaves no margin.
        """
        self._check()
        sample = self._read(X, y, sample_weight)
        sample_weight = weights_by_row(sample_weight, len(sample.codes))
        machines = self._machines(sample)
        splits = splits_for(sample.codes, sample.classes, self.random_state) if self._is_calibrated else []
        started = time.monotonic()
        solved = solve_machines(self, machines)
        self._keep(sample, machines.data, solved)
        if self._is_calibrated:
            self._keep_probabilities(sample, machines.data, sample_weight, splits, self._effort().left(started))
        self._keep_certificate(machines, solved)
        return self

    def _check(self) -> None:
        super()._check()
        if self.decision_function_shape == "ovo" and not self._is_one_vs_one:
            raise ParameterError(
                Advice(
                    Setting("decision_function_shape", "ovo"),
                    " requires ",
                    Setting("multiclass", "ovo"),
                    "; ",
                    InPython("machine_decision", "`margrove predict --scores`"),
                    " gives the decision value of each machine.",
                )
            )

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        """Read the rows of a fit, the labels and the weights; rows of weight ≤ 0 are ignored, as in scikit-learn."""
        X, objects = read_rows(self, X)
        sample = read_sample(self, X, y, sample_weight, self.class_weight, ignores_negative=True)
        return sample if objects is None else replace(sample, objects=objects)

    def _machines(self, sample: Sample) -> PosedMachines:
        """Return the duals of all machines on the training data."""
        code = code_matrix(self.multiclass, len(sample.classes))
        check_code(code, sample.classes)
        data = training_data(self, sample.X, sample.objects)
        rows = rows_of_machines(code, sample.codes, weighted_rows(sample.weight, len(sample.codes)))
        duals = [self._pose(sign, sample.weight, own) for own, sign in rows]
        names = machine_names(sample.classes, code)
        self._check_duals(duals, names)
        return PosedMachines(data, duals, names)

    @property
    def margin_(self) -> NDArray[np.float64]:
        """2/‖w‖ of each machine: the width of its margin, in the feature space."""
        with np.errstate(divide="ignore"):
            return np.asarray(2 / self.norm_)

    @property
    def _is_calibrated(self) -> bool:
        return bool(self.probability) and self.probability != "deprecated"

    @property
    def _calibration(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """A and B of each machine (``probA_`` and ``probB_``), without their warning; None without probabilities."""
        return (vars(self)["probA_"], vars(self)["probB_"]) if "probA_" in vars(self) else None

    @property
    def _is_one_vs_one(self) -> bool:
        return isinstance(self.multiclass, str) and self.multiclass == "ovo"

    def _warm(self, machines: PosedMachines) -> list[Dual]:
        """Return the duals started from the last fit: machines by their names, rows by their numbers."""
        code, beta = code_matrix(self.multiclass, len(self.classes_)), coefficients_of(self)
        if code.shape != (len(self.classes_), len(beta)):
            raise ParameterError(
                "multiclass was changed since the last fit, so warm_start=True cannot continue from it. Set "
                "warm_start=False for one fit, or clone the model."
            )
        known = {name: k for k, name in enumerate(machine_names(self.classes_, code))}
        warmed = []
        for name, dual in zip(machines.names, machines.duals, strict=True):
            if dual.hulls or name not in known:
                warmed.append(dual)
            else:
                warmed.append(self._started(dual, beta[known[name]], known[name], machines.data.X.shape[0]))
        return warmed

    def _check_duals(self, duals: list[Dual], names: tuple[str, ...]) -> None:
        """Raise `InfeasibleError` if a dual has no solution."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the score of each class: (n,) for two classes (> 0 means ``classes_[1]``), (n, classes) for more.

        One-vs-one: the votes, with the machines' values to break ties; or, with ``decision_function_shape="ovo"``, the
        machines' values themselves. One-vs-rest: the machines' values. A code matrix: minus the hinge losses of each
        class's code word.
        """
        return self._scores(self.machine_decision(X))

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `decision_function` from the machines' values."""
        return scores_of(values, len(self.classes_), self.multiclass, self.decision_function_shape)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row: the most votes (one-vs-one; the first class of a tie), or the highest score."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ParameterError("break_ties must be False when decision_function_shape is 'ovo'")
        return self._decided(self.machine_decision(X))

    def _decided(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return `predict` from the machines' values."""
        order = getattr(self, "label_order_", None)
        shape = self.decision_function_shape
        return np.asarray(
            self.classes_[decided(values, len(self.classes_), self.multiclass, shape, self.break_ties, order)]
        )

    def machine_decision(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return f(x) of every machine, shape (n, machines), in the order of ``intercept_``."""
        points = self._read_points(X)
        return np.asarray(self._machine_sums(points) + self.intercept_)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, shape (n, classes); with ``probability=True``.

        The most probable class is always the one that `predict` returns; see `margrove.svm.probability`.
        """
        check_is_fitted(self)
        if self._calibration is None:
            raise NotFittedError(_UNCALIBRATED)
        values, (a, b) = self.machine_decision(X), self._calibration
        sides = -(values * a + b)
        code = code_matrix(self.multiclass, len(self.classes_))
        p = coupled(expit(sides), len(self.classes_)) if self._lies_by_pairs else by_code(sides, code)
        return with_law(p, np.searchsorted(self.classes_, self._decided(values)))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _keep_probabilities(
        self, sample: Sample, data: TrainingData, sample_weight: ArrayLike | None, splits: Splits, effort: Effort
    ) -> None:
        """Fit A and B of each machine to its values on rows held out: P = 1/(1 + exp(A f + B)), as in LIBSVM."""
        code = code_matrix(self.multiclass, len(sample.classes))
        # Class weights move the boundary and are no statement about how frequent the classes are.
        own = np.ones(len(sample.codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        values = np.full((len(sample.codes), code.shape[1]), np.nan)
        status = self.status_
        if status not in (Status.TIME_LIMIT, Status.INTERRUPTED):  # otherwise there is no time for folds
            try:
                status = self._hold_out(sample, data, sample_weight, splits, effort, values)
            except KeyboardInterrupt:  # between two solves
                if effort.on_interrupt == "raise":
                    raise
                status = Status.INTERRUPTED
        n_done = sum(bool(np.isfinite(values[test]).any()) for _, test in splits)
        if n_done == 0:
            values[:] = 0  # nothing is known of f: the slope becomes 0, and P the frequency of the side
        if status is not Status.CONVERGED:
            self.status_ = status
            where = "" if n_done == len(splits) else _CALIBRATED_BY[n_done > 0].format(n_done, len(splits))
            warn_early("the folds of probability=True", status, where)
        sigmoids = []
        for column, f in zip(code.T, values.T, strict=True):
            side = column[sample.codes]
            rows = np.flatnonzero((side != 0) & (own > 0) & np.isfinite(f))
            sigmoids.append(fitted_sigmoid(f[rows], side[rows] > 0, own[rows]))
        self.probA_, self.probB_ = -np.array(sigmoids).T

    @abstractmethod
    def _hold_out(
        self,
        sample: Sample,
        data: TrainingData,
        sample_weight: ArrayLike | None,
        splits: Splits,
        effort: Effort,
        values: NDArray[np.float64],
    ) -> Status:
        """Set ``values``, shape (n, machines), to f of each machine on each row, fitted without the row's fold. Rows of
        folds that did not end in time stay as they are."""

    def margins(self, X: ArrayLike, y: ArrayLike) -> Margins:
        """Return functional and geometric margins of labelled rows; see `margrove.margins`."""
        return margins(self, X, y)

    def _machine_sums(self, points: Matrix) -> NDArray[np.float64]:
        """Return Σ β K of every machine. Of the pair (i, j) only the support vectors of i and j count, so the sums are
        computed class by class, for all pairs of the class at once."""
        kernel = kernel_of(self)
        is_wide = len(self.intercept_) * self.n_features_in_ > _COEF_CELLS
        if not self._lies_by_pairs or (kernel.name == "linear" and not is_wide):
            return self._sums(points)
        parts = []
        is_given = kernel.name == "precomputed"
        points, support = (points, None) if is_given else matched(points, self.support_vectors_)
        with blas_held_back():  # once for all classes
            for rows in class_slices(self.n_support_):
                beta = self._dual[:, rows]
                if support is None:
                    parts.append(points[:, self.support_[rows]] @ beta.T)
                else:
                    parts.append(weighted_sums(self, kernel, points, support[rows], beta))
        return joined(parts)

    @property
    def _lies_by_pairs(self) -> bool:
        return lies_by_pairs(self.multiclass, len(self.classes_))

    def _weights(self) -> Matrix:
        if not self._lies_by_pairs:
            return super()._weights()
        parts = [(self._dual[:, rows] @ self.support_vectors_[rows]).T for rows in class_slices(self.n_support_)]
        return joined(parts).T

    def _keep(self, sample: Sample, data: TrainingData, solved: list[Solved]) -> None:
        for name in ("probA_", "probB_", "label_order_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.classes_ = sample.classes
        self.class_weight_ = class_weights(self.class_weight, sample.classes, sample.codes)
        is_support = np.zeros(len(sample.codes), np.bool_)
        for each in solved:
            is_support[each.machine.dual.point[each.machine.alpha != 0]] = True
        support = np.flatnonzero(is_support)
        support = support[np.argsort(sample.codes[support], kind="stable")]
        self.n_support_ = np.bincount(sample.codes[support], minlength=len(sample.classes)).astype(np.int32)
        self.dual_coef_ = self._laid_out(sample.codes, support, solved)
        self._keep_machines(data, solved, support)
        self.n_iter_ = np.array([each.solution.n_iter for each in solved], np.int64)
        self.n_kernel_rows_ = np.array([each.solution.n_kernel_rows for each in solved], np.int64)
        self.solver_ = ", ".join(dict.fromkeys(each.solution.solver for each in solved))
        n_support, n = count_support([each.machine for each in solved])
        self.loo_bound_, self.xi_alpha_bound_ = n_support / n, _xi_alpha(data, solved) / n

    def _keep_certificate(self, machines: PosedMachines, solved: list[Solved]) -> None:
        super()._keep_certificate(machines, solved)
        if self.status_ is not Status.CONVERGED:  # the bounds are those of a solution
            self.loo_bound_ = self.xi_alpha_bound_ = 1.0

    def _laid_out(
        self, codes: NDArray[np.int32], support: NDArray[np.int64], solved: list[Solved]
    ) -> NDArray[np.float64]:
        """Return ``dual_coef_``; see `margrove.svm.layout`."""
        place = np.full(len(codes), -1)
        place[support] = np.arange(len(support))
        k, by_pairs = len(self.classes_), self._lies_by_pairs
        dual = np.zeros((k - 1 if by_pairs else len(solved), len(support)))
        pairs = list(pairs_of(k))
        for number, each in enumerate(solved):
            beta = each.beta
            nonzero = np.flatnonzero(beta)
            rows = each.machine.dual.point[nonzero]
            line: int | NDArray[np.intp] = number
            if by_pairs:
                i, j = pairs[number]
                line = np.where(codes[rows] == i, j - 1, i)
            dual[line, place[rows]] = beta[nonzero]
        return dual


def _xi_alpha(data: TrainingData, solved: list[Solved]) -> int:
    """Return the number of rows with 2 α_i R² + ξ_i ≥ 1 in any machine: the ξα-estimate (Joachims 2000).

    R² bounds K(x, x) − K(x, z): max K(x, x) for kernels that are never below 0, twice that for the others. The theorem
    is for a stable solution, one with a marginal row; of a machine without any, all support vectors are counted.
    """
    radius = float(data.diagonal.max()) * (1 if data.kernel.name in NONNEGATIVE else 2)
    risky = np.zeros(data.X.shape[0], np.bool_)
    for each in solved:
        machine = each.machine
        with np.errstate(over="ignore", invalid="ignore"):
            estimate = abs(machine.scale) * (2 * machine.alpha * radius + each.finding.slack)
        is_stable = bool((each.finding.grade == MARGINAL).any())
        risky[machine.dual.point[(machine.alpha > 0) & ((estimate >= 1) | (not is_stable))]] = True
    return int(risky.sum())
