"""`save` and `load`: PyTorch's file format, a zip archive of one pickle and the bytes of each storage.

Files go both ways between naru and PyTorch. By default a file is read as data only: it can name nothing but tensors and
plain containers. A tensor saved on a device that is absent is loaded on the CPU.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections import Counter, OrderedDict, defaultdict
from typing import IO, TYPE_CHECKING, Any

from . import _C, _utils

if TYPE_CHECKING:
    from collections.abc import Callable
    from zipfile import ZipFile

Tensor = _C.Tensor

__all__ = ["save", "load", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

DEFAULT_PROTOCOL = 2

# The storage types that PyTorch's files name, and the dtypes that they hold.
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}
_DTYPE_NAMES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
)

_safe: dict[tuple[str, str], Any] = {}


def _torch_name(obj: Any) -> tuple[str, str]:
    """Module and name under which PyTorch knows one of naru's (or anyone's) globals."""
    module, name = getattr(obj, "__module__", "") or "", getattr(obj, "__qualname__", "")
    if module == "naru._C":
        module = "torch"
    elif module == "naru" or module.startswith("naru."):
        module = "torch" + module[4:]
    return module, name


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets `load(weights_only=True)` use these classes and functions too."""
    for item in safe_globals:
        obj, name = item if isinstance(item, tuple) else (item, None)
        key = tuple(name.rsplit(".", 1)) if name else _torch_name(obj)
        _safe[key] = obj  # type: ignore[index]


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Takes back all that `add_safe_globals` has added."""
    _safe.clear()


class safe_globals:
    """A context manager in which `load` may use the given classes and functions too."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self._globals = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_safe)
        add_safe_globals(self._globals)

    def __exit__(self, *exc: object) -> None:
        _safe.clear()
        _safe.update(self._before)


# --- bytes ---------------------------------------------------------------------------------------------------------


def bytes_to_tensor(data: bytes | bytearray, dtype: Any) -> Tensor:
    """A one-dimensional CPU tensor with a copy of the bytes."""
    import numpy as np

    name = str(dtype).removeprefix("torch.")
    if not data:
        return _C.empty(0, dtype=dtype)
    if name == "bfloat16":
        return _C.from_numpy(np.frombuffer(bytearray(data), np.int16)).view(dtype)
    return _C.from_numpy(np.frombuffer(bytearray(data), np.dtype(name)))


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """The elements of a tensor in row-major order."""
    tensor = tensor.detach().to("cpu").contiguous()
    if tensor.numel() == 0:
        return b""
    if tensor.dtype == _C.bfloat16:
        tensor = tensor.reshape(-1).view(_C.int16)
    return tensor.numpy().tobytes()


def device_if_present(location: str) -> Any:
    """The device of that name, or None where it is absent or is the CPU."""
    if location in ("cpu", ""):
        return None
    kind, _, index = location.partition(":")
    try:
        count = _C.device_count(kind)
    except Exception:  # a kind that naru does not know
        return None
    return _C.device(location) if int(index or 0) < count else None


# --- saving --------------------------------------------------------------------------------------------------------


class _StorageRef:
    """Stands in a pickle for a storage that is written beside it."""

    def __init__(self, key: str, dtype: Any, location: str, numel: int) -> None:
        self.key, self.dtype, self.location, self.numel = key, dtype, location, numel


class _StorageType:
    """Stands in a pickle for one of PyTorch's storage types."""

    def __init__(self, name: str) -> None:
        self.name = name


