"""Rules of operators that act on each element, on the last dimensions only, or on the whole tensor: they work on the values."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import BROADCAST, IN_PLACE, UNARY, mapped
from ._padding import unpadded, without_gaps
from ._tensor import NestedTensor, component_sizes, components, first_nested, from_components, is_nested, rule, takes_irregular

Tensor = _C.Tensor


def _mismatch(func: Any, a: Any, b: Any) -> RuntimeError:
    sizes = [x.text_of_size() if is_nested(x) else str(tuple(x.shape)) for x in (a, b)]
    return RuntimeError(
        f"cannot call binary pointwise function {func.__name__.strip('_')} with inputs of shapes {sizes[0]} and {sizes[1]}: wanted nested tensors "
        "made of the same offsets, or a dense tensor that broadcasts"
    )


def _same_structure(nest: NestedTensor, other: NestedTensor) -> bool:
    by_length = nest.layout is _C.strided and other.layout is _C.strided
    return nest._ragged_idx == other._ragged_idx and nest.dim() == other.dim() and nest._ragged.same(other._ragged, by_length)


def _dense(func: Any, nest: NestedTensor, other: Tensor) -> Tensor:
    """Converts a dense operand to the shape of the values: its batch is repeated for each row of a component."""
    ndim, at = nest.dim(), nest._ragged_idx
    if other.dim() > ndim:
        raise _mismatch(func, nest, other)
    if other.dim() < ndim - at:
        return other
    if nest.irregular:
        if other.numel() == 1:
            return other.reshape(())
        raise _mismatch(func, nest, other)
    sizes = (1,) * (ndim - other.dim()) + tuple(other.shape)
    if sizes[0] not in (1, nest._ragged.batch) or (sizes[0] == 1 and sizes[at] != 1):
        raise _mismatch(func, nest, other)
    full = other.reshape(sizes)
    if sizes[0] == 1:
        return full.squeeze(0)
    total = nest._values.shape[at - 1]
    if sizes[at] == 1:
        rows = full.squeeze(at).index_select(0, nest._ragged.rows(total))
        return rows.movedim(0, at - 1) if at > 1 else rows
    if sizes[at] < nest._ragged.longest():
        raise _mismatch(func, nest, other)
    return unpadded(full, nest._ragged, at, total)


def aligned(func: Any, nest: NestedTensor, value: Any) -> Any:
    """Converts an operand to the shape of the values of `nest`."""
    if is_nested(value):
        if not _same_structure(nest, value):
            raise _mismatch(func, nest, value)
        return value._values
    return _dense(func, nest, value) if isinstance(value, Tensor) and value.dim() else value


@rule(*UNARY, *BROADCAST)
@takes_irregular
def elementwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies the function to the values; dense tensors broadcast."""
    if kwargs.get("out") is not None:
        return _written(func, args, kwargs)
    nest = first_nested(args, kwargs)
    return nest.like(func(*mapped(lambda x: aligned(func, nest, x), args), **mapped(lambda x: aligned(func, nest, x), kwargs)))


