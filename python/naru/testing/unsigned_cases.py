"""Cases of uint16, uint32 and uint64 (see operator_cases): numbers that use all bits, made from small ones by a product that wraps around."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

_FACTORS = {16: 40503, 32: 2654435769, 64: 11400714819323198485}


def _spread(x: Any, bits: int) -> Any:
    return x.to(getattr(naru, f"uint{bits}")) * _FACTORS[bits]


def _array(x: Any, bits: int) -> Any:
    return (x.astype(np.uint64) * np.uint64(_FACTORS[bits])).astype(f"uint{bits}")


def _signed(x: Any) -> Any:
    """The bits, as a dtype in which results can be compared."""
    return x.view(getattr(naru, str(x.dtype).removeprefix("torch.u"))).long()


def _signed_array(x: Any) -> Any:
    return x.view(x.dtype.name[1:]).astype(np.int64)


def _bitwise(a: Any, b: Any, bits: int) -> Any:
    x, y = _spread(a, bits), _spread(b, bits)
    found = (x * y, x & y, x | y, x ^ y, naru.where(x == y, x, y), naru.cat([x, y]).flip(0), naru.maximum(x, y), x.clamp(5, 100))
    return tuple(_signed(f) for f in found)


def _bitwise_arrays(a: Any, b: Any, bits: int) -> Any:
    x, y = _array(a, bits), _array(b, bits)
    found = (x * y, x & y, x | y, x ^ y, np.where(x == y, x, y), np.concatenate([x, y])[::-1], np.maximum(x, y), np.clip(x, 5, 100))
    return tuple(_signed_array(f.astype(x.dtype)) for f in found)


def _ordered(a: Any, bits: int) -> Any:
    x = _spread(a, bits)
    values, places = x.reshape(-1).sort(stable=True)
    return _signed(values), places, x.sum(), x.cumsum(1), x.double(), x.float().double(), (x != 0).all()


def _ordered_arrays(a: Any, bits: int) -> Any:
    x = _array(a, bits)
    flat = x.reshape(-1)
    whole = x.astype(np.uint64)
    return (
        _signed_array(np.sort(flat)), np.argsort(flat, kind="stable"), whole.sum().astype(np.int64), whole.cumsum(1).astype(np.int64),
        x.astype(np.float64), x.astype(np.float32).astype(np.float64), np.array((x != 0).all()),
    )  # fmt: skip


def _indexed(a: Any, i: Any, bits: int) -> Any:
    x = _spread(a, bits)
    written = x.clone()
    written[i] = x[:3]
    return tuple(_signed(f) for f in (x[i], x.gather(0, i.unsqueeze(1)), x.index_select(1, i), x.t().contiguous(), written))


def _indexed_arrays(a: Any, i: Any, bits: int) -> Any:
    x = _array(a, bits)
    written = x.copy()
    written[i] = x[:3]
    return tuple(_signed_array(np.ascontiguousarray(f)) for f in (x[i], x[i][:, :1], x[:, i], x.T, written))


def _from_floating(a: Any, bits: int) -> Any:
    return _signed((a * 2.0 ** (bits - 2)).double().to(getattr(naru, f"uint{bits}")))


def _from_floating_arrays(a: Any, bits: int) -> Any:
    return _signed_array((a * 2.0 ** (bits - 2)).astype(f"uint{bits}"))


def unsigned_cases(C: Any) -> list:
    cases = []
    for bits in (16, 32, 64):
        def over(f: Any, bits: int = bits) -> Any:
            return lambda *x: f(*x, bits)

        both = ((0, 50), (1, 50))
        cases += [
            C(f"uint{bits}, bits and order", over(_bitwise), over(_bitwise_arrays), [(4, 5), (4, 5)], gradient=False, integers=both),
            C(f"uint{bits}, sorted and added", over(_ordered), over(_ordered_arrays), [(4, 5)], gradient=False, integers=((0, 50),)),
            C(f"uint{bits}, indexed", over(_indexed), over(_indexed_arrays), [(5, 5), (3,)], gradient=False, integers=((0, 50), (1, 5))),
            C(f"uint{bits} of floating point", over(_from_floating), over(_from_floating_arrays), [(4, 5)], 0, 3, gradient=False),
        ]
    return cases
