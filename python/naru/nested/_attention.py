"""`nn.MultiheadAttention` of nested tensors: projects all rows at once, and attends within each sequence."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from ._ragged import ragged_of
from ._tensor import NestedTensor, components, from_components, is_nested

Tensor = _C.Tensor


def _checked(module: Any, tensors: tuple, masked: bool) -> None:
    why = None
    if not all(is_nested(t) for t in tensors):
        why = "query, key and value are not all nested"
    elif not module.batch_first:
        why = "batch_first was not True"
    elif masked:
        why = "supplying src_key_padding_mask or src_mask is not supported with NestedTensor input; the lengths say what counts"
    elif module.bias_k is not None or module.bias_v is not None or module.add_zero_attn:
        why = "add_bias_kv or add_zero_attn was True"
    if why:
        raise AssertionError(f"MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because {why}")


def _projected(module: Any, query: Any, key: Any, value: Any) -> list:
    """Query, key and value, projected and split into heads."""
    if module._qkv_same_embed_dim:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    if query is key and key is value and module._qkv_same_embed_dim:
        parts = _C.linear(query, module.in_proj_weight, module.in_proj_bias).chunk(3, -1)
    else:
        parts = tuple(_C.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    return [p.unflatten(-1, (module.num_heads, module.head_dim)).transpose(1, 2) for p in parts]


def _weights(query: NestedTensor, key: NestedTensor, dropout: float, average: bool) -> Tensor:
    """The attention weights, padded with 0."""
    found = []
    for q, k in zip(components(query), components(key)):
        scores = _C.softmax(_C.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1]), -1)
        found.append(_C.dropout(scores, dropout, True) if dropout else scores)
    dense = from_components(found).to_padded_tensor(0.0)
    return dense.mean(1) if average else dense


def multi_head(module: Any, query: Any, key: Any, value: Any, masked: bool, need_weights: bool, average: bool) -> tuple[Any, Tensor | None]:
    """(the result, nested as the query is, the weights or None)."""
    _checked(module, (query, key, value), masked)
    q, k, v = _projected(module, query, key, value)
    dropout = module.dropout if module.training else 0.0
    out = _C._scaled_dot_product_attention(q, k, v, None, dropout, False, None, False)
    weights = _weights(q, k, dropout, average) if need_weights else None
    return module.out_proj(out.transpose(1, 2).flatten(2)), weights


def encoded(layers: Any, src: Tensor, seen: Tensor) -> Tensor:
    """Applies an encoder's layers to the positions in the mask `seen`, as a nested tensor. The result is 0 at other positions, which are not computed."""
    lengths = seen.sum(1)
    x = NestedTensor(src[seen], ragged_of(_C.cat([lengths.new_zeros(1), lengths.cumsum(0)])))
    for layer in layers:
        x = layer(x)
    output = _C.zeros_like(src)
    output[seen] = x._values
    return output
