"""Settings of torch.save and torch.load, and storage locations by name."""

from __future__ import annotations

import enum
import mmap
from typing import Any

from .. import _C
from .packages import restored_by_packages, tag_by_packages
from .storages import device_if_present


class LoadEndianness(enum.Enum):
    """The byte order assumed for files that do not specify it.

    >>> naru.serialization.LoadEndianness.LITTLE.name
    'LITTLE'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


# None where Python's mmap has no flags: on Windows, where files are mapped privately.
PRIVATE: int | None = getattr(mmap, "MAP_PRIVATE", None)
SHARED: int | None = getattr(mmap, "MAP_SHARED", None)


class _Settings:
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = PRIVATE
    crc32 = True
    skips_data = False

    def writes_go_to_file(self) -> bool:
        return self.mmap_flags is not None and self.mmap_flags == SHARED


settings = _Settings()


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns the value set by `set_default_load_endianness`; None: little-endian, as old files without a mark are.

    >>> naru.serialization.get_default_load_endianness() is None
    True
    """
    return settings.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order assumed for files that do not specify theirs. TypeError for other values.

    Args:
        endianness: one of `LoadEndianness`, or None.

    >>> naru.serialization.set_default_load_endianness(naru.serialization.LoadEndianness.NATIVE)
    >>> naru.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    settings.endianness = endianness


def get_crc32_options() -> bool:
    """Returns the value passed to `set_crc32_options`.

    >>> naru.serialization.get_crc32_options()
    True
    """
    return settings.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Accepted without effect: checksums of records are always written, so that damage is detected; they cost little compared with writing.

    Args:
        compute_crc32: returned by `get_crc32_options` from now on.

    >>> naru.serialization.set_crc32_options(True)
    """
    settings.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """How `torch.load(mmap=True)` maps a file: mmap.MAP_PRIVATE, or the value set by `set_default_mmap_options`; None on Windows.

    >>> import mmap
    >>> naru.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return settings.mmap_flags


class set_default_mmap_options:
    """Sets how `torch.load(mmap=True)` maps a file, from now on or within a `with` block. ValueError for other flags; RuntimeError on
    Windows, where files are always mapped privately.

    Args:
        flags: mmap.MAP_PRIVATE: writes to the tensors are private to the process; mmap.MAP_SHARED: they go to the file.

    >>> import mmap
    >>> with naru.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     naru.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if SHARED is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows: files are mapped privately there")
        if flags not in (PRIVATE, SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before, settings.mmap_flags = settings.mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        settings.mmap_flags = self._before


class skip_data:
    """Within it, `torch.save` reserves space for the elements of tensors without writing them: the space reads as zeros.

    Args:
        materialize_fake_tensors: ignored: tensors without elements (on the meta device) take no space in files.

    >>> import io
    >>> file = io.BytesIO()
    >>> with naru.serialization.skip_data():
    ...     naru.save(naru.ones(2), file)
    >>> _ = file.seek(0); naru.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before, settings.skips_data = settings.skips_data, True

    def __exit__(self, *exc: object) -> None:
        settings.skips_data = self._before


# --- storage locations


def location_tag(storage: Any) -> str:
    """The name of a storage's location, as used in files.

    Args:
        storage: a storage.

    >>> naru.serialization.location_tag(naru.ones(1).untyped_storage())
    'cpu'
    """
    return tag_by_packages(storage) or str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """Moves a storage to the location of that name; for a `map_location` function. RuntimeError for an unknown location.

    Args:
        storage: a storage.
        location: "cpu", "cuda:1" ...

    >>> x = naru.ones(1).untyped_storage()
    >>> naru.serialization.default_restore_location(x, "cpu") is x
    True
    """
    found = restored_by_packages(storage, location)
    if found is not None:
        return found
    if location == "cpu":
        return storage.cpu()
    if location.startswith("cuda"):
        validate_cuda_device(location)
    device = _C.device("meta") if location == "meta" else device_if_present(location)
    if device is None:
        raise RuntimeError(
            f"don't know how to restore data location of {type(storage).__name__} (tagged with {location}): there is no such device here; give "
            "map_location='cpu', or see `naru devices`"
        )
    return storage.to(device)


def validate_cuda_device(location: str) -> int:
    """The index in "cuda:1" (0 for "cuda"). RuntimeError if there is no such device.

    Args:
        location: the name of a location.

    >>> with naru.virtual("cuda", count=2):
    ...     naru.serialization.validate_cuda_device("cuda:1")
    1
    """
    index = _C.device(location).index or 0
    if not _C.is_available("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, "
            "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if index >= _C.device_count("cuda"):
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {_C.device_count('cuda')}. Please use "
            "torch.load with map_location to map your storages to an existing device."
        )
    return index
