"""Rules of products: linear layers, matrix products, attention within each sequence."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._padding import padded, unpadded
from ._ragged import ragged_of_counts
from ._tensor import BY_COMPONENT, RULES, NestedTensor, components, is_nested, rule

Tensor = _C.Tensor


@rule("linear")
def _linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """x · weightᵀ + bias for each row."""
    if not is_nested(input) or is_nested(weight) or is_nested(bias):
        raise RuntimeError("linear(): wanted a nested input, and a dense weight and bias")
    if input._ragged_idx == input.dim() - 1:
        raise RuntimeError(f"linear(): not supported for NestedTensor of size {input.text_of_size()}, whose last dimension is ragged")
    return input.like(func(input._values, weight, bias))


def _unfit(a: Any, b: Any) -> RuntimeError:
    sizes = [x.text_of_size() if is_nested(x) else tuple(x.shape) for x in (a, b)]
    return RuntimeError(f"matmul(): not supported between inputs of shapes {sizes[0]} and {sizes[1]}; unbind() gives the components")


def _in_batches(a: Any, b: Any) -> Any:
    """The product of a nested tensor, padded, and a dense one with the same batch."""
    nest = a if is_nested(a) else b
    dense = padded(nest._values, nest._ragged, nest._ragged_idx, 0)
    out = _C.matmul(dense, b) if is_nested(a) else _C.matmul(a, dense)
    return nest.like(unpadded(out, nest._ragged, nest._ragged_idx, nest._values.shape[nest._ragged_idx - 1]))


@rule("matmul", "bmm", "mm", "__matmul__", "__rmatmul__")
def matmul(func: Any, input: Any, other: Any) -> Any:
    """Matrix products: of a nested tensor with a dense one, or of corresponding components."""
    a, b = (other, input) if func.__name__ == "__rmatmul__" else (input, other)
    if func.__name__ == "bmm":
        for x, name in ((a, "input"), (b, "mat2")):
            if x.dim() != 3:
                raise ValueError(f"bmm(): {name} must be 3D")
    if is_nested(a) and is_nested(b):
        return _both_nested(a, b)
    if is_nested(a):
        if a._ragged_idx == a.dim() - 1:
            raise _unfit(a, b)
        if b.dim() <= 2 and a.dim() > b.dim():
            return a.like(_C.matmul(a._values, b))
        if a.dim() >= 3 and a.dim() == b.dim():
            return _in_batches(a, b)
    else:
        if b._ragged_idx < 2:
            raise _unfit(a, b)
        if a.dim() == 2 and b.dim() > 2:
            return b.like(_C.matmul(a, b._values))
        if b.dim() >= 3 and a.dim() == b.dim() and b._ragged_idx == b.dim() - 1:
            return _in_batches(a, b)
    raise _unfit(a, b)


def _both_nested(a: NestedTensor, b: NestedTensor) -> Any:
    strided = a.layout is _C.strided and b.layout is _C.strided
    if a._ragged.same(b._ragged, strided):
        # Batches of matrices, where the batch dimension is ragged.
        if a.dim() == b.dim() and a._ragged_idx == b._ragged_idx < a.dim() - 2:
            return a.like(_C.matmul(a._values, b._values))
        # The ragged dimension is summed over: padding with zeros does not change the sum.
        if a.dim() == b.dim() and a._ragged_idx == a.dim() - 1 and b._ragged_idx == b.dim() - 2 and not strided:
            return _C.matmul(padded(a._values, a._ragged, a._ragged_idx, 0), padded(b._values, b._ragged, b._ragged_idx, 0))
    if strided:
        return RULES[BY_COMPONENT](_C.matmul, "matmul", (a, b), {})
    raise _unfit(a, b)


# --- attention


def _checked(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
        kinds = ["nested" if is_nested(x) else "dense" for x in (query, key, value)]
        raise ValueError(
            f"Expected query, key, and value to be NestedTensors, but got query: {kinds[0]}, key: {kinds[1]}, value: {kinds[2]} instead."
        )
    if any(x.dim() < 3 for x in (query, key, value)):
        raise ValueError(
            "Expected query, key, and value to all be  at least 3 dimensional, but got "
            f"Query dim: {query.dim()}, Key dim: {key.dim()} and Value dim: {value.dim()} instead."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    for x in (query, key, value):
        if not x.irregular and x._ragged_idx != x.dim() - 2:
            raise ValueError(
                f"scaled_dot_product_attention(): wanted the ragged dimension in front of the last, got size {x.text_of_size()}; transpose(1, 2) "
                "of (batch, ragged, heads, size) puts it there"
            )


@rule("scaled_dot_product_attention")
def attention(
    func: Any,
    query: NestedTensor,
    key: NestedTensor,
    value: NestedTensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> NestedTensor:
    """Attention within each sequence. If there are few distinct lengths, sequences of equal lengths are batched."""
    _checked(query, key, value, attn_mask)
    if not key._ragged.same(value._ragged, True) or query._ragged.batch != key._ragged.batch:
        raise RuntimeError(
            f"scaled_dot_product_attention(): wanted key and value of the same offsets, and as many as query, got {query.text_of_size()}, "
            f"{key.text_of_size()} and {value.text_of_size()}"
        )
    tensors, rest = (query, key, value), (None, dropout_p, is_causal, scale, enable_gqa)
    lengths = list(zip(query._ragged.counts, key._ragged.counts))
    if len(set(lengths)) * 4 <= len(lengths):
        values = _by_length(func, tensors, lengths, rest)
    else:
        values = _C.cat([func(q, k, v, *rest) for q, k, v in zip(*(components(x) for x in tensors))], query._ragged_idx - 1)
    ragged = query._ragged
    if ragged.lengths is not None:
        ragged = ragged_of_counts(ragged.counts, query.device)
    return NestedTensor(values, ragged, query._ragged_idx, query.layout)


def _by_length(func: Any, tensors: tuple, lengths: list[tuple[int, int]], rest: tuple) -> Tensor:
    """Attention with sequences of equal lengths batched, for few distinct lengths."""
    at = tensors[0]._ragged_idx - 1
    packed = [x._values.movedim(at, 0) for x in tensors]
    begins = [_C.tensor(x._ragged.host()[0], device="cpu") for x in tensors]
    order, found = [], []
    for pair in dict.fromkeys(lengths):
        members = _C.tensor([i for i, each in enumerate(lengths) if each == pair], device="cpu")
        batch = []
        for values, begin, length in zip(packed, begins, (pair[0], pair[1], pair[1])):
            places = (begin[members][:, None] + _C.arange(length, device="cpu")).reshape(-1).to(values.device)
            rows = values.index_select(0, places).reshape((len(members), length, *tuple(values.shape)[1:]))
            batch.append(rows.movedim(1, at + 1))
        order.append(_places(tensors[0], members, pair[0]))
        found.append(func(*batch, *rest).movedim(at + 1, 1).flatten(0, 1))
    whole = _C.cat(found)
    return whole.index_select(0, _C.cat(order).argsort().to(whole.device)).movedim(0, at)


def _places(x: NestedTensor, members: Tensor, length: int) -> Tensor:
    """The row indices in the result of the given components."""
    ends = _C.tensor([0, *x._ragged.counts], device="cpu").cumsum(0)
    return (ends[members][:, None] + _C.arange(length, device="cpu")).reshape(-1)
