"""Pickles as PyTorch writes them: with PyTorch's names for naru's objects, and tensors as references to storages outside the pickle."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from types import FunctionType
from typing import IO, Any

from .. import _C, _utils
from .._tensor import _rebuild_from_type_v2
from .._sparse_tensors import parts_of
from .packages import tag_by_packages
from .places import torch_name
from .storages import STORAGE_OF_DTYPE, STORAGE_TYPES, STORAGES, StorageType, _get_layout, name_of

Tensor = _C.Tensor


class _StorageRef:
    """Placeholder in a pickle for a storage that is written separately."""

    def __init__(self, key: str, dtype: Any, location: str, numel: int) -> None:
        self.key, self.dtype, self.location, self.numel = key, dtype, location, numel


# Types that are pickled as in Python.
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, OrderedDict))


def _int(value: int) -> bytes:
    """Opcodes that push an integer."""
    if 0 <= value < 256:
        return pickle.BININT1 + value.to_bytes(1, "little")
    if -(1 << 31) <= value < 1 << 31:
        return pickle.BININT + value.to_bytes(4, "little", signed=True)
    data = pickle.encode_long(value)
    return pickle.LONG1 + len(data).to_bytes(1, "little") + data


_TUPLES = {0: pickle.EMPTY_TUPLE, 1: pickle.TUPLE1, 2: pickle.TUPLE2, 3: pickle.TUPLE3}


def _ints(values: Any) -> bytes:
    """Opcodes that push a tuple of integers."""
    parts = b"".join(map(_int, values))
    end = _TUPLES.get(len(values))
    return pickle.MARK + parts + pickle.TUPLE if end is None else parts + end


class Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the pure-Python one: its save_global can be overridden
    """Collects the storages that it leaves out in `storages`. legacy: the format before PyTorch 1.6."""

    def __init__(self, file: IO[bytes], protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.storages: list[Tensor] = []
        self._legacy = legacy
        self._proto = protocol
        self._texts: dict[str, str] = {}  # interned strings, so that the pickle has each once
        self._known: dict[Any, tuple[_StorageRef, Tensor]] = {}

    def persistent_id(self, obj: Any) -> Any:
        untyped = isinstance(obj, _C.UntypedStorage)
        if untyped or isinstance(obj, _C.TypedStorage):
            obj = self._storage(obj._tensor())[0]
        elif type(obj) is not _StorageRef:
            return None
        # An untyped storage; if the dtype has no storage type, it is written next to the reference.
        if not self._legacy and (untyped or name_of(obj.dtype) not in STORAGE_OF_DTYPE):
            return ("storage", STORAGE_TYPES["UntypedStorage"], obj.key, obj.location, obj.numel * obj.dtype.itemsize)
        pid = ("storage", self._kind(obj.dtype), obj.key, obj.location, obj.numel)
        return (*pid, None) if self._legacy else pid

    @staticmethod
    def _kind(dtype: Any) -> StorageType:
        kind = STORAGE_OF_DTYPE.get(name_of(dtype))
        if kind is None:
            raise RuntimeError(f"save: PyTorch's files have no storage type for {dtype}; wanted one of {', '.join(STORAGES.values())}")
        return kind

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        # Fast path for plain tensors, most of a file: the general path takes twenty calls per tensor.
        if type(obj) is Tensor and self._proto >= 2 and not self._legacy and id(obj) not in self.memo and not obj.__dict__:
            if obj.layout is _C.strided and not obj.is_meta and name_of(obj.dtype) in STORAGE_OF_DTYPE:
                return self._save_tensor(obj)
        return super().save(obj, save_persistent_id)

    def _save_tensor(self, tensor: Tensor) -> None:
        ref, offset, stride = self._storage(tensor)
        save, write = self.save, self.write
        save(_utils._rebuild_tensor_v2)
        write(pickle.MARK + pickle.MARK)
        save("storage")
        save(self._kind(ref.dtype))
        key = ref.key.encode()
        write(pickle.BINUNICODE + len(key).to_bytes(4, "little") + key)
        save(self._texts.setdefault(ref.location, ref.location))
        write(
            _int(ref.numel) + pickle.TUPLE + pickle.BINPERSID + _int(offset) + _ints(tensor.shape) + _ints(stride)
            + (pickle.NEWTRUE if tensor.requires_grad else pickle.NEWFALSE)
        )
        save(OrderedDict)
        write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self.memoize(tensor)

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _PLAIN:
            return NotImplemented
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, StorageType):
            return obj.name
        if isinstance(obj, _C.dtype):
            return name_of(obj)
        if isinstance(obj, _C.device):
            return _C.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if isinstance(obj, _C.layout):
            return _get_layout, (str(obj),)
        if isinstance(obj, _C.Size):
            return _C.Size, (tuple(obj),)
        if isinstance(obj, FunctionType) and "<locals>" not in obj.__qualname__ and torch_name(obj)[0].split(".")[0] == "torch":
            return obj.__qualname__
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, (StorageType, _C.dtype)):
            module = "torch.storage" if obj is STORAGE_TYPES["UntypedStorage"] else "torch"
        else:
            module, known = torch_name(obj)
            name = name or known
            if module.split(".")[0] != "torch":
                super().save_global(obj, name)
                return
        self.write(pickle.GLOBAL + f"{module}\n{name or obj.__qualname__}\n".encode())
        self.memoize(obj)

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        from ..nn.parameter import Parameter, is_lazy

        if tensor.is_nested:
            from .nested_parts import parts_to_save

            return parts_to_save(tensor)
        if is_lazy(tensor):
            return type(tensor), (tensor.requires_grad,)
        if isinstance(tensor, Parameter):
            state = {k: v for k, v in tensor.__dict__.items()}
            data = tensor.data
            if state:
                return _utils._rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), state)
            return _utils._rebuild_parameter, (data, tensor.requires_grad, OrderedDict())
        if tensor.layout != _C.strided:
            return self._reduce_sparse(tensor.detach())
        if tensor.is_meta:
            meta = (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad)
            if tensor.__dict__ and type(tensor) is Tensor:
                return _rebuild_from_type_v2, (_utils._rebuild_meta_tensor_no_storage, Tensor, meta, tensor.__dict__)
            return _utils._rebuild_meta_tensor_no_storage, meta
        ref, offset, stride = self._storage(tensor)
        geometry = (ref, offset, tuple(tensor.shape), stride, tensor.requires_grad, OrderedDict())
        rebuild = _utils._rebuild_tensor_v2
        if name_of(tensor.dtype) not in STORAGE_OF_DTYPE:
            rebuild, geometry = _utils._rebuild_tensor_v3, (*geometry, tensor.dtype)  # type: ignore[assignment]
        if tensor.__dict__ and type(tensor) is Tensor:
            return _rebuild_from_type_v2, (rebuild, Tensor, geometry, tensor.__dict__)
        return rebuild, geometry

    @staticmethod
    def _reduce_sparse(tensor: Tensor) -> tuple:
        parts: tuple = (*parts_of(tensor), tensor.shape)
        if tensor.layout is _C.sparse_coo:
            parts = (*parts, tensor.is_coalesced())
        return _utils._rebuild_sparse_tensor, (tensor.layout, parts)

    def _storage(self, tensor: Tensor) -> tuple[_StorageRef, int, tuple]:
        """The whole storage of a tensor, so that tensors that share memory still do after loading."""
        plain = tensor.detach()
        bytes_held = plain.untyped_storage().nbytes()
        count = bytes_held // plain.element_size()
        # The pointer does not identify an empty storage.
        key = (plain.untyped_storage().data_ptr(), str(plain.device), plain.dtype, count) if count else id(tensor)
        if key not in self._known:
            flat = plain.as_strided((count,), (1,), 0)
            ref = _StorageRef(str(len(self.storages)), plain.dtype, tag_by_packages(plain.untyped_storage()) or str(plain.device), count)
            self.storages.append(flat)
            self._known[key] = (ref, tensor)  # keep the tensor alive: its address must not be reused
        return self._known[key][0], plain.storage_offset(), tuple(plain.stride())
