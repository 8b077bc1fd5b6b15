"""`torchvision.models.feature_extraction`: modules that return what a model computes on the way, by tracing it with `torch.fx`."""

from __future__ import annotations

import math
import re
import warnings
from typing import TYPE_CHECKING, Any

from ... import fx
from ...nn import Module
from .. import _names, ops

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["create_feature_extractor", "get_graph_node_names"]


class LeafModuleAwareTracer(fx.Tracer):
    """A tracer that does not enter modules of the classes `leaf_modules`.

    >>> from naru.vision.models.feature_extraction import LeafModuleAwareTracer
    >>> LeafModuleAwareTracer(leaf_modules=[naru.nn.Sequential]).is_leaf_module(naru.nn.Sequential(), "")
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.leaf_modules: tuple[type, ...] = tuple(kwargs.pop("leaf_modules", ()))
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of the module is one node."""
        return isinstance(m, self.leaf_modules) or super().is_leaf_module(m, module_qualified_name)


class NodePathTracer(LeafModuleAwareTracer):
    """A tracer that notes for each node the place in the model that made it: `node_to_qualname`, as `layer1.0.relu_1`.

    >>> from naru.vision.models.feature_extraction import NodePathTracer
    >>> tracer = NodePathTracer()
    >>> _ = tracer.trace(naru.nn.Sequential(naru.nn.ReLU()))
    >>> list(tracer.node_to_qualname.values())
    ['input', '0']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current_module_qualname = ""
        self.node_to_qualname: dict[fx.Node, str] = {}

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module."""
        before, self.current_module_qualname = self.current_module_qualname, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = before

    def create_proxy(self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any], *rest: Any, **settings: Any) -> fx.Proxy:
        """Adds a node, and notes its place; the output, and constants that nodes take, have none."""
        proxy = super().create_proxy(kind, target, args, kwargs, *rest, **settings)
        self.node_to_qualname[proxy.node] = self._qualname(proxy.node)
        return proxy

    def _qualname(self, node: fx.Node) -> str:
        place = self.current_module_qualname
        if node.op == "call_module":
            if str(node.target) != place:  # not called by way of `call_module`
                place = str(node.target)
        else:
            name = str(node.target) if node.op == "placeholder" else re.sub(r"_\d+$", "", node.name) if re.search(r"_\d+$", node.name) else node.name
            place = f"{place}.{name}" if place and node.op != "placeholder" else name
        taken = sum(re.sub(r"_\d+$", "", other) == place or other == place for other in self.node_to_qualname.values())
        return f"{place}_{taken}" if taken else place


def _graph_and_names(model: Module, settings: dict[str, Any], concrete_args: Any) -> tuple[fx.Graph, dict[str, fx.Node]]:
    """The graph, and its nodes by name. The layers and functions of `ops` are not entered."""
    layers = [value for value in vars(ops).values() if isinstance(value, type) and issubclass(value, Module)]
    leaves = {"leaf_modules": [*settings.get("leaf_modules", ()), *layers], "autowrap_modules": (*settings.get("autowrap_modules", ()), math, ops)}
    tracer = NodePathTracer(**{**settings, **leaves})
    graph = tracer.trace(model, concrete_args=concrete_args)
    return graph, {name: node for node, name in tracer.node_to_qualname.items()}


def _warn_of_differences(train: list[str], evaluated: list[str]) -> None:
    if train != evaluated:
        warnings.warn(
            "Nodes obtained by tracing the model in eval mode are not those of train mode; give the nodes of each mode by train_return_nodes and "
            "eval_return_nodes if those that are wanted are not in both",
            stacklevel=3,
        )


def get_graph_node_names(
    model: Module, tracer_kwargs: dict[str, Any] | None = None, suppress_diff_warning: bool = False, concrete_args: dict[str, Any] | None = None
) -> tuple[list[str], list[str]]:
    """The names of a model's nodes in train mode, and in eval mode: what `create_feature_extractor` can return.

    tracer_kwargs: arguments of NodePathTracer, as `leaf_modules`; concrete_args: values of parameters of `forward` that are no inputs.
    suppress_diff_warning: whether nothing is said if the two modes differ.

    >>> from naru.vision.models.feature_extraction import get_graph_node_names
    >>> get_graph_node_names(naru.nn.Sequential(naru.nn.Linear(2, 2), naru.nn.ReLU()))[1]
    ['input', '0', '1']
    """
    was = model.training
    try:
        names = [list(_graph_and_names(model.train(mode), tracer_kwargs or {}, concrete_args)[1]) for mode in (True, False)]
    finally:
        model.train(was)
    if not suppress_diff_warning:
        _warn_of_differences(*names)
    return names[0], names[1]


