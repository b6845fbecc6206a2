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
        self.parts = list(model._machines.estimators)

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        if hasattr(self.model, "code_"):
            sides = sides_of_code(self.model.code_, self.classes or [])
        else:
            sides = [(label, f"not {label}") for label in self.classes or []]
        machines = tuple(MachineSummary(*side) for side in sides)
        of = type(explanation_of(self.model._machines.first).model).__name__
        return ModelSummary("machines", machines, len(machines), unit=of)

    def description(self) -> str:
        size = counted(len(self.model.machine_names_), "machine")
        if not hasattr(self.model, "code_"):
            return f"{size}; each decides on a label by itself ({type(self.model).__name__})."
        return f"{size} that decide together; each separates two groups of classes ({type(self.model).__name__})."
