"""`finfo` and `iinfo`: the limits of a dtype."""

from __future__ import annotations

from typing import Any

from .. import _C

# name: (bits, max, min, eps, smallest normal, resolution)
_FLOATS = {
    "float64": (64, (2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022, 1e-15),
    "float32": (32, (2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126, 1e-6),
    "float16": (16, 65504.0, 2.0**-10, 2.0**-14, 1e-3),
    "bfloat16": (16, (2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126, 1e-2),
    "float8_e4m3fn": (8, 448.0, 2.0**-3, 2.0**-6, 1.0),
    "float8_e4m3fnuz": (8, 240.0, 2.0**-3, 2.0**-7, 1.0),
    "float8_e5m2": (8, 57344.0, 2.0**-2, 2.0**-14, 1.0),
    "float8_e5m2fnuz": (8, 57344.0, 2.0**-2, 2.0**-15, 1.0),
    "float8_e8m0fnu": (8, 2.0**127, 1.0, 2.0**-127, 1.0),
}
_INTS = {
    "uint8": (8, False),
    "int8": (8, True),
    "int16": (16, True),
    "int32": (32, True),
    "int64": (64, True),
    "uint16": (16, False),
    "uint32": (32, False),
    "uint64": (64, False),
}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


class finfo:
    """The limits of `type`, a floating-point dtype (the default one if None).

    >>> import naru
    >>> naru.finfo(naru.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        name = _name(_C.get_default_dtype() if type is None else type)
        name = _PARTS.get(name, name)
        if name not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.{name}'")
        self.dtype = name
        self.bits, self.max, self.eps, self.tiny, self.resolution = _FLOATS[name]
        self.min = self.tiny if name == "float8_e8m0fnu" else -self.max
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """The limits of `type`, an integer dtype.

    >>> naru.iinfo(naru.int8).max
    127
    """

    def __init__(self, type: Any) -> None:
        name = _name(type)
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if name not in _INTS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.{name}'")
        self.dtype = name
        self.bits, signed = _INTS[name]
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
