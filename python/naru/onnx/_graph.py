"""The graph that an export builds: ONNX nodes, constants, and the value of each traced tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _C
from .errors import OnnxExporterError, OnnxExporterWarning, UnsupportedOperatorError

Tensor = _C.Tensor

# Names of naru's dtypes, with the ONNX element type numbers (onnx.TensorProto).
ELEMENTS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip


def element_of(dtype: Any) -> int:
    """The ONNX element type of a dtype."""
    return ELEMENTS[str(dtype).removeprefix("torch.")]


class Graph:
    """Nodes in call order.

    A value is identified by name. Traced tensors are known by identity; tensors that do not depend on a traced value are constants, or parameters
    and buffers under their own names.
    """

    def __init__(self, opset: int, named: dict[int, str]) -> None:
        self.opset = opset
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}  # created by the exporter
        self.tensors: dict[str, Tensor] = {}  # parameters, buffers, and constants of the traced program
        self._named, self._values, self._kept = named, {}, []  # type: ignore[var-annotated]
        self._count = 0

    def fresh(self, hint: str) -> str:
        """An unused value name."""
        self._count += 1
        return f"{hint}_{self._count}"

    def put(self, tensor: Tensor, name: str) -> None:
        """Binds the tensor to the value."""
        self._values[id(tensor)] = name
        self._kept.append(tensor)

    def traces(self, tensor: Any) -> bool:
        """True if the tensor depends on the graph's inputs."""
        return isinstance(tensor, Tensor) and id(tensor) in self._values

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns its output name, or a list of names."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        self.nodes.append((kind, list(inputs), names, {k: v for k, v in attributes.items() if v is not None}))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Adds a constant: an array, a number or a list of numbers; integers are int64 unless `dtype` (naru's) is given."""
        if dtype is not None:
            value = _C.tensor(value, dtype=dtype)
            name = self.fresh("constant")
            self.tensors[name] = value
            return name
        name = self.fresh("constant")
        self.constants[name] = np.asarray(value, dtype=np.int64)
        return name

    def value(self, x: Any, dtype: Any = None) -> str:
        """The name of a tensor's or number's value, cast to `dtype` if it has another."""
        if not isinstance(x, Tensor):
            return self.constant(x, dtype=_C.float32 if dtype is None else dtype)
        name = self._values.get(id(x))
        if name is None:
            name = self._named.get(id(x)) or self.fresh("tensor")
            self.tensors[name] = x.detach()
            self.put(x, name)
            # It has a name, but does not depend on any input.
            del self._values[id(x)]
            self._named[id(x)] = name
        if dtype is not None and x.dtype != dtype:
            return self.node("Cast", name, to=element_of(dtype))
        return name

    def reduce(self, kind: str, x: str, axes: list[int] | None, keepdim: bool) -> str:
        """Adds a reduction. Depending on the opset, its axes are an attribute or an input."""
        if axes is None:
            return self.node(kind, x, keepdims=int(keepdim))
        if kind == "ReduceSum" or self.opset >= 18:
            return self.node(kind, x, self.constant(axes), keepdims=int(keepdim))
        return self.node(kind, x, axes=axes, keepdims=int(keepdim))

    def reshape(self, x: str, shape: Any) -> str:
        """Adds a reshape to constant sizes."""
        return self.node("Reshape", x, self.constant(list(shape)))

    def slice(self, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
        """Adds a slice of one dimension."""
        return self.node("Slice", x, self.constant([start]), self.constant([end]), self.constant([axis]), self.constant([step]))


def check_values(first: Graph, second: Graph) -> None:
    """Compares traces with different input values. Raises UnsupportedOperatorError if a constant differs: it was computed from the inputs in a way
    that tracing cannot see."""
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
    """Each element of a constant, as (input, axis, factor) if it differs between two traces; None if an element has no such form."""
    parts: list[Any] = []
    for a, b in zip(value.tolist(), other.tolist()):
        found = a if a == b else next(((name, axis, a // n) for name, axis, n, m in symbols if a % n == 0 and a // n * m == b), None)
        if found is None:
            return None
        parts.append(found)
    return parts


def follow_sizes(first: Graph, second: Graph, symbols: list[tuple[str, int, int, int]]) -> None:
    """Makes `first` correct for any sizes: constants that differ in `second`, a trace with other dynamic sizes, are replaced by computations from
    the input shapes.

    symbols: (input, axis, size in the first trace, size in the second). Raises OnnxExporterError if the traces differ in any other way.
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
