"""Support vector classification: with C, and with ν."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from margrove.data.sample import Sample
from margrove.engine import solve
from margrove.errors import InfeasibleError, MargroveWarning, ParameterError, check_flag, check_number
from margrove.estimator import checked, estimator
from margrove.run.effort import on_interrupt
from margrove.search.folds import Splits
from margrove.status import Status, worst
from margrove.svm.classifier import SupportVectorClassifier
from margrove.svm.folds import folds_of, machines_of, posed_search, search_order
from margrove.svm.kkt import CLASSIFICATION, NU_CLASSIFICATION
from margrove.svm.layout import code_matrix
from margrove.svm.leave_one_out import LeaveOneOut, leave_one_out
from margrove.svm.machine import check_nu
from margrove.svm.path import SupportVectorPath, fit_path
from margrove.svm.problem import Dual, largest_nu
from margrove.svm.search_problem import SearchUnit, UnitSolution
from margrove.svm.training import TrainingData

_ROUNDING = 1e-12  # of ν against the largest feasible one
_FINITE = 1e6  # what stands for C = inf where folds are fitted for probabilities: theirs may not be separable


@estimator
class SVC(SupportVectorClassifier):
    """Support vector classification: the widest margin, at a cost C for each row that lies inside it.

    A drop-in for scikit-learn's ``SVC``: the same parameters and attributes, and a certificate.

    Parameters
    ----------
    C : float
        The cost of slack: min ½‖w‖² + C Σ ξ_i. ``inf`` allows none: the hard margin, or an `InfeasibleError` that
        shows where the classes meet. A number is 1e100 at most, times its weights too.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable
        See `margrove.svm.kernels`. For "precomputed" X is the Gram matrix; a callable gets two arrays of rows and
        returns the matrix of kernel values (all of it is held during ``fit``).
    degree, coef0 : float
        p and r of (γ x·z + r)^p; r of tanh(γ x·z + r).
    gamma : {"scale", "auto", "median"} or float
        γ: "scale" is 1 / (d · variance of X), "auto" is 1/d, "median" is 1 / (2 · median squared distance).
    shrinking : bool
        Set rows aside that seem settled. It changes the time, not the solution.
    tol : float
        The largest violation of the KKT conditions that counts as converged.
    cache_size : "auto" or float
        MiB for kernel rows; "auto" is half of the free memory, at most 4096. With the data itself and one float32 copy
        of it, that bounds the memory of a fit.
    class_weight : dict or "balanced", optional
        Multiplies C for each class.
    verbose : bool
        Print the problem, the bound on memory, and how the solve ended.
    max_iter : int
        Pair steps of each machine at most; −1 for ten million, or a hundred times the variables if that is more.
    decision_function_shape : {"ovr", "ovo"}
        One-vs-one: whether `decision_function` gives a score per class or the value of each pair.
    break_ties : bool
        One-vs-one with "ovr": break ties of votes by the machines' values, at some cost.
    random_state : int or RandomState, optional
        Of the folds of ``probability=True``, the only thing here that is random; None is 0.
    sigma : float, optional
        For "rbf": γ = 1/(2σ²). Excludes ``gamma``.
    multiclass : {"ovo", "ovr"} or array of shape (classes, machines)
        More than two classes: a machine for each pair; for each class against the rest; or for each column of a matrix
        of +1, −1 and 0, where the class whose code word has the smallest hinge loss wins.
    time_limit : float, optional
        Seconds after which the solve ends with status ``time_limit`` and the best feasible model it has.
    n_jobs : int, optional
        Threads; None means all.
    engine : str or Engine
        Where it runs: "auto", "native", "reference", or an `Engine` object.
    precision : {"auto", "single", "double"}
        Of kernel values in the solver: "auto" is single while double agrees.
    probability : bool
        Whether `predict_proba` is there: the machines are fitted five times more, without a fifth of the rows each,
        and their values on those are calibrated. ``predict`` is not changed, and always returns the most probable
        class. ``time_limit`` is for the fit, and once more for the folds.
    warm_start : bool
        ``fit`` starts from the last solution: after C, weights or labels have changed, or rows were added at the end.
        Row i is taken for the row i of the last fit. A hard margin starts again.
    checkpoint : str, path or `Checkpoint`, optional
        A file where ``fit`` keeps α every 30 seconds, or at the interval of a `Checkpoint`. A later ``fit`` of the same
        data continues from it, with other limits, threads or ``tol`` if you like. It is removed when the fit has
        converged. The folds of ``probability=True``, `path` and `leave_one_out` keep none.

    Attributes
    ----------
    support_, support_vectors_, n_support_
        Rows with α > 0, class by class, as in scikit-learn.
    dual_coef_ : array
        y α of each support vector: scikit-learn's (classes − 1, s) for one-vs-one, (machines, s) otherwise.
    intercept_ : array of shape (machines,)
    coef_ : array of shape (machines, d)
        For ``kernel="linear"``. Dense, as ``dual_coef_``, where scikit-learn's are CSR after a sparse fit: w has few
        zeros, and needs no ``toarray()``.
    classes_, class_weight_, fit_status_, shape_fit_, n_features_in_, n_rows_
        As in scikit-learn; ``fit_status_`` is 0 if converged.
    n_iter_ : array of shape (machines,)
        Pair steps.
    n_kernel_rows_ : array of shape (machines,)
        Kernel rows that the native engine computed for each machine, without those that another machine had left.
    solver_ : str
        "smo", steps of pairs; or "newton": with ``kernel="linear"``, many rows and few columns, w itself is sought, and
        ``n_iter_`` counts Newton's steps.
    probA_, probB_ : arrays of shape (machines,)
        With ``probability=True``: P = 1/(1 + exp(A f + B)) for a machine's value f.
    gamma_ : float
    kkt_ : array of shape (n,), or (n, machines) for several machines
        "easy" (α = 0), "marginal" (0 < α < C) or "hard" (α = C); empty where a row is ignored.
    norm_, margin_ : arrays of shape (machines,)
        ‖w‖ and 2/‖w‖, the width of the margin, in the feature space.
    loo_bound_ : float
        Rows that are support vectors of any machine, over n: the leave-one-out error is at most this, γ and C fixed.
    xi_alpha_bound_ : float
        The sharper ξα-estimate: only rows with 2 α R² + ξ ≥ 1 are counted, where R² is the largest K(x, x), or twice
        that for kernels that may be negative.
    status_, engine_, certificate_
        Why the solve ended, what ran, what it claims.

    Notes
    -----
    Ctrl-C during ``fit`` ends this fit with status ``interrupted`` and keeps the model; in a clone, which a search
    fits, it is a KeyboardInterrupt (see `margrove.run.effort.on_interrupt`). Rows with weight 0 are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVC
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> model.predict([[-0.5], [0.5]])
    array([0, 1])
    >>> model.kkt_.tolist()
    ['easy', 'marginal', 'marginal', 'easy']
    >>> model.certificate_.holds
    True
    """

    _form = CLASSIFICATION

    C: float = checked(check_number, above=0, cure="inf is the hard margin.", also=(math.inf,), default=1.0)
    warm_start: bool = checked(check_flag, default=False)

    def _upper(self, weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(rows), np.inf) if self._is_hard else super()._upper(weight, rows)

    @property
    def _is_hard(self) -> bool:
        return isinstance(self.C, float | np.floating) and math.isinf(self.C) and self.C > 0

    def path(
        self, X: ArrayLike, y: ArrayLike, Cs: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SupportVectorPath:
        """Fit the models along C, each certified: every one begins where the last one ended.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : list of float, optional
            Ascending or not, above 0 and at most 1e100; None is 0.01 … 1000 in 20 steps.

        Returns
        -------
        SupportVectorPath
            ``Cs`` ascending, and ``models``: an `SVC` for each, as `fit` would leave it. After Ctrl-C or
            ``time_limit`` only those that were reached, the last of them perhaps stopped early.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import SVC
        >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
        >>> path = SVC(kernel="linear").path(X, y, [0.1, 1, 10])
        >>> [len(model.support_) for model in path.models]
        [4, 2, 2]
        """
        return fit_path(self, X, y, Cs, sample_weight)

    def _held_out_values(
        self, sample: Sample, data: TrainingData, sample_weight: ArrayLike | None, splits: Splits
    ) -> NDArray[np.float64]:
        order, splits = search_order(sample, splits)
        code = code_matrix(self.multiclass, len(sample.classes))
        folds = folds_of(sample, self.class_weight, sample_weight, splits, order)
        values = np.full((len(sample.codes), code.shape[1]), np.nan)

        def take(number: int, solution: UnitSolution) -> None:
            values[splits[number][1]] = solution.values[0].T

        C = np.array([_FINITE if self._is_hard else float(self.C)])
        problem = posed_search(self, data, order, machines_of(code, sample.codes[order]), folds)
        problem = replace(problem, units=tuple(SearchUnit(0, number, C) for number in range(len(folds))), take=take)
        self._note_folds(solve(problem, self.engine, self._effort()))
        return values

    def leave_one_out(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LeaveOneOut:
        """Return the exact prediction of each row by the model fitted without it, beside ``loo_bound_``.

        Only support vectors need a solve, and each begins from this model. X, y and weights are those of ``fit``. γ and
        the C_i of the other rows stay as they are, those of ``class_weight="balanced"`` too.

        Examples
        --------
        >>> from margrove import SVC
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SVC(gamma=0.1).fit(X, y)
        >>> found = model.leave_one_out(X, y)
        >>> found.error <= found.bound
        True
        """
        check_is_fitted(self)
        if self._is_hard:
            raise ParameterError("C is inf; leave_one_out needs a finite C.")
        return leave_one_out(self, X, y, sample_weight)


@estimator
class NuSVC(SupportVectorClassifier):
    """Support vector classification with ν: C is not given but follows from ν, which bounds the share of
    margin errors from above and the share of support vectors from below.

    A drop-in for scikit-learn's ``NuSVC``; unlike there, ``class_weight`` has an effect.

    Parameters
    ----------
    nu : float
        ν, above 0 and at most 1. With unbalanced classes not every ν is feasible: a larger one than they allow raises
        an `InfeasibleError` that names the largest.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter
        As in `SVC`. Weights are the bounds C_i themselves; ``tol`` is of the problem before it is scaled by 1/ρ.
    decision_function_shape, break_ties, random_state, sigma, multiclass, time_limit, n_jobs, engine, precision, \
