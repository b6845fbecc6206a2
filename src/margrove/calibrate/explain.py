"""The explanation of a calibrated classifier: that of its estimator, with calibrated probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any

from margrove.certificate import at_the_end
from margrove.explanation import Explanation, explanation_of

_AS_IT_IS = (
    *("is_convex", "takes_tables"),  # not has_rules: rules would leave the calibration out
    *("solve", "columns", "data", "importances", "weights", "grades"),
)
_OF_ROWS = ("lead", "path_tests", "votes", "support", "share_alike", "is_trained_on")


class Calibrated(Explanation):
    """The explanation of the estimator, with calibrated probabilities as scores."""

    is_probable = True
    has_margins = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.inner, self.parts = explanation_of(model.estimator_), [model.estimator_]
        for name in _AS_IT_IS:
            setattr(self, name, getattr(self.inner, name))
        for name in _OF_ROWS:
            setattr(self, name, partial(self._asked, name))

    def _asked(self, name: str, rows: Any, *others: Any) -> Any:
        """Ask the last step of the estimator about rows."""
        return getattr(self.inner, name)(at_the_end(self.model.estimator_, rows)[1], *others)

    @property
    def called(self) -> str:
        return f"{self.inner.called} with calibrated probabilities"

    @property
    def kernel(self) -> str | None:
        return self.inner.kernel

    @property
    def loo_bounds(self) -> tuple[float, float] | None:
        return self.inner.loo_bounds

    def description(self) -> str:
        words = f"{self.inner.description()} Its probabilities are calibrated on held-out rows"
        if hasattr(self.model, "class_factors_"):
            metric = getattr(self.model.tuned_for, "__name__", self.model.tuned_for)
            words += f", and its predictions are tuned for {metric}"
            if len(self.model.classes_) == 2:
                words += f": {self.model.classes_[1]} above a probability of {self.model.threshold_:.3g}"
        return f"{words}."
