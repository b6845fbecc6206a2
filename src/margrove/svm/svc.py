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
from margrove.run.effort import Effort, on_interrupt
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
from margrove.svm.training import TrainingData, is_infinite

_ROUNDING = 1e-12  # of ν against the largest feasible one
_FINITE = 1e6  # replaces C = inf when the folds of ``probability=True`` are fitted


@estimator
class SVC(SupportVectorClassifier):
    """Support vector classification: the widest margin, at a cost C for each row that lies inside it.

    A drop-in replacement for scikit-learn's ``SVC``, with the same parameters and attributes, and a certificate.

    Parameters
    ----------
    C : float
        The cost of slack: min ½‖w‖² + C Σ ξ_i. ``inf`` allows none (the hard margin); if the classes are not
        separable, an `InfeasibleError` shows where they meet. A finite C times any weight must be at most 1e100.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable
        See `margrove.svm.kernels`. For "precomputed" X is the Gram matrix; a callable gets two arrays of rows and
        returns the matrix of kernel values (all of it is held during ``fit``). Rows need not be numbers: texts, graphs.
    degree, coef0 : float
        p and r of (γ x·z + r)^p; r of tanh(γ x·z + r).
    gamma : {"scale", "auto", "median"} or float
        γ: "scale" is 1 / (d · variance of X), "auto" is 1/d, "median" is 1 / (2 · median squared distance).
    shrinking : bool
        Leave out rows whose α seems to have settled at a bound. It changes the time, not the solution.
    tol : float
        The largest violation of the KKT conditions that counts as converged.
    cache_size : "auto" or float
        MiB for kernel rows; "auto" is half of the free memory, at most 4096. With the data itself and one float32 copy
        of it, that bounds the memory of a fit.
    class_weight : dict or "balanced", optional
        Multiplies C for each class.
    verbose : bool or int
        Print the problem, the bound on memory, and how the solve ended.
    max_iter : int
        The largest number of pair steps of each machine; −1 means ten million, or 100 times the number of variables if
        that is larger.
    decision_function_shape : {"ovr", "ovo"}
        For one-vs-one: whether `decision_function` returns a score per class or the value of each pair.
    break_ties : bool
        For one-vs-one with "ovr": break ties of votes by the decision values, which takes longer.
    random_state : int or RandomState, optional
        The seed of the folds of ``probability=True``; nothing else is random. None means 0.
    sigma : float, optional
        For "rbf": γ = 1/(2σ²). Excludes ``gamma``.
    multiclass : {"ovo", "ovr"} or array of shape (classes, machines)
        More than two classes: a machine for each pair; for each class against the rest; or for each column of a matrix
        of +1, −1 and 0, where the class whose code word has the smallest hinge loss wins.
    time_limit : float, optional
        Seconds after which the solve ends with status ``time_limit`` and keeps the best feasible model so far. The
        folds of ``probability=True`` count.
    n_jobs : int, optional
        Threads; None means all.
    engine : str or Engine
        The engine that solves it: "auto", "native", "reference", "dask", or an `Engine` object.
    precision : {"auto", "single", "double"}
        The precision of kernel values in the solver. "auto" uses single as long as it agrees with double.
    probability : bool
        Enable `predict_proba`. The machines are fitted five more times, each time without a fifth of the rows, and
        their decision values on those rows are calibrated. ``predict`` does not change, and always returns the most
        probable class. If ``time_limit`` or Ctrl-C ends the fit, a warning is issued and only the folds done so far
        count; without any, `predict_proba` knows only the predicted class and the class frequencies.
    warm_start : bool
        ``fit`` starts from the last solution, for use after C, weights or labels have changed or rows were appended.
        Row i must be row i of the last fit. A hard margin does not use the last solution.
    checkpoint : str, path or `Checkpoint`, optional
        A file to which ``fit`` writes α every 30 seconds, or at the interval of a `Checkpoint`. A later ``fit`` on the
        same data continues from it; limits, threads and ``tol`` may differ. It is removed when the fit has converged.
        The folds of ``probability=True``, `path` and `leave_one_out` write none.

    Attributes
    ----------
    support_, support_vectors_, n_support_
        Rows with α > 0, class by class, as in scikit-learn.
    dual_coef_ : array
        y α of each support vector: scikit-learn's (classes − 1, s) for one-vs-one, (machines, s) otherwise.
    intercept_ : array of shape (machines,)
    coef_ : array of shape (machines, d)
        For ``kernel="linear"``. It and ``dual_coef_`` are sparse after a fit on sparse rows.
    classes_, class_weight_, fit_status_, shape_fit_, n_features_in_, n_rows_
        As in scikit-learn; ``fit_status_`` is 0 if converged.
    n_iter_ : array of shape (machines,)
        Pair steps.
    n_kernel_rows_ : array of shape (machines,)
        Kernel rows that the native engine computed for each machine; rows reused from another machine are not counted.
    solver_ : str
        "smo" (pair steps) or "newton". The latter solves for w itself, with ``kernel="linear"``, many rows and few
        columns; ``n_iter_`` then counts Newton steps.
    probA_, probB_ : arrays of shape (machines,)
        With ``probability=True``: P = 1/(1 + exp(A f + B)) for the decision value f of a machine.
    gamma_ : float
    kkt_ : array of shape (n,), or (n, machines) for several machines
        "easy" (α = 0), "marginal" (0 < α < C) or "hard" (α = C); empty where a row is ignored.
    norm_, margin_ : arrays of shape (machines,)
        ‖w‖ and 2/‖w‖, the width of the margin, in the feature space.
    loo_bound_ : float
        The share of rows that are support vectors of any machine: an upper bound on the leave-one-out error, for fixed
        γ and C.
    xi_alpha_bound_ : float
        The sharper ξα-estimate: only rows with 2 α R² + ξ ≥ 1 are counted, where R² is the largest K(x, x), or twice
        that for kernels that may be negative.
    status_, engine_, certificate_
        Why the solve ended, the engine that ran, the certificate.

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

    @property
    def _is_hard(self) -> bool:
        return is_infinite(self.C)

    def path(
        self, X: ArrayLike, y: ArrayLike, Cs: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SupportVectorPath:
        """Fit and certify a model for each value of C; each solve starts from the solution before it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : list of float, optional
            In any order, above 0 and at most 1e100; None means 20 values from 0.01 to 1000.

        Returns
        -------
        SupportVectorPath
            ``Cs`` ascending, and ``models``: an `SVC` for each, as `fit` would return it. After Ctrl-C or
            ``time_limit`` only those reached by then; the last of them may have stopped early.

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

    def _hold_out(
        self,
        sample: Sample,
        data: TrainingData,
        sample_weight: ArrayLike | None,
        splits: Splits,
        effort: Effort,
        values: NDArray[np.float64],
    ) -> Status:
        order, splits = search_order(sample, splits)
        code = code_matrix(self.multiclass, len(sample.classes))
        folds = folds_of(sample, self.class_weight, sample_weight, splits, order)

        def take(number: int, solution: UnitSolution) -> None:
            values[splits[number][1]] = solution.values[0].T

        C = np.array([_FINITE if self._is_hard else float(self.C)])
        problem = posed_search(self, data, order, machines_of(code, sample.codes[order]), folds)
        problem = replace(problem, units=tuple(SearchUnit(0, number, C) for number in range(len(folds))), take=take)
        return solve(problem, self.engine, effort)

    def leave_one_out(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LeaveOneOut:
        """Return the exact prediction of each row by the model fitted without it, beside ``loo_bound_``.

        Only support vectors need a solve, and each solve starts from this model. X, y and weights must be those of
        ``fit``. γ and the C_i of the other rows do not change, not even with ``class_weight="balanced"``.

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
    """Support vector classification with ν in place of C. ν is an upper bound on the share of margin errors and a lower
    bound on the share of support vectors.

    A drop-in replacement for scikit-learn's ``NuSVC``, which ignores ``class_weight``; this one does not.

    Parameters
    ----------
    nu : float
        ν, above 0 and at most 1. With unbalanced classes not every ν is feasible: one that is too large raises an
        `InfeasibleError`, which names the largest feasible ν.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter
        As in `SVC`. Weights are the bounds C_i themselves; ``tol`` applies to the problem before it is scaled by 1/ρ.
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
        As in `SVC`, for C = 1/ρ.

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

    def _hold_out(
        self,
        sample: Sample,
        data: TrainingData,
        sample_weight: ArrayLike | None,
        splits: Splits,
        effort: Effort,
        values: NDArray[np.float64],
    ) -> Status:
        code = code_matrix(self.multiclass, len(sample.classes))
        is_given = data.kernel.name == "precomputed"
        started, status = time.monotonic(), Status.CONVERGED
        for train, test in splits:
            # The classes of a fold may be less balanced than those of all rows, and its largest feasible ν smaller.
            weight = np.ones(len(train)) if sample.weight is None else sample.weight[train]
            sides = code[sample.codes[train]].T
            largest = min(largest_nu(side[side != 0], weight[side != 0]) for side in sides)
            model = clone(self).set_params(probability=False, gamma=self.gamma_, sigma=None, checkpoint=None)
            if is_given:
                model.set_params(kernel="precomputed")  # of a callable one, too, if its rows are not numbers
            model.set_params(nu=min(self.nu, largest), time_limit=effort.left(started).time_limit)
            rows = data.X[np.ix_(train, train)] if is_given else data.X[train]
            with on_interrupt(effort.on_interrupt), warnings.catch_warnings():
                warnings.simplefilter("ignore", MargroveWarning)  # `_keep_probabilities` warns
                model.fit(
                    rows, sample.codes[train], None if sample_weight is None else np.asarray(sample_weight)[train]
                )
            if model.status_ in (Status.TIME_LIMIT, Status.INTERRUPTED):
                status = model.status_
                break
            status = worst((status, model.status_))
            values[test] = model.machine_decision(data.X[np.ix_(test, train)] if is_given else data.X[test])
        return status

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
