"""An ONNX graph under construction: operators, constants, and the finished model.

A `GraphValue` is a tensor of the graph, and arithmetic with it adds operators. All arithmetic is float64: a Python
float or an array of floats that is given to an operator becomes a constant of doubles, an integer one of int64.
Operators that no output needs are removed in the end, so that a family may add more than is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from margrove.errors import MissingExtraError
from margrove.store.fault import FaultError

Operand: TypeAlias = Any  # a `GraphValue`, the name of an input (str), or a number or array that becomes a constant

ML = "ai.onnx.ml"
OPSET = 18  # reductions take their axes as inputs
ML_OPSET = 5  # TreeEnsemble, whose thresholds and leaves are doubles
IR_VERSION = 10  # the oldest that has both
MOST_BYTES = 2**31 - 2**20  # of all constants: a protobuf message holds less than 2 GiB
ROWS = "rows"  # the name of the dimension that is free


def onnx_package() -> Any:
    """Return the package ``onnx``; `MissingExtraError` names the line that installs it."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("ONNX files need the package onnx: pip install 'margrove[onnx]'") from error
    return onnx


@dataclass(frozen=True)
class Tensor:
    """An input or output of a graph: its name, its type in ONNX's words, and its columns (None: it is a vector)."""

    name: str
    type: str  # "double", "int64", "string" or "bool"
    width: int | None


@dataclass
class Graph:
    """Operators in the order in which they run, and their constants by name."""

    taken: set[str] = field(default_factory=set)  # names of inputs, which no other tensor may have
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    prefix: str = "/"
    n_names: int = 0

    def fresh(self, word: str) -> str:
        """Return an unused name."""
        while True:
            self.n_names += 1
            name = f"{self.prefix}{word}_{self.n_names}"
            if name not in self.taken:
                return name

    def op(self, kind: str, *operands: Operand, **attributes: Any) -> GraphValue:
        """Add an operator with one result; return that."""
        (result,) = self.ops(kind, 1, *operands, **attributes)
        return result

    def ops(self, kind: str, n_results: int, *operands: Operand, **attributes: Any) -> list[GraphValue]:
        """Add an operator; return its results."""
        results = [self.fresh(kind) for _ in range(n_results)]
        self.add(results, kind, *operands, **attributes)
        return [GraphValue(self, result) for result in results]

    def add(self, results: list[str], kind: str, *operands: Operand, **attributes: Any) -> None:
        """Add an operator whose results have these names."""
        names = [str(each) if isinstance(each, str | GraphValue) else self.constant(each) for each in operands]
        self.nodes.append(onnx_package().helper.make_node(kind, names, results, name=results[0], **attributes))

    def constant(self, value: Any) -> str:
        """Add a constant: doubles, whole numbers as int64, truth values or text."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        name = self.fresh("constant")
        self.constants[name] = array
        return name

    def joined(self, tensors: Sequence[GraphValue]) -> GraphValue:
        """Return matrices side by side."""
        return tensors[0] if len(tensors) == 1 else self.op("Concat", *tensors, axis=1)

    def body(self, word: str) -> Graph:
        """Return a graph for the body of a loop, whose names differ from those of this one."""
        return Graph(self.taken, prefix=f"{self.fresh(word)}/")

    def proto(self, name: str, inputs: Iterable[Any], outputs: Iterable[Any]) -> Any:
        """Return the graph as ONNX's message."""
        onnx = onnx_package()
        constants = [_tensor(onnx, name, array) for name, array in self.constants.items()]
        return onnx.helper.make_graph(self.nodes, name, list(inputs), list(outputs), initializer=constants)

    def model(self, name: str, inputs: Sequence[Tensor], outputs: dict[GraphValue, Tensor]) -> Any:
        """Return the finished model; ``outputs`` has the names under which its results leave the graph."""
        onnx = onnx_package()
        for tensor, output in outputs.items():
            self.nodes.append(onnx.helper.make_node("Identity", [str(tensor)], [output.name], name=output.name))
        self._drop_unused({output.name for output in outputs.values()})
        check_size(sum(array.nbytes for array in self.constants.values()))
        graph = self.proto(name, map(_described, inputs), map(_described, outputs.values()))
        domains = [onnx.helper.make_opsetid("", OPSET)]
        if any(node.domain == ML for node in self.nodes):
            domains.append(onnx.helper.make_opsetid(ML, ML_OPSET))
        return onnx.helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION)

    def _drop_unused(self, needed: set[str]) -> None:
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.constants = {name: array for name, array in self.constants.items() if name in needed}


