"""`torch.mtia`: devices that naru has no backend for."""

from __future__ import annotations

from .. import _missing

__all__ = ["device_count", "is_available", "is_initialized"]


def is_available() -> bool:
    """Whether there is one: no.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether one was used: no.

    >>> naru.mtia.is_initialized()
    False
    """
    return False


def device_count() -> int:
    """How many there are: none.

    >>> naru.mtia.device_count()
    0
    """
    return 0


__getattr__ = _missing.module_getattr(__name__)
