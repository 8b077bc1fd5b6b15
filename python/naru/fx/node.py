"""`torch.fx.node`: the nodes of a graph, and functions over the nodes in their arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Union

from .._compat import placeholders
from .._compat.checks import _assert, _assert_async
from ._names import printed_name
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Union[Callable[..., Any], str]
Argument = Any  # a Node, a number, a string, a tensor's property, or tuples, lists, dictionaries and slices of these
T = TypeVar("T")
OPS = frozenset(("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root"))
_side_effects: set[Any] = {operator.setitem, _assert, _assert_async}
_RANDOM = frozenset(
    f"torch.{name}" for name in "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm".split()
)


def has_side_effect(fn: T) -> T:
    """Returns the function `fn`, whose calls `Graph.eliminate_dead_code` then keeps.

    >>> naru.fx.has_side_effect(print) is print
    True
    """
    _side_effects.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """`a` with `fn` applied to all that is in its tuples, lists, dictionaries and slices.

    >>> from naru.fx.node import map_aggregate
    >>> map_aggregate((1, [2, slice(3)]), lambda x: x and x + 1)
    (2, [3, slice(None, 4, None)])
    """
    if isinstance(a, tuple):
        values = [map_aggregate(value, fn) for value in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(value, fn) for value in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`a` with `fn` applied to each node in it.

    >>> x = naru.fx.Graph().placeholder("x")
    >>> naru.fx.map_arg((x, 1), lambda node: node.name)
    ('x', 1)
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


def nodes_of(a: Argument) -> list[Node]:
    """The nodes in an argument, in order."""
    found: list[Node] = []
    map_aggregate(a, lambda value: found.append(value) if isinstance(value, Node) else None)
    return found


def type_name(kind: Any) -> str:
    """A type in the text of a graph: `torch.Tensor`, `int`, `list[int]`."""
    if not isinstance(kind, type) or hasattr(kind, "__origin__"):
        return repr(kind)
    module = "torch" + kind.__module__[4:] if kind.__module__.split(".")[0] == "naru" else kind.__module__
    module = "torch" if module == "torch._C" else module
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _text(value: Any) -> str:
    """An argument in the text of a graph."""
    if isinstance(value, Node):
        return f"%{value}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}" if isinstance(value, dict) else str(value)


class Node:
    """A step of a graph: what it does (`op`), with what (`target`), on what (`args`, `kwargs`), and which nodes use its value (`users`).
    name: its name in the graph; return_type: the type of its value, for the text. Graphs make nodes.

    >>> graph = naru.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(naru.add, (x, 1))
    >>> y.op, y.args, list(x.users), y.format_node()
    ('call_function', (x, 1), [add], '%add : [num_users=0] = call_function[target=torch.add](args = (%x, 1), kwargs = {})')
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple = (), kwargs: dict[str, Any] | None = None, return_type: Any = None
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if (op == "call_function") != callable(target) or not (callable(target) or isinstance(target, str)):
            wanted = f"a target of {op} is expected to be a {'callable' if op == 'call_function' else 'str'}"
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but {wanted}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._update(args, kwargs or {})

    def _update(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Sets the arguments, and makes this node a user of the nodes in them."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def seen(node: Node) -> Node:
            self._input_nodes[node] = node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), seen), map_arg(dict(kwargs), seen)

    args = property(lambda self: self._args, lambda self, new: self._update(new, self._kwargs), doc="The arguments by position; assign a new tuple.")
    kwargs = property(lambda self: self._kwargs, lambda self, new: self._update(self._args, new), doc="The arguments by name; assign a new dict.")
    next = property(lambda self: self._next, doc="The node after this one; the graph's root after the last.")
    prev = property(lambda self: self._prev, doc="The node before this one.")
    all_input_nodes = property(lambda self: list(self._input_nodes), doc="The nodes in the arguments, each once.")
    stack_trace = property(
        lambda self: self.meta.get("stack_trace"), lambda self, to: self.meta.__setitem__("stack_trace", to), doc="Where it was recorded, or None."
    )

    def prepend(self, x: Node) -> None:
        """Moves the node `x` before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves the node `x` after this one."""
        if x is not self._next:
            self._next.prepend(x)

    def _remove(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        order = {node: i for i, node in enumerate(self.graph.nodes)}
        return order[self] < order[other]

    def __gt__(self, other: Node) -> bool:
        return other < self

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Sets the argument at position `idx`."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts an argument at position `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets the argument of that name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Puts `replace_with` where other nodes use this one, if `delete_user_cb` agrees; the nodes that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts `new_input` where the arguments have `old_input`."""
        self._update(*(map_arg(part, lambda node: new_input if node is old_input else node) for part in (self._args, self._kwargs)))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node is kept though no node uses it: inputs, outputs, and calls of functions with side effects."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            return getattr(self.graph.owning_module.get_submodule(str(self.target)), "_is_impure", False) if self.graph.owning_module else False
        return self.op == "call_function" and (self.target in _side_effects or (impure_random and printed_name(self.target) in _RANDOM))

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None) -> str | None:
        """The node's line in the text of its graph."""
        typed = f"{type_name(self.type)} " if self.type else ""
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        line = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target={printed_name(self.target)}]"
        if self.op == "placeholder":
            return line + (f"(default={self.args[0]})" if self.args else "")
        return line if self.op == "get_attr" else f"{line}(args = {_text(self.args)}, kwargs = {_text(self.kwargs)})"

    def __repr__(self) -> str:
        return self.name


__getattr__ = placeholders.module_getattr(__name__)
