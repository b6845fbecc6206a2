"""The perceptron in the primal."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from margrove.advice import Advice, Setting, Value
from margrove.certificate import read_only
from margrove.data.sample import Sample, classes_of_pieces, read_piece, read_sample
from margrove.errors import (
    InputError,
    ParameterError,
    check_choice,
    check_flag,
    check_number,
    check_seed,
    check_whole,
    listed,
)
from margrove.estimator import checked, estimator, fitted
from margrove.linear.certificate import certify_perceptron, solver_certificate
from margrove.linear.classifier import MistakeDriven
from margrove.linear.problem import VARIANTS, PerceptronProblem, PerceptronSolution, Variant
from margrove.svm.kernels import Matrix

PENALTIES = ("l2", "l1", "elasticnet")
_PREDICT_CELLS = 1 << 24  # opinions of weight vectors held at once when the voted perceptron predicts


@estimator
class Perceptron(MistakeDriven):
    """The perceptron: visit the rows, correct w at each mistake, stop when a whole pass makes none.

    It ends only if the rows can be separated; otherwise it stops at ``max_iter`` and reports it in ``status_``, in a
    `ConvergenceWarning` and in a certificate that does not hold. For data that may not be separable use
    ``variant="averaged"``. More than two classes are separated one against the rest.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, optional
        Shrinks w at every step, as scikit-learn does; only for ``variant="last"``. See `margrove.linear.reference`. The
        l1 penalty shrinks every w_j at every step, also for sparse rows. `LinearSVC` minimises its penalty exactly.
    alpha : float
        The size of the penalty. 0 is no penalty.
    l1_ratio : float
        ρ, the share of l1 in ``penalty="elasticnet"``.
    eta0 : float
        η, the size of a correction. Without a penalty it scales w from w = 0 and changes no decision.
    fit_intercept : bool
        Homogeneous coordinates: each x gets a constant 1, whose weight is b.
    variant : {"last", "averaged", "voted"}
        Which w predicts: the last one; the average over all steps; or all of them, each with one vote for every step
        it survived (slow to predict, needs memory for every correction). The decision function of "voted" is the share
        of votes for the class minus the share against.
    max_iter : int
        The largest number of passes over the data.
    tol : float, optional
        Stop (status ``stalled``) when the share of mistakes in a pass has not fallen by ``tol`` for
        ``n_iter_no_change`` passes. None, the default, continues up to ``max_iter``.
    n_iter_no_change : int
        See ``tol``.
    shuffle : bool
        Visit the rows in a new random order in each pass.
    class_weight : dict or "balanced", optional
        Multiplies the corrections of each class.
    warm_start : bool
        Start from the w of the last fit.
    time_limit : float, optional
        Seconds after which the solve ends with status ``time_limit`` and the w it has.
    random_state : int, RandomState or None
        The seed of the random order, 0 by default as in scikit-learn.
    n_jobs : int, optional
        Threads; None means all. They share the machines of a multi-class problem; results do not depend on their
        number.
    engine : str or Engine
        The engine that runs it: "auto", "native", "reference", or an `Engine` object.

    Attributes
    ----------
    coef_, intercept_, classes_
        As in scikit-learn.
    alpha_ : array of shape (n, machines)
        For "last": how often each row was corrected, w = η Σ α_i y_i x_i. Absent after ``partial_fit``, which does
        not store its rows, and with a penalty, since w is then no such sum.
    n_mistakes_ : array of shape (machines,)
        The total number of corrections.
    makers_, times_, starts_, n_steps_ : arrays
        For "averaged" and "voted": the row and the step of each correction, those of machine m from ``starts_[m]`` to
        ``starts_[m + 1]``, and the total number of steps of each machine.
    prototypes_, votes_ : arrays
        For "voted": (w, b) after each correction, and the number of steps until the next one.
    status_, engine_, certificate_, n_iter_
        Why the solve ended, the engine that ran, the certificate, the number of passes.

    Notes
    -----
    Ctrl-C during ``fit`` ends this fit with status ``interrupted`` and keeps w; in a clone, which a search fits, it is
    a KeyboardInterrupt (see `margrove.run.effort.on_interrupt`).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import Perceptron
    >>> X, y = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 3.0], [4.0, 3.0]]), np.array([0, 0, 1, 1])
    >>> model = Perceptron(random_state=0).fit(X, y)
    >>> model.status_, model.certificate_.holds
    (<Status.CONVERGED: 'converged'>, True)
    """

    penalty: str | None = checked(check_choice, allowed=PENALTIES, default=None)
    alpha: float = checked(check_number, least=0, default=0.0001)
    l1_ratio: float = checked(check_number, least=0, most=1, default=0.15)
    random_state: int | np.random.RandomState | None = checked(check_seed, default=0)
    variant: Variant = checked(check_choice, allowed=VARIANTS, default="last")
    tol: float | None = checked(
        check_number, least=0, cure=Advice(Value(None), " continues up to max_iter."), default=None
    )
    n_iter_no_change: int = checked(check_whole, least=1, default=5)
    warm_start: bool = checked(check_flag, default=False)

    _certify = certify_perceptron

    alpha_: NDArray[np.float64] = fitted()
    makers_: NDArray[np.int64] = fitted()
    times_ = read_only("times_")
    starts_: NDArray[np.int64] = fitted()
    n_steps_ = read_only("n_steps_")
    prototypes_: NDArray[np.float64] = fitted()
    is_warm_: bool = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Correct mistakes until none is left. Rows of weight 0 are left out."""
        self._check()
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        problem = self._problem(sample, self.max_iter, self._start(sample))
        solution = self._solve(problem)
        self._keep(sample, solution, is_warm=problem.start is not None)
        self._warn_unless_converged(f"{int(solution.last_pass.sum())} mistakes in the last pass")
        n, d = problem.X.shape
        cells, passes = n * (d + 1) * len(problem.sign), 1
        if self.variant != "last":  # each correction is repeated, and each vector votes on every row
            cells += int(solution.mistakes.sum()) * (d + 1 + (n if self.variant == "voted" else 0))
        elif self.time_limit is None:
            passes = solution.n_iter
        numbers = {"mistakes made": solution.mistakes, "mistakes in the last pass": solution.last_pass}
        self._keep_certificate(sample, cells, numbers, passes)
        return self

    @available_if(lambda model: model.variant == "last")  # the others must keep every step
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Make one pass over these rows, starting from the current w; for data that comes in pieces.

        The first call needs ``classes``, the labels of all calls. Only for ``variant="last"``: the others need every
        step.
        """
        self._check()
        is_first = not hasattr(self, "classes_")
        known = classes_of_pieces(classes, None if is_first else self.classes_, least=1)
        sample = read_piece(self, X, y, known, sample_weight, self.class_weight, is_first=is_first)
        start = None if is_first else (self.coef_, self.intercept_)
        solution = self._solve(self._problem(sample, 1, start))
        made_before = 0 if is_first else self.n_mistakes_
        self._keep(sample, solution, is_warm=True)
        self.n_mistakes_ = self.n_mistakes_ + made_before
        self.__dict__.pop("alpha_", None)
        self.certificate_ = solver_certificate(
            self,
            sample.X.shape[0],
            {"mistakes made": self.n_mistakes_, "mistakes in this pass": solution.last_pass},
        )
        return self

    def _decision(self, points: Matrix) -> NDArray[np.float64]:
        if self.variant != "voted":
            return super()._decision(points)
        shares = np.empty((points.shape[0], len(self.starts_) - 1))
        all_votes = self.votes_
        for machine, (start, stop) in enumerate(pairwise(self.starts_)):
            w, votes = self.prototypes_[start:stop], all_votes[start:stop]
            step = max(1, _PREDICT_CELLS // max(1, len(w)))
            for first in range(0, points.shape[0], step):
                rows = slice(first, first + step)
                shares[rows, machine] = np.sign(points[rows] @ w[:, :-1].T + w[:, -1]) @ votes / max(1, votes.sum())
        return shares

    def _check(self) -> None:
        super()._check()
        if self.warm_start and self.variant != "last":
            raise ParameterError(Advice("warm_start needs ", Setting("variant", "last"), f"; it is {self.variant!r}."))
        if self._is_penalised and self.variant != "last":
            raise ParameterError(Advice("penalty needs ", Setting("variant", "last"), f"; it is {self.variant!r}."))

    def _start(self, sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if not np.array_equal(self.classes_, sample.classes):
            raise ParameterError(
                f"warm_start: y has classes {listed(sample.classes)}; the last fit had {listed(self.classes_)}."
            )
        if self.coef_.shape[1] != sample.X.shape[1]:
            raise InputError(
                f"warm_start: X has {sample.X.shape[1]} columns; in the last fit it had {self.coef_.shape[1]}",
                cure="Use warm_start=False, or the same columns.",
            )
        return self.coef_, self.intercept_

    def _problem(
        self, sample: Sample, max_iter: int, start: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    ) -> PerceptronProblem:
        return PerceptronProblem(
            sample.X,
            **self._walk(sample) | {"max_iter": max_iter},
            variant=self.variant,
            tol=self.tol,
            n_iter_no_change=self.n_iter_no_change,
            start=start,
            alpha=float(self.alpha) if self._is_penalised else 0.0,
            l1_ratio={"l1": 1.0, "l2": 0.0}.get(str(self.penalty), float(self.l1_ratio)),
        )

    @property
    def _is_penalised(self) -> bool:
        return self.penalty is not None and self.alpha > 0

    def _keep(self, sample: Sample, solution: PerceptronSolution, *, is_warm: bool) -> None:
        self._keep_linear(sample, solution)
        self.n_mistakes_ = solution.mistakes
        self.n_rows_ = sample.X.shape[0]
        self.is_warm_ = is_warm
        for name in ("alpha_", "makers_", "times_", "starts_", "n_steps_", "prototypes_"):
            self.__dict__.pop(name, None)
        if self.variant == "last":
            if not self._is_penalised:
                self.alpha_ = np.ascontiguousarray(solution.alpha.T)
            return
        self.makers_ = np.concatenate([walk.makers for walk in solution.walks])
        self.times_ = np.concatenate([walk.times for walk in solution.walks])
        self.starts_ = np.cumsum([0, *(len(walk.makers) for walk in solution.walks)])
        self.n_steps_ = np.array([walk.steps for walk in solution.walks], np.int64)
        if self.variant == "voted":
            self.prototypes_ = np.concatenate([walk.prototypes for walk in solution.walks])

    @property
    def votes_(self) -> NDArray[np.int64]:
        """Number of steps of each of ``prototypes_``: until the next correction, or to the end."""
        is_used = np.diff(self.starts_) > 0
        ends = np.roll(self.times_, -1)  # a copy
        ends[self.starts_[1:][is_used] - 1] = self.n_steps_[is_used] + 1
        return np.asarray(ends - self.times_)
