"""`torch.fx.interpreter`: running a graph node by node, and making a graph from a graph so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._compat import placeholders
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, map_aggregate, map_arg
from .proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..nn import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule (or the `graph` given, with what `module` has) node by node. Subclasses change `run_node`, `call_function` and the like.
    garbage_collect_values: whether values are freed after their last use.

    >>> class Loud(naru.fx.Interpreter):
    ...     def run_node(self, n):
    ...         print(n.op, n.name)
    ...         return super().run_node(n)
    >>> Loud(naru.fx.symbolic_trace(lambda x: x + 1)).run(naru.tensor(1.0))
    placeholder x
    call_function add
    output output
    tensor(2.)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        last = {given: node for node in self.graph.nodes for given in node.all_input_nodes}
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        for given, node in last.items():
            self.user_to_last_uses.setdefault(node, []).append(given)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The program's result for these inputs. initial_env: values that are already known."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and error.args:
                    said = f"{error.args[0]}\n\nWhile executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
                    error.args = (KeyError(said).args if isinstance(error, KeyError) else (said,)) + error.args[1:]
                raise
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    self.env.pop(used, None)
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`; empties the list, so that inputs can be freed early."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next input, or its default value."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The value of an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The program's result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module, by its name with dots."""
        found: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(target.split('.')[: i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """The arguments with values in place of nodes."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues")
            return self.env[node]

        return map_arg(args, value_of)


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a GraphModule by running another with proxies. Subclasses change `call_function` and the like; what these compute is recorded.
    module: the GraphModule that is run; it stays as it is.

    >>> class Neg(naru.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(naru.neg if target is naru.abs else target, args, kwargs)
    >>> Neg(naru.fx.symbolic_trace(lambda x: naru.abs(x))).transform()(naru.tensor(2.0))
    tensor(-2.)
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph, module)
        self.tracer.submodule_paths = {inner: name for name, inner in module.named_modules()}

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """A proxy of a new input."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """A proxy of the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A proxy of the result of the submodule."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A proxy of the result of the function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run()
        if result is not None:
            old = self.graph.output_node()
            new = self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a), old.type)
            new.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)

    def run_node(self, n: Node) -> Any:
        """The proxy for a node."""
        result = super().run_node(n)
        if isinstance(result, Proxy) and result.tracer is self.tracer:
            for key, value in n.meta.items():
                result.node.meta.setdefault(key, value)
        return result


__getattr__ = placeholders.module_getattr(__name__)