class DualGraphModule(fx.GraphModule):
    """A module with a graph for train mode and one for eval mode; `train` and `eval` choose.

    >>> from naru.vision.models.feature_extraction import create_feature_extractor
    >>> model = create_feature_extractor(naru.nn.Sequential(naru.nn.ReLU()), ["0"])
    >>> model.eval().graph is model.eval_graph
    True
    """

    def __init__(self, root: Module, train_graph: fx.Graph, eval_graph: fx.Graph, class_name: str = "GraphModule") -> None:
        super().__init__(root, fx.Graph(), class_name)
        both = fx.Graph()  # takes over what either graph asks for
        for graph in (train_graph, eval_graph):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    both.create_node(node.op, node.target)
        super().__init__(root, both, class_name)
        self.train_graph, self.eval_graph = train_graph, eval_graph
        self.train(root.training)

    def train(self, mode: bool = True) -> Any:
        """Sets the mode, and with it the graph."""
        result = super().train(mode)
        if "train_graph" in self.__dict__:
            graph = self.train_graph if mode else self.eval_graph
            graph.owning_module = self
            self.graph = graph
        return result


def _wanted(return_nodes: Any, names: list[str], mode: str) -> dict[str, str]:
    """The wanted nodes with the names of their values. ValueError for one that is not there."""
    wanted = {str(k): str(v) for k, v in (return_nodes if isinstance(return_nodes, dict) else {name: name for name in return_nodes}).items()}
    for query in wanted:
        if not any(re.match(rf"^{re.escape(query)}(\.|$)", name) for name in names):
            raise ValueError(
                f"node: '{query}' is not present in model. Hint: use `get_graph_node_names` to make sure the `return_nodes` you specified are present. "
                f"It may even be that you need to specify `train_return_nodes` and `eval_return_nodes` separately. This is {mode} mode"
            )
    return wanted


def _feature_graph(graph: fx.Graph, named: dict[str, fx.Node], wanted: dict[str, str]) -> fx.Graph:
    """Lets a graph return the wanted values, and removes what these do not need. The name of a module means its last node."""
    graph.erase_node(graph.output_node())
    outputs: dict[str, fx.Node] = {}
    left = dict(wanted)
    for name, node in reversed(list(named.items())):
        query = next((query for query in left if re.match(rf"^{re.escape(query)}(\.|$)", name)), None)
        if query is not None:
            if node.op == "placeholder":
                raise ValueError(f"node: '{query}' is an input of the model; wanted a node that computes something")
            outputs[left.pop(query)] = node
    graph.output({name: outputs[name] for name in reversed(outputs)})
    graph.eliminate_dead_code()
    return graph


def create_feature_extractor(
    model: Module, return_nodes: Any = None, train_return_nodes: Any = None, eval_return_nodes: Any = None,
    tracer_kwargs: dict[str, Any] | None = None, suppress_diff_warning: bool = False, concrete_args: dict[str, Any] | None = None,
) -> fx.GraphModule:  # fmt: skip
    """A module that returns a dictionary of a model's inner values: `return_nodes` has the names of nodes, or for each the name of its value in the
    result. `train_return_nodes` and `eval_return_nodes` give them for each mode. ValueError for a node that is not there.
    tracer_kwargs, suppress_diff_warning and concrete_args are those of `get_graph_node_names`.

    >>> from naru.vision.models.feature_extraction import create_feature_extractor
    >>> model = naru.nn.Sequential(naru.nn.Linear(2, 3), naru.nn.ReLU())
    >>> create_feature_extractor(model, {"0": "before"})(naru.ones(1, 2))["before"].shape
    torch.Size([1, 3])
    """
    each = (train_return_nodes is None, eval_return_nodes is None)
    if each[0] != each[1] or (return_nodes is None) == each[0]:
        raise ValueError("Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, should be specified")
    was = model.training
    graphs, all_names = [], []
    try:
        for mode, nodes in ((True, train_return_nodes), (False, eval_return_nodes)):
            graph, named = _graph_and_names(model.train(mode), tracer_kwargs or {}, concrete_args)
            all_names.append(list(named))
            wanted = _wanted(return_nodes if nodes is None else nodes, all_names[-1], "train" if mode else "eval")
            graphs.append(_feature_graph(graph, named, wanted))
    finally:
        model.train(was)
    if return_nodes is not None and not suppress_diff_warning:
        _warn_of_differences(*all_names)
    return DualGraphModule(model, graphs[0], graphs[1], type(model).__name__)


__getattr__ = _names.module_getattr(__name__)
