"""`torch.fx.subgraph_rewriter`: finding parts of a graph that look like a pattern, and putting others in their place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from .._compat import placeholders
from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, nodes_of

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the last node of the pattern, and the node for each one of the pattern.

    >>> from naru.fx.subgraph_rewriter import Match
    >>> Match._fields
    ('anchor', 'nodes_map')
    """

    anchor: Node
    nodes_map: dict[Node, Any]


class ReplacedPatterns(NamedTuple):
    """A Match with the nodes that were put there.

    >>> from naru.fx.subgraph_rewriter import ReplacedPatterns
    >>> ReplacedPatterns._fields
    ('anchor', 'nodes_map', 'replacements')
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


class InternalMatch(NamedTuple):
    """What filters see of a place that looks like the pattern."""

    anchors: list[Node]
    nodes_map: dict[Node, Any]
    placeholder_nodes: list[Any]
    returning_nodes: list[Node]


class _Search:
    """Places in a graph that look like a pattern."""

    def __init__(self, pattern: Graph, graph: Graph, ignore_literals: bool) -> None:
        self.pattern, self.graph, self.ignore_literals = pattern, graph, ignore_literals
        self.inputs = [node for node in pattern.nodes if node.op == "placeholder"]
        self.returned = nodes_of(pattern.output_node().args)
        self.anchors = [node for node in dict.fromkeys(self.returned) if all(user.op == "output" for user in node.users)]

    def _same(self, wanted: Any, found: Any, seen: dict[Node, Any]) -> bool:
        """Whether an argument looks like that of the pattern."""
        if isinstance(wanted, Node):
            if wanted in seen:
                return seen[wanted] is found or (not isinstance(found, Node) and seen[wanted] == found)
            if wanted.op == "placeholder":
                seen[wanted] = found
                return True
            return isinstance(found, Node) and self._node(wanted, found, seen)
        if isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
            return len(wanted) == len(found) and all(self._same(w, f, seen) for w, f in zip(wanted, found))
        if isinstance(wanted, dict) and isinstance(found, dict):
            return wanted.keys() == found.keys() and all(self._same(wanted[key], found[key], seen) for key in wanted)
        if isinstance(wanted, slice) and isinstance(found, slice):
            return all(self._same(getattr(wanted, part), getattr(found, part), seen) for part in ("start", "stop", "step"))
        return self.ignore_literals and not isinstance(found, Node) or (type(wanted) is type(found) and wanted == found)

    def _node(self, wanted: Node, found: Node, seen: dict[Node, Any]) -> bool:
        if wanted in seen:
            return seen[wanted] is found
        if (wanted.op, wanted.target) != (found.op, found.target) or any(value is found for value in seen.values()):
            return False
        seen[wanted] = found
        return self._same(wanted.args, found.args, seen) and self._same(wanted.kwargs, found.kwargs, seen)

    def _closed(self, seen: dict[Node, Any]) -> bool:
        """Whether nothing else uses what is within the place."""
        inside = {value for node, value in seen.items() if node.op != "placeholder"}
        within = [value for node, value in seen.items() if node.op not in ("placeholder", "get_attr") and node not in self.returned]
        return all(user in inside for value in within for user in value.users)

    def _from(self, anchors: list[Node], seen: dict[Node, Any]) -> dict[Node, Any] | None:
        if not anchors:
            return seen if self._closed(seen) else None
        for node in self.graph.nodes:
            trial = dict(seen)
            if self._node(anchors[0], node, trial) and (full := self._from(anchors[1:], trial)) is not None:
                return full
        return None

    def matches(self) -> list[InternalMatch]:
        found, taken = [], set[Node]()
        for node in self.graph.nodes:
            seen: dict[Node, Any] = {}
            if not self.anchors or not self._node(self.anchors[0], node, seen):
                continue
            full = self._from(self.anchors[1:], seen)
            inside = {value for key, value in (full or {}).items() if key.op != "placeholder"}
            if full is None or inside & taken:
                continue
            taken |= inside
            found.append(InternalMatch(self.anchors, full, [full.get(p) for p in self.inputs], [full[r] for r in self.returned]))
        return found


def _graph_of(program: Any) -> Graph:
    return program if isinstance(program, Graph) else program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _replace(gm: GraphModule, match: InternalMatch, replacement: Graph, changed: dict[Node, Node]) -> list[Node]:
    """Puts a copy of the replacement's nodes in the place of a match; returns the copies."""
    inputs = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(f"the replacement has {len(inputs)} inputs, but the pattern {len(match.placeholder_nodes)}; they are taken in order")
    given = [changed.get(value, value) if isinstance(value, Node) else value for value in match.placeholder_nodes]
    values: dict[Node, Any] = dict(zip(inputs, given))
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    users = {user for node in match.returning_nodes for user in node.users}
    with gm.graph.inserting_before(min(users, key=order.__getitem__) if users else match.nodes_map[match.anchors[0]]):
        result = gm.graph.graph_copy(replacement, values)
    made = nodes_of((result,))
    if len(made) != len(match.returning_nodes):
        raise AssertionError(f"the replacement returns {len(made)} values, but the pattern {len(match.returning_nodes)}")
    for old, new in zip(match.returning_nodes, made):
        old.replace_all_uses_with(new)
        changed[old] = new
    inside = {value for node, value in match.nodes_map.items() if node.op not in ("placeholder", "output")}
    for node in sorted(inside, key=order.__getitem__, reverse=True):
        if not node.users:
            gm.graph.erase_node(node)
    return [node for old, node in values.items() if old.op != "placeholder"]


