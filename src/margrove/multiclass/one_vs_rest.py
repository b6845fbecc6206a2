"""A machine for each class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.estimator import estimator
from margrove.multiclass.coded import CodedClassifier
from margrove.multiclass.codes import one_vs_rest
from margrove.multiclass.decoding import rest_probabilities


@estimator
class OneVsRestClassifier(CodedClassifier):
    """Many classes, one against the rest: K machines "is it class i?", and the largest value wins.

    A drop-in for scikit-learn's ``OneVsRestClassifier``, without several labels at once. Where scores are equal the
    first class wins, in scikit-learn the last.

    Parameters
    ----------
    estimator : estimator, optional
        A two-class learner, Margrove's or scikit-learn's, with a decision function, probabilities or predictions. None
        is `SVC`. The machines of an `SVC` or `NuSVC` share one kernel, and are solved in one call with one
        ``time_limit``; each machine of any other learner has its own.
    n_jobs : int, optional
        Machines that are fitted at a time, each in a process of its own; None is 1. Machines that share a kernel are
        solved together, with the threads of the estimator's own ``n_jobs``.
    verbose : bool
        Print a line for each machine.

    Attributes
    ----------
    classes_ : array of shape (K,)
    code_ : array of shape (K, machines)
        +1 for the classes on the positive side of a machine, −1 for those on its negative side, 0 for those it never
        sees.
    estimators_ : list
        A fitted estimator for each machine, of labels −1 and +1; one alone where they share its kernel.
    machine_names_ : tuple of str
        The classes on the two sides of each machine.
    min_distance_, errors_corrected_ : float, int
        Of the code; see `margrove.multiclass.codes`.
    sharing_ : str
        What the machines shared in the fit.
    n_kernel_rows_ : array of shape (machines,)
        Of a shared kernel: the rows computed for each machine, without those computed before.
    status_, engine_, certificate_
        The status of the first machine that was stopped early, else ``converged``; the engine; the claims of the code
        and of each machine.

    Notes
    -----
    ``class_weight="balanced"`` of the estimator balances the two sides of each machine. (An `SVC` by itself balances
    the classes; so then the machines are fitted each by itself.) A dict of weights by label is refused: the machines
    know no labels but −1 and +1. Use ``sample_weight``.

    Ctrl-C during ``fit`` leaves the model as it was. Where the machines share a kernel they end together, with status
    ``interrupted``, and the model is kept.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import OneVsRestClassifier, SVC, certify
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier(SVC(C=10, gamma=0.1)).fit(X, y)
    >>> model.code_.shape, model.sharing_
    ((3, 3), 'one kernel for all machines')
    >>> certify(model, X, y).holds
    True
    """

    _scheme = "ovr"

    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        return one_vs_rest(len(classes))

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.ravel() if len(self.classes_) == 2 else values

    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        return rest_probabilities(q, predicted)
