"""`torch.nn.attention.bias`: causal masks given by a formula, for `scaled_dot_product_attention`."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import _C, _missing
from ...overrides import PLAIN_RESULTS

Tensor = _C.Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the mask where the diagonal starts.

    >>> list(naru.nn.attention.bias.CausalVariant)
    [<CausalVariant.UPPER_LEFT: 1>, <CausalVariant.LOWER_RIGHT: 2>]
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask (seq_len_q, seq_len_kv) that is not stored: query i sees keys up to i (UPPER_LEFT), or up to i + seq_len_kv - seq_len_q (LOWER_RIGHT).

    Use it as `attn_mask` of `scaled_dot_product_attention`. AssertionError for another variant.

    Args:
        variant: a `CausalVariant`.
        seq_len_q, seq_len_kv: the numbers of queries and keys.

    >>> from naru.nn.attention.bias import CausalBias, CausalVariant
    >>> q, k = naru.ones(1, 2, 1), naru.ones(1, 3, 1)
    >>> mask = CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
    >>> naru.nn.functional.scaled_dot_product_attention(q, k, naru.tensor([[[1.0], [3.0], [5.0]]]), attn_mask=mask).flatten()
    tensor([2., 3.])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    __torch_function__ = PLAIN_RESULTS

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        return _C.empty(0).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        shift = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return _C.tril(_C.ones((self.seq_len_q, self.seq_len_kv), dtype=_C.bool, device=device), diagonal=shift)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        plain = self.variant == CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv
        mask = None if plain else self._materialize(query.device)
        return _C._scaled_dot_product_attention(query, key, value, mask, dropout_p, plain, scale, enable_gqa)

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


def _sizes(size: tuple, name: str) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask whose diagonal starts in the upper left corner; size is (queries, keys).

    >>> from naru.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes(size, "causal_upper_left"))


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask whose diagonal ends in the lower right corner; size is (queries, keys).

    >>> from naru.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes(size, "causal_lower_right"))


__getattr__ = _missing.module_getattr(__name__)
