"""The machines of a code: fit and prediction.

`fit_machines` fits the columns of a code in one of three ways:

=================  ==================================================================================================
one kernel         Margrove's ``SVC`` and ``NuSVC`` solve all columns in one call (``SVC(multiclass=code)``): a kernel
                   row that was computed for one machine serves the others
trees and boosts   of trees: the table is read, and sorted, once for all columns that see every row (`ReadOnce`)
each by itself     any other estimator, ``n_jobs`` at a time; every estimator where a row may have several labels
=================  ==================================================================================================
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone, is_clusterer, is_outlier_detector, is_regressor
from sklearn.utils.parallel import Parallel, delayed

from margrove.advice import Advice, Setting
from margrove.boost.classifier import AdaBoostClassifier
from margrove.certificate import Certificate
from margrove.data.frames import as_table, is_frame
from margrove.errors import (
    MargroveWarning,
    ParameterError,
    UnseenCategoryWarning,
    as_input_error,
    level_of_caller,
    shown,
)
from margrove.multiclass.problem import (
    ConstantMachine,
    Layout,
    Question,
    as_rows,
    last_step,
    parameters_of,
    rows_of,
    seen_columns,
    takes_gram,
    weight_parameter,
)
from margrove.run.progress import Progress, as_one_of, report
from margrove.status import Status, of_all
from margrove.svm.layout import coefficients_of
from margrove.svm.svc import SVC, NuSVC
from margrove.tree.classifier import TreeClassifier
from margrove.tree.reading import ReadOnce

ONE_KERNEL = "one kernel for all machines"
ONE_TABLE = "the table, read and sorted once for all machines that use every row"
STAGE = "machines"  # of progress
NOTHING = "nothing: each machine is fitted separately"


@dataclass(frozen=True)
class CodedProblem:
    """The two-class problems of a code, or of several labels, and their data."""

    X: Any
    y: Any  # the labels themselves, or the indicator matrix of several
    layout: Layout
    scheme: str  # "ovr", "ovo" or "code": what a support vector classifier calls it
    params: Mapping[str, Any]  # of the estimator's `fit`

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.y.shape[0])

    @cached_property
    def columns(self) -> list[Question]:
        """The question of each machine."""
        return self.layout.questions(self.y)


@dataclass(frozen=True)
class FittedMachines:
    """Fitted machines: one estimator with all of them (``is_shared``), or one for each column."""

    estimators: list[Any]
    layout: Layout
    sharing: str  # in words
    rows: list[NDArray[np.int64] | None]  # of each machine, where X is a Gram matrix
    is_pairwise: bool
    flips: bool = False  # of a shared one-vs-one: its pairs have the first class as +1, the code has the second

    @property
    def is_shared(self) -> bool:
        """True if one estimator has all machines."""
        return self.sharing == ONE_KERNEL

    @property
    def first(self) -> Any:
        """The first machine that is not constant; of constants, the first."""
        learnt = [each for each in self.estimators if not isinstance(each, ConstantMachine)]
        return (learnt or self.estimators)[0]

    @property
    def status(self) -> Status:
        """The first status of a machine that was stopped early, of those that have one; else converged."""
        return of_all(getattr(last_step(each), "status_", Status.CONVERGED) for each in self.estimators)

    @property
    def engine(self) -> str:
        """The name of the engine, or of the package of the estimator."""
        learner = last_step(self.first)
        return str(getattr(learner, "engine_", type(learner).__module__.partition(".")[0]))

    def values(self, X: Any) -> NDArray[np.float64]:
        """Return the value of each machine, shape (n, machines): > 0 for its positive side."""
        if self.is_shared:
            values = self.estimators[0].machine_decision(X)
            return np.asarray(-values if self.flips else values)
        return self._asked(value_of, X)

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each machine's positive side, shape (n, machines)."""
        if not self.is_shared:
            return self._asked(lambda each, part: each.predict_proba(part)[:, 1], X)
        a, b = self.estimators[0]._calibration
        q = expit(-(self.estimators[0].machine_decision(X) * a + b))
        return np.asarray(1 - q if self.flips else q)

    def _asked(self, ask: Callable[[Any, Any], NDArray[np.float64]], X: Any) -> NDArray[np.float64]:
        """Return the outputs of all machines. A category that is new to one may be known to another, which has seen
        other classes: warn only if no machine knows them all, once for all machines."""
        X = as_rows(X, is_pairwise=self.is_pairwise)
        if self.sharing == ONE_TABLE:
            X = _read_once(X)
        outputs, unseen = [], []
        for each, rows in zip(self.estimators, self.rows, strict=True):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnseenCategoryWarning)
                outputs.append(ask(each, seen_columns(X, rows, is_pairwise=self.is_pairwise)))
            unseen += [each for each in caught if issubclass(each.category, UnseenCategoryWarning)][:1]
            for other in caught:
                if not issubclass(other.category, UnseenCategoryWarning):
                    warnings.warn(other.message, other.category, stacklevel=level_of_caller())
        if len(unseen) == len(self.estimators):
            words = f"every machine saw categories not in its training rows. The first warning: {unseen[0].message}"
            warnings.warn(words, UnseenCategoryWarning, stacklevel=level_of_caller())
        return np.stack(outputs, axis=1)