def _infix(kind: str, *, is_turned: bool = False) -> Callable[[GraphValue, Operand], GraphValue]:
    def operate(self: GraphValue, other: Operand) -> GraphValue:
        return self.graph.op(kind, *((other, self) if is_turned else (self, other)))

    return operate


@dataclass(frozen=True, eq=False)
class GraphValue:
    """A tensor of a graph, by its name."""

    graph: Graph
    name: str

    __array_ufunc__ = None  # an array on the left leaves the operator to us

    def __str__(self) -> str:
        return self.name

    __add__ = _infix("Add")
    __sub__ = _infix("Sub")
    __rsub__ = _infix("Sub", is_turned=True)
    __mul__ = _infix("Mul")
    __truediv__ = _infix("Div")
    __rtruediv__ = _infix("Div", is_turned=True)
    __matmul__ = _infix("MatMul")
    __gt__ = _infix("Greater")
    __ge__ = _infix("GreaterOrEqual")
    __le__ = _infix("LessOrEqual")

    def __neg__(self) -> GraphValue:
        return self.op("Neg")

    def op(self, kind: str, *operands: Operand, **attributes: Any) -> GraphValue:
        """Return the result of an operator with this tensor as first operand."""
        return self.graph.op(kind, self, *operands, **attributes)

    def where(self, then: Operand, otherwise: Operand) -> GraphValue:
        """Return ``then`` where this tensor is true, ``otherwise`` elsewhere."""
        return self.graph.op("Where", self, then, otherwise)

    def exp(self) -> GraphValue:
        """e to its entries."""
        return self.op("Exp")

    def cast(self, to: str) -> GraphValue:
        """The tensor in another type, such as "double"."""
        return self.op("Cast", to=_type_number(to))

    def sum(self, axis: int = 1) -> GraphValue:
        """Sums along an axis, which stays, of length 1."""
        return self.op("ReduceSum", np.array([axis]))

    def columns(self, places: Sequence[int]) -> GraphValue:
        """Some columns of a matrix."""
        return self.op("Gather", np.asarray(places, dtype=np.int64), axis=1)

    def slice(self, start: int, stop: int, axis: int = 1) -> GraphValue:
        """Entries from start to stop along an axis."""
        return self.op("Slice", [start], [stop], [axis])

    def turned(self, *axes: int) -> GraphValue:
        """The tensor with its axes in another order."""
        return self.op("Transpose", perm=list(axes))

    def flat(self) -> GraphValue:
        """A matrix of one column as a vector."""
        return self.op("Squeeze", np.array([1]))

    def upright(self) -> GraphValue:
        """A vector as a matrix of one column."""
        return self.op("Unsqueeze", np.array([1]))


def check_size(n_bytes: int) -> None:
    """Refuse a model that is too large for an ONNX file, before it is made."""
    if n_bytes > MOST_BYTES:
        raise FaultError(
            f"its arrays take {n_bytes / 2**30:.1f} GiB, but an ONNX file holds less than 2 GiB",
            "Use a model with fewer support vectors or columns, such as LinearSVC.",
        )


def described(name: str, type_name: str, shape: Sequence[Any]) -> Any:
    """Return name, type and shape of a tensor as ONNX's message."""
    return onnx_package().helper.make_tensor_value_info(name, _type_number(type_name), list(shape))


def _described(tensor: Tensor) -> Any:
    return described(tensor.name, tensor.type, [ROWS] if tensor.width is None else [ROWS, tensor.width])


def _type_number(name: str) -> int:
    return int(getattr(onnx_package().TensorProto, name.upper()))


def _tensor(onnx: Any, name: str, array: Any) -> Any:
    if array.dtype == object:
        words = [str(each).encode() for each in array.ravel()]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, words)
    return onnx.numpy_helper.from_array(array, name)
