"""Methods of `Tensor` that are written in Python: copying and pickling."""

from __future__ import annotations

import warnings
from typing import Any

from . import _C, _storage_methods
from ._compat import methods
from ._missing import Absent, mark_absent
from ._missing.tensor_names import NAMES
from ._storage_copies import storage_copy

Tensor = _C.Tensor


def _format(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and type(self) is Tensor and self.device.type != "meta":
        return format(self.item(), spec)
    return object.__format__(self, spec) if spec else str(self)


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of the tensor's type, e.g. "torch.FloatTensor"; given `dtype` (a dtype, an old tensor type or its name), the tensor converted to
    it. `non_blocking` as for `to`.

    >>> naru.ones(2).type(), naru.ones(2).type(naru.int64)
    ('torch.FloatTensor', tensor([1, 1]))
    """
    from ._compat.tensor_types import parse_type, type_name

    if dtype is None:
        return type_name(self)
    wanted, kind = parse_type(dtype)
    if kind is not None and kind != self.device.type:
        return self.to(kind, wanted, non_blocking)
    return self.to(wanted)


def _new(self: Tensor, *args: Any, device: Any = None, **named: Any) -> Tensor:
    """A tensor of the same dtype on the same device, or on another `device` of its kind: with the given sizes or `size`, with the given `data`, or
    over the memory of a tensor (`other`) or a `storage`.

    >>> naru.ones(1, dtype=naru.int64).new([1, 2])
    tensor([1, 2])
    """
    from ._compat.tensor_types import legacy_tensor, place, positional

    return legacy_tensor(self.dtype, place(self.device, device), positional(args, named))


def _dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    from .utils.dlpack import dlpack

    return dlpack(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self: Tensor) -> Any:
    from .utils.dlpack import dlpack_device

    return dlpack_device(self)


def _cuda_array_interface(self: Tensor) -> Any:
    from .utils.dlpack import cuda_array_interface

    return cuda_array_interface(self)


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """`naru.array_api`, the functions of the array API standard. ValueError for an `api_version` other than 2021.12 to 2025.12."""
    versions = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
    if api_version is not None and api_version not in versions:
        raise ValueError(f"__array_namespace__: wanted an api_version among {', '.join(versions)}, got {api_version!r}")
    from . import array_api

    return array_api


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The array API's name for `to(device)`: the tensor on another `device`, itself if it is already there. `stream` is ignored.

    >>> naru.ones(2).to_device("meta").device
    device(type='meta')
    """
    return self.to(device)


def _record_stream(self: Tensor, stream: Any) -> None:
    """Does nothing: storages track by themselves which streams still use them. RuntimeError if the tensor is not on the device of
    `stream`.

    >>> with naru.virtual("cuda"):
    ...     x, s = naru.ones(2, device="cuda"), naru.Stream("cuda")
    ...     x.record_stream(s)
    """
    if self.device.type == "cpu":
        raise RuntimeError(f"record_stream: wanted a tensor on the stream's device ({stream.device}), got one on cpu")


def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) not in memo:
        flat = storage_copy(self.detach(), memo)
        copy = flat.as_strided(self.shape, self.stride(), self.storage_offset()).detach() if flat is not None else self.detach().clone()
        if type(self) is not Tensor:
            copy = Tensor._make_subclass(type(self), copy, False)
        if self.requires_grad:
            copy.requires_grad_(True)
        memo[id(self)] = copy
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        if self.__dict__:
            from copy import deepcopy

            copy.__dict__.update(deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _copy(self: Tensor) -> Tensor:
    """Another tensor over the same storage."""
    copy = self.data if type(self) is Tensor else Tensor._make_subclass(type(self), self.data, False)
    if self.requires_grad:
        copy.requires_grad_(True)
    if self.__dict__:
        copy.__dict__.update(self.__dict__)
    return copy


def _storage_deepcopy(self: Any, memo: dict) -> Any:
    flat = self._tensor()
    copy = storage_copy(flat, memo) if flat.numel() else flat.clone()
    return _storage_methods.storage_of(copy, isinstance(self, _C.TypedStorage))


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple[Any, ...], state: Any) -> Tensor:
    """Rebuilds a tensor that has attributes of its own from a file."""
    from ._utils import _with_state

    made = func(*args)
    if made.is_nested:  # PyTorch stores the constructor arguments as its attributes
        return made
    if type(made) is Tensor and isinstance(new_type, type) and issubclass(new_type, Tensor) and new_type is not Tensor:
        made = made.as_subclass(new_type)
    return _with_state(made, state[0] if isinstance(state, tuple) and len(state) == 2 else state)


