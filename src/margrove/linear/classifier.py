"""What every linear classifier here can do once it is fitted, and what the perceptrons share before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate, keep_certificate
from margrove.data.sample import Sample, read_points
from margrove.errors import ConvergenceWarning, check_flag, check_number, check_whole, level_of_caller
from margrove.linear.certificate import solver_certificate
from margrove.linear.margins import Margins, margins
from margrove.linear.problem import LinearSolution, one_vs_rest_signs
from margrove.status import Status

Certifier: TypeAlias = Callable[[Any, Any, Any, Any], Certificate]


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """What every linear classifier here can do once it is fitted. Not a learner by itself."""

    classes_: NDArray[Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    status_: Status
    engine_: str
    certificate_: Certificate
    n_iter_: int

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """f(x) of each row: shape (n,) for two classes, (n, classes) for more; the largest wins."""
        check_is_fitted(self)
        points = read_points(self, X)
        decision = np.asarray(points @ self.coef_.T + self.intercept_)
        return decision.ravel() if len(self.classes_) == 2 else decision

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row."""
        decision = self.decision_function(X)
        chosen = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def margins(self, X: ArrayLike, y: ArrayLike) -> Margins:
        """Functional and geometric margins of labelled rows; see `margrove.margins`."""
        return margins(self, X, y)

    def _keep(self, sample: Sample, solution: Any, engine: str) -> None:
        self.classes_ = sample.classes
        self.status_ = solution.status
        self.engine_ = engine
        self.n_iter_ = solution.n_iter

    def _keep_linear(self, sample: Sample, solution: LinearSolution, engine: str) -> None:
        self._keep(sample, solution, engine)
        self.coef_ = solution.coef
        self.intercept_ = solution.intercept

    def _keep_certificate(
        self,
        certify: Certifier,
        given: tuple[Any, Any, Any],
        sample: Sample,
        *,
        is_cheap: bool,
        numbers: Callable[[], dict[str, NDArray[Any]]],
    ) -> None:
        """Recompute from what was ``given`` where that is cheap beside the fit; else the solver's ``numbers`` stand."""
        own = certify(self, *given) if is_cheap else solver_certificate(self, sample.X.shape[0], numbers())
        keep_certificate(self, own)

    def _warn_unless_converged(self, what: str) -> None:
        if self.status_ is not Status.CONVERGED:
            name = type(self).__name__
            message = f"{name} ended with status {str(self.status_)!r}: {what}; {self.status_.advice}."
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def seeds_for(random_state: Any, machines: int) -> tuple[int, ...]:
    """A seed for each machine's order."""
    drawn = check_random_state(random_state).randint(0, 2**31 - 1, size=machines, dtype=np.int64)
    return tuple(int(seed) for seed in drawn)


def signs_of(sample: Sample) -> NDArray[np.int8]:
    """y of each machine, 0 for rows of no weight."""
    sign = one_vs_rest_signs(sample.codes, len(sample.classes))
    if sample.weight is not None:
        sign[:, sample.weight == 0] = 0
    return sign


def check_walk(model: Any) -> None:
    """The parameters of a walk over the rows."""
    check_number("eta0", model.eta0, above=0, cure="Any value gives the same decisions: use 1.")
    check_whole("max_iter", model.max_iter, least=1)
    check_flag("shuffle", model.shuffle)
    check_flag("fit_intercept", model.fit_intercept)