probability, checkpoint
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, n_iter_, gamma_
        As in `SVC`. The model is scaled by 1/ρ, as LIBSVM's: marginal rows have y f(x) = 1.
    fit_status_, shape_fit_, kkt_, norm_, margin_, status_, engine_, certificate_
        As in `SVC`.
    loo_bound_, xi_alpha_bound_ : float
        As in `SVC`, of the C = 1/ρ that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import NuSVC
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> NuSVC(nu=0.4, kernel="linear").fit(X, y).decision_function([[-1.0], [1.0]]).round(6)
    array([-1.,  1.])
    """

    _form = NU_CLASSIFICATION

    nu: float = checked(check_nu, default=0.5)

    def _held_out_values(
        self, sample: Sample, data: TrainingData, sample_weight: ArrayLike | None, splits: Splits
    ) -> NDArray[np.float64]:
        code = code_matrix(self.multiclass, len(sample.classes))
        values = np.full((len(sample.codes), code.shape[1]), np.nan)
        is_given = data.kernel.name == "precomputed"
        effort, started = self._effort(), time.monotonic()
        status = Status.CONVERGED
        for train, test in splits:
            # A fold's sides are not quite as heavy as all rows': what they allow may be a little less.
            weight = np.ones(len(train)) if sample.weight is None else sample.weight[train]
            sides = code[sample.codes[train]].T
            largest = min(largest_nu(side[side != 0], weight[side != 0]) for side in sides)
            model = clone(self).set_params(probability=False, gamma=self.gamma_, sigma=None, checkpoint=None)
            model.set_params(nu=min(self.nu, largest), time_limit=effort.left(started).time_limit)
            rows = data.X[np.ix_(train, train)] if is_given else data.X[train]
            with on_interrupt(self._on_interrupt), warnings.catch_warnings():
                warnings.simplefilter("ignore", MargroveWarning)  # the fit has warned; folds: see below
                model.fit(
                    rows, sample.codes[train], None if sample_weight is None else np.asarray(sample_weight)[train]
                )
            status = worst((status, model.status_))
            if model.status_ in (Status.TIME_LIMIT, Status.INTERRUPTED):
                break
            values[test] = model.machine_decision(data.X[np.ix_(test, train)] if is_given else data.X[test])
        self._note_folds(status)
        return values

    def _check_duals(self, duals: list[Dual], names: tuple[str, ...]) -> None:
        largest = np.array([largest_nu(dual.y, dual.upper) for dual in duals])
        tightest = int(np.argmin(largest))
        if self.nu > largest[tightest] * (1 + _ROUNDING):
            raise InfeasibleError(
                f"the specified nu is infeasible: it is {self.nu:g}, and must be at most "
                f"{largest[tightest]:.6g} for {names[tightest]}, because each side must hold half of it",
                cure="Use a smaller nu, or class weights that balance the two sides.",
                evidence={"machine": names[tightest], "largest_nu": float(largest[tightest])},
            )
