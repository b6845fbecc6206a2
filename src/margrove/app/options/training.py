"""The options of ``margrove train`` about the learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from margrove.app.choose.search import SearchSpace, search_space_of
from margrove.app.estimate.classes import CLASSES, classes_by
from margrove.app.estimate.metrics import ACCURACY, BALANCED, R2, RARE, metric_named, rarest
from margrove.app.estimate.numbers import NUMBERS, numbers_by
from margrove.app.estimate.task import Labels, Task
from margrove.app.models import last_step_of
from margrove.app.options.menu import AUTO, TASKS, Choice, choice_named, choices
from margrove.app.options.table import AS_USUAL, TablePreparation
from margrove.calibrate.classifier import CalibratedClassifier
from margrove.data.formats import Format
from margrove.errors import ParameterError, check_choice

PREFERENCES = ("best", "simple")


@dataclass(frozen=True)
class Training:
    """The options about the learning, of ``margrove train`` and ``margrove compare``."""

    model: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    folds: int = 5
    time_limit: float | None = None
    budget: float = 0.0  # seconds for the search; 0 for none
    task: str | None = None  # one of TASKS; None: as the target looks
    preparation: TablePreparation = AS_USUAL
    prefer: str = "best"  # one of PREFERENCES
    taken: Choice | None = None  # what ``--model auto`` has chosen
    metric: str | None = None  # as typed; None: accuracy or R², or what `judged` settles
    is_balanced: bool = False  # all classes weigh the same in training
    class_weight: Any = None  # of the learners that have one, settled by `judged`
    has_probabilities: bool = False  # of classes, calibrated on held-out rows
    tuned_for: str | None = None  # what thresholds are tuned for on held-out rows, settled by `judged`
    reason: str = ""  # why balanced accuracy is the metric although none was given
    form: Format | None = None  # of the target, once the table is read

    def __post_init__(self) -> None:
        if self.metric is not None:
            own = NUMBERS.name if metric_named(self.metric).is_of_numbers else CLASSES.name
            if self.task not in (None, own):
                raise ParameterError(f"--metric {self.metric} requires --task {own}, and --task is {self.task}.")
            object.__setattr__(self, "task", own)
        if self.task == NUMBERS.name and (self.is_balanced or self.has_probabilities):
            option = "--balanced" if self.is_balanced else "--probabilities"
            raise ParameterError(f"{option} is about classes, and a number is predicted.")
        if self.task is not None:
            check_choice("--task", self.task, TASKS)
        if self.prefer not in PREFERENCES:
            raise ParameterError(f"--prefer is {self.prefer!r}; it must be one of {', '.join(PREFERENCES)}.")

    @property
    def is_auto(self) -> bool:
        """The learner is still to be chosen."""
        return self.model in (None, AUTO) and self.taken is None

    @property
    def learner(self) -> Choice:
        """The learner asked for, or chosen."""
        if self.taken is not None:
            return self.taken
        learner = choice_named(self.model or "")
        if not self.kind.is_number:
            return learner
        if learner.regression is None:
            able = ", ".join(f"--model {name}" for name, other in choices().items() if other.regression is not None)
            raise ParameterError(
                f"--task is 'regress', and {learner.name} is a classifier. Learners that predict numbers: {able}."
            )
        return learner.regression

    @property
    def kind(self) -> Task:
        """The task as it is asked for or settled; classes until then."""
        if self.task == NUMBERS.name:
            return numbers_by(self.metric or R2.name, self.form)
        return CLASSES if self.metric is None else classes_by(self.metric)

    def judged(self, labels: Labels) -> Training:
        """Return the training with its class weights settled: balanced if asked for, and by default for balanced
        accuracy; the mean cost of an error for costs. If no metric was given and the rarer of two classes has so few
        rows that accuracy says little, the metric is balanced accuracy."""
        if self.task == NUMBERS.name:
            return self
        classes, counts = np.unique(labels, return_counts=True)
        rare = rarest(counts)
        if self.metric is None and len(classes) == 2 and counts[rare] < RARE * len(labels):
            share = f"Only {100 * counts[rare] / len(labels):.1f} % of the rows are {str(classes[rare])!r}"
            return self.by_balanced(labels, share)
        weights: Any = self.kind.metric.class_weights(classes)
        if self.is_balanced or self.kind.metric.is_balanced:
            weights = "balanced"
        tuned_for = None
        if self.kind.metric.name == "f1":
            tuned_for = "f1_macro" if len(classes) > 2 else f"f1:{classes[rare]}"
        elif weights == "balanced" and self.has_probabilities:  # they say how frequent a class is, not what it weighs
            tuned_for = BALANCED.name
        elif self.kind.metric.needs == "probabilities":  # predictions follow them
            tuned_for = ACCURACY.name
        settled = replace(self, class_weight=weights, is_balanced=weights == "balanced", tuned_for=tuned_for)
        is_probable = self.has_probabilities or self.kind.metric.needs == "probabilities"
        settled = replace(settled, has_probabilities=is_probable)
        return settled if self.is_auto else settled.of(self.learner)

    def of(self, learner: Choice) -> Training:
        """Return the training of one learner; with a threshold tuned on held-out rows if it needs one."""
        is_tuned = learner.is_tuned and self.kind.metric.is_balanced and self.tuned_for is None
        return replace(self, taken=learner, tuned_for=BALANCED.name if is_tuned else self.tuned_for)

    def by_balanced(self, labels: Labels, reason: str) -> Training:
        """Return the training with balanced accuracy as its metric, for this reason."""
        return replace(self, metric=BALANCED.name, is_balanced=True, reason=reason).judged(labels)

    @property
    def can_estimate(self) -> bool:
        """A target that looks like a quantity is to be estimated."""
        return self.task is None and (self.is_auto or self.learner.regression is not None)

    def check(self) -> None:
        """Raise for a parameter that the learner does not have for either task, or for text that it does not take."""
        if self.is_auto:
            self._check_auto()
            return
        if self.prefer != PREFERENCES[0]:
            raise ParameterError(f"--prefer {self.prefer} requires --model auto, and --model is {self.model}.")
        self.preparation.check_learner(self.learner)
        try:
            self.search_space()
        except ParameterError as refused:
            if self.task is not None or self.learner.regression is None:
                raise
            try:
                replace(self, task=NUMBERS.name).search_space()
            except ParameterError:  # of neither: its classes are what most people mean
                raise refused from None

    def _check_auto(self) -> None:
        if self.params:
            raise ParameterError(
                f"--param {next(iter(self.params))} is a parameter of one learner, and --model auto tries many. "
                "Choose a learner, such as --model svm."
            )
        if self.budget <= 0:
            raise ParameterError(
                f"--budget is {self.budget:g}, and --model auto needs time to try learners. Increase it, or choose a "
                "--model."
            )
        if self.folds < 2:
            raise ParameterError(
                f"--folds is {self.folds}, and --model auto chooses by cross-validation; it must be at least 2."
            )

    def build(self, found: Mapping[str, Any] | None = None) -> Any:
        """Return an unfitted model, with the parameters that a search found besides those that were typed."""
        learner = self.learner
        estimator = self._calibrated(self.estimator(learner, {**self.params, **(found or {})}))
        if learner.takes_tables:
            return estimator
        return Pipeline([("encode", self.preparation.encoder()), ("learn", estimator)])

    def estimator(self, learner: Choice, params: Mapping[str, Any]) -> Any:
        """Return an unfitted estimator with these parameters."""
        estimator = learner.estimator(params, seed=self.seed, time_limit=self.time_limit)
        is_free = "class_weight" in estimator.get_params() and "class_weight" not in params
        if is_free and self.class_weight is not None:
            estimator.set_params(class_weight=self.class_weight)
        return estimator

    @property
    def is_calibrated(self) -> bool:
        """The score depends on calibrated probabilities or tuned thresholds."""
        return self.tuned_for is not None or self.kind.metric.needs == "probabilities"

    @property
    def n_fits(self) -> int:
        """The fits that a model takes at most."""
        return CalibratedClassifier().cv + 1 if self.is_calibrated or self.has_probabilities else 1

    @property
    def bare(self) -> Training:
        """The same without calibration and tuned thresholds."""
        return replace(self, has_probabilities=False, tuned_for=None)

    def _calibrated(self, estimator: Any) -> Any:
        """Return the estimator, with calibrated probabilities or tuned thresholds if they are wanted."""
        if self.has_probabilities and self.tuned_for is None and "probability" in estimator.get_params():
            estimator.set_params(probability=True)
        is_machine = hasattr(estimator, "decision_function") and "probability" not in estimator.get_params()
        if self.tuned_for is None and not (self.has_probabilities and is_machine):
            return estimator
        if self.time_limit is not None and "time_limit" in estimator.get_params():
            estimator.set_params(time_limit=self.time_limit / self.n_fits)
        return CalibratedClassifier(estimator, tuned_for=self.tuned_for, random_state=self.seed)

    def search_space(self) -> SearchSpace | None:
        estimator = last_step_of(self.bare.build())
        space = search_space_of(self.learner, self.params, estimator, self.kind) if self.budget > 0 else None
        return None if space is None else replace(space, preparation=self.preparation)
