"""`torch.utils._pytree`: flattens nested containers to a list of leaves and a spec of the structure.

Nodes are lists, tuples, named tuples, dicts (also OrderedDict and defaultdict), deques and registered classes; everything else is a leaf,
including None.
"""

from __future__ import annotations

from collections import defaultdict, deque, namedtuple
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ._tree_nodes import (
    DICTS,
    NODES,
    GetAttrKey,
    MappingKey,
    SequenceKey,
    _private_register_pytree_node,
    _register_pytree_node,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    key_get,
    keystr,
    node_of,
    node_type,
    register_dataclass,
    register_pytree_node,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "PyTreeSpec", "SequenceKey", "TreeSpec", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "key_get", "keystr", "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_pprint", "_register_pytree_node", "_private_register_pytree_node",
]  # fmt: skip

PyTree = Any
Context = Any


def _get_node_type(tree: Any) -> Any:
    kind = node_type(tree)
    return namedtuple if kind is tuple.__new__ else type(tree) if kind is None else kind


class NodeDef(NamedTuple):
    """How a class of nodes is flattened (also with the key of each child) and unflattened."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list, Any]]
    unflatten_fn: Callable[[Iterable, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list, Any]] | None = None


def _with_keys(node: Any) -> Callable[[Any], tuple[list, Any]]:
    def flatten_with_keys(tree: Any) -> tuple[list, Any]:
        children, context = node.flatten(tree)
        return list(zip(node.keys(tree, context), children)), context

    return flatten_with_keys


class _Supported(MutableMapping):
    """The registered classes of nodes, as a dict. What is removed is a leaf, until it is set again: tensordict does so for a while."""

    def __getitem__(self, kind: Any) -> NodeDef:
        if kind not in NODES and kind is not namedtuple:
            raise KeyError(kind)
        node = node_of(tuple.__new__ if kind is namedtuple else kind)
        return NodeDef(kind, node.flatten, node.unflatten, _with_keys(node))

    def __setitem__(self, kind: Any, node: NodeDef) -> None:
        NODES.pop(kind, None)
        register_pytree_node(kind, node.flatten_fn, node.unflatten_fn, flatten_with_keys_fn=node.flatten_with_keys_fn)

    def __delitem__(self, kind: Any) -> None:
        if kind not in NODES:
            raise KeyError(kind)
        del NODES[kind]

    def __iter__(self) -> Iterator:
        return iter((*NODES, namedtuple))

    def __len__(self) -> int:
        return len(NODES) + 1


SUPPORTED_NODES = _Supported()


def register_constant(cls: type[Any]) -> None:
    """Registers a class whose instances are nodes without leaves."""
    _private_register_pytree_node(cls, lambda constant: ([], constant), lambda values, constant: constant)


def _list_flatten(d: list[Any]) -> tuple[list, Any]:
    return d, None


def _list_flatten_with_keys(d: list[Any]) -> tuple[list, Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _list_unflatten(values: Iterable, context: Any) -> list[Any]:
    return list(values)


def is_structseq_instance(obj: Any) -> bool:
    """Whether it is one of the interpreter's own tuples with names, such as `time.struct_time`; those are leaves here."""
    return isinstance(obj, tuple) and all(isinstance(getattr(type(obj), name, None), int) for name in ("n_sequence_fields", "n_fields", "n_unnamed_fields"))


def _dict_flatten(d: dict[Any, Any]) -> tuple[list, Any]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list, Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable, context: Any) -> dict[Any, Any]:
    return dict(zip(context, values))


