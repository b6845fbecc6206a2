"""The basic linear classifier."""

from __future__ import annotations

from margrove.data.sample import Sample
from margrove.estimator import estimator
from margrove.linear.certificate import certify_centroid
from margrove.linear.classifier import ClosedForm
from margrove.linear.problem import CentroidProblem, normalised


@estimator
class BasicLinearClassifier(ClosedForm):
    """The basic linear classifier: w is the difference of the class means, the boundary runs halfway
    between them.

    More than two classes are separated one against the rest.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; None means all.
    engine : str or Engine
        The engine that runs it: "auto", "native", "reference", or an `Engine` object.

    Attributes
    ----------
    coef_ : array of shape (machines, d)
    intercept_ : array of shape (machines,)
    classes_ : array of shape (classes,)
    status_, engine_, certificate_, n_iter_
        Why the solve ended, the engine that ran, the certificate, the number of passes over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier
    >>> X, y = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0], [6.0, 3.0]]), np.array(["a", "a", "b", "b"])
    >>> model = BasicLinearClassifier().fit(X, y)
    >>> model.coef_, model.intercept_
    (array([[4., 3.]]), array([-16.5]))
    >>> model.predict([[5.0, 2.0]])
    array(['b'], dtype='<U1')
    """

    _certify = certify_centroid
    _failure = "the products of the class means overflow"

    def _problem(self, sample: Sample) -> CentroidProblem:
        weight = None if sample.weight is None else normalised(sample.weight)
        return CentroidProblem(sample.X, sample.codes, len(sample.classes), weight)
