"""The methods of ParameterDict that every dict has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing import Self

    from .container import ParameterDict


class DictMethods:
    """Needs `_keys`, item access, `pop` and `update`."""

    if TYPE_CHECKING:
        _keys: dict[str, None]

        def __getitem__(self, key: str) -> Any: ...
        def __setitem__(self, key: str, value: Any) -> None: ...
        def pop(self, key: str) -> Any: ...
        def items(self) -> Iterable[tuple[str, Any]]: ...
        def update(self, parameters: Any) -> None: ...
        def _of(self, pairs: Iterable[tuple[str, Any]]) -> ParameterDict: ...

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the (name, value) pair that was added last; KeyError if there is none."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under `key`; inserts `default` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same parameters."""
        return self._of(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict with `default` under each of `keys`."""
        return self._of((key, default) for key in keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        both = self._of(other.items())
        both.update(self)
        return both

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
