"""`torch.backends.mps`"""

from __future__ import annotations

from .. import _C


def is_available() -> bool:
    """Whether there is a device that works."""
    return _C.is_available("mps")


def is_built() -> bool:
    """Whether mps devices can be used where they are present."""
    return True


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of at least that version."""
    import platform

    version = platform.mac_ver()[0]
    return bool(version) and tuple(int(part) for part in version.split(".")[:2]) >= (major, minor)
