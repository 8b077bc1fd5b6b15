"""`save` and `load`: PyTorch's file format, a zip archive of one pickle and the bytes of each storage.

Files are interchangeable between naru and PyTorch. By default a file is read as data only: it may refer only to tensors and
plain containers. A tensor saved on a missing device is loaded on the CPU. Writing a file is atomic.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import warnings
from typing import IO, TYPE_CHECKING, Any, Union

from . import _C, _missing
from ._serialization.atomic_file import atomic_file
from ._serialization.allowed import plain_globals, refused
from ._serialization.archive import ArchiveReader, WithSeekable, write_archive
from ._serialization.config import (
    LoadEndianness as LoadEndianness, default_restore_location as default_restore_location, get_crc32_options as get_crc32_options,
    get_default_load_endianness as get_default_load_endianness, get_default_mmap_options as get_default_mmap_options,
    location_tag as location_tag, set_crc32_options as set_crc32_options,
    set_default_load_endianness as set_default_load_endianness, set_default_mmap_options as set_default_mmap_options, settings,
    skip_data as skip_data, validate_cuda_device as validate_cuda_device,
)  # fmt: skip
from ._serialization.packages import register_package as register_package
from ._serialization.legacy import LegacyReader, write_legacy
from ._serialization.pickler import Pickler
from ._serialization.places import find, torch_name
from ._serialization.storages import _get_layout as _get_layout, placement
from ._serialization.weights_only import WeightsOnlyUnpickler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "save", "load", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals", "get_unsafe_globals_in_checkpoint",
    "LoadEndianness", "default_restore_location", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "location_tag",
    "register_package", "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options", "skip_data", "validate_cuda_device",
    "SourceChangeWarning",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
# For annotations: what `load` takes as its map_location.
MAP_LOCATION = Union["Callable[[Any, str], Any]", _C.device, str, "dict[str, str]", None]


class SourceChangeWarning(Warning):
    """PyTorch warns with this if a module's source has changed since it was saved; naru never does.

    >>> issubclass(naru.serialization.SourceChangeWarning, Warning)
    True
    """


_safe: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows `load(weights_only=True)` to use more classes and functions: `safe_globals` lists them, or pairs of the object and its name in
    the file.

    >>> from fractions import Fraction
    >>> naru.serialization.add_safe_globals([Fraction])
    >>> naru.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> naru.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        obj, name = item if isinstance(item, tuple) else (item, None)
        key = tuple(name.rsplit(".", 1)) if name else torch_name(obj)
        _safe[key] = obj  # type: ignore[index]


def get_safe_globals() -> list[Any]:
    """Returns what `add_safe_globals` has added.

    >>> naru.serialization.get_safe_globals()
    []
    """
    return list(_safe.values())


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that weights_only=True rejects: ["module.name", ...].

    Args:
        f: a path or a file open for reading.

    >>> import naru, io
    >>> file = io.BytesIO()
    >>> naru.save({"x": naru.ones(2)}, file)
    >>> get_unsafe_globals_in_checkpoint(file)
    []
    """
    from ._serialization.unsafe_globals import in_checkpoint

    with _opened(f) as file:
        return in_checkpoint(file, _safe)


def clear_safe_globals() -> None:
    """Removes everything that `add_safe_globals` has added.

    >>> from fractions import Fraction
    >>> naru.serialization.add_safe_globals([Fraction])
    >>> naru.serialization.clear_safe_globals(); naru.serialization.get_safe_globals()
    []
    """
    _safe.clear()