_STORAGE_TYPES = {name: _StorageType(name) for name in _STORAGES}
_STORAGE_OF_DTYPE = {dtype: _STORAGE_TYPES[name] for name, dtype in _STORAGES.items() if name != "UntypedStorage"}


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the Python one: its save_global can be replaced
    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[Tensor] = []
        self._known: dict[Any, tuple[_StorageRef, Tensor]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _StorageRef):
            return ("storage", _STORAGE_OF_DTYPE[str(obj.dtype).removeprefix("torch.")], obj.key, obj.location, obj.numel)
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, _StorageType):
            return obj.name
        if isinstance(obj, _C.dtype):
            return str(obj).removeprefix("torch.")
        if isinstance(obj, _C.device):
            return _C.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if isinstance(obj, _C.Size):
            return _C.Size, (tuple(obj),)
        if callable(obj) and not isinstance(obj, type) and _torch_name(obj)[0].split(".")[0] == "torch":
            name = getattr(obj, "__qualname__", None)
            if name is not None and hasattr(obj, "__code__"):
                return name
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, (_StorageType, _C.dtype)):
            module = "torch"
        else:
            module = _torch_name(obj)[0]
            if module.split(".")[0] != "torch":
                super().save_global(obj, name)
                return
        self.write(pickle.GLOBAL + f"{module}\n{name or obj.__qualname__}\n".encode())
        self.memoize(obj)

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        from .nn.parameter import Parameter

        if isinstance(tensor, Parameter):
            state = {k: v for k, v in tensor.__dict__.items()}
            data = tensor.data
            if state:
                return _utils._rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), state)
            return _utils._rebuild_parameter, (data, tensor.requires_grad, OrderedDict())
        ref, offset, stride = self._storage(tensor)
        geometry = (ref, offset, tuple(tensor.shape), stride, tensor.requires_grad, OrderedDict())
        return _utils._rebuild_tensor_v2, geometry

    def _storage(self, tensor: Tensor) -> tuple[_StorageRef, int, tuple]:
        """The storage of a tensor, whole, so that tensors that share memory still do when they are loaded."""
        plain = tensor.detach()
        bytes_held = plain.untyped_storage().nbytes()
        count = bytes_held // plain.element_size()
        # The pointer alone names an empty storage badly.
        key = (plain.untyped_storage().data_ptr(), str(plain.device), plain.dtype, count) if count else id(tensor)
        if key not in self._known:
            flat = plain.as_strided((count,), (1,), 0)
            ref = _StorageRef(str(len(self.storages)), plain.dtype, str(plain.device), count)
            self.storages.append(flat)
            self._known[key] = (ref, tensor)  # the tensor is kept, or its address could be used again
        return self._known[key][0], plain.storage_offset(), tuple(plain.stride())


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file that `load`, here or in PyTorch, reads.

    Args:
        obj: anything that can be pickled; tensors may be anywhere in it.
        f: a path or a file open for writing.

    >>> import io, naru
    >>> file = io.BytesIO()
    >>> naru.save({"x": naru.arange(3)}, file)
    >>> _ = file.seek(0)
    >>> naru.load(file)
    {'x': tensor([0, 1, 2])}
    """
    from zipfile import ZIP_STORED, ZipFile

    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f).__name__}")
    if is_path and os.path.dirname(os.fspath(f)) and not os.path.isdir(os.path.dirname(os.fspath(f))):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    text = io.BytesIO()
    pickler = _Pickler(text, pickle_protocol)
    pickler.dump(obj)
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"
    with ZipFile(f, "w", ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(f"{root}/data.pkl", text.getvalue())
        archive.writestr(f"{root}/.format_version", "1")
        archive.writestr(f"{root}/.storage_alignment", "1")
        archive.writestr(f"{root}/byteorder", sys.byteorder)
        for i, flat in enumerate(pickler.storages):
            archive.writestr(f"{root}/data/{i}", tensor_to_bytes(flat))
        archive.writestr(f"{root}/version", "3\n")


# --- loading -------------------------------------------------------------------------------------------------------


class _Storage:
    """A storage that was read: a one-dimensional tensor, and where it was when it was saved."""

    def __init__(self, tensor: Tensor, location: str) -> None:
        self.tensor = tensor
        self.location = location

    def as_dtype(self, dtype: Any) -> _Storage:
        """The same bytes as elements of `dtype`."""
        return _Storage(bytes_to_tensor(tensor_to_bytes(self.tensor), dtype).to(self.tensor.device), self.location)

    # What a map_location function does with storages.
    @property
    def device(self) -> Any:
        return self.tensor.device

    def cpu(self) -> _Storage:
        """This storage on the CPU."""
        return _Storage(self.tensor.to("cpu"), "cpu")

    def to(self, device: Any) -> _Storage:
        """This storage on `device`."""
        return _Storage(self.tensor.to(device), str(device))

    def cuda(self, device: Any = None) -> _Storage:
        """This storage on a cuda device."""
        if device is None:
            device = "cuda"
        return self.to(f"cuda:{device}" if isinstance(device, int) else device)


def _placement(map_location: Any) -> Callable[[Tensor, str], Tensor]:
    """What puts a storage's tensor where `map_location` says."""

    def present(tensor: Tensor, location: str) -> Tensor:
        device = device_if_present(location)
        return tensor if device is None else tensor.to(device)

    if map_location is None:
        return present
    if isinstance(map_location, dict):
        return lambda tensor, location: tensor.to(map_location[location]) if location in map_location else present(tensor, location)
    if isinstance(map_location, (str, _C.device)):
        target = _C.device(map_location) if isinstance(map_location, str) else map_location
        return lambda tensor, location: tensor.to(target)
    if not callable(map_location):
        raise TypeError(f"map_location should be a device, a string, a dict or a function, got {type(map_location).__name__}")

    def call(tensor: Tensor, location: str) -> Tensor:
        chosen = map_location(_Storage(tensor, location), location)
        return present(tensor, location) if chosen is None else chosen.tensor

    return call


