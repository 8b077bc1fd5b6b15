"""Elementwise functions. Where PyTorch's function already conforms to the standard, it is the same object. The functions written here promote 0-d
arrays like any other array, accept Python numbers for either operand, or return special values that differ from PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._documentation import show
from .._functions.naming import named
from ._types import is_integral, promoted, result_type, with_number

Tensor = _C.Tensor

from .._C import (  # noqa: E402
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not as bitwise_invert,
    conj,
    cos,
    cosh,
    exp,
    imag,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    logical_not,
    neg as negative,
    positive,
    real,
    reciprocal,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)


def pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Converts two operands to one dtype. A number becomes a 0-d array, unless it is the second operand and does not change the dtype."""
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor):
            a, b = x1.dtype, x2.dtype
            if a == b:
                return x1, x2
            both = promoted(a, b)
            return x1.to(both), x2.to(both)
        _check_number(name, x2)
        own = x1.dtype
        both = with_number(own, x2)
        if both == own:
            return x1, x2 if isinstance(x2, _kind_of(own)) else _number(x2, own, x1)
        return x1.to(both), _number(x2, both, x1)
    _check_number(name, x1)
    if not isinstance(x2, Tensor):
        raise TypeError(f"{name}: wanted an array in one place at least, got {type(x1).__name__} and {type(x2).__name__}")
    both = with_number(x2.dtype, x1)
    return _number(x1, both, x2), x2.to(both)


def _check_number(name: str, x: Any) -> None:
    if not isinstance(x, (bool, int, float, complex)):
        raise TypeError(f"{name}: wanted arrays or numbers, got {type(x).__name__}; asarray makes an array of it")


def _kind_of(dtype: Any) -> type:
    return float if dtype.is_floating_point else complex if dtype.is_complex else bool if dtype == _C.bool else int


def _number(value: Any, dtype: Any, beside: Tensor) -> Tensor:
    return _C.full((), value, dtype=dtype, device=beside.device)


def _binary(name: str, function: Callable[..., Tensor], doc: str, numbers: bool = True) -> Callable[..., Tensor]:
    """Wraps PyTorch's function to follow the standard. numbers: whether PyTorch's function accepts a number as the second operand."""

    @named(name, f"{doc} `x1` and `x2`: arrays (or one array and one number), broadcast and promoted by the standard's table.")
    def call(x1: Any, x2: Any, /) -> Tensor:
        a, b = pair(name, x1, x2)
        return function(a, b if numbers or isinstance(b, Tensor) else _number(b, a.dtype, a))

    return call


def _remainder(a: Tensor, b: Any) -> Tensor:
    made = _C.remainder(a, b)
    return _C.where(made == 0, _C.copysign(made, b), made) if made.dtype.is_floating_point else made


add = _binary("add", _C.add, "x1 + x2.")
atan2 = _binary("atan2", _C.atan2, "The angle of the point (x2, x1).", False)
bitwise_and = _binary("bitwise_and", _C.bitwise_and, "x1 & x2.")
bitwise_left_shift = _binary("bitwise_left_shift", _C.bitwise_left_shift, "x1 << x2.")
bitwise_or = _binary("bitwise_or", _C.bitwise_or, "x1 | x2.")
bitwise_right_shift = _binary("bitwise_right_shift", _C.bitwise_right_shift, "x1 >> x2.")
bitwise_xor = _binary("bitwise_xor", _C.bitwise_xor, "x1 ^ x2.")
copysign = _binary("copysign", _C.copysign, "x1 with the sign of x2.", False)
divide = _binary("divide", _C.true_divide, "x1 / x2.")
equal = _binary("equal", _C.eq, "x1 == x2.")
floor_divide = _binary("floor_divide", _C.floor_divide, "x1 // x2, rounded towards minus infinity.")
greater = _binary("greater", _C.gt, "x1 > x2.")
greater_equal = _binary("greater_equal", _C.ge, "x1 >= x2.")
hypot = _binary("hypot", _C.hypot, "The square root of x1 * x1 + x2 * x2.", False)
less = _binary("less", _C.lt, "x1 < x2.")
less_equal = _binary("less_equal", _C.le, "x1 <= x2.")
logaddexp = _binary("logaddexp", _C.logaddexp, "log(exp(x1) + exp(x2)).", False)
logical_and = _binary("logical_and", _C.logical_and, "x1 and x2.", False)
logical_or = _binary("logical_or", _C.logical_or, "x1 or x2.", False)
logical_xor = _binary("logical_xor", _C.logical_xor, "Whether one of x1 and x2 is true.", False)
maximum = _binary("maximum", _C.maximum, "The greater one, NaN where one is.", False)
minimum = _binary("minimum", _C.minimum, "The lesser one, NaN where one is.", False)
multiply = _binary("multiply", _C.mul, "x1 * x2.")
nextafter = _binary("nextafter", _C.nextafter, "The next number after x1 towards x2.", False)
not_equal = _binary("not_equal", _C.ne, "x1 != x2.")
pow = _binary("pow", _C.pow, "x1 to the power of x2.", False)
remainder = _binary("remainder", _remainder, "x1 - x2 * floor(x1 / x2), with the sign of x2 where it is 0, too.")
subtract = _binary("subtract", _C.sub, "x1 - x2.")


