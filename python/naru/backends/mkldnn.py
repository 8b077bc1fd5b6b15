"""`torch.backends.mkldnn`: naru does not have the layout. The switches can be set and read, without effect: the cpu's libraries are chosen by shape
alone, so that the same call gives the same bits."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True


def is_available() -> bool:
    """Returns False: it is not used.

    >>> naru.backends.mkldnn.is_available()
    False
    """
    return False


def set_flags(_enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None, **others: Any) -> tuple:
    """Sets the switches that are not None, and returns the previous values.

    Args:
        _enabled, _deterministic, _allow_tf32: the switches of these names.
        others: PyTorch's other arguments; ignored.

    >>> naru.backends.mkldnn.set_flags()
    (True, False, True)
    """
    before = (enabled, deterministic, allow_tf32)
    given = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    globals().update({name: value for name, value in given.items() if value is not None})
    return before


@contextlib.contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none") -> Iterator[None]:
    """A context manager, and a decorator, that sets the switches and restores the old values at the end.

    Args:
        enabled, deterministic, allow_tf32: the switches of these names.
        fp32_precision: ignored.

    >>> with naru.backends.mkldnn.flags(enabled=False):
    ...     naru.backends.mkldnn.enabled
    False
    """
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
