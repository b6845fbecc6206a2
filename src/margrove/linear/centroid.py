"""The basic linear classifier. Its ``fit`` is the chain: sample → problem → solution → model → certificate."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from margrove.data.sample import read_sample
from margrove.engine import Effort, check_engine, choose
from margrove.linear.certificate import certify_centroid, is_recomputation_cheap
from margrove.linear.classifier import LinearClassifier
from margrove.linear.problem import CentroidProblem, normalised


class BasicLinearClassifier(LinearClassifier):
    """The basic linear classifier (THEORY L1): w is the difference of the class means, the boundary runs halfway
    between them.

    More than two classes are told apart one against the rest.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; None means all.
    engine : {"auto", "native", "reference"}
        Where it runs.

    Attributes
    ----------
    coef_ : array of shape (machines, d)
    intercept_ : array of shape (machines,)
    classes_ : array of shape (classes,)
    status_, engine_, certificate_, n_iter_
        Why the solve ended, what ran, what it claims, how many passes over the data.

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

    def __init__(self, *, n_jobs: int | None = None, engine: str = "auto") -> None:
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take the means of the classes."""
        check_engine(self.engine)
        effort = Effort(n_jobs=self.n_jobs)
        sample = read_sample(self, X, y, sample_weight)
        weight = None if sample.weight is None else normalised(sample.weight)
        problem = CentroidProblem(sample.X, sample.codes, len(sample.classes), weight)
        engine = choose(self.engine, problem)
        self._keep_linear(sample, engine.solve(problem, effort), engine.name)
        self._warn_unless_converged("the means are too large for their products")
        self._keep_certificate(
            certify_centroid,
            (X, y, sample_weight),
            sample,
            is_cheap=is_recomputation_cheap(sample.X.shape[0] * sample.X.shape[1], passes=1),
            numbers=lambda: {"‖w‖": np.linalg.norm(self.coef_, axis=1)},
        )
        return self
