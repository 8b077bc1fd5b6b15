"""The handle by which a registered hook is removed."""

from __future__ import annotations

import itertools

__all__ = ["RemovableHandle"]

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook out of the dict it was registered in; also a context manager.

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

    def __init__(self, hooks_dict: dict, *, extra_dict: dict | list | None = None) -> None:
        self.id = next(_ids)
        self._dicts = [hooks_dict]
        if isinstance(extra_dict, dict):
            self._dicts.append(extra_dict)
        elif extra_dict is not None:
            self._dicts.extend(extra_dict)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for hooks in self._dicts:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
