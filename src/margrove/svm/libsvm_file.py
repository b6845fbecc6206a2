"""LIBSVM's model files, out and in: `write_libsvm_model` and `read_libsvm_model`.

The two libraries have the same machines and the same layout of coefficients, and differ in three things:

============  ===============================================  ======================================================
              Margrove                                         LIBSVM
============  ===============================================  ======================================================
labels        any, sorted                                      whole numbers, in the order of their first rows
two labels    f > 0 speaks for the second                      f > 0 speaks for the first
offset        f = Σ β K + b                                    f = Σ β K − ρ
============  ===============================================  ======================================================

With another order of labels a pair may stand the other way round: then f, its coefficients, its offset and B of
P = 1/(1 + exp(A f + B)) change their signs, A does not.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, InPython, Setting
from margrove.errors import InputError, MargroveWarning, ParameterError, check_whole
from margrove.status import Status
from margrove.store.fault import FaultError
from margrove.store.files import Target, naming, open_for_reading, write
from margrove.svm.adopted import LIBSVM_KERNELS, complete, unknown_to_libsvm
from margrove.svm.layout import class_slices, dense, pairs_of
from margrove.svm.libsvm_rows import rows_of_labels, rows_of_values
from margrove.svm.libsvm_text import KERNEL_TYPES, MOST_INDEX, SVM_TYPES, LibsvmModel, parsed, written
from margrove.svm.one_class import OneClassSVM
from margrove.svm.svc import SVC, NuSVC
from margrove.svm.svr import SVR, NuSVR

_ESTIMATORS: dict[str, type] = dict(zip(SVM_TYPES, (SVC, NuSVC, OneClassSVM, SVR, NuSVR), strict=True))
_SVM_TYPES = {estimator: name for name, estimator in _ESTIMATORS.items()}
_KERNELS = dict(zip(KERNEL_TYPES, LIBSVM_KERNELS, strict=True))
_KERNEL_TYPES = {ours: theirs for theirs, ours in _KERNELS.items()}
_IN_THE_FILE = ("kernel", "degree", "gamma", "coef0", "sigma", "multiclass", "probability", "checkpoint")
_SHOWN_LABELS = 8


def write_libsvm_model(model: Any, path: Target) -> None:
    """Write a fitted support vector machine as a LIBSVM model file: ``svm-predict`` predicts with it as we do.

    Every number is written with all its digits, so that decision values agree to rounding. ``probA`` and ``probB`` are
    written where the model has probabilities: LIBSVM's come from the same formulas, but its ``-b 1`` predicts the most
    probable label, which need not be the one with the most votes.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM
        With kernel "linear", "poly", "rbf", "sigmoid" or "precomputed", and ``multiclass="ovo"`` where there are more
        than two labels. Labels that are not whole numbers are written as their positions in ``classes_``, with
        a `MargroveWarning` that lists them.
    path : str, path or binary file
        Where to. The file there is replaced in one step. A binary file is written to and left open.

    Raises
    ------
    ModelFileError
        If LIBSVM does not support the model; the message contains the fix.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from margrove import SVC
    >>> from margrove.store import write_libsvm_model
    >>> file = io.BytesIO()
    >>> write_libsvm_model(SVC(kernel="linear").fit(np.array([[-1.0], [1.0]]), [1, 2]), file)
    >>> print(file.getvalue().decode())
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    rho 0.0
    label 1 2
    nr_sv 1 1
    SV
    0.5 1:-1.0
    -0.5 1:1.0
    <BLANKLINE>
    """
    with naming(path, "Fit the model again."):
        _check_is_known_there(model)
        check_is_fitted(model)
        write(path, written(_theirs(model)))


def read_libsvm_model(
    path: Target, *, n_features: int | None = None, X: Any = None, y: Any = None, **parameters: Any
) -> Any:
    """Read a LIBSVM model file as a fitted estimator of ours, which predicts as LIBSVM does.

    The file has cells of eight digits, and only the support vectors; it does not contain C, ν, ε or ``tol``. With
    X and y, the rows it was trained on, the support vectors are found among them and get all their digits; then
    ``certify(model, X, y)`` checks LIBSVM's solution, if C, ν, ε, ``class_weight`` and ``tol`` are given as they were.
    Without X a model is taken for that of its support vectors alone, which is the same one.

    Parameters
    ----------
    path : str, path or binary file
    n_features : int, optional
        The columns of the training table. The file only contains the last one that is not 0 in some support vector, and
        for a precomputed kernel the last training row that is one. None: as in X, or as in the file.
    X, y : the data the model was trained on, optional
        A one-class machine has no y.
    **parameters
        Of the estimator, such as ``C=10``, ``nu``, ``epsilon``, ``class_weight``, ``tol``: what the file does not hold.
        C is else the smallest that the coefficients allow, the others have their defaults.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        With status ``imported``. Probabilities of a regression or a one-class machine are left out, with a
        `MargroveWarning`. Labels are sorted; where the file has them in another order, ``label_order_`` remembers it,
        because it decides ties.

    Raises
    ------
    ModelFileError
        If the file is not whole or no LIBSVM model: which line, what was found, what to do.
    InputError
        If the support vectors are none of the rows of X.

    Examples
    --------
    >>> import io
    >>> from margrove.store import read_libsvm_model
    >>> text = "svm_type c_svc\\nkernel_type linear\\nnr_class 2\\ntotal_sv 2\\nrho 0\\nlabel 2 1\\nnr_sv 1 1\\nSV\\n"
    >>> model = read_libsvm_model(io.BytesIO(f"{text}0.5 1:1\\n-0.5 1:-1\\n".encode()))
    >>> model.predict([[0.7], [-0.1]]), model.coef_
    (array([2, 1]), array([[1.]]))
    """
    with naming(path, "Pass a file that LIBSVM wrote."), open_for_reading(path) as stream:
        theirs = parsed(stream)
    estimator = _ESTIMATORS[theirs.svm_type]
    _check_parameters(estimator, parameters)
    for words in theirs.left_out:
        warnings.warn(f"{estimator.__name__} does not support {words}: ignored.", MargroveWarning, stacklevel=2)
    labels = theirs.labels
    if labels is not None:
        theirs = _in_order(theirs, np.argsort(labels))
    has_probabilities = theirs.prob_a is not None and bool((theirs.prob_a <= 0).all())
    if theirs.prob_a is not None and not has_probabilities:
        words = "some probA is above 0, so a larger decision value would lower the probability"
        warnings.warn(f"{words}. Probabilities are left out.", MargroveWarning, stacklevel=2)
    model = estimator(kernel=_KERNELS[theirs.kernel_type], degree=theirs.degree, coef0=theirs.coef0)
    model.set_params(gamma=theirs.gamma, **parameters)
    if has_probabilities:
        model.set_params(probability=True)
    return _ours(theirs, model, labels, _Rows(n_features, X, y, theirs), is_cost_given="C" in parameters)


def _check_is_known_there(model: Any) -> None:
    """Refuse what LIBSVM does not have."""
    if hasattr(model, "best_estimator_"):
        raise FaultError("it is a search, not a model", "Write its best_estimator_.")
    if hasattr(model, "steps"):
        cure = "Write its last step, model[-1], and pass LIBSVM the rows that model[:-1].transform returns."
        raise FaultError("a pipeline transforms its rows, and a LIBSVM model cannot", cure)
    kind = type(model)
    if kind not in _SVM_TYPES:
        names = [known.__name__ for known in _SVM_TYPES]
        problem = f"LIBSVM supports only kernel support vector machines, not {kind.__name__}"
        cure = Advice(
            "Train one",
            InPython(f" of {', '.join(names)}", ": ", Setting("model", "svm")),
            ", or ",
            InPython("write the model as ONNX", "export it with ", Setting("to", "onnx")),
            ", which supports any model.",
        )
        raise FaultError(problem, cure)
    unknown = unknown_to_libsvm(model)
    if unknown is not None:
        raise FaultError(*unknown)


def _theirs(model: Any) -> LibsvmModel:
    theirs = LibsvmModel(
        _SVM_TYPES[type(model)],
        _KERNEL_TYPES[model.kernel],
        degree=int(model.degree),
        gamma=float(model.gamma_),
        coef0=float(model.coef0),
        rho=-model.intercept_ + 0.0,
        dual_coef=dense(model.dual_coef_),
        vectors=model.support_.astype(np.int64) + 1 if model.kernel == "precomputed" else model.support_vectors_,
    )
    if not theirs.is_classifier:
        return theirs
    theirs.labels, theirs.n_support = _whole_labels(model.classes_), model.n_support_.astype(np.int64)
    if model._calibration is not None:
        theirs.prob_a, theirs.prob_b = (each + 0.0 for each in model._calibration)
    if len(model.classes_) == 2:
        theirs = _turned(theirs)
    return _in_order(theirs, model.label_order_) if hasattr(model, "label_order_") else theirs


def _whole_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the labels if C's int can hold them, else their places."""
    if classes.dtype.kind in "biuf":
        numbers = classes.astype(np.float64)
        if (numbers == np.round(numbers)).all() and np.abs(numbers).max() <= MOST_INDEX:
            return numbers.astype(np.int64)
    places = np.arange(len(classes))
    which = ", ".join(f"{label} = {place}" for place, label in enumerate(classes[:_SHOWN_LABELS].tolist()))
    more = f", … {len(classes)} in all" if len(classes) > _SHOWN_LABELS else ""
    words = f"LIBSVM's labels are whole numbers, so the classes are written as numbers: {which}{more}."
    warnings.warn(words, MargroveWarning, stacklevel=4)
    return places


