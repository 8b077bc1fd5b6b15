"""The registry of node classes: how each is flattened and unflattened; and the keys of their children."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class SequenceKey:
    """An index in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, tree: Any) -> Any:
        """The child at the index."""
        return tree[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A dict key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, tree: Any) -> Any:
        """The child under the key."""
        return tree[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute name."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, tree: Any) -> Any:
        """The attribute's value."""
        return getattr(tree, self.name)


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """The part of `obj` at a path of keys."""
    for key in kp:
        obj = key.get(obj)
    return obj


def keystr(kp: Iterable[Any]) -> str:
    """A path of keys as a string.

    >>> keystr((MappingKey("a"), SequenceKey(1)))
    "['a'][1]"
    """
    return "".join(str(key) for key in kp)


class _Node(NamedTuple):
    """How a class of nodes is flattened, to (children, context), and unflattened."""

    flatten: Callable[[Any], tuple[list, Any]]
    unflatten: Callable[[Iterable, Any], Any]
    keys: Callable[[Any, Any], list]


def _indices(node: Any, context: Any) -> list:
    return [SequenceKey(i) for i in range(len(node))]


def _mapping_keys(node: Any, context: Any) -> list:
    return [MappingKey(key) for key in node]


def _named(values: Iterable, context: Any) -> Any:
    return context(*values)


NODES: dict[Any, _Node] = {
    list: _Node(lambda x: (list(x), None), lambda v, c: list(v), _indices),
    tuple: _Node(lambda x: (list(x), None), lambda v, c: tuple(v), _indices),
    dict: _Node(lambda x: (list(x.values()), list(x)), lambda v, c: dict(zip(c, v)), _mapping_keys),
    OrderedDict: _Node(lambda x: (list(x.values()), list(x)), lambda v, c: OrderedDict(zip(c, v)), _mapping_keys),
    defaultdict: _Node(
        lambda x: (list(x.values()), [x.default_factory, list(x)]), lambda v, c: defaultdict(c[0], zip(c[1], v)), _mapping_keys
    ),
    deque: _Node(lambda x: (list(x), x.maxlen), lambda v, c: deque(v, maxlen=c), _indices),
}
_NAMEDTUPLE = _Node(lambda x: (list(x), type(x)), _named, lambda x, c: [GetAttrKey(name) for name in x._fields])
DICTS = (dict, OrderedDict, defaultdict)


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[Any, Any]], unflatten_fn: Callable[[Iterable, Any], Any], **names: Any
) -> None:
    """Registers `cls` as a node: flatten_fn(x) returns (children, context), unflatten_fn(children, context) the object.

    ValueError if the class is already registered. serialized_type_name and similar arguments are ignored; flatten_with_keys_fn names the children.
    """
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    with_keys = names.get("flatten_with_keys_fn")

    def keys(node: Any, context: Any) -> list:
        return [key for key, _ in with_keys(node)[0]] if with_keys else [SequenceKey(i) for i in range(len(flatten_fn(node)[0]))]

    def flatten(node: Any) -> tuple[list, Any]:
        children, context = flatten_fn(node)
        return list(children), context

    NODES[cls] = _Node(flatten, unflatten_fn, keys)


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def register_dataclass(cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **names: Any) -> None:
    """Registers a dataclass as a node, whose children are its fields."""
    import dataclasses

    fields = field_names or [f.name for f in dataclasses.fields(cls) if f.init and f.name not in (drop_field_names or ())]
    register_pytree_node(
        cls,
        lambda x: ([getattr(x, name) for name in fields], tuple(fields)),
        lambda values, context: cls(**dict(zip(context, values))),
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(name), getattr(x, name)) for name in fields], tuple(fields)),
    )


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is a named tuple class."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple) and all(type(f) is str for f in fields)


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object or class is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def node_type(tree: Any) -> Any:
    """The key under which the class of the root of `tree` is registered, or None for a leaf."""
    kind = type(tree)
    if kind in NODES:
        return kind
    if issubclass(kind, tuple) and kind.__module__.endswith("return_types"):
        NODES[kind] = _Node(lambda x: (list(x), None), lambda values, _: kind(list(values)), _indices)  # results with names
        return kind
    return tuple.__new__ if is_namedtuple_class(kind) else None


def node_of(kind: Any) -> _Node:
    return _NAMEDTUPLE if kind is tuple.__new__ else NODES[kind]
