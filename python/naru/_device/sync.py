"""Synchronizations: the source locations at which the host waits for a device; list, forbid, or warn about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODES = ("default", "warn", "error")


class Synchronization(NamedTuple):
    """One wait of the host: the reason, the device, and the line of the program ("file:line")."""

    what: str
    device: _C.device
    where: str

    def __str__(self) -> str:
        return f"{self.where or '?'}: {self.what} ({self.device})"


class count_syncs:
    """Lists the synchronizations of this thread within the block, each with its source line.

    >>> import naru
    >>> with naru.virtual("cuda", count=1), naru.count_syncs() as c:
    ...     x = naru.ones(3, device="cuda")
    ...     y = x * 2
    ...     y.sum().item()
    6.0
    >>> len(c), c[0].what
    (1, 'copy')
    """

    def __init__(self) -> None:
        self._list = _C._SyncList()

    def __enter__(self) -> count_syncs:
        self._list.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._list.close()

    def _entries(self) -> list[Synchronization]:
        return [Synchronization(what, _C.device(device), where) for what, device, where in self._list.entries()]

    def __iter__(self) -> Iterator[Synchronization]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._list.entries())

    def __getitem__(self, index: int) -> Synchronization:
        return self._entries()[index]

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no synchronizations"


class forbid_sync:
    """Within the block, a synchronization of this thread raises RuntimeError that names its source line.

    >>> import naru
    >>> with naru.virtual("cuda", count=1), naru.forbid_sync():  # doctest: +ELLIPSIS
    ...     x = naru.ones(3, device="cuda") + 1
    ...     x.sum().item()
    Traceback (most recent call last):
        ...
    RuntimeError: called a synchronizing operation where that is forbidden: copy (cuda:0...
    """

    def __enter__(self) -> None:
        self._before = _C._sync_mode()
        _C._set_sync_mode(2)

    def __exit__(self, *exc: object) -> None:
        _C._set_sync_mode(self._before)


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Sets what a synchronization of this thread does: `debug_mode` "default" (0) nothing, "warn" (1) a warning, "error" (2) an error. RuntimeError
    for other values.

    >>> with naru.virtual("cuda"):
    ...     x = naru.ones(2, device="cuda").sum()
    ...     naru.cuda.set_sync_debug_mode("error")
    ...     try:
    ...         x.item()
    ...     except RuntimeError as error:
    ...         print(str(error).split(":")[0])
    ...     naru.cuda.set_sync_debug_mode("default")
    called a synchronizing operation where that is forbidden
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, got {debug_mode!r}")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1 or 2, got {debug_mode}")
    _C._set_sync_mode(debug_mode)


def get_sync_debug_mode() -> int:
    """Returns 0, 1 or 2: see `set_sync_debug_mode`.

    >>> naru.cuda.get_sync_debug_mode()
    0
    """
    return _C._sync_mode()
