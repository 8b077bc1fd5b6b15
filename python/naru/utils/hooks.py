"""The handle that removes a registered hook."""

from __future__ import annotations

from typing import Any

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """Removes a hook from the dict it was registered in; also a context manager.

    Args:
        hooks_dict: the dict of hooks, keyed by handle id.
        extra_dict: further dicts with entries under the same id.

    >>> layer = naru.nn.ReLU()
    >>> with layer.register_forward_hook(lambda module, args, output: print("called")) as handle:
    ...     _ = layer(naru.ones(1))
    called
    >>> _ = layer(naru.ones(1))
    >>> type(handle).__name__
    'RemovableHandle'
    """

    next_id: int = 0

    def __init__(self, hooks_dict: dict, *, extra_dict: dict | list | None = None) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self._dicts = [hooks_dict]
        if isinstance(extra_dict, dict):
            self._dicts.append(extra_dict)
        elif extra_dict is not None:
            self._dicts.extend(extra_dict)

    def hooks_dict_ref(self) -> dict:
        """The dict of hooks that it was registered in.

        >>> layer = naru.nn.ReLU()
        >>> len(layer.register_forward_hook(lambda module, args, output: None).hooks_dict_ref())
        1
        """
        return self._dicts[0]

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for hooks in self._dicts:
            hooks.pop(self.id, None)

    def __getstate__(self) -> tuple:
        first, *more = self._dicts
        return (first, self.id, tuple(more)) if more else (first, self.id)

    def __setstate__(self, state: tuple) -> None:
        first, self.id, *more = state
        self._dicts: list[Any] = [first if first is not None else {}, *(more[0] if more else ())]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
