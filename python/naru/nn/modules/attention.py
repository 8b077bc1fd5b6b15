"""Multi-head attention as a module."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import functional as F
from .. import init
from .._attention import _canonical_mask, _none_or_dtype, merge_masks
from ..parameter import Parameter
from . import activation
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

Tensor = _C.Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al., 2017): each of num_heads heads attends over E / num_heads features of the projected query, key and value.

    Args:
        embed_dim: E, the features of query and of the result.
        num_heads: the number of heads; AssertionError unless it divides embed_dim.
        dropout: the dropout probability of attention weights, in training.
        bias: whether the projections have biases (initially 0).
        add_bias_kv: whether to append a learned key and value.
        add_zero_attn: whether to append a key and value of zeros.
        kdim, vdim: the features of key and value; E if None.
        batch_first: whether tensors are (N, L, E) instead of (L, N, E).
        device, dtype: the parameters' device and dtype; the defaults if None.

    Parameters: in_proj_weight (3 E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim) and v_proj_weight (E, vdim), uniform by Glorot's bound;
    in_proj_bias (3 E,); out_proj, a Linear; bias_k and bias_v (1, 1, E).

    >>> import naru
    >>> x = naru.ones(2, 5, 8)
    >>> out, weights = naru.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 5, 5]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        same = self._qkv_same_embed_dim
        shapes: dict[str, Any] = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
        }
        packed = {"in_proj_weight": (3 * embed_dim, embed_dim) if same else None}
        shapes = {**packed, **shapes} if same else {**shapes, **packed}
        shapes["in_proj_bias"] = 3 * embed_dim if bias else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(_C.empty(shape, device=device, dtype=dtype)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = Parameter(_C.empty((1, 1, embed_dim), device=device, dtype=dtype))
            self.bias_v = Parameter(_C.empty((1, 1, embed_dim), device=device, dtype=dtype))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the result and the weights; see `functional.multi_head_attention_forward` for their shapes and the masks.

        Args:
            query, key, value: (L, N, E), (S, N, kdim) and (S, N, vdim), or with N first if batch_first, or without N. With
                batch_first also nested tensors (N, L, E) and so on, without masks: attention within each sequence, weights padded with 0.
            key_padding_mask: keys to ignore, (N, S).
            need_weights: whether to return the weights; average_attn_weights: whether to average them over the heads.
            attn_mask: (L, S) or (N · num_heads, L, S), bool (True: masked out) or added to the scores.
            is_causal: whether attn_mask is the causal mask, which must be given.

        >>> attention = naru.nn.MultiheadAttention(4, 2)
        >>> x = naru.ones(3, 1, 4)
        >>> out, weights = attention(x, x, x)
        >>> out.shape, weights
        (torch.Size([3, 1, 4]), tensor([[[0.3333, 0.3333, 0.3333],
                 [0.3333, 0.3333, 0.3333],
                 [0.3333, 0.3333, 0.3333]]], grad_fn=<MeanBackward1>))
        """
        if query.is_nested or key.is_nested or value.is_nested:
            from ...nested._attention import multi_head

            masked = key_padding_mask is not None or attn_mask is not None
            return multi_head(self, query, key, value, masked, need_weights, average_attn_weights)
        padding = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
        mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        turn = self.batch_first and query.dim() == 3
        if turn:  # transpose the same tensor only once, so that it stays one object
            turned = {id(t): t.transpose(0, 1) if t.dim() == 3 else t for t in (query, key, value)}
            query, key, value = (turned[id(t)] for t in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training, key_padding_mask=padding,
            need_weights=need_weights, attn_mask=mask, use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turn else out), weights

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor) -> tuple[Tensor | None, int | None]:
        """The merged mask, and its kind: 0 attn_mask, 1 key_padding_mask, 2 both, with shape (N, num_heads, L, S)."""
        return merge_masks(attn_mask, key_padding_mask, query, self.num_heads)


# PyTorch's module for this class, which files of whole modules name.
MultiheadAttention.__module__ = activation.__name__
activation.MultiheadAttention = MultiheadAttention  # type: ignore[attr-defined]