class safe_globals:
    """A context manager in which `load` may also use the classes and functions in the list `safe_globals`.

    >>> import io
    >>> from fractions import Fraction
    >>> file = io.BytesIO()
    >>> naru.save({"half": Fraction(1, 2)}, file); _ = file.seek(0)
    >>> with naru.serialization.safe_globals([Fraction]):
    ...     naru.load(file)
    {'half': Fraction(1, 2)}
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._globals = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_safe)
        add_safe_globals(self._globals)

    def __exit__(self, *exc: object) -> None:
        _safe.clear()
        _safe.update(self._before)


def _pickler_of(module: Any) -> type[Pickler]:
    if module is pickle:
        return Pickler
    own = module.Pickler
    if not issubclass(own, pickle._Pickler):  # type: ignore[attr-defined]
        raise TypeError(f"save: pickle_module's Pickler must be a subclass of pickle._Pickler, whose names of classes can be replaced, got {own}")
    return type("Pickler", (Pickler, own), {})


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file that `load` can read, in naru or PyTorch.

    An existing file at a path is replaced only when the new one is complete and on disk; on any failure the old file is unchanged.

    Args:
        obj: anything that can be pickled; tensors may be anywhere in it.
        f: a path or a file open for writing.
        pickle_module: a module whose `Pickler` is used instead of pickle's, such as dill: a subclass of the pure-Python `pickle._Pickler`. TypeError for
            any other.
        pickle_protocol: protocol of the pickle in the file (2).

    >>> import io
    >>> file = io.BytesIO()
    >>> naru.save({"x": naru.arange(3)}, file)
    >>> _ = file.seek(0)
    >>> naru.load(file)
    {'x': tensor([0, 1, 2])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f).__name__}")
    if is_path and os.path.dirname(os.fspath(f)) and not os.path.isdir(os.path.dirname(os.fspath(f))):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    pickler = _pickler_of(pickle_module)
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"
    with atomic_file(f) if is_path else contextlib.nullcontext(f) as file:
        if _use_new_zipfile_serialization:
            write_archive(obj, file, root, pickle_protocol, not _disable_byteorder_record, pickler)
        else:
            write_legacy(obj, file, pickle_protocol, pickler)
        if hasattr(file, "flush"):  # so that a reader who opens the file by name sees all of it
            file.flush()


class _Trusting:
    """Unpickler behavior beyond the file's own instructions, for trusted files."""

    def __init__(self, file: IO[bytes], storage: Callable[[Any], Any] | None, encoding: str) -> None:
        super().__init__(file, encoding=encoding)  # type: ignore[call-arg]
        self._storage = storage
        self._plain = plain_globals()

    def find_class(self, module: str, name: str) -> Any:
        known = self._plain.get((module, name))
        if known is not None and module.split(".")[0] not in ("builtins", "__builtin__"):
            return known
        if module == "torch" or module.startswith("torch."):
            return find(module, name, super().find_class)  # type: ignore[misc]
        return super().find_class(module, name)  # type: ignore[misc]

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) > 1 and pid[0] in ("module", b"module"):
            return pid[1]
        if self._storage is None or not isinstance(pid, tuple) or len(pid) < 5 or pid[0] not in ("storage", b"storage"):
            raise pickle.UnpicklingError(f"expected a reference to a storage in the file, got {str(pid)[:80]!r}")
        return self._storage(pid)


class _Unpickler(_Trusting, pickle.Unpickler):
    pass


def _reads_data_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """Resolves `weights_only` from the argument or the environment; a custom pickle module always reads everything."""
    force, trust = (os.environ.get(f"TORCH_FORCE_{name}", "0").lower() in ("1", "y", "yes", "true") for name in ("WEIGHTS_ONLY_LOAD", "NO_WEIGHTS_ONLY_LOAD"))
    if force and trust:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set.")
    only = force or (pickle_module is None if weights_only is None else weights_only)
    if trust and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly passed to "
            "`torch.load`, forcing weights_only=False.",
            stacklevel=3,
        )
        only = False
    if only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return only


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a file written by `save`, in naru or PyTorch (including versions before 1.6).

    Args:
        f: a path or a file open for reading.
        map_location: where to put tensors: a device, a dict from saved to target device, or a function of storage and saved
            device. If None, the device they were saved on, or the CPU if that device is missing.
        pickle_module: a module whose `Unpickler` is used instead of pickle's, for any file content (RuntimeError with weights_only=True).
        weights_only: True (and None) reads data only; False runs any code in the file, so use it only for files you trust. In the environment,
            TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 overrides it, and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 replaces None with False, with a warning.
        mmap: whether tensors are mapped from the file at a path, and read on access (`set_default_mmap_options` sets what writing to
            them does); not those that move to another device, are bool, or are in a compressed file. ValueError for anything but a path,
            RuntimeError for a file in the legacy format.
        pickle_load_args: `encoding`, of strings pickled by Python 2 ("utf-8").

    A damaged archive raises RuntimeError; a file of another format, or with more than data, pickle.UnpicklingError; an empty file, or a pickle that
    is cut short, EOFError. Loading data uses no more memory than the file's length allows (docs/files.md).

    >>> import io
    >>> file = io.BytesIO()
    >>> naru.save([naru.ones(2), "words"], file); _ = file.seek(0)
    >>> naru.load(file, map_location="cpu")
    [tensor([1., 1.]), 'words']
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not (hasattr(f, "read") and hasattr(f, "seek") and hasattr(f, "tell")):
        raise AttributeError(
            "You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from "
            f"it instead. (wanted one with .read(), .seek() and .tell(), got {type(f).__name__})"
        )
    data_only = _reads_data_only(weights_only, pickle_module)
    trusting = _Unpickler if pickle_module in (None, pickle) else type("Unpickler", (_Trusting, pickle_module.Unpickler), {})
    if settings.skips_data:
        raise RuntimeError(
            "`torch.load` within a `torch.serialization.skip_data` context manager is not supported yet. Please call torch.load outside the "
            "skip_data context manager."
        )
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    encoding = pickle_load_args.get("encoding", "utf-8")

    def unpickle(source: IO[bytes], size: int, storage: Callable[[Any], Any] | None) -> Any:
        if not data_only:
            return trusting(source, storage, encoding).load()
        return WeightsOnlyUnpickler(source, size, storage or _no_storage, _safe, encoding).load()

    return _read(f, bool(mmap), placement(map_location), data_only, unpickle)


