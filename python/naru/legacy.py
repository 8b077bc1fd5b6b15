"""The old tensor types: torch.FloatTensor, torch.LongTensor, ..., torch.cuda.FloatTensor, ... and torch.sparse.FloatTensor, ..."""

from __future__ import annotations

import functools
from typing import Any

from . import _C

Tensor = _C.Tensor

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()} | {
    "complex32": "ComplexHalfTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor"
}


class _TensorType(type):
    """The type of the old tensor types: `isinstance(x, torch.FloatTensor)` asks for dtype, device and layout."""

    dtype: Any
    kind: str
    layout: Any
    make: Any

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor):
            return False
        return instance.dtype == cls.dtype and instance.device.type == cls.kind and instance.layout == cls.layout

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return cls.make(cls.dtype, cls.kind if device is None else device, args)

    def __repr__(cls) -> str:
        return f"<class '{full_name(cls)}'>"


def full_name(cls: Any) -> str:
    """The name of the tensor type `cls` as `Tensor.type()` writes it, e.g. "torch.cuda.FloatTensor".

    >>> naru.legacy.full_name(naru.cuda.FloatTensor)
    'torch.cuda.FloatTensor'
    """
    return _module(cls.kind, cls.layout) + "." + cls.__name__


def _module(kind: str, layout: Any) -> str:
    return "torch" + ("" if kind == "cpu" else "." + kind) + ("" if layout is _C.strided else ".sparse")


def legacy_tensor(dtype: Any, device: Any, args: tuple) -> Tensor:
    """What `torch.FloatTensor(*args)` gives on `device`, of its `dtype`: sizes make an uninitialised tensor, a sequence or array is copied.
    TypeError for other arguments.

    >>> naru.legacy.legacy_tensor(naru.int64, "cpu", ([1, 2],))
    tensor([1, 2])
    """
    if not args:
        return _C.empty(0, dtype=dtype, device=device)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype != dtype:
            raise TypeError(f"expected a tensor of dtype={dtype} (got dtype={first.dtype}); convert it with tensor.to({dtype})")
        return first.detach()
    if len(args) == 1 and isinstance(first, _C.Size):
        return _C.empty(tuple(first), dtype=dtype, device=device)
    if len(args) == 1 and (hasattr(first, "__array__") or isinstance(first, (list, tuple, range))):
        return _C.tensor(list(first) if isinstance(first, range) else first, dtype=dtype, device=device)
    if all(hasattr(arg, "__index__") and not isinstance(arg, bool) for arg in args):
        return _C.empty(tuple(arg.__index__() for arg in args), dtype=dtype, device=device)
    bad = next(arg for arg in args if not hasattr(arg, "__index__"))
    if isinstance(bad, str):
        raise TypeError("new(): invalid data type 'str'")
    raise TypeError(f"new(): data must be a sequence (got {type(bad).__name__})")


@functools.cache  # a type is one object
def tensor_types(kind: str, layout: Any = _C.strided, make: Any = legacy_tensor) -> dict[str, Any]:
    """The old tensor types of a `kind` of device and a `layout`, by name; `make(dtype, device, arguments)` makes a tensor.

    >>> naru.legacy.tensor_types("cpu")["LongTensor"]([1, 2])
    tensor([1, 2])
    """
    rest = {"kind": kind, "layout": layout, "make": staticmethod(make), "__module__": _module(kind, layout)}
    return {name: _TensorType(name, (), {"dtype": getattr(_C, dtype), **rest}) for name, dtype in _DTYPES.items()}


def type_name(tensor: Tensor) -> str:
    """`tensor.type()`: e.g. "torch.FloatTensor", "torch.cuda.LongTensor".

    >>> naru.legacy.type_name(naru.arange(3))
    'torch.LongTensor'
    """
    kind = tensor.device.type
    if tensor.layout not in (_C.strided, _C.sparse_coo):
        raise RuntimeError(f"Unimplemented backend SparseCsr{kind.upper()}")
    return _module(kind, tensor.layout) + "." + _NAMES[str(tensor.dtype).removeprefix("torch.")]


def parse_type(wanted: Any) -> tuple[Any, Any]:
    """The (dtype, device kind or None) that `wanted`, the argument of `Tensor.type`, names. TypeError or ValueError where it is none.

    >>> naru.legacy.parse_type("torch.cuda.HalfTensor")
    (torch.float16, 'cuda')
    """
    if isinstance(wanted, _C.dtype):
        return wanted, None
    if isinstance(wanted, _TensorType):
        return wanted.dtype, wanted.kind
    if wanted is Tensor:
        return _C.get_default_dtype(), None
    if isinstance(wanted, str):
        parts = wanted.split(".")
        if parts[0] == "torch" and parts[-1] in _DTYPES and len(parts) in (2, 3):
            return getattr(_C, _DTYPES[parts[-1]]), parts[1] if len(parts) == 3 else "cpu"
        if parts[0] == "torch" and len(parts) == 2 and isinstance(getattr(_C, parts[1], None), _C.dtype):
            return getattr(_C, parts[1]), None
        raise ValueError(f"invalid type: '{wanted}'")
    raise TypeError(f"type(): dtype must be a type, str, or dtype object, got {type(wanted).__name__}")
