"""`torch.backends.mkl`: not in use."""

from __future__ import annotations


def is_available() -> bool:
    """Whether it is in use: no.

    >>> naru.backends.mkl.is_available()
    False
    """
    return False
