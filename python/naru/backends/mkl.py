"""`torch.backends.mkl`: not used."""

from __future__ import annotations


def is_available() -> bool:
    """Returns False: it is not used.

    >>> naru.backends.mkl.is_available()
    False
    """
    return False
