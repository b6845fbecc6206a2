"""From the values of the machines to a class, and to probabilities whose most probable class is the predicted one.

With f_s the value of machine s and c_r the word of class r, the class of the least loss Σ_s L(c_rs f_s) wins; of equals
the first (Allwein, Schapire and Singer, 2000):

=============  ===================  ==========================================================================
hamming        (1 − sign(z))/2      counts the machines against r; one with value 0, or that does not know r, ½
hinge          max(0, 1 − z)        the loss of a support vector machine
exponential    exp(−z)              the loss of AdaBoost
linear         −z                   scikit-learn's ``OutputCodeClassifier`` (the nearest word), without zeros
=============  ===================  ==========================================================================

A class that a machine does not know has the loss L(0) there. One-vs-rest takes the largest value, one-vs-one the most
votes.

Probabilities come from q_s, the probability of the positive side of machine s:

- one-vs-rest: p_r proportional to q_r, as in scikit-learn;
- one-vs-one: the pairs are coupled (`margrove.svm.probability.coupled`);
- other codes: p_r proportional to the product of the probabilities of the side of r, ½ of machines that do not know it.

Where the predicted class is not the most probable, the nearest p for which it is replaces them
(`margrove.svm.probability.with_law`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit, softmax

from margrove.svm.layout import scores_of_votes
from margrove.svm.probability import coupled, with_law

Values = NDArray[np.float64]

MOST = 600.0  # of an exponent: sums of larger e^z overflow
CERTAIN = 1e-12  # no machine's probability is nearer to 0 or 1, so that products never vanish

LOSSES: dict[str, Callable[[Values], Values]] = {
    "hamming": lambda z: (1 - np.sign(z)) / 2,
    "hinge": lambda z: np.maximum(0, 1 - z),
    "exponential": lambda z: np.exp(np.clip(-z, -MOST, MOST)),
    "linear": lambda z: -z,
}
DECODINGS = tuple(LOSSES)


def losses(values: Values, code: NDArray[np.int8], decoding: str) -> Values:
    """Return the loss of the word of each class, shape (n, K).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.multiclass.decoding import losses
    >>> code = np.array([[-1, -1], [-1, 1], [1, -1]])
    >>> losses(np.array([[2.0, -0.5]]), code, "hamming")
    array([[1., 2., 0.]])
    >>> losses(np.array([[2.0, -0.5]]), code, "hinge")
    array([[3.5, 4.5, 0.5]])
    """
    return _losses(values, code, LOSSES[decoding])


def _losses(values: Values, code: NDArray[np.int8], loss: Callable[[Values], Values]) -> Values:
    at_zero = float(loss(np.zeros(1))[0])
    paid = loss(values) @ (code.T > 0) + loss(-values) @ (code.T < 0)
    return np.asarray(paid + at_zero * np.count_nonzero(code == 0, axis=1))


def votes(values: Values, code: NDArray[np.int8]) -> Values:
    """Return the number of pairs that each class wins in one-vs-one, plus a term that breaks ties, shape (n, K).

    As in scikit-learn: with v the votes and t the sum of a class's values, ``v + t/(3 (|t| + 1))``.
    """
    return scores_of_votes(values, values > 0, code)


def chosen(scores: Values) -> NDArray[np.intp]:
    """Return the index of the class with the highest score, the first of equals; for one score, > 0 is the second."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def rest_probabilities(q: Values, predicted: NDArray[np.intp]) -> Values:
    """Return (n, K) for one-vs-rest, from the probability of each machine's class (two classes have one machine)."""
    if q.shape[1] == 1:
        q = np.concatenate([1 - q, q], axis=1)
    total = q.sum(axis=1, keepdims=True)
    p = np.divide(q, total, out=np.full_like(q, 1 / q.shape[1]), where=total > 0)
    return with_law(p, predicted)


def pair_probabilities(q: Values, n_classes: int, predicted: NDArray[np.intp]) -> Values:
    """Return (n, K) for one-vs-one, from the probability of j of each pair (i, j)."""
    first = 1 - np.clip(q, CERTAIN, 1 - CERTAIN)
    p = np.concatenate([first, 1 - first], axis=1) if n_classes == 2 else coupled(first, n_classes)
    return with_law(p, predicted)


def code_probabilities(q: Values, code: NDArray[np.int8], predicted: NDArray[np.intp]) -> Values:
    """Return (n, K) for any code, from the probability of each machine's positive side."""
    log_odds = logit(np.clip(q, CERTAIN, 1 - CERTAIN))
    # −log σ(z) is a loss too, and the product is e to the minus its sum.
    return with_law(softmax(-_losses(log_odds, code, lambda z: -log_expit(z)), axis=1), predicted)