def abs(x: Tensor, /) -> Tensor:
    """The absolute value of each element of `x`; real for complex numbers.

    >>> naru.array_api.abs(naru.tensor([3 + 4j, -2]))
    tensor([5., 2.])
    """
    return _C.abs(x)


def _rounding(name: str, function: Callable[[Tensor], Tensor], doc: str) -> Callable[[Tensor], Tensor]:
    @named(name, f"{doc} `x`: real or complex numbers.")
    def call(x: Tensor, /) -> Tensor:
        return _C.complex(function(_C.real(x)), function(_C.imag(x))) if x.dtype.is_complex else function(x)

    return call


ceil = _rounding("ceil", _C.ceil, "The least integer that is not less; of integers themselves.")
floor = _rounding("floor", _C.floor, "The greatest integer that is not greater; of integers themselves.")
round = _rounding("round", _C.round, "The nearest integer, halves to the even one; of complex numbers by their parts.")
trunc = _rounding("trunc", _C.trunc, "The integer part.")


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 for each element of `x`; x / abs(x) for complex numbers; NaN for NaN (PyTorch returns 0).

    >>> naru.array_api.sign(naru.tensor([-2.5, 0.0, float("nan")]))
    tensor([-1.,  0., nan])
    """
    if x.dtype.is_complex:
        return _C.sgn(x)
    return _C.where(_C.isnan(x), x, _C.sign(x)) if x.dtype.is_floating_point else _C.sign(x)


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0. For complex numbers with an infinite real part the result equals that of exp (PyTorch returns NaN).

    >>> naru.array_api.expm1(naru.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return _C.where(_C.isinf(x.real), _C.exp(x) - 1, _C.expm1(x)) if x.dtype.is_complex else _C.expm1(x)


def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), accurate near 0. For complex numbers with an infinite part the result equals that of log (PyTorch returns NaN if the other part
    is NaN).

    >>> naru.array_api.log1p(naru.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return _C.where(_C.isinf(x), _C.log(x), _C.log1p(x)) if x.dtype.is_complex else _C.log1p(x)


def _bound(x: Tensor, value: Any) -> Any:
    """A bound as a tensor of x's dtype; None stays None."""
    if value is None or isinstance(value, Tensor):
        return None if value is None else value.to(x.dtype)
    _check_number("clip", value)
    return _number(value, x.dtype, x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Clamps `x` to the range from `min` to `max`: each a number, an array or None. The result has x's dtype.

    >>> naru.array_api.clip(naru.tensor([-3, 1, 9]), 0, 5)
    tensor([0, 1, 5])
    """
    if is_integral(x.dtype):
        low, high = -(1 << (8 * x.dtype.itemsize - 1)) if x.dtype.is_signed else 0, (1 << (8 * x.dtype.itemsize - x.dtype.is_signed)) - 1
        if isinstance(min, (int, float)) and min <= low:
            min = None
        if isinstance(max, (int, float)) and max >= high:
            max = None
    if min is None and max is None:
        return x.clone()
    return _C.clamp(x, _bound(x, min), _bound(x, max))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """`x1` where `condition` (bool) is true, `x2` elsewhere: arrays or numbers, broadcast and promoted.

    >>> naru.array_api.where(naru.tensor([True, False]), naru.tensor([1, 2]), 0)
    tensor([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        _check_number("where", x1), _check_number("where", x2)
        low = _C.get_default_dtype() if isinstance(x1, (float, complex)) or isinstance(x2, (float, complex)) else _C.int64
        both = _C.bool if isinstance(x1, bool) and isinstance(x2, bool) else result_type(low, x1, x2)
        return _C.where(condition, _number(x1, both, condition), _number(x2, both, condition))
    a, b = pair("where", x1, x2)
    return _C.where(condition, a, b if isinstance(b, Tensor) else _number(b, a.dtype, a))


show(globals(), "array_api")
