"""`torch.testing`: comparing tensors in tests."""

from __future__ import annotations

from typing import Any

from .. import _C, _missing
from ._making import made

Tensor = _C.Tensor

__all__ = ["assert_close", "assert_allclose", "make_tensor"]

_WIDEST: dict[type, Any] = {float: _C.float64, complex: _C.complex128}  # for Python numbers

# The default relative and absolute tolerance per dtype.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def _tolerance(dtype: Any) -> tuple[float, float]:
    return _TOLERANCES.get(str(dtype).removeprefix("torch."), (0.0, 0.0))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol · |expected| everywhere.

    Accepts tensors, numbers, arrays, and sequences and dicts of them, `actual` and `expected`. Defaults of `rtol` and `atol` depend on
    the dtype. `equal_nan`: NaN equals NaN. `check_device`, `check_dtype`, `check_stride` and `check_layout`: whether these must be equal, too.
    `allow_subclasses` is ignored. `msg`: the error message, or a function of the default message.

    >>> naru.testing.assert_close(naru.tensor([1.0]), naru.tensor([1.0000001]))
    """
    try:
        _compare(actual, expected, "", rtol, atol, equal_nan, check_device, check_dtype, check_stride, check_layout)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _compare(
    a: Any, b: Any, where: str, rtol: Any, atol: Any, equal_nan: bool, device: bool, dtype: bool, stride: bool, layout: bool
) -> None:
    rest = (rtol, atol, equal_nan, device, dtype, stride, layout)
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but got rtol={rtol} and atol={atol} instead."
        )
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            raise AssertionError(
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(b.keys() - a.keys())}\n"
                f"Additional keys in the actual mapping: {sorted(a.keys() - b.keys())}"
            )
        for key in b:
            _compare(a[key], b[key], f"{where}[{key!r}]", *rest)
        return
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            raise AssertionError(f"The length of the sequences mismatch: {len(a)} != {len(b)}")
        for i, (x, y) in enumerate(zip(a, b)):
            _compare(x, y, f"{where}[{i}]", *rest)
        return
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and dtype and type(a) is not type(b):
        if isinstance(a, bool) or isinstance(b, bool):
            raise AssertionError(f"Scalars are not equal!\n\nExpected {b} but got {a}." + _place(where))
    scalars = not isinstance(a, Tensor) and not isinstance(b, Tensor)
    try:
        x, y = (v if isinstance(v, Tensor) else _C.as_tensor(v, dtype=_WIDEST.get(type(v))) for v in (a, b))
    except (TypeError, RuntimeError, ValueError):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.") from None
    _compare_tensors(x.detach(), y.detach(), where, scalars, *rest)


def _place(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _compare_tensors(
    a: Tensor, b: Tensor, where: str, scalars: bool, rtol: Any, atol: Any, equal_nan: bool, device: bool, dtype: bool, stride: bool,
    layout: bool, name: str = "Tensor-likes",
) -> None:
    if a.shape != b.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}." + _place(where))
    if layout and a.layout != b.layout:
        raise AssertionError(f"The values for attribute 'layout' do not match: {a.layout} != {b.layout}." + _place(where))
    if device and a.device != b.device:
        raise AssertionError(f"The values for attribute 'device' do not match: {a.device} != {b.device}." + _place(where))
    if dtype and a.dtype != b.dtype and not scalars:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}." + _place(where))
    if stride and a.stride() != b.stride():
        raise AssertionError(f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}." + _place(where))
    if not a.layout == b.layout == _C.strided:
        _compare_sparse(a, b, where, rtol, atol, equal_nan)
        return
    if rtol is None:
        both = [_tolerance(a.dtype), _tolerance(b.dtype)]
        rtol, atol = max(r for r, _ in both), max(t for _, t in both)
    x, y = a.to("cpu"), b.to("cpu")
    if x.numel() == 0:
        return
    exact = not any(v.is_floating_point() or v.is_complex() for v in (x, y))
    if x.is_complex() or y.is_complex():
        x, y = x.to(_C.complex128), y.to(_C.complex128)
        distance = (x - y).abs()
        good = (x == y) | (distance.isfinite() & (distance <= atol + rtol * y.abs()))
        if equal_nan:
            good = good | (x.isnan() & y.isnan())
    elif exact:
        x, y = x.to(_C.int64), y.to(_C.int64)
        distance = (x - y).abs().to(_C.float64)
        good = distance <= atol + rtol * y.abs().to(_C.float64)
    else:
        x, y = x.to(_C.float64), y.to(_C.float64)
        distance = (x - y).abs()
        good = (x == y) | (distance.isfinite() & (distance <= atol + rtol * y.abs()))
        if equal_nan:
            good = good | (x.isnan() & y.isnan())
    bad = good.logical_not()
    count = int(bad.sum().item())
    if not count:
        return
    if scalars:
        kind = "not close" if rtol or atol else "not equal"
        text = f"Scalars are {kind}!\n\nExpected {b.item()} but got {a.item()}."
        if rtol or atol:
            text += f"\nAbsolute difference: {distance.item()} (up to {atol} allowed)"
            text += f"\nRelative difference: {(distance / y.abs()).item()} (up to {rtol} allowed)"
        raise AssertionError(text + _place(where))
    counted = _C.where(bad, distance, _C.zeros_like(distance))
    if exact:
        counted = counted.to(_C.int64)
    relative = _C.where(bad, distance / y.abs().to(_C.float64), _C.zeros_like(distance))
    kind = "close" if rtol or atol else "equal"
    text = f"{name} are not {kind}!\n\nMismatched elements: {count} / {x.numel()} ({100 * count / x.numel():.1f}%)"
    text += f"\nGreatest absolute difference: {_largest(counted)}" + (f" (up to {atol} allowed)" if kind == "close" else "")
    text += f"\nGreatest relative difference: {_largest(relative)}" + (f" (up to {rtol} allowed)" if kind == "close" else "")
    raise AssertionError(text + _place(where))


def _compare_sparse(a: Tensor, b: Tensor, where: str, rtol: Any, atol: Any, equal_nan: bool) -> None:
    """Compares indices and values, if both have the same layout; otherwise compares dense copies."""
    from .._sparse_tensors import parts_of

    def compare(x: Tensor, y: Tensor, name: str) -> None:
        _compare_tensors(x, y, where, False, rtol, atol, equal_nan, False, False, False, False, name)

    if a.layout != b.layout:
        return compare(a.to_dense(), b.to_dense(), "Tensor-likes")
    if a.layout == _C.sparse_coo and a.is_coalesced() != b.is_coalesced():
        a, b = a.coalesce(), b.coalesce()
    kind = str(a.layout).removeprefix("torch.sparse_").upper()
    if a._nnz() != b._nnz():
        raise AssertionError(f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {b._nnz()}" + _place(where))
    rows = kind in ("CSR", "BSR")
    names = ["indices"] if kind == "COO" else ["crow_indices", "col_indices"] if rows else ["ccol_indices", "row_indices"]
    for x, y, name in zip(parts_of(a), parts_of(b), [*names, "values"]):
        compare(x, y, f"Sparse {kind} {name}")


def _largest(values: Tensor) -> str:
    """The largest value and its index."""
    flat = int(values.reshape(-1).argmax().item())
    value = values.reshape(-1)[flat].item()
    index = []
    for size in reversed(values.shape):
        flat, i = divmod(flat, size)
        index.append(i)
    return f"{value} at index {tuple(reversed(index))}" if index else f"{value}"


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """The older form of `assert_close`: accepts anything convertible to a tensor as `actual` and `expected`, and does not compare dtypes. `rtol`,
    `atol`, `equal_nan` and `msg` as in assert_close.

    >>> naru.testing.assert_allclose([1.0, 2.0], naru.tensor([1.0, 2.0], dtype=naru.float64))
    """
    if not isinstance(actual, Tensor):
        actual = _C.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None
    )


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of `shape`, `dtype` and `device`, with random values in [`low`, `high`) (by default [-9, 9) for floating and complex dtypes,
    [-9, 10) for integers, False or True for bool). Both bounds are clamped to the dtype's range.

    `requires_grad` as usual. `noncontiguous`: gaps between elements. `exclude_zero`: zeros are replaced with ones, or with the smallest normal
    number. `memory_format`: the layout in memory. ValueError if no value of the dtype is between `low` and `high`, if one
    of them is NaN, or for `requires_grad` of integers.

    >>> x = naru.testing.make_tensor(2, 3, dtype=naru.float32, low=0, high=1)
    >>> x.shape, bool(((x >= 0) & (x <= 1)).all())
    (torch.Size([2, 3]), True)
    """
    sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}")
    out = made(sizes, dtype, device, low, high, noncontiguous, exclude_zero, memory_format)
    return out.requires_grad_(True) if requires_grad else out


__getattr__ = _missing.module_getattr(__name__)
