"""The options of ``margrove train`` about the learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.pipeline import Pipeline

from margrove.app.choose.search import SearchSpace, search_space_of
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.numbers import NUMBERS, Numbers
from margrove.app.estimate.task import Task
from margrove.app.models import last_step_of
from margrove.app.options.menu import AUTO, TASKS, Choice, choice_named, choices
from margrove.app.options.table import AS_USUAL, TablePreparation
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
    form: Format | None = None  # of the target, once the table is read

    def __post_init__(self) -> None:
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
        return Numbers(self.form) if self.task == NUMBERS.name else CLASSES

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
                "--budget is 0, and --model auto needs time to try learners. Increase it, or choose a --model."
            )
        if self.folds < 2:
            raise ParameterError(
                f"--folds is {self.folds}, and --model auto chooses by cross-validation; it must be at least 2."
            )

    def build(self, found: Mapping[str, Any] | None = None) -> Any:
        """Return an unfitted model, with the parameters that a search found besides those that were typed."""
        learner, params = self.learner, {**self.params, **(found or {})}
        estimator = learner.estimator(params, seed=self.seed, time_limit=self.time_limit)
        if learner.takes_tables:
            return estimator
        return Pipeline([("encode", self.preparation.encoder()), ("learn", estimator)])

    def search_space(self) -> SearchSpace | None:
        estimator = last_step_of(self.build())
        space = search_space_of(self.learner, self.params, estimator, self.kind) if self.budget > 0 else None
        return None if space is None else replace(space, preparation=self.preparation)
