"""`torch.backends.mkldnn`: not in use."""

from __future__ import annotations


def is_available() -> bool:
    """Whether it is in use: no."""
    return False
