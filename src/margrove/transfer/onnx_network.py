"""A network in an ONNX file, cut and run by ONNX Runtime, without torch.

The file is read as data (a graph of known operators); the part behind the cut is removed before it is run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper

from margrove.advice import Advice, Parameter, Setting
from margrove.errors import EngineError, InputError, ParameterError, shown
from margrove.run.checkpoint import fingerprint
from margrove.transfer.networks import Cut, Floats, Network, Source, is_mean_of, pooled, probe_pixels
from margrove.transfer.preparation import RIGHT_SIZE, Preparation

_LINEAR = ("Gemm", "MatMul")
_PASSING = ("Flatten", "Reshape", "Squeeze", "Dropout", "Identity")  # between pooling and the classifier
_POOLING = ("GlobalAveragePool", "ReduceMean")
_CHANNELS_FIRST = (
    "Conv", "ConvTranspose", "AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization",
    "InstanceNormalization", "GroupNormalization",
)  # fmt: skip
_CUDA, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_QUIET = 3  # of ONNX Runtime's log levels: errors only


def read_onnx(path: str) -> Source:
    """Return the network of a file."""
    if not Path(path).is_file():
        raise InputError("there is no such file", file=path, cure="Check the path.")
    try:
        model = onnx.load(path)  # also weights in a separate file
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "it cannot be read"
        problem = f"it is not a valid ONNX network ({first[:120]})"
        raise InputError(problem, file=path, cure="Export the network again.") from error
    return Source(os.path.basename(path), _preparation(model, path), onnx=model.SerializeToString())


class OnnxNetwork(Network):
    """A network, up to its cut, in a session of ONNX Runtime."""

    def __init__(self, name: str, content: bytes, cut: Cut, preparation: Preparation) -> None:
        if cut.precision != "float32":
            raise ParameterError(
                f"precision is {cut.precision!r}; an ONNX file has its own. Use 'float32', or a torch network."
            )
        self.digest = fingerprint("onnx", np.frombuffer(content, np.uint8))
        self._name, self._pooling = name, cut.pooling
        self._model = onnx.load_model_from_string(content)
        self._providers = _providers(cut.device)
        self._scale, self._shift = preparation.scale_and_shift
        given = _input_of(self._model, name)
        self._input, self._is_channels_last = given.name, _channels_at(given) == 3
        self._fixed = _dim(given, 0)  # number of pictures in a batch; None: any
        noise = probe_pixels(preparation)
        self.layer, self._session = self._cut(cut.layer, noise)
        self._try(noise)

    def _pooled(self, found: Floats) -> Floats:
        return pooled(found, self._pooling)

    def maps(self, pixels: NDArray[np.uint8]) -> Floats:
        return np.maximum(self._run(pixels), 0)

    def _cut(self, layer: str | None, noise: NDArray[np.uint8]) -> tuple[str, Any]:
        """Return the name of the tensor at the cut, and a session that ends there."""
        nodes = list(self._model.graph.node)
        if layer is not None:
            by_name = {node.name: node.output[0] for node in nodes if node.name}
            tensor = by_name.get(layer, layer)
            if tensor not in {name for node in nodes for name in node.output}:
                names = ", ".join(list(by_name)[-8:]) or "no named layers"
                raise ParameterError(Advice(Parameter("layer"), f" is {shown(layer)}; the network has {names}, …."))
            return layer, self._until(tensor)
        vector, maps = _classifier_reads(nodes)
        if vector is None:
            raise InputError(
                "the network has no linear layer, before which it is usually cut",
                file=self._name,
                cure=Advice("Name the layer whose output to use: ", Setting("layer", ...), "."),
            )
        if maps is not None:
            session = self._until(maps)
            if is_mean_of(self._outputs(session, noise), self._outputs(self._until(vector), noise)):
                return maps, session
        return vector, self._until(vector)

    def _until(self, tensor: str) -> tuple[Any, bool]:
        """Return a session of the part of the graph that the tensor needs, and whether its channels are last."""
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        _keep_only(model.graph, tensor)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _QUIET
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=self._providers)
        except Exception as error:  # ONNX Runtime's own have no common root but this
            problem = f"ONNX Runtime cannot open it ({str(error).strip().splitlines()[0][:160]})"
            raise InputError(
                problem, file=self._name, cure="Export the network with standard ONNX operators."
            ) from error
        return session, is_channels_last(tensor, self._model.graph, self._input, is_input_so=self._is_channels_last)

    def _run(self, pixels: NDArray[np.uint8]) -> Floats:
        return self._outputs(self._session, pixels)

    def _outputs(self, opened: tuple[Any, bool], pixels: NDArray[np.uint8]) -> Floats:
        session, is_last = opened
        batch = pixels * self._scale + self._shift  # float32, channels last
        if not self._is_channels_last:
            batch = np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
        size, found = self._fixed or len(batch), []
        for start in range(0, len(batch), size):  # the last picture is repeated to fill a batch of fixed size
            part = batch[np.minimum(np.arange(start, start + size), len(batch) - 1)] if self._fixed else batch
            try:
                output = session.run(None, {self._input: part})[0]
            except Exception as error:  # ONNX Runtime's own have no common root but this
                problem = f"it cannot be run on pictures of {part.shape[1:]} ({str(error).splitlines()[0][:160]})"
                raise InputError(problem, file=self._name, cure=RIGHT_SIZE) from error
            found.append(np.asarray(output, np.float32)[: len(batch) - start])
        whole = np.concatenate(found)
        return whole.transpose(0, 3, 1, 2) if is_last and whole.ndim == 4 else whole


def is_channels_last(tensor: str, graph: Any, pixels: str, *, is_input_so: bool) -> bool:
    """Return whether the channels of a tensor are last. ONNX's convolutions and poolings have them first, whatever the
    order of the input; a transposition moves them, and every other operator keeps them."""
    made_by = {name: node for node in graph.node for name in node.output}
    weights = {each.name for each in graph.initializer}
    moves = []
    while tensor != pixels and tensor in made_by and made_by[tensor].op_type not in _CHANNELS_FIRST:
        node = made_by[tensor]
        if node.op_type == "Transpose":
            moves.append([list(each.ints) for each in node.attribute if each.name == "perm"])
        tensor = next((name for name in node.input if name not in weights), pixels)
    axis = 3 if tensor == pixels and is_input_so else 1
    for perm in reversed(moves):
        axis = perm[0].index(axis) if perm and axis in perm[0] else 3 - axis  # without perm the axes are reversed
    return axis == 3


def _classifier_reads(nodes: list[Any]) -> tuple[str | None, str | None]:
    """Return the input of the last linear layer, and the maps that are pooled to it, if the graph shows that."""
    made_by = {name: node for node in nodes for name in node.output}
    last = next((node for node in reversed(nodes) if node.op_type in _LINEAR), None)
    # If a convolution follows, the layer serves something else, such as the weights of channels.
    if last is None or any(node.op_type == "Conv" for node in nodes[nodes.index(last) :]):
        return None, None
    vector = tensor = last.input[0]
    while tensor in made_by and made_by[tensor].op_type in _PASSING:
        tensor = made_by[tensor].input[0]
    if tensor in made_by and made_by[tensor].op_type in _POOLING:
        return vector, made_by[tensor].input[0]
    return vector, None


def _keep_only(graph: Any, tensor: str) -> None:
    """Remove from a graph what a tensor does not need, and make the tensor its only output."""
    wanted, kept = {tensor}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= set(node.input) | _asked_inside(node)
    kept.reverse()
    weights = [each for each in graph.initializer if each.name in wanted]
    for field, content in (("node", kept), ("initializer", weights)):
        copies = [type(each).FromString(each.SerializeToString()) for each in content]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    graph.ClearField("value_info")
    graph.ClearField("output")
    graph.output.append(helper.make_empty_tensor_value_info(tensor))


def _asked_inside(node: Any) -> set[str]:
    """Return the inputs of the branches and loops of a node."""
    graphs = [graph for each in node.attribute for graph in (each.g, *each.graphs)]
    inner = [each for graph in graphs for each in graph.node]
    return {name for each in inner for name in each.input} | {name for each in inner for name in _asked_inside(each)}


def _input_of(model: Any, name: str) -> Any:
    """Return the one input that is no weight: pictures."""
    weights = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in weights]
    is_float = len(inputs) == 1 and inputs[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    if not is_float or len(inputs[0].type.tensor_type.shape.dim) != 4 or _channels_at(inputs[0]) is None:
        shapes = [[dim.dim_value or dim.dim_param or "?" for dim in each.type.tensor_type.shape.dim] for each in inputs]
        named = zip(inputs, shapes, strict=True)
        words = ", ".join(f"{each.name}: ({', '.join(map(str, shape))})" for each, shape in named) or "none"
        raise InputError(
            f"it takes {words}; one float32 batch of pictures was expected, (n, 3, height, width) or "
            "(n, height, width, 3)",
            file=name,
            cure="Export the network with pictures as its only input.",
        )
    return inputs[0]


def _channels_at(given: Any) -> int | None:
    return next((axis for axis in (1, 3) if _dim(given, axis) in (1, 3)), None)


def _dim(given: Any, axis: int) -> int | None:
    """Return the length of an axis if the file fixes it."""
    dim = given.type.tensor_type.shape.dim[axis]
    return int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value > 0 else None


def _preparation(model: Any, path: str) -> Preparation:
    given = _input_of(model, path)
    axis = _channels_at(given)
    assert axis is not None
    sides = [side for side in (_dim(given, 2), _dim(given, 3 if axis == 1 else 1)) if side is not None]
    if len(set(sides)) > 1:
        raise InputError(
            f"it takes pictures of {sides}; a square was expected", file=path, cure="Export it with a square input."
        )
    usual = Preparation() if _dim(given, axis) == 3 else Preparation(mean=(0.5,), std=(0.5,))
    return Preparation(sides[0] if sides else usual.size, 1.0, usual.mean, usual.std)


def _providers(device: str) -> list[str]:
    is_there = _CUDA in onnxruntime.get_available_providers()
    if device == "cuda" and not is_there:
        words = " is 'cuda', and this ONNX Runtime does not support a GPU. Install onnxruntime-gpu, or use "
        raise EngineError(Advice(Parameter("device"), words, Setting("device", "cpu"), "."))
    return [_CUDA, _CPU] if device != "cpu" and is_there else [_CPU]
