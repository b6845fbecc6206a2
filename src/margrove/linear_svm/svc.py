"""Linear support vector classification."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.data.partitions import Partitions
from margrove.data.sample import (
    Sample,
    check_class_weights,
    check_classes,
    class_weights,
    classes_of_pieces,
    merged,
    one_vs_rest_signs,
    read_piece,
    read_sample,
    settle_weights,
)
from margrove.errors import ParameterError, check_choice
from margrove.estimator import checked, estimator
from margrove.linear.problem import machine_names
from margrove.linear_svm.chunks import ChunkedSample, read_chunked_sample
from margrove.linear_svm.layout import costs_of_classes, is_joint, scale_of_intercept
from margrove.linear_svm.machine import carried
from margrove.linear_svm.partitions import read_partitioned_sample
from margrove.linear_svm.problem import (
    PENALTIES,
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearProblem,
    Loss,
    Penalty,
)
from margrove.linear_svm.streaming import Streaming, learns_pieces
from margrove.svm.margins import Margins, margins


@estimator
class LinearSVC(ClassifierMixin, Streaming):
    """Linear support vector classification with w explicit: for many rows, or many sparse columns.

    A drop-in replacement for scikit-learn's ``LinearSVC``, with the same parameters and attributes and a certificate.
    Its solver stops on the duality gap.

    Parameters
    ----------
    penalty : {"l2", "l1"}
        ½‖w‖², or ‖w‖₁, which leaves columns out; unlike in scikit-learn with either loss.
    loss : {"squared_hinge", "hinge"}
        max(0, 1 − y f(x))², or max(0, 1 − y f(x)), the loss of `SVC`.
    dual : "auto" or bool
        True is ``solver="descent"``; False is one that works on the primal, for penalty l1 or the squared hinge.
    tol : float
        The *relative duality gap* at which a machine has converged: its objective is then at most this share above the
        least there is. (scikit-learn's is a bound on a gradient.)
    C : float
        The cost of a loss: min R(w) + C Σ ℓ. C times any weight must be at most 1e100.
    multi_class : {"ovr", "crammer_singer"}
        More than two classes: a machine for each against the rest; or one for all, which has its own loss and penalty,
        and ignores ``loss``, ``penalty``, ``dual`` and ``solver``.
    fit_intercept : bool
        Whether there is a b in f(x) = w·x + b.
    intercept_scaling : float
        s: the intercept is the weight of a constant column of this value, and so is penalised as b/s with the other
        weights. The larger, the freer.
    class_weight : dict or "balanced", optional
        Multiplies C by class. As in LIBLINEAR a machine for one class against the rest multiplies only the C of its own
        class. "balanced" counts rows by their ``sample_weight``.
    verbose : int or bool
        Print the problem, which solver was taken, and the gap at the end.
    random_state : int or RandomState, optional
        Of the order of coordinates; None is 0.
    max_iter : int
        Steps of Newton's method, or passes over the rows, of each machine at most.
    regularize_intercept : bool
        False leaves b out of the penalty, as `SVC` has it: s = ∞, and the same machine wherever the origin lies.
    solver : {"auto", "newton", "row_newton", "conjugate_gradients", "descent"}
        For penalty l2: Newton's method with a d × d matrix, or with one of the rows that bend (up to 3,000 of them), or
        by conjugate gradients; or descent on the dual. "auto" chooses by shape and loss, and ``solver_`` is what was
        taken.
    warm_start : bool
        As in `SVC`.
    time_limit : float, optional
        Seconds after which the solve ends with status ``time_limit`` and the best model it has, with its gap.
    n_jobs : int, optional
        Threads; None means all.
    engine : str or Engine
        Where it runs: "auto", "native", "reference", "dask", or an `Engine` object.

    Attributes
    ----------
    coef_ : array of shape (1, d) for two classes, (K, d) for more
    intercept_ : array of shape (1,) or (K,)
        Zeros without an intercept.
    classes_, n_features_in_, n_iter_
        As in scikit-learn.
    gap_, primal_, dual_ : arrays of shape (machines,)
        The relative duality gap, (P − D)/P, and the two values; see `margrove.linear_svm.problem`.
    dual_coef_ : array of shape (machines, n)
        y α of each row, for the hinge and for Crammer and Singer's machine, whose gap cannot be proved without. The
        squared hinge keeps none: w implies it.
    solver_ : str
        Which solver it was.
    status_, engine_, certificate_
        Why the solve ended, what ran, what it claims.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import LinearSVC
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> model = LinearSVC().fit(X, y)
    >>> model.predict([[-0.5], [0.5]])
    array([0, 1])
    >>> model.certificate_.holds
    True
    """

    penalty: Penalty = checked(check_choice, allowed=PENALTIES, default="l2", kw_only=False)
    loss: Loss = checked(check_choice, allowed=("hinge", "squared_hinge"), default="squared_hinge", kw_only=False)
    multi_class: str = checked(check_choice, allowed=("ovr", "crammer_singer"), default="ovr")
    intercept_scaling: float = 1
    class_weight: Mapping[Any, float] | str | None = None

    def fit_stream(self, chunks: Any, classes: ArrayLike | None = None, *, max_passes: int = 100) -> Self:
        """Find w and b of rows that come in chunks, and need not fit into memory: the same problem as `fit`.

        Parameters
        ----------
        chunks : re-iterable of (X, y), (X, y, sample_weight) or Table; or a pair of arrays (X, y)
            A list, `read_chunks`, a function that returns a new iterator, or a pair of memory-mapped arrays; no
            generator, because every pass reads the same rows again.
        classes : array, optional
            All labels that may occur; None takes those in the chunks.
        max_passes : int
            Walks over the chunks at most, after the first; ``max_iter`` has no meaning here.

        Returns
        -------
        self
            Ends on a relative duality gap ≤ ``tol``, on ``max_passes``, ``time_limit`` or Ctrl-C, with the best model
            of all whole passes and its gap. Penalty l2, one machine per class. Of the hinge ``dual_steps_`` or
            ``dual_coef_`` are kept as far as memory allows, for ``certify(model, chunks)``.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import LinearSVC
        >>> chunks = [([[0.0], [1.0]], [0, 0]), ([[3.0], [4.0]], [1, 1])]
        >>> model = LinearSVC(loss="hinge", C=10.0).fit_stream(chunks)
        >>> model.predict([[0.5], [3.5]]).tolist(), bool(model.gap_[0] <= model.tol)
        ([0, 1], True)
        """
        return self._fit_chunks(partial(read_chunked_sample, self, chunks, classes, is_first=True), max_passes)

    def _read_partitions(self, parts: Partitions) -> ChunkedSample:
        return read_partitioned_sample(self, parts, is_first=True)

    @available_if(learns_pieces)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a piece of the rows, and forget them: one step of block minimisation.

        w becomes the least of ½‖w − w_before‖² + C Σ ℓ over the piece. Each piece adds to the dual value: ``dual_`` is
        at any time a lower bound of the objective on all ``n_seen_`` rows. ``gap_`` and ``primal_`` are unknown without
        a pass over all of them, and NaN; ``status_`` is that of the last piece. With the squared hinge
        ``certify(model, chunks)`` over all rows seen computes the gap, with the hinge it cannot; `fit_stream` does.

        The first call of a new model needs ``classes``, all that will ever come. After ``fit`` or `fit_stream` it goes
        on from their w, and begins to count: ``n_seen_`` and ``dual_`` are then of the pieces alone, and the objective
        counts w from where the fit had left it, ½‖w − w_fit‖².

        For penalty l2, one machine per class, and an intercept that is penalised or none; otherwise it is not there.
        """
        self._check()
        is_first = not hasattr(self, "coef_")
        known = self._known_classes(classes, is_first=is_first)
        balanced = self.class_weight if isinstance(self.class_weight, str) else None
        sample = read_piece(self, X, y, known, sample_weight, balanced, is_first=is_first)
        own = np.ones(len(sample.codes)) if sample.weight is None else sample.weight
        costs = np.array(costs_of_classes(self, known, sample.codes, own))
        solutions = self._solve_piece(merged(sample.X), signs_of(sample), costs)
        self.classes_ = known
        self._keep_piece(solutions, len(own))
        return self

    def _known_classes(self, classes: ArrayLike | None, *, is_first: bool) -> NDArray[Any]:
        """Return all classes that the pieces may hold, checked against those of earlier ones and ``class_weight``."""
        known = classes_of_pieces(classes, None if is_first else self.classes_)
        check_class_weights(self.class_weight, known)
        if isinstance(self.class_weight, Mapping):
            check_classes(known, class_weights(self.class_weight, known, np.arange(len(known)), np.ones(len(known))))
        return known

    def decision_function(self, X: ArrayLike) -> Any:
        """Return f(x) of each row: shape (n,) for two classes (> 0 means ``classes_[1]``), (n, classes) for more."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            tail = () if len(self.classes_) == 2 else (len(self.classes_),)
            return predicted_lazily(self, "decision_function", X, np.float64, *tail)
        values = self._machine_values(X)
        return values.ravel() if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each row."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, self.classes_.dtype)
        decision = self.decision_function(X)
        chosen = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def margins(self, X: ArrayLike, y: ArrayLike) -> Margins:
        """Functional and geometric margins of labelled rows; see `margrove.margins`."""
        return margins(self, X, y)

    def densify(self) -> Self:
        """Make ``coef_`` a dense array, which it is after ``fit``."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Self:
        """Make ``coef_`` a sparse matrix: of use after penalty l1, if more than half of the weights are 0."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def _check(self) -> None:
        super()._check()
        if is_joint(self) and math.isinf(scale_of_intercept(self)):
            raise ParameterError(
                "regularize_intercept is False, but multi_class='crammer_singer' needs a penalised intercept. Raise "
                "intercept_scaling, or use multi_class='ovr'."
            )
        if not is_joint(self):
            self._settled_solver(1)

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[LinearProblem, dict[str, Any]]:
        """Pose one machine against the rest for each class, or Crammer and Singer's for all."""
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        labels = {"classes_": sample.classes}
        costs = costs_of_classes(self, sample.classes, sample.codes, own_weights(sample, sample_weight))
        if is_joint(self):
            return self._joint_problem(sample, costs[0]), labels
        problem = self._stated(sample.X, list(signs_of(sample)), costs)
        return self._warmed(problem, machine_names(sample.classes)), labels

    def _joint_problem(self, sample: Sample, cost: NDArray[np.float64]) -> CrammerSingerProblem:
        beta = None
        if self.warm_start and self._left_by_class and np.array_equal(self.classes_, sample.classes):
            beta = np.array([carried(row, len(cost)) for row in self.dual_coef_]).T.copy()
        return CrammerSingerProblem(
            sample.X,
            sample.codes,
            len(sample.classes),
            cost,
            intercept=scale_of_intercept(self),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            seed=self._seed,
            beta=beta,
        )

    @property
    def _left_by_class(self) -> bool:
        """True if the last fit left dual coefficients of each class."""
        return hasattr(self, "dual_coef_") and len(self.dual_coef_) == len(self.classes_)

    def _left_machines(self) -> dict[str, int]:
        # Crammer and Singer's machine for two classes is not that of one class against the other.
        return {} if len(self.classes_) == 2 and self._left_by_class else super()._left_machines()

    @property
    def _names(self) -> tuple[str, ...]:
        return ("all classes",) if is_joint(self) else machine_names(self.classes_)

    def _keep(self, solution: Any) -> None:
        if not isinstance(solution, CrammerSingerSolution):
            super()._keep(solution)
            return
        self._forget_rows()
        self.coef_, self.intercept_ = solution.w, solution.b
        if len(self.classes_) == 2:  # as scikit-learn has it; the best pair has w_0 = −w_1, so nothing is lost
            self.coef_, self.intercept_ = solution.w[1:] - solution.w[:1], solution.b[1:] - solution.b[:1]
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self._keep_values((solution,))


def signs_of(sample: Sample) -> NDArray[np.float64]:
    """Return the targets of each machine, shape (machines, n)."""
    return one_vs_rest_signs(sample.codes, len(sample.classes)).astype(np.float64)


def own_weights(sample: Sample, sample_weight: ArrayLike | None) -> NDArray[np.float64]:
    """Return ``sample_weight`` alone, without the weights of classes."""
    own = settle_weights(sample.X, sample.codes, sample_weight, None)
    # For millions of rows even a number per row counts: all ones are one number.
    return np.broadcast_to(np.ones(1), len(sample.codes)) if own is None else own
