"""The base class of the five support vector machines: parameters, the model that is kept, its sums Σ β K(x_i, x).

`fit` of each reads the data and poses its duals (`PosedMachines`); `solve_machines` solves them in one call; a `Solved`
is one solution as the model keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Parameter
from margrove.certificate import Certificate, keep_certificate
from margrove.data.sample import read_points
from margrove.engine import Capability, check_engine
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import InputError, ParameterError, check_choice, check_flag, check_number, check_whole, shown
from margrove.estimator import checked, estimator, fitted
from margrove.run.checkpoint import CheckpointLike, settle_checkpoint
from margrove.run.effort import check_time_limit
from margrove.status import Status
from margrove.svm.certificate import certify_duals, solver_certificate
from margrove.svm.decision import check_points, linear_sums, matched, weighted_sums
from margrove.svm.kernels import KernelFunction, Matrix, called, kernel_of
from margrove.svm.kkt import HARD, WORDS, Form, row_grades
from margrove.svm.layout import dense
from margrove.svm.problem import Dual, started
from margrove.svm.solving import Solved, solve_machines
from margrove.svm.training import PosedMachines, TrainingData, bounds, training_data, weighted_rows

PRECISIONS = ("auto", "single", "double")
_KEPT_WEIGHTS = 1 << 24  # numbers of coef_
_FEW_MACHINES, _FEW_CELLS = 16, 1 << 22  # a certificate is recomputed in fit up to these: some milliseconds


def check_nu(name: str, nu: Any) -> None:
    """Raise `ParameterError` unless ν is a share of the rows."""
    if isinstance(nu, bool) or not isinstance(nu, (int, float, np.integer, np.floating)) or not 0 < nu <= 1:
        raise ParameterError(Advice(Parameter(name), f" is {shown(nu)}; it must be a number > 0 and ≤ 1."))


def _check_cache_size(name: str, size: str | float) -> None:
    if isinstance(size, str):
        check_choice(name, size, ("auto",), also="a number of MiB")
    else:
        check_number(name, size, above=0, cure="It is in MiB.")


@estimator
class SupportVectorMachine(RunsOnEngine):
    """Parameters and methods of every support vector machine. Base class."""

    _form: ClassVar[Form]
    _fit_rows: ClassVar[Any] = None  # of the fit, where a callable kernel takes rows that are not numbers

    kernel: str | KernelFunction = "rbf"
    degree: float = 3
    gamma: str | float = "scale"
    coef0: float = 0.0
    shrinking: bool = checked(check_flag, default=True)
    tol: float = checked(check_number, above=0, default=1e-3)
    cache_size: str | float = checked(_check_cache_size, default="auto")
    verbose: int = checked(
        check_whole, least=0, cure="True and False are allowed too.", also=(True, False), default=False
    )
    max_iter: int = checked(check_whole, least=-1, cure="-1 means ten million or more.", default=-1)
    sigma: float | None = None
    time_limit: float | None = checked(check_time_limit, default=None)
    precision: str = checked(check_choice, allowed=PRECISIONS, default="auto")
    checkpoint: CheckpointLike | None = None

    support_: NDArray[np.int32] = fitted()
    support_vectors_: Matrix = fitted()
    intercept_: NDArray[np.float64] = fitted()
    n_support_: NDArray[np.int32] = fitted()
    gamma_: float = fitted()
    n_rows_: int = fitted()
    norm_: NDArray[np.float64] = fitted()
    n_iter_: int | NDArray[np.int64] = fitted()
    certificate_: Certificate = fitted()

    @property
    def dual_coef_(self) -> Any:
        """y α of each support vector; sparse after a fit on sparse rows, as scikit-learn's."""
        return self._as_fitted(self._dual)

    @dual_coef_.setter
    def dual_coef_(self, dual: Any) -> None:
        self.__dict__["dual_coef_"] = dense(dual)  # always dense here, in pickles and in model files

    @property
    def _dual(self) -> NDArray[np.float64]:
        if "dual_coef_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'dual_coef_'")
        dual: NDArray[np.float64] = self.__dict__["dual_coef_"]
        return dual

    @property
    def coef_(self) -> Any:
        """w of each machine, shape (machines, d); sparse after a fit on sparse rows. Only for ``kernel="linear"``."""
        coef = self._as_fitted(self._coef)
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _as_fitted(self, array: NDArray[np.float64]) -> Any:
        """Return the array sparse if the support vectors are."""
        vectors = self.support_vectors_
        return type(vectors)(array) if sp.issparse(vectors) else array

    @property
    def _coef(self) -> NDArray[np.float64]:
        """``coef_``, dense whatever X was."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        dual, support, known = self.__dict__.get("_known_weights", (None, None, None))
        if known is not None and dual is self._dual and support is self.support_vectors_:
            return np.asarray(known)
        return np.asarray(self._weights(), dtype=np.float64)

    @property
    def _dual_coef_(self) -> Any:
        """``dual_coef_`` with LIBSVM's sign for two classes, by the name under which converters read it."""
        return -self.dual_coef_ if len(getattr(self, "classes_", ())) == 2 else self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, dual: Any) -> None:
        self.dual_coef_ = -dual if len(getattr(self, "classes_", ())) == 2 else dual

    @property
    def _gamma(self) -> float:
        """``gamma_``, by the name under which converters read it from scikit-learn's models."""
        return self.gamma_

    @property
    def _n_support(self) -> NDArray[np.int32]:
        """``n_support_``, by the name under which converters read it from scikit-learn's models."""
        return self.n_support_

    @property
    def kkt_(self) -> NDArray[np.str_]:
        """Grade of each training row: "easy" (α = 0), "marginal" (0 < α < C) or "hard" (α = C)."""
        words = np.asarray(WORDS[self._grades])
        return words[:, 0] if words.shape[1] == 1 else words

    @property
    def fit_status_(self) -> int:
        """0 if converged, as scikit-learn has it."""
        return int(self.status_ is not Status.CONVERGED)

    @property
    def shape_fit_(self) -> tuple[int, ...]:
        """The shape of X in ``fit``; (rows,) where they are not numbers."""
        return (self.n_rows_, self.n_features_in_) if self._fit_rows is None else (self.n_rows_,)

    def _weights(self) -> Matrix:
        return self._dual @ self.support_vectors_

    def _check(self) -> None:
        super()._check()
        if self.checkpoint is not None:
            settle_checkpoint(self.checkpoint)
            check_engine(self.engine, Capability.CHECKPOINT)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _warm(self, machines: PosedMachines) -> Sequence[Dual]:
        """Return the duals started from the solution of the last fit."""
        only = machines.duals[0]
        if np.isinf(only.upper).any():  # it is solved without bounds, and α at a bound would start there
            return machines.duals
        return [self._started(only, self._dual[0], 0, machines.data.X.shape[0])]

    def _started(self, dual: Dual, beta: NDArray[np.float64], machine: int, n: int) -> Dual:
        """Return ``dual`` on n rows started from one machine of the last fit; row i is taken for its row i."""
        carried, was_bound = np.zeros(n), np.zeros(n, np.bool_)
        still, common = self.support_ < n, min(n, self.n_rows_)
        carried[self.support_[still]] = beta[still]
        was_bound[:common] = self._grades[:common, machine] == HARD
        return started(dual, carried, was_bound)

    def _keep_machines(self, data: TrainingData, solved: list[Solved], support: NDArray[np.int64]) -> None:
        """Set what all five keep; the caller has set ``dual_coef_`` and ``n_support_``."""
        self.n_rows_ = data.X.shape[0]
        self.__dict__.pop("_fit_rows", None)  # of an earlier fit
        if data.objects is not None:
            self.__dict__["_fit_rows"] = data.objects
        self.support_ = support.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if data.kernel.name == "precomputed" else data.X[support]
        self.intercept_ = np.array([each.b for each in solved])
        self.norm_ = np.array([each.norm for each in solved])
        self.gamma_ = data.kernel.gamma
        grades = [row_grades(each.machine, each.finding.grade, self.n_rows_) for each in solved]
        self._grades = np.stack(grades, axis=1)  # (n, machines)
        self._cache_weights()

    def _pose(self, target: NDArray[Any], weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> Dual:
        """Return the dual of one machine on these rows, from the targets of its rows and the weights of all."""
        return self._form.pose(self, target, self._upper(weight, rows), rows)

    def _upper(self, weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return bounds(self._form.cost(self), weight, rows)

    def _fit_one(
        self, X: Matrix, objects: Any, target: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> Self:
        """Fit a model of one machine, on the rows whose weight is not 0."""
        rows, data = weighted_rows(weight, len(target)), training_data(self, X, objects)
        machines = PosedMachines(data, [self._pose(target[rows], weight, rows)], (self._form.name,))
        solved = solve_machines(self, machines)
        self._keep_one(machines.data, solved)
        self._keep_certificate(machines, solved)
        return self

    def _keep_one(self, data: TrainingData, solved: list[Solved]) -> None:
        """Set what a model of one machine keeps; the β of a row is the sum of its variables'."""
        only = solved[0]
        beta = np.zeros(data.X.shape[0])
        np.add.at(beta, only.machine.dual.point, only.beta)
        support = np.flatnonzero(beta)
        self.dual_coef_ = beta[support][None, :]
        self.n_support_ = np.array([len(support)], np.int32)
        self._keep_machines(data, solved, support)
        self.n_iter_ = only.solution.n_iter

    def _value(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return f(x) of each row by the only machine."""
        return np.asarray(self._sums(self._read_points(X))[:, 0] + self.intercept_[0])

    def _cache_weights(self) -> None:
        """Keep w of a linear machine: predictions of single rows would otherwise compute it each time."""
        self.__dict__.pop("_known_weights", None)
        if self.kernel == "linear" and len(self.intercept_) * self.n_features_in_ <= _KEPT_WEIGHTS:
            self._known_weights = (self._dual, self.support_vectors_, self._coef)

    def _keep_certificate(self, machines: PosedMachines, solved: list[Solved]) -> None:
        """Recompute the certificate from the duals and the points where that is cheap beside the fit; otherwise keep
        the solver's numbers. The checkpoint of a finished fit is removed."""
        data = machines.data
        d = 1 if data.kernel.name == "precomputed" else data.X.shape[1]
        cells = d * sum(len(each.beta) * int(np.count_nonzero(each.beta)) for each in solved)
        if len(solved) <= _FEW_MACHINES and cells <= _FEW_CELLS:
            certificate = certify_duals(self, self._form, data.X, machines.duals, machines.names)
        else:
            found = [each.machine for each in solved], [each.finding for each in solved]
            certificate = solver_certificate(self, data.X.shape[0], *found, self._form)
        keep_certificate(self, certificate)
        if self.checkpoint is not None and self.status_ in (Status.CONVERGED, Status.NONFINITE):
            settle_checkpoint(self.checkpoint).remove()

    def _read_points(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        if int(self.n_support_.sum()) != len(self.support_):
            raise InputError(f"The internal representation of {type(self).__name__} was altered", cure="Fit again.")
        if callable(self.kernel) and self._fit_rows is not None:
            X = called(self.kernel, X, self._fit_rows)
        points = read_points(self, X)
        is_foreign = callable(self.kernel) or self.status_ is Status.IMPORTED  # LIBSVM's files do not tell
        if sp.issparse(points) and not sp.issparse(self.support_vectors_) and not is_foreign:
            problem = f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            raise InputError(problem, cure="Pass X.toarray(), or fit on sparse rows.")
        check_points(kernel_of(self), points)
        return points

    def _sums(self, points: Matrix) -> NDArray[np.float64]:
        """Return Σ β K(x_i, x) for each row of ``dual_coef_``, shape (n, rows)."""
        kernel = kernel_of(self)
        if kernel.name == "precomputed":
            return np.asarray(points[:, self.support_] @ self._dual.T, dtype=np.float64)
        if kernel.name == "linear":
            return linear_sums(points, self._coef)
        return weighted_sums(self, kernel, *matched(points, self.support_vectors_), self._dual)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "intersection")
        return tags
