"""`torch.fx.proxy`: the values that stand for tensors during tracing, and record what is done with them."""

from __future__ import annotations

import dis
import operator
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import _C
from .._compat import placeholders
from ..overrides import is_tensor_method_or_property
from ._names import as_recorded
from .node import Argument, Node, Target, map_aggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from .graph import Graph

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]

_PLAIN = (str, int, float, bool, complex, type(None), type(...), bytes, _C.dtype, _C.device, _C.layout, _C.memory_format, _C.Tensor)
_FOLDER = os.path.dirname(__file__)


class TraceError(ValueError):
    """The program asks for the value of a `Proxy`, as `if` and `for` do.

    >>> try:
    ...     naru.fx.symbolic_trace(lambda x: x if x > 0 else -x)
    ... except naru.fx.proxy.TraceError as error:
    ...     print(str(error)[:75])
    symbolically traced variables cannot be used as inputs to control flow: the
    """


def _users_frame() -> FrameType:
    """The innermost frame that is not of torch.fx."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return frame


def _where() -> str:
    frame = _users_frame()
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'


class TracerBase:
    """Records nodes in `graph`: the part of a tracer that does not know of modules.

    >>> from naru.fx.proxy import TracerBase
    >>> TracerBase().create_arg([1, (2.0, None)])
    [1, (2.0, None)]
    """

    graph: Graph
    record_stack_traces: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    def create_node(self, kind: str, target: Target, args: tuple, kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None) -> Node:
        """Adds a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The value that stands for that of `node`."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Target, args: tuple, kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Adds a node whose arguments may hold proxies; returns the proxy of its value."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _where()
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """What a value is among the arguments of a node: a proxy is its node. NotImplementedError for what a graph cannot hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(value) for value in a))
        if isinstance(a, (tuple, list)):
            return type(a)(self.create_arg(value) for value in a) if type(a) in (tuple, list) else list(map(self.create_arg, a))
        if isinstance(a, dict):
            for key in a:
                if _proxies(key):
                    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, (*_PLAIN, Node)) or isinstance(a, type) or (callable(a) and not hasattr(a, "forward") and hasattr(a, "__name__")):
            return a
        import enum

        if isinstance(a, enum.Enum):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a program asks for the truth of a proxy: TraceError."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: "
            f"the value of {obj.node} is not known while tracing, at {_where()}. "
            "To fix it, give the argument that decides by concrete_args, use torch.where, or make the function a leaf by torch.fx.wrap"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called where a program runs over a proxy: TraceError, unless it unpacks it into so many names."""
        frame = _users_frame()
        instructions = {i.offset: i for i in dis.get_instructions(frame.f_code)}
        at = instructions.get(frame.f_lasti)
        if at is not None and at.opname == "UNPACK_SEQUENCE":
            return (obj[i] for i in range(at.argval))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument: "
            f"the length of {obj.node} is not known while tracing, at {_where()}. To fix it, run over a range of known length, "
            "or make the function a leaf by torch.fx.wrap"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `**proxy` and for its method keys: a proxy of the keys."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Records what is done with proxies of a graph's nodes at the end of this graph, `graph`.

    >>> graph = naru.fx.Graph()
    >>> x = naru.fx.Proxy(graph.placeholder("x"))
    >>> (x + 1).tracer.graph is graph
    True
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _proxies(a: Any) -> list[Proxy]:
    """The proxies in a value."""
    found: list[Proxy] = []
    map_aggregate(a, lambda value: found.append(value) if isinstance(value, Proxy) else None)
    return found


class Proxy:
    """Stands for the value of `node`. Operators, methods, attributes and torch's functions add nodes, and return proxies of them.
    tracer: what adds them; by default they come at the end of the node's graph.

    >>> graph = naru.fx.Graph()
    >>> y = naru.fx.Proxy(graph.placeholder("x")).relu() * 2
    >>> y, y.node.args
    (Proxy(mul), (relu, 2))
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name in ("node", "tracer") or (name.startswith("__") and name not in _METHODS):
            raise AttributeError(name)
        return Attribute(self, name)

    def __deepcopy__(self, memo: Any) -> Proxy:
        raise NotImplementedError(f"copy.deepcopy: a Proxy has no value to copy ({self.node}); copy the GraphModule after tracing")

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. "
            "If you want this call to be recorded, please call torch.fx.wrap('len') at module scope; "
            f"for a tensor use x.size(0). At {_where()}"
        )

    def keys(self) -> Any:
        """A proxy of the keys of a dictionary."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        proxies = _proxies((args, kwargs))
        tracer = proxies[0].tracer
        if any(proxy.tracer is not tracer for proxy in proxies):
            raise RuntimeError(f"Found multiple different tracers among the arguments of {func}: proxies of one trace cannot be used in another")
        if is_tensor_method_or_property(func):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs)
        return tracer.create_proxy("call_function", func, *as_recorded(func, args, kwargs))


class Attribute(Proxy):
    """The attribute `attr` of the proxy `root`: a call of it is a call of a method; the attribute itself is recorded only if it is used otherwise.

    >>> graph = naru.fx.Graph()
    >>> naru.fx.Proxy(graph.placeholder("x")).shape.node.op
    'call_function'
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node, added when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


_METHODS = frozenset(("__setitem__", "__getitem__"))
_OPERATORS = (
    "add sub mul floordiv truediv mod pow lshift rshift matmul and_ or_ xor".split(), "neg pos invert getitem eq ne lt gt le ge abs".split(),
)  # fmt: skip


def _operator(function: Callable[..., Any], reflected: bool = False) -> Any:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        tracer = args[0].tracer
        return tracer.create_proxy("call_function", function, args[::-1] if reflected else args, kwargs)

    return recorded


for _name in (*_OPERATORS[0], *_OPERATORS[1]):
    _function = getattr(operator, _name)
    setattr(Proxy, f"__{_name.rstrip('_')}__", _operator(_function))
    if _name in _OPERATORS[0]:
        setattr(Proxy, f"__r{_name.rstrip('_')}__", _operator(_function, reflected=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]

__getattr__ = placeholders.module_getattr(__name__)
