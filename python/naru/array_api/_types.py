"""Data types: kinds, limits, promotion and conversion."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import _C
from .._functions import dtype_limits

Tensor = _C.Tensor

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
KINDS = {kind: frozenset(getattr(_C, name) for name in names if hasattr(_C, name)) for kind, names in _KINDS.items()}
_SCALARS = (bool, int, float, complex)


def isdtype(dtype: Any, kind: Any) -> bool:
    """True if dtype is of `kind`: a kind name ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric"), a dtype, or a tuple of these, any of which may match. Raises ValueError for another name.

    >>> from naru import array_api as xp
    >>> xp.isdtype(xp.float32, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, each) for each in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: wanted a kind among {', '.join(KINDS)}, got {kind!r}")
        return dtype in KINDS[kind]
    if not isinstance(kind, _C.dtype):
        raise TypeError(f"isdtype: wanted a dtype, the name of a kind or a tuple of these, got {type(kind).__name__}")
    return dtype == kind


def is_integral(dtype: Any) -> bool:
    return dtype in KINDS["integral"]


@cache
def promoted(a: Any, b: Any) -> Any:
    """The promoted dtype of two dtypes. Unsigned integers, which PyTorch does not promote, follow the standard's table."""
    signed, unsigned = KINDS["signed integer"], KINDS["unsigned integer"]
    if a == b or not {a, b} <= signed | unsigned:
        return _C.promote_types(a, b)
    if (a in signed) == (b in signed):
        return max(a, b, key=lambda t: t.itemsize)
    width = max(a.itemsize * (2 if a in unsigned else 1), b.itemsize * (2 if b in unsigned else 1))
    if width > 8:
        raise TypeError(f"result_type: no integer type has all values of {a} and {b}; convert one of them first (astype)")
    return {2: _C.int16, 4: _C.int32, 8: _C.int64}[width]


def with_number(dtype: Any, number: Any) -> Any:
    """The dtype of an array of `dtype` combined with a Python number: the array's own, unless the number is of a higher kind."""
    if isinstance(number, complex):
        return dtype if dtype.is_complex else _C.complex128 if dtype == _C.float64 else _C.complex64
    if isinstance(number, float):
        return dtype if dtype.is_floating_point or dtype.is_complex else _C.get_default_dtype()
    return _C.int64 if dtype == _C.bool and not isinstance(number, bool) else dtype


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The promoted dtype of arrays, dtypes and Python numbers, `arrays_and_dtypes`. A 0-d array counts like any other array, a number only by its
    kind. Raises ValueError if there is neither an array nor a dtype.

    >>> naru.array_api.result_type(naru.int8, naru.uint8), naru.array_api.result_type(naru.float32, 2)
    (torch.int16, torch.float32)
    """
    numbers, result = [], None
    for each in arrays_and_dtypes:
        if isinstance(each, _SCALARS):
            numbers.append(each)
            continue
        dtype = each.dtype if isinstance(each, Tensor) else each
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"result_type: wanted arrays, dtypes and numbers, got {type(each).__name__}")
        result = dtype if result is None else promoted(result, dtype)
    if result is None:
        raise ValueError("result_type: wanted at least one array or dtype")
    for number in numbers:
        result = with_number(result, number)
    return result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype (or an array's), `from_`, promotes to another, `to`.

    >>> naru.array_api.can_cast(naru.int8, naru.int32), naru.array_api.can_cast(naru.int32, naru.int8)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promoted(source, to) == to
    except (TypeError, RuntimeError):
        return False


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Converts `x` to `dtype`, and moves it to `device` if given. If `copy` is False, the result may be x itself. Raises TypeError for complex to
    real.

    >>> naru.array_api.astype(naru.tensor([1.9, -1.9]), naru.int64)
    tensor([ 1, -1])
    """
    if x.dtype.is_complex and not dtype.is_complex and dtype != _C.bool:
        raise TypeError(f"astype: {x.dtype} to {dtype} would drop the imaginary part; take real(x) or abs(x) first")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


class _Limits:
    """Base of the results of finfo and iinfo: limits as Python numbers, and the dtype itself."""

    def __init__(self, info: Any, dtype: Any, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(self, name, getattr(info, name))
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class finfo_object(_Limits):
    """bits, eps, max, min, smallest_normal, dtype (the real dtype for a complex one)."""


class iinfo_object(_Limits):
    """bits, max, min, dtype."""


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating-point dtype, `type`, or of an array's dtype. Raises TypeError for other dtypes.

    >>> naru.array_api.finfo(naru.float64).dtype
    torch.float64
    """
    info = dtype_limits.finfo(type.dtype if isinstance(type, Tensor) else type)
    return finfo_object(info, getattr(_C, info.dtype), ("bits", "eps", "max", "min", "smallest_normal"))


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype, `type`, or of an array's dtype. Raises TypeError for other dtypes.

    >>> naru.array_api.iinfo(naru.int8)
    iinfo_object(bits=8, max=127, min=-128, dtype=torch.int8)
    """
    info = dtype_limits.iinfo(type.dtype if isinstance(type, Tensor) else type)
    return iinfo_object(info, getattr(_C, info.dtype), ("bits", "max", "min"))
