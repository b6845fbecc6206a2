"""The base classes of the linear classifiers and of the perceptrons."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate, keep_certificate
from margrove.data.sample import Sample, one_vs_rest_signs, read_points, read_sample
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import check_flag, check_number, check_seed, check_whole, warn_early
from margrove.estimator import checked, estimator, fitted
from margrove.linear.certificate import solver_certificate
from margrove.linear.problem import LinearSolution
from margrove.problem import Problem
from margrove.run.effort import check_time_limit
from margrove.status import Status
from margrove.svm.kernels import Matrix
from margrove.svm.margins import Margins, margins

# A recomputation takes about as long as ten passes of a solver. Small tables always get it; large ones where it costs
# less than a tenth of the fit: by counting, so that the choice is always the same.
_SMALL_CELLS = 1 << 19
_CHEAP_BESIDE_PASSES = 100


@estimator
class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Predictions, margins and warnings of a linear classifier. Base class."""

    classes_: NDArray[Any] = fitted()
    coef_: NDArray[np.float64] = fitted()
    intercept_: NDArray[np.float64] = fitted()
    status_: Status = fitted()
    engine_: str = fitted()
    certificate_: Certificate = fitted()
    n_iter_: int = fitted()

    _certify: ClassVar[Callable[..., Certificate]]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return f(x) of each row: shape (n,) for two classes, (n, classes) for more; the largest wins."""
        check_is_fitted(self)
        decision = self._decision(read_points(self, X))
        return decision.ravel() if len(self.classes_) == 2 else decision

    def _decision(self, points: Matrix) -> NDArray[np.float64]:
        """Return f(x) of each machine, shape (n, machines)."""
        return np.asarray(points @ self.coef_.T + self.intercept_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        decision = self.decision_function(X)
        chosen = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def margins(self, X: ArrayLike, y: ArrayLike) -> Margins:
        """Return functional and geometric margins of labelled rows; see `margrove.margins`."""
        return margins(self, X, y)

    def _keep_linear(self, sample: Sample, solution: LinearSolution) -> None:
        self.classes_, self.status_, self.n_iter_ = sample.classes, solution.status, solution.n_iter
        self.coef_, self.intercept_ = solution.coef, solution.intercept

    def _keep_certificate(self, sample: Sample, cells: int, numbers: dict[str, NDArray[Any]], passes: int = 1) -> None:
        """Recompute the certificate if that is cheap for so many cells; otherwise keep the solver's numbers."""
        is_cheap = cells <= _SMALL_CELLS or passes >= _CHEAP_BESIDE_PASSES
        own = self._certify(sample) if is_cheap else solver_certificate(self, sample.X.shape[0], numbers)
        keep_certificate(self, own)

    def _warn_unless_converged(self, what: str) -> None:
        if self.status_ is not Status.CONVERGED:
            warn_early(type(self).__name__, self.status_, f": {what}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@estimator
class ClosedForm(RunsOnEngine, LinearClassifier):
    """A linear classifier whose weights are computed at once, without passes over the rows. Base class."""

    _failure: ClassVar[str]  # words of a warning

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute w and b of each machine, and their certificate."""
        self._check()
        sample = read_sample(self, X, y, sample_weight, getattr(self, "class_weight", None))
        self._keep_linear(sample, self._solve(self._problem(sample)))
        self._warn_unless_converged(self._failure)
        n, d = sample.X.shape
        with np.errstate(over="ignore"):
            norm = np.linalg.norm(self.coef_, axis=1)
        self._keep_certificate(sample, n * d, {"‖w‖": norm})
        return self

    @abstractmethod
    def _problem(self, sample: Sample) -> Problem[LinearSolution]: ...


@estimator
class MistakeDriven(RunsOnEngine, LinearClassifier):
    """Parameters of a classifier that visits the rows one by one and learns from its mistakes. Base class."""

    eta0: float = checked(
        check_number,
        above=0,
        cure="Use 1 if unsure: without a penalty all values give the same decisions.",
        default=1.0,
    )
    fit_intercept: bool = checked(check_flag, default=True)
    max_iter: int = checked(check_whole, least=1, default=1000)
    shuffle: bool = checked(check_flag, default=True)
    class_weight: Mapping[Any, float] | str | None = None
    time_limit: float | None = checked(check_time_limit, default=None)
    random_state: int | np.random.RandomState | None = checked(check_seed, default=None)
    n_mistakes_: NDArray[np.int64] = fitted()
    n_rows_: int = fitted()

    def _walk(self, sample: Sample) -> dict[str, Any]:
        """Return what the problems of both perceptrons have in common. Rows of zero weight get the sign 0."""
        sign = one_vs_rest_signs(sample.codes, len(sample.classes))
        if sample.weight is not None:
            sign[:, sample.weight == 0] = 0
        return {
            "sign": sign,
            "weight": sample.weight,
            "eta": float(self.eta0),
            "fit_intercept": bool(self.fit_intercept),
            "shuffle": bool(self.shuffle),
            "max_iter": self.max_iter,
            "seeds": seeds_for(self.random_state, len(sign)),
        }


def seeds_for(random_state: int | np.random.RandomState | None, machines: int) -> tuple[int, ...]:
    """Return a seed for the order in which each machine visits the rows."""
    drawn = check_random_state(random_state).randint(0, 2**31 - 1, size=machines, dtype=np.int64)
    return tuple(int(seed) for seed in drawn)
