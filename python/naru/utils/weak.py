"""`torch.utils.weak`: weak references to objects, and dictionaries of them, by identity: tensors compare elementwise and can't be keys by value."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

T = TypeVar("T")
V = TypeVar("V")


class WeakIdRef(weakref.ref):
    """A weak reference that equals others to the same object, and hashes by that object's identity.

    Args:
        key: the object.
        callback: called with the reference when the object has gone.

    >>> x = naru.ones(2)
    >>> naru.utils.weak.WeakIdRef(x) == naru.utils.weak.WeakIdRef(x), naru.utils.weak.WeakIdRef(x)() is x
    (True, True)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return self is other or (mine is not None and mine is theirs)

    def __ne__(self, other: object) -> bool:
        return not self == other


class TensorWeakRef(Generic[T]):
    """A weak reference to a tensor: called, it gives the tensor, or None if it has gone.

    Args:
        tensor: the tensor.

    >>> x = naru.ones(2)
    >>> naru.utils.weak.TensorWeakRef(x)() is x
    True
    """

    def __init__(self, tensor: T) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> T | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, V]):
    """A dictionary whose keys are compared by identity, and whose entries go with their keys.

    Args:
        dict: entries to begin with.
        ref_type: the class of references to keys.

    >>> x, y = naru.ones(2), naru.ones(2)
    >>> notes = naru.utils.weak.WeakIdKeyDictionary({x: "first"})
    >>> x in notes, y in notes
    (True, False)
    >>> del x
    >>> len(notes)
    0
    """

    def __init__(self, dict: Mapping[Any, V] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        entries = self.data
        self._forget = lambda gone: entries.pop(gone, None)
        self.update(dict or {})

    def __getitem__(self, key: Any) -> V:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: V) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        return iter([key for ref in list(self.data) if (key := ref()) is not None])

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary

__getattr__ = _missing.module_getattr(__name__)
