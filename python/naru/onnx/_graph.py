"""The graph that an export makes: nodes of ONNX, their constants, and which value a tensor of the traced call is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _C
from .errors import OnnxExporterError, OnnxExporterWarning, UnsupportedOperatorError

Tensor = _C.Tensor

# naru's dtypes by name: ONNX's numbers for element types (onnx.TensorProto).
ELEMENTS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip


def element_of(dtype: Any) -> int:
    """ONNX's number for a dtype."""
    return ELEMENTS[str(dtype).removeprefix("torch.")]


class Graph:
    """Nodes in the order of the calls that they come from.

    A value is a name. Tensors of the traced call are known by identity; those that no traced value went into are constants, parameters and
    buffers under their names.
    """

    def __init__(self, opset: int, named: dict[int, str]) -> None:
        self.opset = opset
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}  # made by the exporter
        self.tensors: dict[str, Tensor] = {}  # parameters, buffers, and constants of the program
        self._named, self._values, self._kept = named, {}, []  # type: ignore[var-annotated]
        self._count = 0

    def fresh(self, hint: str) -> str:
        """A name that no value has."""
        self._count += 1
        return f"{hint}_{self._count}"

    def put(self, tensor: Tensor, name: str) -> None:
        """From now on the tensor is that value."""
        self._values[id(tensor)] = name
        self._kept.append(tensor)

    def traces(self, tensor: Any) -> bool:
        """Whether the tensor depends on the graph's inputs."""
        return isinstance(tensor, Tensor) and id(tensor) in self._values

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; the name of its output, or a list of names."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        self.nodes.append((kind, list(inputs), names, {k: v for k, v in attributes.items() if v is not None}))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant: an array, a number or a list of them; integers are int64 unless `dtype` (naru's) says otherwise."""
        if dtype is not None:
            value = _C.tensor(value, dtype=dtype)
            name = self.fresh("constant")
            self.tensors[name] = value
            return name
        name = self.fresh("constant")
        self.constants[name] = np.asarray(value, dtype=np.int64)
        return name

    def value(self, x: Any, dtype: Any = None) -> str:
        """The name of a tensor's or number's value, cast to `dtype` where it is of another."""
        if not isinstance(x, Tensor):
            return self.constant(x, dtype=_C.float32 if dtype is None else dtype)
        name = self._values.get(id(x))
        if name is None:
            name = self._named.get(id(x)) or self.fresh("tensor")
            self.tensors[name] = x.detach()
            self.put(x, name)
            # It is known by its name, and yet depends on no input.
            del self._values[id(x)]
            self._named[id(x)] = name
        if dtype is not None and x.dtype != dtype:
            return self.node("Cast", name, to=element_of(dtype))
        return name

    def reduce(self, kind: str, x: str, axes: list[int] | None, keepdim: bool) -> str:
        """A reduction, whose axes are an attribute or an input by the opset."""
        if axes is None:
            return self.node(kind, x, keepdims=int(keepdim))
        if kind == "ReduceSum" or self.opset >= 18:
            return self.node(kind, x, self.constant(axes), keepdims=int(keepdim))
        return self.node(kind, x, axes=axes, keepdims=int(keepdim))

    def reshape(self, x: str, shape: Any) -> str:
        """A reshape to sizes."""
        return self.node("Reshape", x, self.constant(list(shape)))

    def slice(self, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
        """A part of a dimension."""
        return self.node("Slice", x, self.constant([start]), self.constant([end]), self.constant([axis]), self.constant([step]))


def check_values(first: Graph, second: Graph) -> None:
    """Compares the traces of inputs of other values. UnsupportedOperatorError where a constant is another one: it was computed from the inputs by what a
    trace does not see."""
    if len(first.nodes) != len(second.nodes) or any(a != b for a, b in zip(first.nodes, second.nodes)):
        text = "torch.onnx.export: the module calls other functions for other values of its inputs; what it called this time is written"
        warnings.warn(text, OnnxExporterWarning, stacklevel=4)
        return
    for name, tensor in first.tensors.items():
        if not _C.equal(tensor, second.tensors[name]):
            raise UnsupportedOperatorError(
                f"torch.onnx.export: a constant of shape {tuple(tensor.shape)} is computed from the inputs by what a trace does not see: item(), x.T, x.data, "
                "~x and the like; nearest: x.transpose(0, 1), torch.logical_not(x)"
            )


def _sizes(value: np.ndarray, other: np.ndarray, symbols: list[tuple[str, int, int, int]]) -> list[Any] | None:
    """Each number of a constant that differs between two traces as (input, axis, factor); None where one cannot be had so."""
    parts: list[Any] = []
    for a, b in zip(value.tolist(), other.tolist()):
        found = a if a == b else next(((name, axis, a // n) for name, axis, n, m in symbols if a % n == 0 and a // n * m == b), None)
        if found is None:
            return None
        parts.append(found)
    return parts


def follow_sizes(first: Graph, second: Graph, symbols: list[tuple[str, int, int, int]]) -> None:
    """Makes `first` right for any sizes: constants that differ in `second`, the trace of inputs whose dynamic sizes differ, are computed from the inputs.

    symbols: (input, axis, size in the first trace, size in the second). OnnxExporterError where the traces differ otherwise.
    """
    same = len(first.nodes) == len(second.nodes) and all(a == b for a, b in zip(first.nodes, second.nodes))
    if not same or first.constants.keys() != second.constants.keys():
        raise OnnxExporterError("torch.onnx.export: the module calls other functions for other sizes; it cannot be exported with dynamic axes")
    front: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
    for name, value in list(first.constants.items()):
        other = second.constants[name]
        if np.array_equal(value, other):
            continue
        parts = _sizes(value, other, symbols) if value.shape == other.shape and value.ndim == 1 else None
        if parts is None:
            raise OnnxExporterError(f"torch.onnx.export: sizes {value.tolist()} become {other.tolist()} where inputs grow: no multiples of a dynamic size")
        del first.constants[name]
        nodes, first.nodes = first.nodes, []
        pieces = []
        for part in parts:
            if isinstance(part, int):
                pieces.append(first.constant([part]))
                continue
            source, axis, factor = part
            size = first.node("Gather", first.node("Shape", source), first.constant([axis]), axis=0)
            pieces.append(size if factor == 1 else first.node("Mul", size, first.constant([factor])))
        first.nodes.append(("Concat", pieces, [name], {"axis": 0}))
        front += first.nodes
        first.nodes = nodes
    first.nodes = front + first.nodes
    for name, tensor in first.tensors.items():
        if not _C.equal(tensor, second.tensors[name]):
            raise OnnxExporterError(f"torch.onnx.export: a constant tensor of shape {tuple(tensor.shape)} depends on a dynamic size")
