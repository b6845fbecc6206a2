"""The explanation of machines that decide together by a code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrove.explanation import (
    Explanation,
    Inputs,
    MachineSummary,
    ModelSummary,
    counted,
    explanation_of,
    sides_of_code,
)


class CodedMachines(Explanation):
    """The machines of a code, each between two groups of classes."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.parts = list(model.estimators_)

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        machines = tuple(MachineSummary(*side) for side in sides_of_code(self.model.code_, self.classes or []))
        of = type(explanation_of(self.parts[0]).model).__name__
        return ModelSummary("machines", machines, len(machines), unit=of)

    def description(self) -> str:
        size = counted(self.model.code_.shape[1], "machine")
        return f"{size} that decide together; each separates two groups of classes ({type(self.model).__name__})."