def _reduce(self: Tensor, protocol: Any) -> tuple:
    from ._utils import _strides_to_keep, _tensor_from_bytes
    from ._serialization.storages import tensor_to_bytes

    if self.layout != _C.strided:
        from ._sparse_tensors import reduce_sparse

        return reduce_sparse(self)
    if self.is_meta:
        from ._utils import _rebuild_meta_tensor_no_storage

        geometry = (self.dtype, tuple(self.shape), self.stride(), self.requires_grad and self.is_leaf)
        return (_rebuild_meta_tensor_no_storage, geometry, self.__dict__) if self.__dict__ else (_rebuild_meta_tensor_no_storage, geometry)
    args = (
        tensor_to_bytes(self),
        str(self.dtype).removeprefix("torch."),
        tuple(self.shape),
        str(self.device),
        self.requires_grad and self.is_leaf,
    )
    if (strides := _strides_to_keep(self)) is not None:
        args = (*args, strides)  # type: ignore[assignment]
    if type(self) is not Tensor:
        return _rebuild_from_type_v2, (_tensor_from_bytes, type(self), args, self.__dict__)
    return (_tensor_from_bytes, args, self.__dict__) if self.__dict__ else (_tensor_from_bytes, args)


def _dir(self: Tensor) -> list[str]:
    """Attribute names, without those that exist only to report that naru lacks them."""
    from inspect import getattr_static

    kind = type(self)
    return [name for name in object.__dir__(self) if not isinstance(getattr_static(kind, name, None), Absent)]


