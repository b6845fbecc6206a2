"""A machine for each pair of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.estimator import estimator
from margrove.multiclass.coded import CodedClassifier
from margrove.multiclass.codes import one_vs_one
from margrove.multiclass.decoding import pair_probabilities, votes


@estimator
class OneVsOneClassifier(CodedClassifier):
    """Many classes, one against one: K (K − 1)/2 machines "class i or class j?", and the most votes win.

    A drop-in for scikit-learn's ``OneVsOneClassifier``. The machines' values break ties.

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

    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.ravel() if len(self.classes_) == 2 else votes(values, self.code_)

    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        return pair_probabilities(q, len(self.classes_), predicted)
