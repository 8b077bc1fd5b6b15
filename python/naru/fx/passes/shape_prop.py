"""`torch.fx.passes.shape_prop`: the shapes and types of a graph's values."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _C
from ..._compat import placeholders
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values: shape, dtype, requires_grad, stride and memory_format (the first that fits, or None);
    is_quantized is False and qparams empty, as naru has no quantized tensors.

    >>> from naru.fx.passes.shape_prop import TensorMetadata
    >>> TensorMetadata._fields[:3]
    ('shape', 'dtype', 'requires_grad')
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    formats = (_C.contiguous_format, *({4: (_C.channels_last,), 5: (_C.channels_last_3d,)}.get(result.dim(), ())))
    form = next((form for form in formats if include_contiguity and result.is_contiguous(memory_format=form)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), form, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and puts a TensorMetadata into `node.meta["tensor_meta"]` of each node of `gm` whose value is a tensor, or has tensors in it.
    fake_mode: accepted, without effect; tensors on the device "meta" take no memory.

    >>> from naru.fx.passes.shape_prop import ShapeProp
    >>> traced = naru.fx.symbolic_trace(naru.nn.Linear(3, 2))
    >>> _ = ShapeProp(traced).propagate(naru.ones(5, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(5, 3), (2, 3), (2,), (5, 2), (5, 2)]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The value of a node, of which it notes the shape."""
        result = super().run_node(n)
        tensors: list[Any] = []

        def noted(value: Any) -> Any:
            if isinstance(value, _C.Tensor):
                tensors.append(value)
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, noted)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with these inputs; its result."""
        return self.run(*args)


__getattr__ = placeholders.module_getattr(__name__)