class TreeSpec:
    """The structure of a tree: the root's class, its context, and the specs of its children. The class of a leaf is None."""

    __slots__ = ("_type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:  # noqa: A002
        from collections import namedtuple

        self._type = tuple.__new__ if type is namedtuple else type
        self._context, self._children = context, children_specs
        self.num_nodes = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in children_specs)
        self.num_children = len(children_specs)

    @property
    def type(self) -> Any:
        """The root's class; None for a leaf."""
        from collections import namedtuple

        return namedtuple if self._type is tuple.__new__ else self._type

    @property
    def context(self) -> Any:
        """The root's data other than its children: a dict's keys, a named tuple's class."""
        return self._context

    children_specs = property(lambda self: self._children)

    def children(self) -> list[TreeSpec]:
        """The specs of the root's children."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The spec of a child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return self._type is None

    def entries(self) -> list:
        """The keys of the root's children."""
        if self._type in DICTS:
            return list(self._context[1] if self._type is defaultdict else self._context)
        return list(range(self.num_children))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves. ValueError if their number does not match."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._build(iter(values))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self._type is None:
            return next(leaves)
        return node_of(self._type).unflatten([c._build(leaves) for c in self._children], self._context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the leaves of this spec. ValueError if the structures do not match."""
        found: list[Any] = []
        self._flatten_up_to(tree, found)
        return found

    def _flatten_up_to(self, tree: Any, found: list[Any]) -> None:
        if self._type is None:
            found.append(tree)
            return
        kind = node_type(tree)
        both_dicts = kind in DICTS and self._type in DICTS
        if kind != self._type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = node_of(kind).flatten(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both_dicts:
            wanted = self.entries()
            if set(wanted) != set(tree):
                missing, extra = set(wanted) - set(tree), set(tree) - set(wanted)
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            children = [tree[key] for key in wanted]
        elif context != self._context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self._children, children):
            spec._flatten_up_to(child, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self._type, self._context, self._children) == (other._type, other._context, other._children)

    def __hash__(self) -> int:
        return hash((self._type, str(self._context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self._type is None:
            return "*"
        name = "namedtuple" if self._type is tuple.__new__ else self._type.__name__
        inner = indent + 2
        parts = [child.__repr__(inner) for child in self._children]
        return f"TreeSpec({name}, {self._context}, [{(',' + chr(10) + ' ' * inner).join(parts)}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = TreeSpec(None, None, [])


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a tree is a leaf: not a node, or is_leaf(tree) is true."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) is None


_is_leaf = tree_is_leaf


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = node_type(tree)
    children, context = node_of(kind).flatten(tree)
    spec = TreeSpec.__new__(TreeSpec)
    TreeSpec.__init__(spec, kind, context, [_flatten(child, leaves, is_leaf) for child in children])
    return spec


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """(leaves, spec) of a tree.

    >>> tree_flatten({"a": 1, "b": [2, 3]})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree with this structure and these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """Iterates over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of func(leaf, ...), with corresponding parts of `rests` as further arguments.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Calls func on the leaves, and returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def _holds(type_or_types: Any) -> Callable[[Any], bool]:
    if callable(type_or_types) and not isinstance(type_or_types, type):
        return type_or_types
    return lambda x: isinstance(x, type_or_types)


def map_only(type_or_types: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: applies the function to objects of these types, and returns others unchanged."""
    fits = _holds(type_or_types)
    return lambda func: lambda x: func(x) if fits(x) else x


def tree_map_only(type_or_types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """`tree_map` for leaves of these types; others are unchanged."""
    return tree_map(map_only(type_or_types)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """`tree_map_` for leaves of these types; others are ignored."""
    return tree_map_(map_only(type_or_types)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred(leaf) is true for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred(leaf) is true for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """`tree_all` over the leaves of these types."""
    fits = _holds(type_or_types)
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if fits(x))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """`tree_any` over the leaves of these types."""
    fits = _holds(type_or_types)
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if fits(x))


def _paths(path: tuple, tree: Any, is_leaf: Any) -> Iterable[tuple[tuple, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = node_of(node_type(tree))
    children, context = node.flatten(tree)
    for key, child in zip(node.keys(tree, context), children):
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[tuple[tuple, Any]]:
    """(path, leaf) for each leaf."""
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """((path, leaf) for each leaf, spec)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """`tree_map` with func(path, leaf, ...)."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(found, *others))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """Broadcasts `tree` to the spec and returns its leaves: a leaf for a whole subtree is repeated. None if the structures do not match."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or node_type(tree) != treespec._type:
        return None
    children, context = node_of(treespec._type).flatten(tree)
    if len(children) != treespec.num_children or context != treespec._context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec._children):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def treespec_pprint(treespec: TreeSpec) -> str:
    """The spec printed as a tree of asterisks."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star() for _ in range(treespec.num_leaves)]))


def __getattr__(name: str) -> Any:
    from .._missing import fail

    fail("utils._pytree", name)
    raise AttributeError(f"module 'torch.utils._pytree' has no attribute {name!r}")
