"""A machine for each bit of the classes' code words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import check_choice
from margrove.estimator import checked, estimator
from margrove.multiclass.coded import CodedClassifier
from margrove.multiclass.codes import code_for
from margrove.multiclass.decoding import DECODINGS, code_probabilities, losses


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
