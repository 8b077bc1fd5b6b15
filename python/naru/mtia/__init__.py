"""`torch.mtia`: devices for which naru has no backend."""

from __future__ import annotations

from .. import _missing

__all__ = ["device_count", "is_available", "is_initialized"]


def is_available() -> bool:
    """Returns False: there are none.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Returns False: there are none.

    >>> naru.mtia.is_initialized()
    False
    """
    return False


def device_count() -> int:
    """Returns 0: there are none.

    >>> naru.mtia.device_count()
    0
    """
    return 0


__getattr__ = _missing.module_getattr(__name__)
