"""`torch.backends.openmp`: not in use."""

from __future__ import annotations


def is_available() -> bool:
    """Whether it is in use: no.

    >>> naru.backends.openmp.is_available()
    False
    """
    return False