def _written(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    out = kwargs.pop("out")
    if not is_nested(out):
        raise ValueError(f"{func.__name__}(): wanted a nested tensor as out, of the offsets of the input, got a dense tensor")
    return out.copy_(func(*args, **kwargs))


@rule(*(name for name in IN_PLACE if name != "copy_"), "bernoulli_", "uniform_", "normal_", "random_", "exponential_", "cauchy_", "log_normal_", "geometric_",
      "apply_", "requires_grad_", "detach_", "retain_grad", "share_memory_", "dropout_", "alpha_dropout_")  # fmt: skip
@takes_irregular
def in_place(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Writes to the values of the first argument."""
    if not is_nested(input):
        raise RuntimeError(f"{func.__name__}(): wanted a nested tensor as what is written, for an operand is nested; got a dense one")
    func(input._values, *mapped(lambda x: aligned(func, input, x), args), **mapped(lambda x: aligned(func, input, x), kwargs))
    return input


@rule("copy_")
@takes_irregular
def copy_(func: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copies between tensors with the same lengths, even if their offsets differ."""
    if is_nested(input) and is_nested(src) and not _same_structure(input, src):
        if component_sizes(input) != component_sizes(src):
            raise RuntimeError(f"copy_(): expected compatible input and src shapes, but got: {input.text_of_size()} and {src.text_of_size()}")
        for mine, other in zip(components(input), components(src)):
            mine.copy_(other)
        return input
    if not is_nested(input):
        raise RuntimeError("copy_(): wanted a nested tensor to copy a nested one to; to_padded_tensor(padding) makes a dense one of it")
    input._values.copy_(aligned(func, input, src), non_blocking)
    return input


def _opened(x: Any) -> Any:
    return x._values if is_nested(x) else x


@rule("is_floating_point", "is_complex", "is_signed", "element_size", "get_device", "is_inference", "is_conj", "is_neg", "is_pinned", "is_shared",
      "type", "storage_offset", "data_ptr", "untyped_storage")  # fmt: skip
@takes_irregular
def _of_values(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """Properties of the values."""
    result = func(input._values, *args, **kwargs)
    return input.like(result) if isinstance(result, Tensor) else result


@rule("detach", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble",
      *(row["python"] for row in _C._KIND_ROWS if row["python"]), "to", "resolve_conj", "resolve_neg", "pin_memory", "alias", "dropout", "alpha_dropout", "feature_alpha_dropout", "bernoulli", "rrelu", "type_as",
      "hardtanh", "one_hot", "fill", "detach_copy", "requires_grad", "embedding", "view_as_real", "view_as_complex", "bucketize", "searchsorted", "isin",
      "native_dropout", "nan_to_num", "gumbel_softmax")  # fmt: skip
@takes_irregular
def on_values(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies the function to the values, with the other arguments unchanged."""
    return first_nested(args, kwargs).like(func(*mapped(_opened, args), **mapped(_opened, kwargs)))


@rule("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
@takes_irregular
def _like(func: Any, input: NestedTensor, *args: Any, layout: Any = None, **kwargs: Any) -> Any:
    """A new tensor of the same structure; `layout` is that of the input."""
    if layout is not None and layout is not input.layout:
        raise RuntimeError(f"{func.__name__}(): wanted layout={input.layout} or none, got {layout}: nested tensors do not change theirs")
    return input.like(func(input._values, *args, **kwargs))


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
@takes_irregular
def _new(func: Any, input: NestedTensor, size: Any, *args: Any, **kwargs: Any) -> Any:
    """A new dense tensor of the same dtype."""
    return func(input._values, size, *args, **kwargs)


@rule("clone", "contiguous")
@takes_irregular
def clone(func: Any, input: NestedTensor, memory_format: Any = None) -> Any:
    """A copy; without gaps if torch.contiguous_format is requested."""
    fit = func.__name__ == "contiguous" or memory_format is _C.contiguous_format
    if fit and input._ragged.lengths is not None:
        return without_gaps(input)
    if func.__name__ == "contiguous" and input.is_contiguous():
        return input
    if input.layout is _C.strided and fit and input._ragged_idx > 1:
        return from_components([c.contiguous() for c in components(input)])
    return input.like(func(input._values) if memory_format is None else func(input._values, memory_format=memory_format))


@rule("equal", "allclose")
@takes_irregular
def _compared(func: Any, input: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether all elements are equal, or close."""
    nest = input if is_nested(input) else other
    if not (is_nested(input) and is_nested(other)):
        return False if func.__name__ == "equal" else bool(_C.isclose(input, other, *args, **kwargs).all())
    if not _same_structure(nest, other):
        raise _mismatch(func, input, other)
    return func(nest.contiguous()._values, other.contiguous()._values, *args, **kwargs)


@rule("is_same_size")
@takes_irregular
def _same_size(func: Any, input: Any, other: Any) -> bool:
    """Whether both nested tensors have the same structure and sizes."""
    if not (is_nested(input) and is_nested(other)):
        words = [f"{side} is {'' if is_nested(x) else 'not '}nested." for side, x in (("Self", input), ("Other", other))]
        raise RuntimeError(f"Expected both self and other to be nested tensors. {words[0]} While {words[1]}")
    return _same_structure(input, other) and input._values.shape == other._values.shape


@rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss",
      "soft_margin_loss")  # fmt: skip
@takes_irregular
def _loss(func: Any, *args: Any, **kwargs: Any) -> Any:
    """The loss of all elements, reduced or not."""
    nest = first_nested(args, kwargs)
    if nest._ragged.lengths is not None:
        raise RuntimeError(f"{func.__name__}(): not supported for nested tensors with holes; contiguous() makes one without")
    out = func(*mapped(lambda x: aligned(func, nest, x), args), **mapped(lambda x: aligned(func, nest, x), kwargs))
    return nest.like(out) if out.dim() else out


@rule("record_stream")
@takes_irregular
def _record_stream(func: Any, input: NestedTensor, stream: Any) -> None:
    """Records the use of values, offsets and lengths on the stream."""
    for part in (input._values, input._ragged.offsets, input._ragged.lengths):
        if part is not None:
            func(part, stream)
