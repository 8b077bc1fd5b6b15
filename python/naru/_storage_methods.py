"""Storages as in PyTorch: constructors, methods, and the legacy typed names (torch.FloatStorage and so on)."""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import _C

Tensor = _C.Tensor

# The typed storages and their dtypes.
NAMES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool", "BFloat16Storage": "bfloat16",
    "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
}  # fmt: skip
_CASTS = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16", "char": "int8",
    "byte": "uint8", "bool": "bool", "bfloat16": "bfloat16", "complex_double": "complex128", "complex_float": "complex64",
}  # fmt: skip


# --- constructors


def _vector(op: str, dtype: Any, device: Any, args: tuple[Any, ...], kind: str) -> Tensor:
    if len(args) > 1:
        raise TypeError(f"{op}() takes a size or a sequence, got {len(args)} arguments")
    data = args[0] if args else 0
    if isinstance(data, int):
        if data < 0:
            raise RuntimeError(f"{op}(): wanted a size of at least 0, got {data}")
        return _C.empty(data, dtype=dtype, device=device)
    if isinstance(data, Tensor) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise (RuntimeError if kind == "int" else TypeError)(f"{op}(): Expected a sequence type, but got {type(data).__name__}")
    for item in data:
        if kind == "int" and not isinstance(item, int):
            raise RuntimeError(
                f"{op}(): tried to construct a storage from a sequence ({type(data).__name__}), but one of the items was of type "
                f"{type(item).__name__} instead of int"
            )
    return _C.tensor(list(data), dtype=dtype, device=device)


def untyped_vector(*args: Any, device: Any = None) -> Tensor:
    """The bytes of a new UntypedStorage."""
    return _vector("torch.UntypedStorage", _C.uint8, device, args, "int")


def typed_vector(*args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False) -> Tensor:
    """The elements of a new TypedStorage."""
    if isinstance(wrap_storage, Tensor):  # used when files are loaded
        return wrap_storage
    if wrap_storage is None:
        return _vector("torch.TypedStorage", _C.get_default_dtype() if dtype is None else dtype, device, args, "number")
    if args or device is not None:
        raise RuntimeError("TypedStorage: wanted no size, sequence or device beside wrap_storage, which has them")
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"TypedStorage: wanted the torch.dtype of the elements beside wrap_storage, got {type(dtype).__name__}")
    if not isinstance(wrap_storage, _C.UntypedStorage):
        raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    return _C.empty(0, dtype=dtype, device=wrap_storage.device).set_(wrap_storage)


def _is_typed(self: Any) -> bool:
    return isinstance(self, _C.TypedStorage)


def _elements(self: Any) -> Tensor:
    """The storage's elements (bytes if untyped), as a 1-d tensor over its memory."""
    vector = self._tensor()
    return vector if _is_typed(self) or vector.dtype == _C.uint8 else vector.view(_C.uint8)


def storage_of(vector: Tensor, typed: bool) -> Any:
    """The storage of a 1-d tensor `vector`, typed or untyped."""
    return vector.storage() if typed else vector.untyped_storage()


# --- from buffers and files


def _of_buffer(buffer: Any, byte_order: str | None, count: int, offset: int, dtype: Any) -> Tensor:
    """A copy of `count` elements (all, if negative) of a buffer, starting at byte `offset`."""
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if byte_order is None and dtype != _C.uint8:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2): 'big', 'little' or 'native'")
    if byte_order not in ("big", "little", "native", None):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    view, size = memoryview(buffer).cast("B"), dtype.itemsize
    if not 0 <= offset <= len(view):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(view)}), but got {offset}")
    if count < 0 and (len(view) - offset) % size:
        raise ValueError(f"buffer size ({len(view) - offset}) must be a multiple of element size ({size})")
    count = (len(view) - offset) // size if count < 0 else count
    if count * size > len(view) - offset:
        raise ValueError(f"buffer has only {(len(view) - offset) // size} elements after offset {offset}, but specified a size of {count}")
    if not count:
        return _C.empty(0, dtype=dtype)
    made = _C.frombuffer(bytearray(view[offset : offset + count * size]), dtype=_C.uint8).clone()
    if byte_order in ("big", "little") and byte_order != sys.byteorder:
        _byteswap(made.untyped_storage(), dtype)
    return made != 0 if dtype == _C.bool else made.view(dtype)


def _untyped_from_buffer(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: Any = None) -> Any:
    """A storage with a copy of the bytes of `buffer`: `count` elements of `dtype` from byte `offset` on, stored in that `byte_order`."""
    return _of_buffer(buffer, byte_order, count, offset, dtype).untyped_storage()