def _init_subclass(cls: type, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if getattr(cls.__torch_function__, "__func__", None) is not None:
        from .overrides import _watch

        _watch(subclasses=True)
    if "__torch_dispatch__" in cls.__dict__:
        warnings.warn(
            f"{cls.__name__}.__torch_dispatch__ is never called: naru has no dispatcher beneath autograd, and operators see a plain tensor; "
            "nearest: __torch_function__",
            stacklevel=2,
        )


def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> None:
    """NotImplementedError: tensors without elements of their own need `__torch_dispatch__`, which naru does not have."""
    raise NotImplementedError(
        "Tensor._make_wrapper_subclass: a wrapper is computed with by __torch_dispatch__, which naru does not have; nearest: a class with "
        "__torch_function__, or Tensor.as_subclass"
    )


def _torch_function(cls: type, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Calls `func` as if there were no `__torch_function__`; resulting tensors are of the subclass."""
    from .overrides import _of_subclass

    return _of_subclass(cls, func, types, args, kwargs)


def _hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """naru.hardshrink(self, `lambd`): 0 for elements whose absolute value is at most lambd.

    >>> naru.tensor([-1.0, 0.25, 0.75]).hardshrink()
    tensor([-1.0000,  0.0000,  0.7500])
    """
    from .nn.functional import hardshrink

    return hardshrink(self, lambd)


def _hash_tensor(self: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """naru.hash_tensor(self, `dim`): the xor of the elements' bits; `keepdim` and `mode` as in that function.

    >>> naru.tensor([1, 2, 4]).hash_tensor()
    tensor(7, dtype=torch.uint64)
    """
    from ._compat.native import hash_tensor

    return hash_tensor(self, dim, keepdim=keepdim, mode=mode)


def _rdiv(self: Tensor, other: Any) -> Tensor:
    """other / self."""
    return self.__rtruediv__(other)


# Appended to the docstrings of the core's classes.
_EXAMPLES = {
    Tensor: """
>>> x = naru.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> x.shape, x.dtype, x.device
(torch.Size([2, 2]), torch.float32, device(type='cpu'))
""",
    _C.Size: """`iterable`: its numbers.

>>> naru.Size([2, 3]).numel(), naru.Size([2, 3])[:1]
(6, torch.Size([2]))
""",
    _C.device: """
>>> naru.device("cuda:1").index, naru.device("cpu") == naru.ones(1).device
(1, True)
""",
    _C.dtype: """
>>> naru.float16.itemsize, naru.int64.is_floating_point, naru.tensor([True]).dtype
(2, False, torch.bool)
""",
    _C.layout: """
>>> naru.eye(2).layout, naru.eye(2).to_sparse().layout
(torch.strided, torch.sparse_coo)
""",
    _C.memory_format: """
>>> naru.ones(1, 2, 3, 3).to(memory_format=naru.channels_last).stride()
(18, 1, 6, 2)
""",
    _C.Generator: """
>>> g = naru.Generator().manual_seed(1)
>>> x = naru.rand(2, generator=g)
>>> naru.equal(x, naru.rand(2, generator=g.manual_seed(1)))
True
""",
    _C.HookHandle: """
>>> x = naru.ones(1, requires_grad=True)
>>> handle = x.register_hook(lambda grad: 10 * grad)
>>> (x * 2).backward(); handle.remove(); x.grad
tensor([20.])
""",
    _C.Node: """
>>> y = naru.ones(1, requires_grad=True).exp()
>>> y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()
('ExpBackward0', 'torch::autograd::AccumulateGrad')
""",
    _C.UntypedStorage: """
>>> x = naru.arange(4)
>>> x[1:].untyped_storage().nbytes(), x[1:].storage_offset()
(32, 1)
""",
    _C.TypedStorage: """
>>> naru.arange(4)[1:].storage().tolist()
[0, 1, 2, 3]
""",
    _C._LinAlgError: """
>>> try:
...     naru.linalg.inv(naru.zeros(2, 2))
... except naru.linalg.LinAlgError as error:
...     print(error)
linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.
""",
    _C.OutOfMemoryError: """
>>> with naru.virtual("cuda", memory="1MiB"):
...     try:
...         naru.zeros(1 << 20, device="cuda").sum().item()
...     except naru.cuda.OutOfMemoryError as error:
...         print(str(error).split(".")[0])
CUDA out of memory
""",
    _C.DeviceUnavailableError: """
>>> with naru.virtual("mps", count=0):
...     try:
...         naru.ones(1, device="mps")
...     except naru.DeviceUnavailableError as error:
...         print(str(error).split(":")[0])
device 'mps' is not available
""",
    _C.DeviceLostError: """
>>> with naru.virtual("cuda", lose_after=1):
...     try:
...         naru.ones(4, device="cuda").sum().tolist()
...     except naru.DeviceLostError as error:
...         print("the device is lost")
the device is lost
""",
}


def _generator_reduce(self: _C.Generator) -> tuple[Any, ...]:
    from .random import generator_reduce

    return generator_reduce(self)


def install() -> None:
    """Installs these methods on `Tensor` and the storage classes. `Tensor.new` is kept if the core defines it."""
    own = vars(Tensor)
    for shown, example in _EXAMPLES.items():
        shown.__doc__ = f"{shown.__doc__}\n{example}"
    for name, method in {
        "__format__": _format,
        "record_stream": _record_stream,
        "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device,
        "__array_namespace__": _array_namespace,
        "to_device": _to_device,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _reduce,
        "type": _type,
        "hardshrink": _hardshrink,
        "hash_tensor": _hash_tensor,
        "__rdiv__": _rdiv,
        **methods.METHODS,
    }.items():
        method.__name__ = name
        method.__qualname__ = "Tensor." + name
        setattr(Tensor, name, method)
    Tensor.__cuda_array_interface__ = property(_cuda_array_interface)
    if "new" not in own:
        Tensor.new = _new
    Tensor.__init_subclass__ = classmethod(_init_subclass)
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    Tensor.__torch_function__ = classmethod(_torch_function)
    _C.Generator.__reduce__ = _generator_reduce
    mark_absent(Tensor, "Tensor", NAMES)
    Tensor.__dir__ = _dir
    for kind in (_C.UntypedStorage, _C.TypedStorage):
        own = _storage_methods.OF_BYTES if kind is _C.UntypedStorage else _storage_methods.OF_ELEMENTS
        for name, method in {"__deepcopy__": _storage_deepcopy, **_storage_methods.METHODS, **own}.items():
            setattr(kind, name, method)
