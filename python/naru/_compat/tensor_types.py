"""The legacy tensor types: torch.FloatTensor, torch.LongTensor, ..., torch.cuda.FloatTensor, ... and torch.sparse.FloatTensor, ..."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C

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
    "complex32": "ComplexHalfTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    **{f"uint{bits}": f"UInt{bits}Tensor" for bits in (16, 32, 64)},
    **{f"float8_{form}": f"Float8_{form}Tensor" for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")},
}
_OF_NAMES = {name: dtype for dtype, name in _NAMES.items()}


class _TensorType(type):
    """Metaclass of the legacy tensor types: `isinstance(x, torch.FloatTensor)` checks dtype, device and layout."""

    dtype: Any
    kind: str
    layout: Any
    make: Any

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor):
            return False
        return instance.dtype == cls.dtype and instance.device.type == cls.kind and instance.layout == cls.layout

    def __call__(cls, *args: Any, device: Any = None, **named: Any) -> Tensor:
        return cls.make(cls.dtype, place(cls.kind, device), positional(args, named))

    def __repr__(cls) -> str:
        return f"<class '{full_name(cls)}'>"


def full_name(cls: Any) -> str:
    """The name of the tensor type `cls` as `Tensor.type()` writes it, e.g. "torch.cuda.FloatTensor".

    >>> naru._compat.tensor_types.full_name(naru.cuda.FloatTensor)
    'torch.cuda.FloatTensor'
    """
    return _module(cls.kind, cls.layout) + "." + cls.__name__


def _module(kind: str, layout: Any) -> str:
    return "torch" + ("" if kind == "cpu" else "." + kind) + ("" if layout is _C.strided else ".sparse")


def positional(args: tuple, named: dict[str, Any]) -> tuple:
    """The arguments `args` of a legacy constructor, including the one that may be `named`. TypeError for other names.

    >>> naru._compat.tensor_types.positional((), {"size": (2, 3)})
    (torch.Size([2, 3]),)
    """
    if not named:
        return args
    (name, value), *more = named.items()
    if args or more or name not in ("size", "data", "other", "storage"):
        got = ", ".join([type(arg).__name__ for arg in args] + [f"{name}={type(value).__name__}" for name, value in named.items()])
        raise TypeError(f"new() received an invalid combination of arguments - got ({got}); wanted one of size, data, other, storage")
    return (_C.Size(value) if name == "size" else value,)


def place(own: Any, device: Any) -> Any:
    """The device for a legacy constructor of a kind or device `own` that was passed `device`. RuntimeError for another kind.

    >>> naru._compat.tensor_types.place("cpu", None)
    'cpu'
    """
    if device is None:
        return own
    if _C.device(device).type != _C.device(own).type:
        raise RuntimeError(f"legacy constructor expects device type: {_C.device(own).type} but device type: {_C.device(device).type} was passed")
    return device


def legacy_tensor(dtype: Any, device: Any, args: tuple) -> Tensor:
    """Implements `torch.FloatTensor(*args)` on `device`, with `dtype`: sizes make an uninitialized tensor, a sequence or array is copied, the
    memory of a tensor or storage is shared. TypeError for other arguments.

    >>> naru._compat.tensor_types.legacy_tensor(naru.int64, "cpu", ([1, 2],))
    tensor([1, 2])
    """
    return _C._legacy_tensor(dtype, device, args)


@functools.cache  # types must be unique objects
def tensor_types(kind: str, layout: Any = _C.strided, make: Any = legacy_tensor) -> dict[str, Any]:
    """The legacy tensor types for a `kind` of device and a `layout`, by name; `make(dtype, device, arguments)` makes a tensor.

    >>> naru._compat.tensor_types.tensor_types("cpu")["LongTensor"]([1, 2])
    tensor([1, 2])
    """
    rest = {"kind": kind, "layout": layout, "make": staticmethod(make), "__module__": _module(kind, layout)}
    return {name: _TensorType(name, (), {"dtype": getattr(_C, dtype), **rest}) for name, dtype in _DTYPES.items()}


def type_name(tensor: Tensor) -> str:
    """`tensor.type()`: e.g. "torch.FloatTensor", "torch.cuda.LongTensor".

    >>> naru._compat.tensor_types.type_name(naru.arange(3))
    'torch.LongTensor'
    """
    kind = tensor.device.type
    if tensor.layout not in (_C.strided, _C.sparse_coo):
        raise RuntimeError(f"Unimplemented backend SparseCsr{kind.upper()}")
    return _module(kind, tensor.layout) + "." + _NAMES[str(tensor.dtype).removeprefix("torch.")]


def parse_type(wanted: Any) -> tuple[Any, Any]:
    """The (dtype, device kind or None) for `wanted`, the argument of `Tensor.type`. TypeError or ValueError if it is not a tensor type.

    >>> naru._compat.tensor_types.parse_type("torch.cuda.HalfTensor")
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
        if parts[0] == "torch" and parts[-1] in _OF_NAMES and len(parts) in (2, 3):
            return getattr(_C, _OF_NAMES[parts[-1]]), parts[1] if len(parts) == 3 else "cpu"
        if parts[0] == "torch" and len(parts) == 2 and isinstance(getattr(_C, parts[1], None), _C.dtype):
            return getattr(_C, parts[1]), None
        raise ValueError(f"invalid type: '{wanted}'")
    raise TypeError(f"type(): dtype must be a type, str, or dtype object, got {type(wanted).__name__}")