def _take_over(gm: GraphModule, replacement: Any) -> None:
    """Gives the module what the replacement's nodes ask for."""
    for node in gm.graph.nodes if isinstance(replacement, Module) else ():
        if node.op in ("call_module", "get_attr"):
            path, _, last = str(node.target).rpartition(".")
            try:
                getattr(gm.get_submodule(path), last)
            except AttributeError:
                value = copy.deepcopy(getattr(replacement.get_submodule(path), last))
                gm.add_submodule(str(node.target), value) if node.op == "call_module" else setattr(gm.get_submodule(path), last, value)
    gm.delete_all_unused_submodules()


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Puts the program `replacement` where `gm` does what `pattern` does; both are functions or modules, with the same inputs. Returns the places.

    >>> traced = naru.fx.symbolic_trace(lambda x: naru.relu(x) + 1)
    >>> found = naru.fx.replace_pattern(traced, lambda x: naru.relu(x), lambda x: naru.abs(x))
    >>> len(found), traced(naru.tensor([-2.0]))
    (1, tensor([3.]))
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Callable[..., bool]] | None = None, ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    """As `replace_pattern(gm, pattern, replacement)`, where all of `match_filters`, called with (match, graph, pattern), return True.
    `ignore_literals`: numbers need not be those of the pattern; `replacement_callback`: makes the replacement of a match.

    >>> from naru.fx.subgraph_rewriter import replace_pattern_with_filters
    >>> traced = naru.fx.symbolic_trace(lambda x: naru.relu(x) + 1)
    >>> replace_pattern_with_filters(traced, lambda x: naru.relu(x), lambda x: x, [lambda match, graph, pattern: False])
    []
    """
    graph = _graph_of(pattern)
    made = None if replacement is None else _graph_of(replacement)
    matches = _Search(graph, gm.graph, ignore_literals).matches()
    changed: dict[Node, Node] = {}
    replaced = []
    for match in (m for m in matches if all(accepts(m, gm.graph, graph) for accepts in match_filters or ())):
        new = replacement_callback(match, gm.graph, graph) if replacement_callback else made
        if new is None:
            raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
        replaced.append(ReplacedPatterns(match.anchors[0], match.nodes_map, _replace(gm, match, new, changed)))
    gm.recompile()
    _take_over(gm, replacement)
    return replaced


__getattr__ = placeholders.module_getattr(__name__)
