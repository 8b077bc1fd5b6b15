"""`torch._foreach_*`: operators over lists of tensors, as third-party optimizers call them. The operator is called for one tensor after another;
consecutive calls fuse as usual.

`lists("_foreach_add_")` builds such a function: with a trailing underscore it writes to the first list and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

_UNARY = frozenset(
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin "
    "sinh sqrt tan tanh trunc zero".split()
)
# The second operand is a number, a tensor, or a list of either; the value is the operator called per tensor.
_BINARY = {name: name for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max")}
_CLAMPS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # which have an in-place form and accept numbers
_TERNARY = frozenset(("addcmul", "addcdiv"))


def _each(name: str, value: Any, count: int) -> list[Any]:
    """`value` for each of `count` tensors: the elements of a list, or the same value."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            if not any(isinstance(part, Tensor) for part in value):
                raise RuntimeError(
                    f"Tensor list must have same number of elements as scalar list. (_foreach_{name}: got {count} and {len(value)})"
                )
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)} (in _foreach_{name})")
        return list(value)
    return [value] * count


def _checked(name: str, tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"_foreach_{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _one_or_two(name: str, x: Tensor, other: Any, in_place: bool, alpha: Any) -> Tensor:
    name = _CLAMPS.get(name, name)
    extra = {"alpha": alpha} if alpha is not None else {}
    return getattr(x, name + "_" * in_place)(other, **extra)


def _binary(name: str, in_place: bool) -> Callable[..., Any]:
    def over(self: Any, other: Any, *, alpha: Any = None) -> Any:
        if name == "pow" and not isinstance(self, (list, tuple)):  # number ** tensor
            return [_C.pow(self, x) for x in _checked(name, other)]
        tensors = _checked(name, self)
        results = [_one_or_two(name, x, y, in_place, alpha) for x, y in zip(tensors, _each(name, other, len(tensors)))]
        return self if in_place else results

    return over


def _unary(name: str, in_place: bool) -> Callable[..., Any]:
    def over(self: Any) -> Any:
        results = [getattr(x, name + "_" * in_place)() for x in _checked(name, self)]
        return self if in_place else results

    return over


def _ternary(name: str, in_place: bool) -> Callable[..., Any]:
    def over(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> Any:
        tensors = _checked(name, self)
        values = value if scalars is None else scalars
        values = values.tolist() if isinstance(values, Tensor) and values.dim() else values
        parts = (_each(name, part, len(tensors)) for part in (tensor1, tensor2, values))
        results = []
        for x, a, b, v in zip(tensors, *parts):
            if isinstance(v, Tensor):  # a tensor alpha has to be multiplied explicitly
                a, v = a * v, 1
            results.append(getattr(x, name + "_" * in_place)(a, b, value=v))
        return self if in_place else results

    return over


def _lerp(in_place: bool) -> Callable[..., Any]:
    def over(self: Any, tensors1: Any, weight: Any = None, weights: Any = None, scalars: Any = None) -> Any:
        tensors = _checked("lerp", self)
        amount = next(w for w in (weight, weights, scalars) if w is not None)
        ends, amounts = _each("lerp", tensors1, len(tensors)), _each("lerp", amount, len(tensors))
        results = [x.lerp_(y, w) if in_place else x.lerp(y, w) for x, y, w in zip(tensors, ends, amounts)]
        return self if in_place else results

    return over


def norm(self: Any, ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """The norm of each tensor."""
    return [_C.linalg_vector_norm(x, ord, dtype=dtype) for x in _checked("norm", self)]


def powsum(self: Any, ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """The sum of the powers of each tensor's absolute values."""
    return [(x if dtype is None else x.to(dtype)).abs().pow(ord).sum() for x in _checked("powsum", self)]


def largest(self: Any) -> list[Tensor]:
    """The largest element of each tensor."""
    return [x.max() for x in _checked("max", self)]


def products(self: Any, mat2: Any) -> list[Tensor]:
    """The matrix product of each pair of tensors."""
    tensors = _checked("mm", self)
    return [x.mm(y) for x, y in zip(tensors, _each("mm", mat2, len(tensors)))]


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copies the second list into the first, and returns the first."""
    tensors = _checked("copy_", self)
    for x, y in zip(tensors, _each("copy_", src, len(tensors))):
        x.copy_(y, non_blocking)
    return self


_OTHERS: dict[str, Callable[..., Any]] = {"norm": norm, "powsum": powsum, "max": largest, "mm": products, "copy_": copy_}


def lists(name: str) -> Callable[..., Any]:
    """The function of that name (`_foreach_add_`); AttributeError if PyTorch has none."""
    word = name.removeprefix("_foreach_")
    base, in_place = word.removesuffix("_"), word.endswith("_")
    if word in _OTHERS:
        found = _OTHERS[word]
    elif base in _UNARY and word not in ("clone_", "zero"):
        found = _unary(base, in_place)
    elif base in _BINARY:
        found = _binary(base, in_place)
    elif base in _TERNARY:
        found = _ternary(base, in_place)
    elif base == "lerp":
        found = _lerp(in_place)
    else:
        raise AttributeError(f"module 'torch' has no attribute '{name}'")
    found.__name__ = found.__qualname__ = name
    return found
