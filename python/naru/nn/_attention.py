"""Attention as functions. The arithmetic is in C++ (naru/nn/transformer.h)."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C
from .._functions.arguments import takes_tensors

Tensor = _C.Tensor


@takes_tensors
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query · keyᵀ · scale + mask) · value.

    Memory grows with L + S, not with L · S: blocks of rows are computed one after another, and backward recomputes their weights.

    Args:
        query: (..., L, E). key: (..., S, E). value: (..., S, Ev). The result is (..., L, Ev).
        attn_mask: boolean (True: attend) or added to the scores; broadcastable to (..., L, S). A fully masked row gives 0.
        dropout_p: the dropout probability of attention weights, whether training or not.
        is_causal: position i attends only to positions up to i; RuntimeError together with attn_mask.
        scale: 1 / sqrt(E) if None.
        enable_gqa: heads (dimension -3) of key and value are repeated to those of query.

    >>> import naru
    >>> x = naru.eye(2)
    >>> naru.nn.functional.scaled_dot_product_attention(x, x, naru.tensor([[1.0], [3.0]]), is_causal=True, scale=0.0)
    tensor([[1.],
            [2.]])
    """
    bias = getattr(attn_mask, "_attend", None)  # naru.nn.attention.bias
    if bias is not None:
        return bias(query, key, value, dropout_p, is_causal, scale, enable_gqa)
    return _C._scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _none_or_dtype(input: Tensor | None) -> _C.dtype | None:
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: _C.dtype | None, other_name: str, target_type: _C.dtype, check_other: bool = True
) -> Tensor | None:
    """A mask as values to add to the scores; AssertionError unless it is bool or floating point."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype != _C.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=3)
    if floating:
        return mask
    return _C.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Projects queries, keys and values with one packed weight (3 E, E) and bias (3 E,). A private name of PyTorch's that programs import."""
    biases = (None, None, None) if b is None else b.chunk(3)
    return [_C.linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), biases)]


@takes_tensors
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention; `nn.MultiheadAttention` holds the parameters.

    Args:
        query: (L, N, E) or (L, E). key: (S, N, Ek) or (S, Ek). value: (S, N, Ev) or (S, Ev).
        embed_dim_to_check: E.
        in_proj_weight: (3 E, E), or with use_separate_proj_weight q_proj_weight (E, E), k_proj_weight (E, Ek) and v_proj_weight (E, Ev).
        bias_k, bias_v: (1, 1, E), appended to key and value; add_zero_attn: appends another key and value of zeros.
        dropout_p: the dropout probability of attention weights, in training.
        key_padding_mask: (N, S) or (S): boolean (True: masked out) or added to the scores.
        attn_mask: (L, S) or (N · num_heads, L, S), likewise.
        need_weights: whether to return the weights; without them attention needs less memory.
        static_k, static_v: (N · num_heads, S, E / num_heads), used instead of the projected key and value.
        average_attn_weights: whether the weights returned are the mean over the heads.
        is_causal: whether attn_mask, which must be given, is the causal mask.
        in_proj_bias: (3 E,), or None.
        out_proj_weight: (E, E).
        out_proj_bias: (E,), or None.

    Returns:
        the result, of query's shape, and the weights (N, L, S), or (N, num_heads, L, S), without N if query has none; None unless need_weights.

    AssertionError for invalid shapes, RuntimeError for invalid masks.

    >>> x = naru.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> eye, zero = naru.eye(2), naru.zeros(2)
    >>> found, weights = naru.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, naru.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, zero)
    >>> weights
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    tensors = (
        in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias, key_padding_mask, attn_mask,
        q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
    )  # fmt: skip
    try:
        return _C._multi_head_attention(
            query, key, value, tensors, embed_dim_to_check, num_heads, add_zero_attn, dropout_p, training, need_weights,
            use_separate_proj_weight, average_attn_weights, is_causal,
        )  # fmt: skip
    except ValueError as error:  # PyTorch raises AssertionError for these arguments
        raise AssertionError(*error.args) from None


def merge_masks(attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, num_heads: int) -> tuple[Any, int | None]:
    """(the merged mask, its kind: 0 attn_mask, 1 key_padding_mask, 2 both as (N, num_heads, L, S))."""
    if attn_mask is None:
        return key_padding_mask, None if key_padding_mask is None else 1
    batch, length = query.shape[0], query.shape[1]
    whole = attn_mask.view(batch, -1, length, length) if attn_mask.dim() == 3 else attn_mask.view(1, 1, length, length)
    whole = whole.expand(batch, num_heads, -1, -1)
    return (whole if key_padding_mask is None else whole + key_padding_mask.view(batch, 1, 1, length)), 2
