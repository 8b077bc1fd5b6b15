"""PyTorch's dtypes that naru's tensors cannot have: programs put them in tables, compare with them and query their limits."""

from __future__ import annotations

from .. import _C


class _AbsentType:
    """A dtype that naru does not support: it can be compared and printed, and functions reject it like any non-dtype."""

    def __init__(self, name: str, itemsize: int, is_floating_point: bool, is_complex: bool, is_signed: bool = True) -> None:
        self._name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex, self.is_signed = is_floating_point, is_complex, is_signed
        self.__naru_lacks__ = name

    @property
    def __class__(self) -> type:  # so that isinstance(x, torch.dtype) is true
        return _C.dtype

    def __repr__(self) -> str:
        return "torch." + self._name

    def __reduce__(self) -> str:
        return self._name


float4_e2m1fn_x2 = _AbsentType("float4_e2m1fn_x2", 1, True, False, True)
bcomplex32 = _AbsentType("bcomplex32", 4, False, True, True)
int1, int2, int3, int4, int5, int6, int7 = (
    _AbsentType(name, 1, False, False, True)
    for name in "int1 int2 int3 int4 int5 int6 int7".split()
)
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (
    _AbsentType(name, 1, False, False, False)
    for name in "uint1 uint2 uint3 uint4 uint5 uint6 uint7".split()
)
qint8, quint8, quint4x2, quint2x4 = (
    _AbsentType(name, 1, False, False, True)
    for name in "qint8 quint8 quint4x2 quint2x4".split()
)
bits8, bits1x8, bits2x4, bits4x2 = (
    _AbsentType(name, 1, False, False, True)
    for name in "bits8 bits1x8 bits2x4 bits4x2".split()
)
qint32, bits16 = _AbsentType("qint32", 4, False, False, True), _AbsentType("bits16", 2, False, False, True)
bit = uint1