def value_of(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return f(x) of a two-class machine: its decision function; else the probability of the positive side, less ½;
    else its prediction, −1 or +1; of a regressor, which learns 0 and 1, the prediction p as 2 p − 1."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64).ravel()
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X)[:, 1] - 0.5, dtype=np.float64)
    predicted = np.asarray(estimator.predict(X), dtype=np.float64).ravel()
    return 2 * predicted - 1 if is_regressor(estimator) else np.where(predicted > 0, 1.0, -1.0)


def separated(machines: FittedMachines) -> list[Any]:
    """Return an estimator of the labels 0 and 1 for each machine of a shared kernel, as if it had been fitted alone to
    the rows it sees, with the γ of all rows. These are copies: predictions use the shared estimator."""
    shared, turned = machines.estimators[0], -1 if machines.flips else 1
    is_given, found = shared.kernel == "precomputed", []
    for number, beta in enumerate(turned * coefficients_of(shared)):
        machine, rows = copy(shared).set_params(multiclass="ovo"), shared_rows(machines, number)
        own = np.flatnonzero(beta)
        own = own[np.lexsort((shared.support_[own], beta[own] > 0))]  # the negative side first
        support = shared.support_[own]
        machine.support_ = support if rows is None else np.searchsorted(rows, support).astype(support.dtype)
        machine.n_support_ = np.array([(beta < 0).sum(), (beta > 0).sum()], np.int32)
        machine.support_vectors_ = shared.support_vectors_ if is_given else shared.support_vectors_[own]
        machine.dual_coef_, machine.intercept_ = beta[None, own], turned * shared.intercept_[[number]]
        machine.classes_, machine.class_weight_ = np.array([0, 1]), np.ones(2)
        machine._grades = shared._grades[slice(None) if rows is None else rows][:, [number]]
        machine.n_rows_ = len(machine._grades)
        machine.n_features_in_ = machine.n_rows_ if is_given else shared.n_features_in_
        machine.norm_, machine.n_iter_ = shared.norm_[[number]], shared.n_iter_[[number]]
        if hasattr(shared, "n_kernel_rows_"):  # older files lack it
            machine.n_kernel_rows_ = shared.n_kernel_rows_[[number]]
        if shared._calibration is not None:  # P = σ(−(A f + B)); of the other side, with −f, it is σ(−(A f − B))
            a, b = shared._calibration
            vars(machine).update(probA_=a[[number]], probB_=turned * b[[number]])
        machine.loo_bound_ = len(own) / machine.n_rows_ if shared.status_ is Status.CONVERGED else 1.0
        machine.xi_alpha_bound_ = 1.0  # it needs the slack of every row
        machine._cache_weights()
        machine.certificate_ = Certificate.of(machine, "solver", machine.n_rows_, ("1 vs 0",))
        found.append(machine)
    return found


