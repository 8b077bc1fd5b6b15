"""`torch.backends.mps`"""

from __future__ import annotations

from .. import _C


def is_available() -> bool:
    """Whether a working device is available.

    >>> with naru.virtual("mps"):
    ...     naru.backends.mps.is_available()
    True
    """
    return _C.is_available("mps")


def is_built() -> bool:
    """Whether mps devices can be used if present.

    >>> naru.backends.mps.is_built()
    True
    """
    return True


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of at least version `major`.`minor`.

    >>> import sys
    >>> naru.backends.mps.is_macos_or_newer(10, 0) == (sys.platform == "darwin")
    True
    """
    import platform

    version = platform.mac_ver()[0]
    return bool(version) and tuple(int(part) for part in version.split(".")[:2]) >= (major, minor)


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13.`minor` or newer.

    >>> naru.backends.mps.is_macos13_or_newer() == naru.backends.mps.is_macos_or_newer(13, 0)
    True
    """
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """The device's name; RuntimeError with the reason if there is none.

    >>> with naru.virtual("mps"):
    ...     naru.backends.mps.get_name()
    'Virtual mps'
    """
    return _C.device_name(_C.device("mps", 0))


def get_core_count() -> int:
    """The device's number of cores; 0 if unknown.

    >>> with naru.virtual("mps"):
    ...     naru.backends.mps.get_core_count()
    1
    """
    return int(_C._describe_device(_C.device("mps", 0))["multi_processor_count"])
