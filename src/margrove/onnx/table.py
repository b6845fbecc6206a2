"""The table that comes into an ONNX graph: one input for each column by its name, or one matrix X.

A number is a double, NaN where it is missing; so is a truth value, 1 or 0. Text is a string, and a missing cell the
word that stands for it: "" unless that is a level, see `missing_word`.

Where training had no names and all columns are numbers, or where names are many (`MOST_INPUTS`), the input is a matrix
X with a column for each.

Codes of a category, the same for text and numbers, are 0 where training did not know the level, 1 where the cell is
missing, and k + 2 for level k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.errors import shown
from margrove.onnx.graph import ML, Graph, GraphValue, Tensor, onnx_package
from margrove.store.fault import FaultError

MATRIX = "X"
MOST_INPUTS = 512  # of named columns that are all numbers: beyond, they are one matrix

UNSEEN, MISSING, FIRST_LEVEL = 0, 1, 2


class Columns:
    """The columns that a learner or an encoder reads, by place: here a matrix of numbers, such as an encoder makes."""

    def __init__(self, matrix: GraphValue, width: int) -> None:
        self.graph, self._matrix, self.width = matrix.graph, matrix, width

    def numbers(self, places: Sequence[int] | None = None) -> GraphValue:
        """Some or all columns as a matrix of doubles."""
        if places is None or list(places) == list(range(self.width)):
            return self._matrix
        return self._matrix.columns(places)

    def codes(self, place: int, levels: Sequence[Any]) -> GraphValue:
        """The codes of a category, (rows, 1) int64."""
        return codes_of_numbers(self.numbers([place]), levels)

    def note_truth(self, place: int) -> None:
        """Say that a column of numbers holds truth values."""

    def select(self, places: Sequence[int]) -> Columns:
        """Some of them, as all that there are."""
        return Columns(self.numbers(places), len(places))


class GraphInputs:
    """The inputs of the graph. Requests for columns are noted, and the inputs are made of them in the end: only then
    it is known which columns are text."""

    def __init__(self, graph: Graph, names: Sequence[str] | None, n_columns: int) -> None:
        self.graph = graph
        self.is_named = names is not None
        self.names = [f"x{j}" for j in range(n_columns)] if names is None else [str(name) for name in names]
        self.kinds: dict[int, str] = {}
        self._levels: dict[int, list[str]] = {}
        self._numbers: dict[tuple[int, ...], str] = {}
        self._codes: dict[tuple[int, tuple[str, ...]], str] = {}
        self._empty: dict[int, str] = {}  # codes of categories without a level
        if any(not name for name in self.names):
            raise FaultError("a column has no name, but inputs of an ONNX graph need one", "Name it and fit again.")
        graph.taken.update(self.names, {MATRIX})

    def numbers(self, places: Sequence[int]) -> GraphValue:
        """These columns as a matrix."""
        for j in places:
            self._note(j, "number")
        key = tuple(places)
        if key not in self._numbers:
            self._numbers[key] = self.graph.fresh("numbers")
        return GraphValue(self.graph, self._numbers[key])

    def codes(self, j: int, levels: Sequence[Any]) -> GraphValue:
        """The codes of a category."""
        if not levels:  # every cell was missing; to another machine, that saw other rows, it may be text or numbers
            return GraphValue(self.graph, self._empty.setdefault(j, self.graph.fresh("codes")))
        if not isinstance(levels[0], str):
            codes = codes_of_numbers(self.numbers([j]), levels)
            self.kinds[j] = "truth value" if isinstance(levels[0], bool) else "number"
            return codes
        self._note(j, "text")
        self._levels.setdefault(j, []).extend(levels)
        key = j, tuple(levels)
        if key not in self._codes:
            self._codes[key] = self.graph.fresh("codes")
        return GraphValue(self.graph, self._codes[key])

    def _note(self, j: int, kind: str) -> None:
        known = self.kinds.setdefault(j, kind)
        if (known == "text") != (kind == "text"):
            raise FaultError(
                f"its machines do not agree on the column {self.names[j]!r}: some read it as text, others as numbers",
                "Convert it to one of them before fitting.",
            )

    def make(self) -> tuple[list[Tensor], list[dict[str, Any]]]:
        """Return the inputs and a description of each; the operators that read them come first in the graph."""
        asked, self.graph.nodes = self.graph.nodes, []
        for j, name in self._empty.items():
            if self.kinds.setdefault(j, "text") == "text":
                self._levels.setdefault(j, [])
                self._codes[j, ()] = name
            else:
                self.numbers([j])
        used = sorted(self.kinds)
        has_text = "text" in self.kinds.values()
        if not has_text and (not self.is_named or len(used) > MOST_INPUTS):
            tensors, facts = self._matrix()
        else:
            tensors, facts = self._by_name(used)
        for j, name in self._empty.items():
            if self.kinds[j] != "text":
                is_missing = self.graph.op("IsNaN", self.numbers([j]))
                self.graph.add([name], "Cast", is_missing, to=onnx_package().TensorProto.INT64)  # UNSEEN or MISSING
        self.graph.nodes += asked
        return tensors, facts

    def _matrix(self) -> tuple[list[Tensor], list[dict[str, Any]]]:
        everything = tuple(range(len(self.names)))
        for places, name in self._numbers.items():
            if places == everything:
                self.graph.add([name], "Identity", MATRIX)
            else:
                self.graph.add([name], "Gather", MATRIX, np.array(places), axis=1)
        fact = {"name": MATRIX, "kind": "numbers", "columns": self.names}
        return [Tensor(MATRIX, "double", len(self.names))], [fact]

    def _by_name(self, used: list[int]) -> tuple[list[Tensor], list[dict[str, Any]]]:
        for places, name in self._numbers.items():
            self.graph.add([name], "Concat", *(self.names[j] for j in places), axis=1)
        words = {j: missing_word(self._levels[j]) for j in self._levels}
        for (j, levels), name in self._codes.items():
            codes = [MISSING, *range(FIRST_LEVEL, FIRST_LEVEL + len(levels))]
            coding = {"keys_strings": [words[j], *levels], "values_int64s": codes, "default_int64": UNSEEN}
            self.graph.add([name], "LabelEncoder", self.names[j], **coding, domain=ML)
        tensors, facts = [], []
        for j in used:
            kind = self.kinds[j]
            tensors.append(Tensor(self.names[j], "string" if kind == "text" else "double", 1))
            missing = {"missing": words[j]} if kind == "text" else {}
            facts.append({"name": self.names[j], "kind": kind, **missing})
        return tensors, facts


class TableColumns(Columns):
    """Some columns of the table that comes in."""

    def __init__(self, inputs: GraphInputs, places: Sequence[int]) -> None:
        self.graph, self._inputs, self._places, self.width = inputs.graph, inputs, list(places), len(places)

    def numbers(self, places: Sequence[int] | None = None) -> GraphValue:
        return self._inputs.numbers(self._places if places is None else [self._places[j] for j in places])

    def codes(self, place: int, levels: Sequence[Any]) -> GraphValue:
        return self._inputs.codes(self._places[place], levels)

    def note_truth(self, place: int) -> None:
        self._inputs.kinds[self._places[place]] = "truth value"

    def select(self, places: Sequence[int]) -> Columns:
        return TableColumns(self._inputs, [self._places[j] for j in places])


def missing_word(levels: Sequence[str]) -> str:
    """Return the word for a missing cell of text: "" or the first of "(missing)", "((missing))", … that is no level."""
    word, known = "", set(levels)
    while word in known:
        word = f"({word})" if word else "(missing)"
    return word


def codes_of_numbers(column: GraphValue, levels: Sequence[Any]) -> GraphValue:
    """The codes of a category whose levels are numbers or truth values, from a column of doubles."""
    if any(isinstance(level, str) for level in levels):
        raise FaultError(f"the level {shown(levels[0])} is text, but its column contains numbers", "Fit it again.")
    missing = column.op("IsNaN").cast("int64")  # × MISSING, which is 1
    if not levels:
        return missing
    is_level = column.op("Equal", np.array([levels], dtype=np.float64)).cast("int64")
    return (is_level * np.arange(FIRST_LEVEL, FIRST_LEVEL + len(levels))[None]).sum() + missing