def _turned(theirs: LibsvmModel) -> LibsvmModel:
    """Return the model of two labels with the sign of f that the other library uses."""
    prob_b = None if theirs.prob_b is None else -theirs.prob_b + 0.0
    return replace(theirs, dual_coef=-theirs.dual_coef + 0.0, rho=-theirs.rho + 0.0, prob_b=prob_b)


def _in_order(theirs: LibsvmModel, order: NDArray[Any]) -> LibsvmModel:
    """Return the same model with label ``order[c]`` in place c."""
    assert theirs.labels is not None
    assert theirs.n_support is not None
    k, old = len(order), class_slices(theirs.n_support)
    number = {pair: machine for machine, pair in enumerate(pairs_of(k))}
    n_support = theirs.n_support[order]
    new, dual = class_slices(n_support), np.zeros_like(theirs.dual_coef)
    turns, source = np.ones(len(number)), np.empty(len(number), dtype=np.intp)
    for machine, (i, j) in enumerate(pairs_of(k)):
        p, q = int(order[i]), int(order[j])
        source[machine] = number[min(p, q), max(p, q)]
        turns[machine] = 1.0 if p < q else -1.0
        dual[j - 1, new[i]] = turns[machine] * theirs.dual_coef[q - 1 if p < q else q, old[p]]
        dual[i, new[j]] = turns[machine] * theirs.dual_coef[p if p < q else p - 1, old[q]]
    moved = np.concatenate([np.arange(old[p].start, old[p].stop) for p in order])
    return replace(
        theirs,
        labels=theirs.labels[order],
        n_support=n_support,
        dual_coef=dual + 0.0,
        rho=turns * theirs.rho[source] + 0.0,
        vectors=theirs.vectors[moved],
        prob_a=None if theirs.prob_a is None else theirs.prob_a[source],
        prob_b=None if theirs.prob_b is None else turns * theirs.prob_b[source] + 0.0,
    )


