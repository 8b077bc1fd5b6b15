"""`torch.fx.immutable_collections`: the lists and dictionaries in a node's arguments, which cannot be changed in place."""

from __future__ import annotations

from typing import Any

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuses(kind: str) -> Any:
    def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"'{kind}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object, "
            f"instead create a new copy of it and assign the copy to the node: new_args = {kind.removeprefix('immutable_')}(node.args[...]) "
            "# change new_args; node.args = (..., new_args, ...)"
        )

    return refused


_LIST = _refuses("immutable_list")
_DICT = _refuses("immutable_dict")


class immutable_list(list):
    """A list of what is in `iterable` that can be hashed and cannot be changed: TypeError. A node needs to know of each change of its arguments.

    >>> from naru.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2])
    [1, 2]
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = pop = remove = reverse = sort = _LIST

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


class immutable_dict(dict):
    """A dictionary that can be hashed and that cannot be changed: TypeError.

    >>> from naru.fx.immutable_collections import immutable_dict
    >>> immutable_dict(dim=1)
    {'dim': 1}
    """

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _DICT

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


_pytree.register_pytree_node(immutable_list, lambda values: (list(values), None), lambda values, context: immutable_list(values))
_pytree.register_pytree_node(
    immutable_dict, lambda d: (list(d.values()), list(d)), lambda values, keys: immutable_dict(zip(keys, values))
)
