"""`torch.fx.graph`: a program as a list of nodes, and its text."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .._compat import placeholders
from ._codegen import Namespace, PythonCode, Writer, snake_case
from ._names import node_name
from .node import Argument, Node, Target, map_aggregate, map_arg, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..nn import Module

__all__ = ["Graph", "PythonCode"]


class _Nodes:
    """The nodes of a graph, in order; nodes may be added and removed during the loop."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph, self.backwards = graph, backwards

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = node = self.graph._root
        while True:
            node = node._prev if self.backwards else node._next
            if node is root:
                return
            if not node._erased:
                yield node

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.graph, not self.backwards)


class _InsertPoint:
    """Where new nodes come, from the call on until the end of `with`."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A program: nodes, each after those whose values it takes. New nodes come at the end, or where `inserting_before` and `inserting_after` say.

    owning_module: the module whose program it is; tracer_cls, tracer_extras: the tracer that made it. All three are only noted.

    >>> graph = naru.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(naru.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Module | None = None, tracer_cls: type | None = None, tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "")
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = Namespace()
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras

    @property
    def nodes(self) -> _Nodes:
        """The nodes in order, also for `reversed` and `len`."""
        return _Nodes(self)

    def create_node(
        self, op: str, target: Target, args: tuple | None = None, kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a node; `name` is a wish, and gets a number if it is taken."""
        for given in nodes_of((args, kwargs)):
            if given.graph is not self:
                raise AssertionError(f"{given} belongs to another Graph; copy it with node_copy first")
        if name is None:
            name = node_name(target)
            name = snake_case(name[2:-2] if name.startswith("__") and name.endswith("__") else name)
        name = self._names.create_name(name)
        node = Node(self, name, op, target, args or (), kwargs, type_expr)
        self._names.associate(name, node)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an input of that name."""
        return self.create_node("placeholder", name, () if default_value is ... else (default_value,), type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the value of the module's attribute `qualified_name`, with dots."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None,
        name: str | None = None,
    ) -> Node:  # fmt: skip
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Adds a call of the method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Adds a call of the submodule of that name, with dots."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds the end: what the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph; `arg_transform` has for each of its nodes the one here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Adds copies of the nodes of `g` that `val_map` lacks, and puts them in; returns what `g` returns, in terms of the nodes here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that no node uses."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove()
        to_erase._erased = True
        to_erase._update((), {})

    def inserting_before(self, n: Node | None = None) -> Any:
        """Within `with`, new nodes come before `n`; without it, at the beginning."""
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Within `with`, new nodes come after `n`; without it, at the end."""
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, self._root.prepend if n is None else n.append)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of that kind; of functions, methods and modules those with that target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """The node with what the graph returns."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes the nodes that no node uses and that do nothing else (`Node.is_impure`); whether there were any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        dead = 0
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                dead += 1
        return dead > 0

    def lint(self) -> None:
        """RuntimeError if a node comes before one that it takes, a name is there twice, or the module lacks what a node asks for."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            for given in node.all_input_nodes:
                if given.graph is not self:
                    raise RuntimeError(f"Argument '{given}' of Node '{node}' does not belong to this Graph, but was used as an argument!")
                if given not in seen:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen[node] = None
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                found: Any = self.owning_module
                for part in str(node.target).split("."):
                    found = getattr(found, part, None)
                if found is None:
                    owner = type(self.owning_module).__name__
                    raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {node.target} of {owner}")

    def python_code(self, root_module: str, *, verbose: bool = False, **settings: Any) -> PythonCode:
        """The program as a function `forward` whose first parameter is `root_module`, with the objects that its names stand for.

        >>> print(naru.fx.symbolic_trace(lambda x: x + 1).graph.python_code("self").src.strip())
        def forward(self, x):
            add = x + 1;  x = None
            return add
        """
        return Writer(self, root_module, verbose).write()

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        rows = [["opcode", "name", "target", "args", "kwargs"], *([n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes)]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, ["-" * width for width in widths])
        print("\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows))

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        memo = {} if memo is None else memo
        values: dict[Node, Node] = {}
        done = made.graph_copy(self, values, return_output_node=True)
        if done is not None:
            made.output(done[0], done[1].type).meta = copy.copy(done[1].meta)
        memo[id(self)] = made
        memo.update({id(old): new for old, new in values.items()})
        return made

    def __reduce__(self) -> Any:
        place = {node: i for i, node in enumerate(self.nodes)}

        def packed(a: Argument) -> Argument:
            return map_arg(a, lambda node: _Place(place[node]))

        return _unpacked, ([(n.op, n.target, packed(n.args), packed(n.kwargs), n.name, n.type, bool(n.meta.get("is_wrapped"))) for n in self.nodes],)


class _Place(int):
    """A node in a pickled graph, by its number."""


def _unpacked(rows: list[tuple]) -> Graph:
    """The graph of the rows that `Graph.__reduce__` made."""
    graph = Graph()
    nodes: list[Node] = []
    for op, target, args, kwargs, name, kind, wrapped in rows:
        args, kwargs = (map_aggregate(part, lambda a: nodes[a] if isinstance(a, _Place) else a) for part in (args, kwargs))
        nodes.append(graph.create_node(op, target, args, kwargs, name, kind))
        if wrapped:
            nodes[-1].meta["is_wrapped"] = True
    return graph


__getattr__ = placeholders.module_getattr(__name__)
