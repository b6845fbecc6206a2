"""The classifiers of many classes: one machine for each class against the rest, for each pair of classes, or for each
bit of the classes' code words."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, check_is_fitted

from margrove.errors import InputError, as_input_error, check_choice
from margrove.estimator import checked, estimator
from margrove.multiclass.coded import CodedClassifier
from margrove.multiclass.codes import code_for, one_vs_one, one_vs_rest
from margrove.multiclass.decoding import (
    DECODINGS,
    code_probabilities,
    losses,
    pair_probabilities,
    rest_probabilities,
    votes,
)
from margrove.multiclass.machines import CodedProblem, shared_rows
from margrove.multiclass.problem import Layout, Target, as_rows, takes_gram


@estimator
class OneVsRestClassifier(MultiOutputMixin, CodedClassifier):
    """Many classes, one against the rest: K machines "is it class i?", and the largest value wins. Or several labels
    per row: a machine for each label, "does the row have it?".

    A drop-in for scikit-learn's ``OneVsRestClassifier``. Where scores are equal the first class wins.

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
        A fitted estimator for each machine, with the labels 0 and 1. If the machines share a kernel, these are copies,
        made on each access. A machine whose rows were all on one side is a constant.
    multilabel_ : bool
        True after ``fit`` with an indicator matrix ``y``. ``classes_`` are then the numbers of its columns, and there
        is no code: ``code_``, ``min_distance_`` and ``errors_corrected_`` are absent.
    label_binarizer_ : LabelBinarizer
        scikit-learn's, of the classes or labels.
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
    the classes; so then each machine is fitted separately.) A dict of weights has the keys 0 and 1, the labels of the
    machines. For weights by class use ``sample_weight``.

    ``y`` may be an indicator matrix of shape (n, labels), dense or sparse, of 0 and 1. Then every machine is fitted
    separately, `predict` returns an indicator matrix of the same kind, `decision_function` the values of the machines
    and `predict_proba` the probability of each label; they need not sum to 1. A label that all rows have, or none,
    gives a warning and a machine that is constant; likewise a single class.

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
    _known_words = "classes must"

    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        return one_vs_rest(len(classes))

    def _problem(self, X: Any, y: Any, params: dict[str, Any]) -> CodedProblem:
        indicator = _read_indicator(X, y)
        if indicator is None:
            return super()._problem(X, y, params)
        target: Target = "sparse labels" if sp.issparse(indicator) else "labels"
        layout = Layout(np.arange(indicator.shape[1]), None, target)
        X = as_rows(X, is_pairwise=takes_gram(self._settled_estimator()))
        return CodedProblem(X, indicator, layout, self._scheme, params)

    def predict(self, X: Any) -> NDArray[Any] | Any:
        """Return the class with the highest score, the first of equals; for several labels an indicator matrix, sparse
        if that of ``fit`` was."""
        check_is_fitted(self)
        if not self.multilabel_:
            return super().predict(X)
        return self.label_binarizer_.inverse_transform(sp.csc_array((self.machine_decision(X) > 0).astype(int)))

    @property
    def multilabel_(self) -> bool:
        """True if a row may have several labels."""
        check_is_fitted(self)
        return self._machines.layout.has_several

    @property
    def label_binarizer_(self) -> LabelBinarizer:
        """scikit-learn's binarizer of the classes or labels."""
        check_is_fitted(self)
        target: Any = self.classes_
        if self.multilabel_:
            target = sp.eye_array(len(self.classes_), dtype=int, format="csr")
            target = target.toarray() if self._machines.layout.target == "labels" else target
        return LabelBinarizer(sparse_output=True).fit(target)

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.ravel() if values.shape[1] == 1 else values

    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        return q if self.multilabel_ else rest_probabilities(q, predicted)


@as_input_error
def _read_indicator(X: Any, y: Any) -> Any:
    """Return an indicator matrix of several labels per row, an array or a sparse matrix; None for other labels."""
    if y is None or getattr(y, "ndim", 0) == 1:
        return None
    indicator = y if sp.issparse(y) else np.asarray(y)
    if indicator.ndim != 2 or indicator.shape[1] < 2:
        return None
    kind, n = type_of_target(indicator, input_name="y"), _num_samples(X)
    if not kind.startswith("multilabel"):
        raise InputError(
            f"y has shape {indicator.shape} and is {kind}: Multioutput target data is not supported with label "
            "binarization",
            cure="For several labels per row pass a matrix of 0 and 1; or use scikit-learn's MultiOutputClassifier.",
        )
    if indicator.shape[0] != n:
        raise InputError(f"X has {n} rows and y has {indicator.shape[0]}: inconsistent numbers of samples")
    return indicator


