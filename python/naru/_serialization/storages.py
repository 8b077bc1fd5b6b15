"""Storages in files: their type names, their bytes, and the device they are loaded on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._storage_methods import NAMES
from .packages import restored_by_packages

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

# The storage types in PyTorch's files, and their dtypes.
STORAGES = {**NAMES, "ComplexHalfStorage": "complex32", "UntypedStorage": "uint8"}
DTYPE_NAMES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
    " float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
)


class StorageType:
    """Placeholder in a pickle for a PyTorch storage type. There is one immutable object per type."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.name} can't be changed")

    @property
    def dtype(self) -> Any:
        """Its dtype; None if naru does not have it."""
        return getattr(_C, STORAGES[self.name], None)


STORAGE_TYPES = {name: StorageType(name) for name in STORAGES}
STORAGE_OF_DTYPE = {dtype: STORAGE_TYPES[name] for name, dtype in STORAGES.items() if name != "UntypedStorage"}


def name_of(dtype: Any) -> str:
    """ "float32"."""
    return str(dtype).removeprefix("torch.")


def size_of(dtype: Any) -> int:
    """Bytes per element."""
    return _C.empty(0, dtype=dtype).element_size()


# --- bytes ---------------------------------------------------------------------------------------------------------


def bytes_to_tensor(data: bytes | bytearray, dtype: Any) -> Tensor:
    """A one-dimensional CPU tensor over the bytes: sharing memory if `data` is a bytearray, a copy otherwise."""
    if not data:
        return _C.empty(0, dtype=dtype)
    if not isinstance(data, bytearray):
        data = bytearray(data)
    if dtype is _C.bool:  # normalizes the file's bytes to 0 or 1
        return _C.frombuffer(data, dtype=_C.uint8) != 0
    return _C.frombuffer(data, dtype=dtype)


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """The elements of a tensor in row-major order."""
    tensor = tensor.detach().to("cpu").contiguous()
    return bytes(_C._bytes_of(tensor)) if tensor.numel() else b""


def swapped(data: bytearray, size: int) -> bytearray:
    """Swaps the byte order of elements of that size."""
    other = bytearray(len(data))
    for i in range(size):
        other[i::size] = data[size - 1 - i :: size]
    return other


# --- locations ------------------------------------------------------------------------------------------------------


def device_if_present(location: str) -> Any:
    """The device of that name, or None if it is missing or is the CPU."""
    if location in ("cpu", ""):
        return None
    kind, _, index = location.partition(":")
    try:
        return _C.device(location) if int(index or 0) < _C.device_count(kind) else None
    except Exception:  # an unknown kind of device
        return None


class LoadedStorage(_C.TypedStorage):
    """A loaded storage: a one-dimensional tensor, and the location that it was saved from."""

    def __init__(self, tensor: Tensor, location: str) -> None:
        super().__init__(wrap_storage=tensor)
        self.tensor = tensor
        self.location = location

    def as_dtype(self, dtype: Any) -> LoadedStorage:
        """The same bytes as elements of `dtype`. ValueError if their number is not a multiple of the element size."""
        if dtype == self.tensor.dtype:
            return self
        if self.tensor.numel() * self.tensor.element_size() % size_of(dtype):
            raise ValueError(f"a storage of {self.tensor.numel()} bytes is no whole number of {name_of(dtype)}")
        return LoadedStorage(self.tensor != 0 if dtype == _C.bool else self.tensor.view(dtype), self.location)

    # Methods that a map_location function may call.
    def cpu(self) -> LoadedStorage:
        """This storage on the CPU."""
        return LoadedStorage(self.tensor.to("cpu"), "cpu")

    def to(self, device: Any) -> LoadedStorage:
        """This storage on `device`."""
        return LoadedStorage(self.tensor.to(device), str(device))

    def cuda(self, device: Any = None) -> LoadedStorage:
        """This storage on a cuda device."""
        if device is None:
            device = "cuda"
        return self.to(f"cuda:{device}" if isinstance(device, int) else device)


def placement(map_location: Any) -> Callable[[Tensor, str], Tensor]:
    """A function that moves a storage's tensor according to `map_location`."""

    def present(tensor: Tensor, location: str) -> Tensor:
        restored = restored_by_packages(LoadedStorage(tensor, location), location)
        if restored is not None:
            return restored.tensor if isinstance(restored, LoadedStorage) else restored._tensor()
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
        chosen = map_location(LoadedStorage(tensor, location), location)
        return present(tensor, location) if chosen is None else chosen.tensor

    return call


def _get_layout(name: str) -> Any:
    """The layout of that name, "torch.sparse_coo" and so on, as files refer to it."""
    for layout in (_C.strided, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc, _C.jagged):
        if str(layout) == name:
            return layout
    raise NotImplementedError(f"load: there are no tensors of layout {name!r} here; wanted torch.jagged, torch.sparse_coo or a compressed one")


_get_layout.__module__ = "naru.serialization"  # PyTorch's location, which files refer to