def _no_storage(pid: Any) -> Any:
    raise refused("The file refers to a storage where none can be.")


def load_modules(f: Any, map_location: Any) -> Any:
    """As `load` with weights_only=True, for a file that may also contain modules (_serialization/modules.py). Not for the legacy format."""
    from ._serialization.modules import ModulesUnpickler

    def unpickle(source: IO[bytes], size: int, storage: Callable[[Any], Any] | None) -> Any:
        return ModulesUnpickler(source, size, storage or _no_storage, _safe).load()

    return _read(f, False, placement(map_location), True, unpickle)


def _read(f: Any, mmap: bool, place: Callable[[Any, str], Any], data_only: bool, unpickle: Callable[..., Any]) -> Any:
    with _opened(f, mmap) as file, _explained(data_only):
        start = file.tell()
        length = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        head = file.read(16)
        file.seek(start)
        where = f"'{os.fspath(f)}'" if isinstance(f, (str, os.PathLike)) else "the file"
        if not head.startswith(b"PK\x03\x04"):
            if mmap:
                raise RuntimeError(
                    "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please torch.save your checkpoint "
                    "with this option in order to use mmap."
                )
            if not head:
                raise EOFError(f"Ran out of input: {where} is empty")
            return LegacyReader(file, length, place, lambda storage: unpickle(file, length, storage)).read()
        return _load_archive(file, _mapped(file) if mmap else None, where, place, unpickle)


def _mapped(file: IO[bytes]) -> memoryview:
    """The file's bytes, memory-mapped."""
    import mmap as maps

    access = maps.ACCESS_WRITE if settings.writes_go_to_file() else maps.ACCESS_COPY
    return memoryview(maps.mmap(file.fileno(), 0, access=access))


def _load_archive(
    file: IO[bytes], seen: memoryview | None, where: str, place: Callable[[Any, str], Any], unpickle: Callable[..., Any]
) -> Any:
    from zipfile import BadZipFile, ZipFile

    try:
        archive = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as error:
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: failed finding central directory: {where} is cut off") from error
    with archive:
        reader = ArchiveReader(archive, file.seek(0, os.SEEK_END), seen)
        text = reader.read("data.pkl")
        return unpickle(io.BytesIO(text), len(text), lambda pid: reader.storage(pid, place))


@contextlib.contextmanager
def _opened(f: Any, to_be_seen: bool = False) -> Iterator[IO[bytes]]:
    import gzip

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb+" if to_be_seen and settings.writes_go_to_file() else "rb") as file:
            yield file
    elif isinstance(f, gzip.GzipFile):  # which cannot seek relative to the end
        yield io.BytesIO(f.read())
    elif hasattr(f, "seekable") and hasattr(f, "readline"):
        yield f
    else:
        yield io.BufferedReader(WithSeekable(f))


@contextlib.contextmanager
def _explained(weights_only: bool) -> Iterator[None]:
    """Reports errors inside a file as errors of the file."""
    from zipfile import BadZipFile

    try:
        yield
    except (pickle.UnpicklingError, EOFError):
        raise
    except (BadZipFile, KeyError, IndexError, ValueError, UnicodeDecodeError, struct.error) as error:
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: the file is damaged: {error}") from error
    except (AttributeError, TypeError, ImportError, OverflowError, MemoryError, RecursionError) as error:
        if weights_only:
            # Plain data never raises this: the pickle is damaged or malicious.
            raise refused(f"The pickle in the file is not valid: {error}") from error
        raise


__getattr__ = _missing.module_getattr(__name__)