def _check_parameters(estimator: type, parameters: dict[str, Any]) -> None:
    known = set(estimator().get_params()) - set(_IN_THE_FILE)
    for name in parameters:
        if name not in known:
            words = "the file contains it" if name in _IN_THE_FILE else f"{estimator.__name__} has no such parameter"
            raise ParameterError(f"{name} is given, and {words}. Allowed parameters: {', '.join(sorted(known))}.")


class _Rows:
    """The training rows, as far as they are known."""

    def __init__(self, n_features: int | None, X: Any, y: Any, theirs: LibsvmModel) -> None:
        self.is_given = theirs.kernel_type == "precomputed"
        self.X = None if X is None else sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        if self.X is not None and self.X.ndim != 2:
            raise InputError(f"X has shape {self.X.shape}; a matrix of rows and columns was expected")
        self.y = None if y is None else np.asarray(y).ravel()
        least = int(theirs.vectors.max(initial=1)) if self.is_given else theirs.vectors.shape[1]
        wanted = n_features if n_features is not None else least if self.X is None else self.X.shape[1]
        check_whole("n_features", wanted, least=1)
        if not least <= wanted <= MOST_INDEX:
            raise ParameterError(
                f"n_features is {wanted}; the file has {least} columns, so it must be {least} or more."
            )
        self.n_features = int(wanted)
        if self.X is not None and self.X.shape[1] != wanted:
            raise InputError(f"X has {self.X.shape[1]} columns, and n_features is {wanted}")
        if self.X is None and y is not None:
            raise ParameterError("y is given without X. Pass both.")
        if self.X is not None and theirs.svm_type != "one_class" and not self.is_given:
            if self.y is None:
                raise ParameterError("X is given without y, which is needed to distinguish equal rows. Pass both.")
            if len(self.y) != self.X.shape[0]:
                raise InputError(f"X has {self.X.shape[0]} rows and y has {len(self.y)}")

    def located(self, theirs: LibsvmModel) -> tuple[NDArray[np.int64], Any, int]:
        """Return the rows of the support vectors, their cells, with all digits if X is given, and the number of rows;
        without X the support vectors are all rows."""
        if self.is_given:
            return theirs.vectors - 1, np.empty((0, 0)), self.n_features if self.X is None else int(self.X.shape[0])
        vectors = self._wide(theirs.vectors)
        if self.X is None:
            n_vectors = theirs.dual_coef.shape[1]
            return np.arange(n_vectors), vectors, max(1, n_vectors)
        if theirs.labels is not None and theirs.n_support is not None:
            assert self.y is not None
            support = rows_of_labels(vectors, np.repeat(theirs.labels, theirs.n_support), self.X, self.y)
        else:
            values = np.zeros(self.X.shape[0]) if self.y is None else self.y.astype(np.float64)
            support = rows_of_values(vectors, theirs.dual_coef[0], self.X, values)
        return support, self.X[support], int(self.X.shape[0])

    def _wide(self, vectors: Any) -> Any:
        missing = self.n_features - vectors.shape[1]
        if sp.issparse(vectors):
            return sp.csr_matrix((vectors.data, vectors.indices, vectors.indptr), (vectors.shape[0], self.n_features))
        if missing * vectors.shape[0] > 3 * vectors.size + MOST_INDEX // 2048:
            return self._wide(sp.csr_matrix(vectors))
        return np.pad(vectors, ((0, 0), (0, missing)))


