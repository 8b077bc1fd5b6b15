"""`torch.fx`: programs as graphs. `symbolic_trace` makes one of a module or function, passes change it, and it is Python again.

Traced is what `__torch_function__` sees, as in PyTorch: a program whose course depends on a tensor's values is refused with the line.
"""

from __future__ import annotations

from .. import _missing
from . import immutable_collections as immutable_collections, passes as passes, subgraph_rewriter as subgraph_rewriter
from ._symbolic_trace import PH as PH, Tracer, symbolic_trace, wrap
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
