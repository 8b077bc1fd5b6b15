"""`torch.testing`: comparing tensors in tests."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from ._making import made

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    `actual` and `expected` are tensors, numbers, arrays, None, or sequences and mappings of them, paired item by item: AssertionError where the
    structures differ, TypeError for a pair of different kinds (a tensor and a list, a tensor and a number). Defaults of `rtol` and `atol` depend on
    the dtype. `equal_nan`: NaN equals NaN. `check_device`, `check_dtype`, `check_stride` and `check_layout`: whether these must be equal, too.
    `allow_subclasses`: whether a tensor may be compared with one of a subclass. `msg`: the error message, or a function of the default message.

    >>> naru.testing.assert_close(naru.tensor([1.0]), naru.tensor([1.0000001]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but got rtol={rtol} and atol={atol} instead."
        )
    try:
        for compare, x, y, where in list(_pairs(actual, expected, "", allow_subclasses)):  # all pairs are formed before the first is compared
            if compare is _compare_numbers:
                _compare_numbers(x, y, where, rtol, atol, equal_nan, check_dtype)
            else:
                _compare_tensors(x.detach(), y.detach(), where, rtol, atol, equal_nan, check_device, check_dtype, check_stride, check_layout)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _plain_number(value: Any) -> Any:
    """A Python number for a number of Python or NumPy; None for anything else, truth values included."""
    if isinstance(value, (int, float, complex)):
        return None if isinstance(value, bool) else value
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.number) else None


def _truth(value: Any) -> bool:
    """Whether `value` is a bool of Python or NumPy."""
    numpy = sys.modules.get("numpy")
    return isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_))


def _pairs(a: Any, b: Any, where: str, subclasses: bool) -> Iterator[tuple[Any, Any, Any, str]]:
    """What is compared with what, and by which function. AssertionError where the structures differ, TypeError for two objects of different kinds."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            missing, additional = ([key for key in x if key not in y] for x, y in ((b, a), (a, b)))
            raise AssertionError(
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}" + _place(where)
            )
        for key in b:
            yield from _pairs(a[key], b[key], f"{where}[{key!r}]", subclasses)
    elif all(isinstance(v, Sequence) and not isinstance(v, str) for v in (a, b)):
        if len(a) != len(b):
            raise AssertionError(f"The length of the sequences mismatch: {len(a)} != {len(b)}" + _place(where))
        for i, (x, y) in enumerate(zip(a, b)):
            yield from _pairs(x, y, f"{where}[{i}]", subclasses)
    elif a is None or b is None:
        if a is not b:
            raise AssertionError(f"None mismatch: {a} is not {b}" + _place(where))
    elif _truth(a) and _truth(b):
        if bool(a) is not bool(b):
            raise AssertionError(f"Booleans mismatch: {a} is not {b}" + _place(where))
    elif (x := _plain_number(a)) is not None and (y := _plain_number(b)) is not None:
        yield _compare_numbers, x, y, where
    else:
        yield _compare_tensors, *_tensors(a, b, where, subclasses), where


def _tensors(a: Any, b: Any, where: str, subclasses: bool) -> list[Tensor]:
    """Two objects as tensors. TypeError unless the class of one is a base of the other's (the same, without `subclasses`), and both hold numbers."""
    unlike = TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}." + _place(where))
    if any(_truth(v) or _plain_number(v) is not None for v in (a, b)):
        raise unlike
    if not (isinstance(a, type(b)) or isinstance(b, type(a))) or not (subclasses or type(a) is type(b)):
        raise unlike
    try:
        return [v if isinstance(v, Tensor) else _C.as_tensor(v) for v in (a, b)]
    except (TypeError, RuntimeError, ValueError):
        raise unlike from None


def _compare_numbers(a: Any, b: Any, where: str, rtol: Any, atol: Any, equal_nan: bool, dtype: bool) -> None:
    if dtype and type(a) is not type(b):
        raise AssertionError(f"The (d)types do not match: {type(a)} != {type(b)}." + _place(where))
    if rtol is None:
        both = [_tolerance(_WIDEST.get(type(v))) for v in (a, b)]
        rtol, atol = max(r for r, _ in both), max(t for _, t in both)
    if a == b or (equal_nan and a != a and b != b):  # noqa: PLR0124: only NaN differs from itself
        return
    distance = abs(a - b)
    if math.isfinite(distance) and distance <= atol + rtol * abs(b):
        return
    relative = distance / abs(b) if b != 0 else math.inf
    close = bool(rtol or atol)
    text = f"Scalars are not {'close' if close else 'equal'}!\n\nExpected {b} but got {a}."
    text += f"\nAbsolute difference: {distance}" + (f" (up to {atol} allowed)" if close else "")
    text += f"\nRelative difference: {relative}" + (f" (up to {rtol} allowed)" if close else "")
    raise AssertionError(text + _place(where))


def _place(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _compare_tensors(
    a: Tensor, b: Tensor, where: str, rtol: Any, atol: Any, equal_nan: bool, device: bool, dtype: bool, stride: bool,
    layout: bool, name: str = "Tensor-likes",
) -> None:
    if a.shape != b.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}." + _place(where))
    if layout and a.layout != b.layout:
        raise AssertionError(f"The values for attribute 'layout' do not match: {a.layout} != {b.layout}." + _place(where))
    if device and a.device != b.device:
        raise AssertionError(f"The values for attribute 'device' do not match: {a.device} != {b.device}." + _place(where))
    if dtype and a.dtype != b.dtype:
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
        _compare_tensors(x, y, where, rtol, atol, equal_nan, False, False, False, False, name)

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
