"""The explanation of machines that decide together by a code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from margrove.explanation import Explanation, Inputs, Learned, Lesson, counted, explanation_of, sides_of_code


class Machines(Explanation):
    """The machines of a code, each between two groups of classes."""

    @property
    def parts(self) -> Sequence[Any]:
        """The machines."""
        return list(self.model.estimators_)

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        lessons = tuple(Lesson(*side) for side in sides_of_code(self.model.code_, self.classes or []))
        of = type(explanation_of(self.parts[0]).model).__name__
        return Learned("machines", lessons, len(lessons), unit=of)

    def in_words(self) -> str:
        size = counted(self.model.code_.shape[1], "machine")
        return f"{size} that decide together, each between two groups of classes ({type(self.model).__name__})."
