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


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13.`minor` or newer."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """The device's name; RuntimeError with the reason where there is none."""
    return _C.device_name(_C.device("mps", 0))


def get_core_count() -> int:
    """The device's processors; 0 where it does not say."""
    return int(_C._describe_device(_C.device("mps", 0))["multi_processor_count"])