def _typed_from_buffer(
    buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Any:
    """A storage with a copy of `buffer`: `count` elements of `dtype` from byte `offset` on, stored in that `byte_order`."""
    made = _of_buffer(buffer, byte_order, count, offset, _C.get_default_dtype() if dtype is None else dtype)
    return made.to(made.device if device is None else device).storage()


def _of_file(filename: str, shared: bool, size: int, dtype: Any, typed: bool) -> Any:
    from ._compat.functions import from_file

    made = storage_of(from_file(filename, shared, size, dtype=dtype), typed)
    made.filename = filename if shared else None
    return made


def _untyped_from_file(filename: str, shared: bool = False, nbytes: int = 0) -> Any:
    """Maps the first `nbytes` bytes of a file as memory; writes go to the file if `shared`."""
    return _of_file(filename, shared, nbytes, _C.uint8, typed=False)


def _typed_from_file(filename: str, shared: bool = False, size: int = 0) -> Any:
    raise RuntimeError("from_file can only be called on derived classes, as torch.FloatStorage.from_file")


# --- methods


def _with_elements(self: Any) -> Tensor:
    if self.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type: such a storage has no elements")
    return _elements(self)


_item, _set_item = _C.TypedStorage.__getitem__, _C.TypedStorage.__setitem__
_byte, _set_byte = _C.UntypedStorage.__getitem__, _C.UntypedStorage.__setitem__


def _getitem(self: Any, index: Any) -> Any:
    vector = _with_elements(self)
    if isinstance(index, slice):
        if _is_typed(self):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        return vector[index].clone().untyped_storage()
    return (_item if _is_typed(self) else _byte)(self, index)


def _setitem(self: Any, index: Any, value: Any) -> None:
    vector = _with_elements(self)
    if isinstance(index, slice):
        vector[index] = value
    else:
        (_set_item if _is_typed(self) else _set_byte)(self, index, value)


def _tolist(self: Any) -> list[Any]:
    """The elements as a list."""
    return _with_elements(self).tolist()


def _fill(self: Any, value: Any) -> Any:
    """Writes `value` to all elements."""
    _elements(self).fill_(value)
    return self


def _copy(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """Copies the elements of `source`, which must be as many, into this storage."""
    other = _elements(source)
    if other.numel() != _elements(self).numel():
        raise RuntimeError(f"copy_(): wanted a storage of size {_elements(self).numel()}, got one of size {other.numel()}")
    if other.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    _elements(self).copy_(other, non_blocking)
    return self


def _clone(self: Any) -> Any:
    """A copy of the storage."""
    return storage_of(self._tensor().clone(), _is_typed(self))


def _cpu(self: Any) -> Any:
    """A copy on the cpu; the storage itself if it is already there."""
    if self.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return self if self.device.type == "cpu" else storage_of(self._tensor().cpu(), _is_typed(self))


def _to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """A copy on `device`; the storage itself if it is already there."""
    moved = self._tensor().to(device, non_blocking=non_blocking)
    return self if moved.device == self.device else storage_of(moved, _is_typed(self))


def _cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A copy on a cuda device; the storage itself if it is already there."""
    return _to(self, device="cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device, non_blocking=non_blocking)


def _byteswap(self: Any, dtype: Any) -> None:
    """Reverses the bytes of each element of `dtype`, in place."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    vector = _elements(self)
    if vector.numel() % size:
        raise RuntimeError(f"byteswap(): wanted a whole number of elements of {size} bytes, got {vector.numel()} bytes")
    vector.copy_(vector.view(-1, size).flip(1).view(-1))


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the storage's type; given a `dtype` or a type name, a typed storage with the elements converted to it."""
    if dtype is None:
        return _full_name(self)
    if isinstance(dtype, str):
        dtype = dtype.rpartition(".")[2]
        if dtype not in NAMES:
            raise ValueError(f"type(): wanted one of {', '.join(NAMES)}, got {dtype!r}")
        dtype = getattr(_C, NAMES[dtype])
    return _elements(self).to(dtype.dtype if isinstance(dtype, type) else dtype, non_blocking=non_blocking).storage()


def _full_name(self: Any) -> str:
    if not _is_typed(self):
        return "torch.storage.UntypedStorage"
    return f"{_module(self.device.type)}.{storage_type_names().get(self.dtype, 'TypedStorage')}"


def _module(kind: str) -> str:
    return "torch" if kind == "cpu" else "torch." + kind


def _repr(self: Any) -> str:
    device = self.device
    where = f"dtype={self.dtype}, device={device}" if _is_typed(self) else f"device={device}"
    lines = ["..."] if device.type == "meta" else [f" {x}" for x in _elements(self).tolist()]
    return "\n".join([*lines, f"[torch.storage.{'Typed' if _is_typed(self) else 'Untyped'}Storage({where}) of size {self.size()}]"])


def _reduce(self: Any, protocol: int = 2) -> tuple[Any, ...]:
    return storage_of, (self._tensor(), _is_typed(self))


def _equal(self: Any, other: Any) -> bool:
    return isinstance(other, _C.TypedStorage if _is_typed(self) else _C.UntypedStorage) and self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes() and self.device == other.device


def _cast(dtype: str) -> Any:
    def cast(self: Any) -> Any:
        return _elements(self).to(getattr(_C, dtype)).storage()

    cast.__doc__ = f"A typed storage of the elements as {dtype}; the same memory if they are."
    return cast


METHODS: dict[str, Any] = {
    "__getitem__": _getitem, "__setitem__": _setitem, "__repr__": _repr, "__reduce_ex__": _reduce, "__eq__": _equal, "tolist": _tolist, "fill_": _fill, "copy_": _copy,
    "clone": _clone, "__copy__": _clone, "_untyped_storage": property(lambda self: self.untyped()),
    "__hash__": lambda self: hash((self.data_ptr(), self.nbytes())),
    "cpu": _cpu, "to": _to, "cuda": _cuda, "type": _type, "get_device": lambda self: self._tensor().get_device(),
    "is_pinned": lambda self, device="cuda": self._tensor().is_pinned(), "_cdata": property(lambda self: self.data_ptr()),
    "pin_memory": lambda self, device="cuda": storage_of(self._tensor().pin_memory(), _is_typed(self)),
    "is_cuda": property(lambda self: self.device.type == "cuda"), "is_sparse": False, "is_sparse_csr": False, "filename": None,
    **{name: _cast(dtype) for name, dtype in _CASTS.items()},
}  # fmt: skip
# Attributes that only untyped, or only typed, storages have.
OF_BYTES: dict[str, Any] = {
    "byteswap": _byteswap, "from_buffer": staticmethod(_untyped_from_buffer), "from_file": staticmethod(_untyped_from_file),
}  # fmt: skip
OF_ELEMENTS: dict[str, Any] = {"from_buffer": staticmethod(_typed_from_buffer), "from_file": staticmethod(_typed_from_file)}


# --- the typed names


class _StorageType(type):
    """Metaclass of torch.FloatStorage and the like: calling it makes a TypedStorage, and `isinstance` checks dtype and device."""

    dtype: Any
    kind: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.TypedStorage) and instance.dtype == cls.dtype and instance.device.type == cls.kind

    def __call__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> Any:
        for name in options:
            raise TypeError(f"{cls.__module__}.{cls.__name__}() takes a size, a sequence or wrap_storage, got {name!r}")
        where = None if wrap_storage is not None else cls.kind
        return _C.TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, device=where)


    def from_buffer(cls, *args: Any, **options: Any) -> Any:
        """A storage with a copy of a buffer: (buffer, byte_order, count=-1, offset=0); the order is "big", "little" or "native"."""
        if cls.kind != "cpu":
            raise RuntimeError(f"from_buffer: Not available for {cls.kind.upper()} storage; make one of the cpu, and copy it by to(device=...)")
        return _typed_from_buffer(*args, **options, dtype=cls.dtype)

    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> Any:
        """Maps the first `size` elements of a file as memory; writes go to the file if `shared`."""
        if cls.kind != "cpu":
            raise RuntimeError(f"from_file: Not available for {cls.kind.upper()} storage; make one of the cpu, and copy it by to(device=...)")
        return _of_file(filename, shared, size, cls.dtype, typed=True)


@functools.cache  # types must be unique objects
def storage_types(kind: str) -> dict[str, Any]:
    """torch.FloatStorage and the other typed storages for a `kind` of device, by name."""
    return {name: _StorageType(name, (), {"dtype": getattr(_C, dtype), "kind": kind, "__module__": _module(kind)}) for name, dtype in NAMES.items()}


def storage_type_names() -> dict[Any, str]:
    """The names of the typed storages by dtype."""
    return {getattr(_C, dtype): name for name, dtype in NAMES.items()}