def _ours(
    theirs: LibsvmModel, model: Any, labels: NDArray[np.int64] | None, rows: _Rows, *, is_cost_given: bool
) -> Any:
    """Return the estimator; ``labels`` are in the order of the file."""
    if labels is not None and len(labels) == 2:
        theirs = _turned(theirs)
    bound = np.abs(theirs.dual_coef)
    if labels is not None and theirs.labels is not None and theirs.n_support is not None:
        order = np.argsort(np.argsort(labels)).astype(np.int32)
        if (np.diff(order) < 0).any():
            model.label_order_ = order
        model.classes_ = theirs.labels
        in_training = theirs.labels if rows.y is None else rows.y
        model.class_weight_ = compute_class_weight(model.class_weight, classes=theirs.labels, y=in_training)
        bound = bound / np.repeat(model.class_weight_, theirs.n_support)
    if hasattr(model, "C") and not is_cost_given:
        model.set_params(C=float(bound.max(initial=0)) or 1.0)
    if theirs.prob_a is not None and getattr(model, "probability", False):
        model.probA_, model.probB_ = theirs.prob_a, theirs.prob_b
    support, model.support_vectors_, model.n_rows_ = rows.located(theirs)
    model.support_, model.n_features_in_ = support.astype(np.int32), rows.n_features
    model.n_support_ = np.array([len(support)] if theirs.n_support is None else theirs.n_support, np.int32)
    model.dual_coef_, model.intercept_, model.gamma_ = theirs.dual_coef, -theirs.rho + 0.0, theirs.gamma
    return complete(model, Status.IMPORTED, np.zeros(len(theirs.rho), np.int64))
