"""Pickles as PyTorch writes them: its names for what is naru's, and tensors as references to storages that stand beside the pickle."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import IO, Any

from .. import _C, _utils
from .._tensor import _rebuild_from_type_v2
from .storages import STORAGE_OF_DTYPE, STORAGE_TYPES, STORAGES, StorageType, name_of

Tensor = _C.Tensor


def torch_name(obj: Any) -> tuple[str, str]:
    """Module and name under which PyTorch knows one of naru's (or anyone's) globals."""
    module, name = getattr(obj, "__module__", "") or "", getattr(obj, "__qualname__", "")
    if module == "naru._C":
        module = "torch"
    elif module == "naru" or module.startswith("naru."):
        module = "torch" + module[4:]
    return module, name


class _StorageRef:
    """Stands in a pickle for a storage that is written beside it."""

    def __init__(self, key: str, dtype: Any, location: str, numel: int) -> None:
        self.key, self.dtype, self.location, self.numel = key, dtype, location, numel


class Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the Python one: its save_global can be replaced
    """Collects in `storages` what it leaves out. legacy: as PyTorch wrote before version 1.6."""

    def __init__(self, file: IO[bytes], protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.storages: list[Tensor] = []
        self._legacy = legacy
        self._known: dict[Any, tuple[_StorageRef, Tensor]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _StorageRef):
            return None
        kind = STORAGE_OF_DTYPE.get(name_of(obj.dtype))
        if kind is None and not self._legacy:  # bytes; the tensor's dtype stands beside them
            return ("storage", STORAGE_TYPES["UntypedStorage"], obj.key, obj.location, obj.numel * obj.dtype.itemsize)
        if kind is None:
            raise RuntimeError(f"save: PyTorch's files have no storage type for {obj.dtype}; wanted one of {', '.join(STORAGES.values())}")
        pid = ("storage", kind, obj.key, obj.location, obj.numel)
        return (*pid, None) if self._legacy else pid

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, StorageType):
            return obj.name
        if isinstance(obj, _C.dtype):
            return name_of(obj)
        if isinstance(obj, _C.device):
            return _C.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if isinstance(obj, _C.Size):
            return _C.Size, (tuple(obj),)
        if callable(obj) and not isinstance(obj, type) and torch_name(obj)[0].split(".")[0] == "torch":
            name = getattr(obj, "__qualname__", None)
            if name is not None and hasattr(obj, "__code__"):
                return name
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, (StorageType, _C.dtype)):
            module = "torch.storage" if obj is STORAGE_TYPES["UntypedStorage"] else "torch"
        else:
            module = torch_name(obj)[0]
            if module.split(".")[0] != "torch":
                super().save_global(obj, name)
                return
        self.write(pickle.GLOBAL + f"{module}\n{name or obj.__qualname__}\n".encode())
        self.memoize(obj)

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        from ..nn.parameter import Parameter

        if isinstance(tensor, Parameter):
            state = {k: v for k, v in tensor.__dict__.items()}
            data = tensor.data
            if state:
                return _utils._rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), state)
            return _utils._rebuild_parameter, (data, tensor.requires_grad, OrderedDict())
        ref, offset, stride = self._storage(tensor)
        geometry = (ref, offset, tuple(tensor.shape), stride, tensor.requires_grad, OrderedDict())
        rebuild = _utils._rebuild_tensor_v2
        if name_of(tensor.dtype) not in STORAGE_OF_DTYPE:
            rebuild, geometry = _utils._rebuild_tensor_v3, (*geometry, tensor.dtype)  # type: ignore[assignment]
        if tensor.__dict__ and type(tensor) is Tensor:
            return _rebuild_from_type_v2, (rebuild, Tensor, geometry, tensor.__dict__)
        return rebuild, geometry

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