def shared_rows(machines: FittedMachines, number: int) -> NDArray[np.intp] | None:
    """Return the rows that one machine of a shared kernel sees, without those of weight 0; None for all rows."""
    code = machines.layout.code
    assert code is not None
    return None if code[:, number].all() else np.flatnonzero(machines.estimators[0]._grades[:, number])


@as_input_error
def _read_once(X: Any) -> Any:
    """Return a data frame as the table that every tree would make of it."""
    return as_table(X) if is_frame(X) else X


def check_learner(estimator: Any, *, has_weights: bool) -> None:
    """Raise an error if the estimator cannot be a machine."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise ParameterError(f"estimator is {shown(estimator)}; it must be an estimator, such as SVC().")
    learner = last_step(estimator)
    if not any(hasattr(estimator, name) for name in ("predict", "decision_function", "predict_proba")):
        raise ParameterError(f"estimator is a {type(learner).__name__}, which has no predict. Use a classifier.")
    if is_outlier_detector(learner) or is_clusterer(learner):
        raise ParameterError(
            f"estimator is a {type(learner).__name__}, which is fitted without y, so it cannot separate two sides. "
            "Use a classifier."
        )
    for name, value in estimator.get_params().items():  # also of a learner inside: of a pipeline, of a boost
        is_by_label = name.rpartition("__")[2] == "class_weight" and value is not None and not isinstance(value, str)
        if is_by_label and not (isinstance(value, Mapping) and set(value) <= {0, 1}):
            words = (
                f"estimator has {name}={shown(value)}; its classes are the two sides of a machine, 0 and 1, not those "
                "of y. Use "
            )
            cure = Advice(Setting("class_weight", "balanced"), ", which balances the sides, or sample_weight.")
            raise ParameterError(Advice(words, cure))
    if has_weights:
        weight_parameter(estimator)


def sharing_of(estimator: Any, *, has_code: bool = True) -> str:
    """Return what the machines of this estimator share. There is no code for several labels per row and for a single
    class."""
    if type(estimator) in (SVC, NuSVC) and has_code:
        # A machine by itself balances its two sides; a support vector classifier of many classes balances the classes.
        if estimator.class_weight is not None or getattr(estimator, "warm_start", False):
            why = "class_weight" if estimator.class_weight is not None else "warm_start"
            return f"{NOTHING}, because of {why}={shown(getattr(estimator, why))}"
        return ONE_KERNEL
    boosts_trees = isinstance(estimator, AdaBoostClassifier) and estimator.boosts_plain_trees
    return ONE_TABLE if isinstance(estimator, TreeClassifier) or boosts_trees else NOTHING


def fit_machines(scheme: Any, estimator: Any, problem: CodedProblem) -> FittedMachines:
    """Fit all machines of a code, as many at a time as the scheme says. Ctrl-C raises, unless they share a kernel: then
    they end together, each with its current solution."""
    sharing = sharing_of(estimator, has_code=problem.layout.code is not None)
    if sharing == ONE_KERNEL:
        return _fit_together(scheme, estimator, problem)
    is_pairwise = takes_gram(estimator)
    of_all_rows = None
    if sharing == ONE_TABLE:
        problem = replace(problem, X=_read_once(problem.X))
        of_all_rows = ReadOnce(problem.X) if scheme.n_jobs in (None, 1) else None  # its order stays in its process
    fitted = _fit_each(scheme, estimator, problem, is_pairwise=is_pairwise, of_all_rows=of_all_rows)
    rows = [column.rows if is_pairwise else None for column in problem.columns]
    return FittedMachines(fitted, problem.layout, sharing, rows, is_pairwise)


def learn_piece(machines: list[Any], problem: CodedProblem, n_jobs: int | None) -> FittedMachines:
    """Return the machines after `partial_fit` on these rows; a machine that sees none of them is left as it is."""

    def learn(machine: Any, column: Question) -> Any:
        if column.sign.size:
            params = parameters_of(problem.params, column.rows, problem.n)
            machine.partial_fit(rows_of(problem.X, column.rows), column.targets, classes=np.array([0, 1]), **params)
        return machine

    together = Parallel(n_jobs=n_jobs)
    learnt = list(together(delayed(learn)(*each) for each in zip(machines, problem.columns, strict=True)))
    return FittedMachines(learnt, problem.layout, NOTHING, [None] * len(learnt), is_pairwise=False)


def _fit_together(scheme: Any, estimator: Any, problem: CodedProblem) -> FittedMachines:
    code = problem.layout.code
    assert code is not None
    machine = clone(estimator).set_params(
        multiclass=code if problem.scheme == "code" else problem.scheme,
        decision_function_shape="ovr",
        break_ties=False,
        verbose=estimator.verbose or scheme.verbose,
    )
    machine.fit(problem.X, problem.y, **problem.params)
    flips = problem.scheme == "ovo" and len(code) > 2
    return FittedMachines([machine], problem.layout, ONE_KERNEL, [None], machine.kernel == "precomputed", flips)


def _fit_each(
    scheme: Any, estimator: Any, problem: CodedProblem, *, is_pairwise: bool, of_all_rows: ReadOnce | None
) -> list[Any]:
    total = len(problem.columns)
    estimator = clone(estimator)  # once: for a machine of a few rows, get_params takes longer than the fit

    def data_of(number: int) -> tuple[Any, NDArray[np.int64], dict[str, Any] | None]:
        column = problem.columns[number]
        if problem.layout.code is None and column.is_constant:
            label = f"{'' if column.sign[0] > 0 else 'not '}{problem.layout.classes[number]}"
            words = f"Label {label} is present in all training examples."  # scikit-learn's words
            warnings.warn(words, MargroveWarning, stacklevel=level_of_caller())
            return problem.X, column.targets, None
        X = rows_of(problem.X, column.rows, is_pairwise=is_pairwise)
        if column.rows is None and of_all_rows is not None:
            X = of_all_rows
        return X, column.targets, parameters_of(problem.params, column.rows, problem.n)

    machines, names = [], problem.layout.names
    if scheme.n_jobs in (None, 1):
        found = (_fit_within(estimator, data_of(number), number, total) for number in range(total))
    else:
        together = Parallel(n_jobs=scheme.n_jobs, return_as="generator")
        found = together(delayed(_fit_one)(estimator, *data_of(number)) for number in range(total))
    for number, (machine, seconds) in enumerate(found):
        machines.append(machine)
        report(Progress(STAGE, number + 1.0, float(total)))
        if scheme.verbose:
            print(f"[{type(scheme).__name__}] machine {number + 1} of {total}, {names[number]}: {seconds:.2f} s")
    return machines


def _fit_within(estimator: Any, data: tuple[Any, Any, Any], number: int, total: int) -> tuple[Any, float]:
    with as_one_of(STAGE, number, total):
        return _fit_one(estimator, *data)


def _fit_one(estimator: Any, X: Any, targets: NDArray[np.int64], params: dict[str, Any] | None) -> tuple[Any, float]:
    started = time.perf_counter()
    if params is None:
        return ConstantMachine(int(targets[0])).fit(X), 0.0
    machine = deepcopy(estimator).fit(X, targets, **params)
    if getattr(last_step(machine), "status_", None) is Status.INTERRUPTED:
        raise KeyboardInterrupt  # half of the machines are no classifier
    return machine, time.perf_counter() - started