def _bytes_like(*args: Any) -> bytearray:
    # bytearray(10**12) from a file would take the memory for it.
    if any(isinstance(arg, int) for arg in args):
        raise pickle.UnpicklingError("Weights only load failed. The file asks for a bytearray of a size, not of bytes.")
    return bytearray(*args)


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"Weights only load failed. The file asks for the encoding {encoding!r}.")
    return text.encode("latin1")


def _plain_globals() -> dict[tuple[str, str], Any]:
    """The only globals that a file read as data may name."""
    from .nn.parameter import Parameter

    table: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("collections", "Counter"): Counter,
        ("collections", "defaultdict"): defaultdict,
        ("_codecs", "encode"): _encode,
        ("torch", "Size"): _C.Size,
        ("torch", "device"): _C.device,
        ("torch", "Tensor"): Tensor,
        ("torch.nn.parameter", "Parameter"): Parameter,
        ("torch.storage", "UntypedStorage"): _STORAGE_TYPES["UntypedStorage"],
    }
    for builtins in ("builtins", "__builtin__"):
        table[builtins, "set"] = set
        table[builtins, "complex"] = complex
        table[builtins, "bytearray"] = _bytes_like
        table[builtins, "dict"] = dict
        table[builtins, "list"] = list
        table[builtins, "int"] = int
        table[builtins, "float"] = float
    for name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_parameter_with_state"):
        table["torch._utils", name] = getattr(_utils, name)
    for name, storage in _STORAGE_TYPES.items():
        table["torch", name] = storage
    for name in _DTYPE_NAMES:
        if hasattr(_C, name):
            table["torch", name] = getattr(_C, name)
    return table


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], storages: Callable[[str, Any, str, int], _Storage], weights_only: bool) -> None:
        super().__init__(file, encoding="utf-8")
        self._read = storages
        self._plain = _plain_globals()
        self._weights_only = weights_only

    def find_class(self, module: str, name: str) -> Any:
        key = (module, name)
        if key in self._plain:
            return self._plain[key]
        if key in _safe:
            return _safe[key]
        if self._weights_only:
            raise pickle.UnpicklingError(
                "Weights only load failed. The file names a class or function that is not plain data, and loading it could "
                f"run anything.\n\tUnsupported global: GLOBAL {module}.{name} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
                "manager to allowlist this global if you trust this class/function, or set `weights_only=False` if you trust "
                "the file."
            )
        if module == "torch" or module.startswith("torch."):
            module = "naru" + module[5:]
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> _Storage:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage"):
            raise pickle.UnpicklingError(f"expected a reference to a storage in the file, got {str(pid)[:80]!r}")
        _, kind, key, location, numel = pid[:5]
        if not isinstance(kind, _StorageType) or not isinstance(numel, int) or numel < 0:
            raise pickle.UnpicklingError("the file refers to a storage of unknown type or size")
        dtype = getattr(_C, _STORAGES[kind.name], None)
        if dtype is None:
            raise pickle.UnpicklingError(f"the file holds {_STORAGES[kind.name]} tensors, which are not supported yet")
        return self._read(str(key), dtype, str(location), numel)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save`, here or in PyTorch, has written.

    Args:
        f: a path or a file open for reading.
        map_location: where tensors go: a device, a dict from saved to wanted device, or a function of storage and saved
            device. If None, they go where they were, or to the CPU where that device is absent.
        weights_only: True (and None) reads data only; False runs whatever the file says, so only for files you trust.

    A file that is damaged, or is none of ours, raises RuntimeError; one that is more than data, pickle.UnpicklingError.
    """
    from zipfile import BadZipFile, ZipFile

    if not isinstance(f, (str, os.PathLike)) and not (hasattr(f, "read") and hasattr(f, "seek")):
        raise AttributeError(
            f"expected a path or a file that can be read and sought (torch.load needs .read() and .seek()), got {type(f).__name__}"
        )
    try:
        archive = ZipFile(f)
    except (BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as error:
        raise RuntimeError(_not_an_archive(f)) from error
    with archive:
        try:
            return _load_archive(archive, _placement(map_location), weights_only is not False)
        except (BadZipFile, EOFError, KeyError, IndexError, ValueError, UnicodeDecodeError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: the file is damaged: {error}") from error


def _not_an_archive(f: Any) -> str:
    """Why a file is not a zip archive, as far as its first bytes tell."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            head = file.read(16)
    else:
        f.seek(0)
        head = f.read(16)
    where = f"'{os.fspath(f)}'" if isinstance(f, (str, os.PathLike)) else "the file"
    if not head:
        return f"PytorchStreamReader failed reading zip archive: {where} is empty"
    if head.startswith(b"PK"):
        return f"PytorchStreamReader failed reading zip archive: failed finding central directory: {where} is cut off"
    if head.startswith(b"\x80"):
        return (
            f"load: {where} is in the format that PyTorch wrote before version 1.6, which is not supported; load it with "
            "PyTorch and save it again"
        )
    return f"PytorchStreamReader failed reading zip archive: {where} is not a file written by torch.save (no zip archive)"


def _read_record(archive: ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except Exception as error:  # zipfile raises many kinds for a damaged archive
        raise RuntimeError(f"PytorchStreamReader failed reading file {name}: the file is damaged: {error}") from error


def _load_archive(archive: ZipFile, place: Callable[[Tensor, str], Tensor], weights_only: bool) -> Any:
    names = {info.filename: info for info in archive.infolist()}
    pickles = [name for name in names if name.split("/", 1)[-1] == "data.pkl"]
    if len(pickles) != 1:
        raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found (no file written by torch.save)")
    root = pickles[0][: -len("data.pkl")]
    swap = f"{root}byteorder" in names and _read_record(archive, f"{root}byteorder").decode() != sys.byteorder
    storages: dict[str, _Storage] = {}

    def read(key: str, dtype: Any, location: str, numel: int) -> _Storage:
        if key not in storages:
            name = f"{root}data/{key}"
            if name not in names:
                raise RuntimeError(f"PytorchStreamReader failed locating file data/{key}: file not found")
            held = names[name].file_size
            size = _C.empty(0, dtype=dtype).element_size()
            if held != numel * size:
                raise ValueError(f"storage {key} should have {numel * size} bytes and has {held}")
            data = _read_record(archive, name)
            if swap:
                import numpy as np

                data = np.frombuffer(data, f"V{size}").view(np.uint8).reshape(-1, size)[:, ::-1].tobytes()
            storages[key] = _Storage(place(bytes_to_tensor(data, dtype), location), location)
        return storages[key]

    unpickler = _Unpickler(io.BytesIO(_read_record(archive, pickles[0])), read, weights_only)
    try:
        return unpickler.load()
    except pickle.UnpicklingError:
        raise
    except (AttributeError, TypeError, ImportError, OverflowError, MemoryError) as error:
        if weights_only:
            # Plain data never leads here: the pickle was damaged or made to do harm.
            raise pickle.UnpicklingError(f"Weights only load failed. The pickle in the file is not valid: {error}") from error
        raise