@estimator
class OneVsOneClassifier(CodedClassifier):
    """Many classes, one against one: K (K − 1)/2 machines "class i or class j?", and the most votes win.

    A drop-in for scikit-learn's ``OneVsOneClassifier``. The machines' values break ties. ``pairwise_indices_`` has the
    rows of each pair where X is a Gram matrix, and is None otherwise.

    Parameters
    ----------
    estimator, n_jobs, verbose
        As in `OneVsRestClassifier`.

    Attributes
    ----------
    classes_, code_, estimators_, machine_names_, min_distance_, errors_corrected_, sharing_, n_kernel_rows_, status_, \
engine_, certificate_
        As in `OneVsRestClassifier`.

    Notes
    -----
    See `OneVsRestClassifier` for ``class_weight`` and Ctrl-C. Machines that share a kernel share its γ: "scale" and
    "median" are then computed on all rows, and not on those of each pair, as in `SVC` itself. A pair has kernel values
    of its own rows alone, which no other pair can use: ``n_kernel_rows_`` counts them for each.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, OneVsOneClassifier, load_penguins
    >>> penguins = load_penguins()  # text columns, missing cells
    >>> model = OneVsOneClassifier(DecisionTreeClassifier(max_depth=2)).fit(penguins, penguins.labels())
    >>> model.machine_names_
    ('Chinstrap vs Adelie', 'Gentoo vs Adelie', 'Gentoo vs Chinstrap')
    >>> print(f"{model.score(penguins, penguins.labels()):.3f}")
    0.983
    """

    _scheme = "ovo"

    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        return one_vs_one(len(classes))

    @property
    def pairwise_indices_(self) -> list[NDArray[Any]] | None:
        """The rows of each machine where X is a Gram matrix (of a shared kernel without those of weight 0), or None."""
        check_is_fitted(self)
        machines = self._machines
        if not machines.is_pairwise:
            return None
        numbers = range(self.code_.shape[1])
        rows = machines.rows
        if machines.is_shared:
            rows = [shared_rows(machines, number) for number in numbers]
        return [np.arange(self.n_features_in_) if each is None else each for each in rows]

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.ravel() if len(self.classes_) == 2 else votes(values, self.code_)

    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        return pair_probabilities(q, len(self.classes_), predicted)


@estimator
class BitStringClassifier(CodedClassifier):
    """Many classes by bit strings: each class has a code word, each machine learns one bit of it, and the class whose
    word is nearest to the machines' values wins.

    ⌈log2 K⌉ machines are enough to name K classes; words of more bits lie further apart, so that some machines may be
    wrong and the class is still right. Like scikit-learn's ``OutputCodeClassifier``, with the codes and the decodings
    of the literature (Dietterich and Bakiri, 1995; Allwein, Schapire and Singer, 2000).

    Parameters
    ----------
    estimator : estimator, optional
        As in `OneVsRestClassifier`.
    code : str or array of shape (K, machines)
        "binary" (⌈log2 K⌉ bits), "random", "max_min" (of 1000 random codes the one with the largest minimum distance),
        "exhaustive" (every split of at most 11 classes), "hadamard", "one_vs_rest", "one_vs_one"; or a matrix of +1,
        −1 and 0 (a machine never sees that class), with a row for each class in sorted order, or, of a data frame whose
        index names the classes, in any order. Two classes with one code word, a column with one sign only, and columns
        that are the same or each other's complement are refused.
    n_bits : int, optional
        Of "random" and "max_min"; None is ⌈10 log2 K⌉, or as many as there are.
    decoding : {"hinge", "hamming", "exponential", "linear"}
        The loss that defines nearest; see `margrove.multiclass.decoding`. "linear" is scikit-learn's.
    random_state : int, RandomState or None
        Of "random" and "max_min".
    n_jobs, verbose
        As in `OneVsRestClassifier`.

    Attributes
    ----------
    classes_, code_, estimators_, machine_names_, min_distance_, errors_corrected_, sharing_, n_kernel_rows_, status_, \
engine_, certificate_
        As in `OneVsRestClassifier`.

    Notes
    -----
    See `OneVsRestClassifier` for ``class_weight`` and Ctrl-C, and `OneVsOneClassifier` for γ where a code has zeros.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from margrove import BitStringClassifier, SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> short = BitStringClassifier(SVC(gamma=0.001)).fit(X[:900], y[:900])
    >>> long = BitStringClassifier(SVC(gamma=0.001), code="hadamard").fit(X[:900], y[:900])
    >>> for model in (short, long):
    ...     print(model.code_.shape[1], model.min_distance_, round(model.score(X[900:], y[900:]), 3))
    4 1.0 0.938
    15 8.0 0.97
    """

    code: Any = "binary"
    n_bits: int | None = None
    decoding: str = checked(check_choice, allowed=DECODINGS, default="hinge")
    random_state: int | np.random.RandomState | None = None

    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        return code_for(self.code, classes, self.n_bits, self.random_state)

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = -losses(values, self.code_, self.decoding)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        return code_probabilities(q, self.code_, predicted)
