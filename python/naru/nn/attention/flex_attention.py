"""`torch.nn.attention.flex_attention`: attention whose scores and masks are functions of positions."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C, _missing
from .. import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
_DEFAULT_SPARSE_BLOCK_SIZE = 128

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]


class AuxRequest(NamedTuple):
    """Additional results of `flex_attention` to request: the logarithms of the sums of exponentials, and the maximum scores, of each row.

    Args:
        lse: whether to return the logarithms of the sums of exponentials.
        max_scores: whether to return the maximum scores.

    >>> from naru.nn.attention.flex_attention import AuxRequest, flex_attention
    >>> x = naru.ones(1, 1, 2, 1)
    >>> out, aux = flex_attention(x, x, x, return_aux=AuxRequest(max_scores=True))
    >>> aux.max_scores, aux.lse
    (tensor([[[1., 1.]]]), None)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that an AuxRequest requested, (B, H, L) each; None if not requested.

    Args:
        lse: the logarithms of the sums of exponentials.
        max_scores: the maximum scores.

    >>> from naru.nn.attention.flex_attention import AuxRequest, flex_attention
    >>> x = naru.ones(1, 1, 2, 1)
    >>> flex_attention(x, x, x, return_aux=AuxRequest(lse=True))[1].lse
    tensor([[[1.6931, 1.6931]]])
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask mod that masks nothing.

    Args:
        batch, head, token_q, token_kv: indices, integer tensors that broadcast against each other.

    >>> from naru.nn.attention.flex_attention import create_mask, noop_mask
    >>> create_mask(noop_mask, None, None, 1, 3, device="cpu")
    tensor([[[[True, True, True]]]])
    """
    return batch.new_ones((), dtype=_C.bool)


def _joined(masks: tuple, join: Callable[[Tensor, Tensor], Tensor], start: bool) -> Callable[..., Tensor]:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=_C.bool)
        for each in masks:
            result = join(result, each(b, h, q_idx, kv_idx))
        return result

    return mask


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A mask mod that shows what any of the given ones shows. RuntimeError for objects that are not callable.

    Args:
        mask_mods: functions f(b, h, q_idx, kv_idx).

    >>> from naru.nn.attention.flex_attention import create_mask, or_masks
    >>> mask = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    >>> create_mask(mask, None, None, 3, 3, device="cpu").int()
    tensor([[[[1, 0, 0],
              [1, 1, 0],
              [1, 0, 1]]]], dtype=torch.int32)
    """
    return _joined(mask_mods, lambda a, b: a | b, False)


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A mask mod that shows what all of the given ones show. RuntimeError for objects that are not callable.

    Args:
        mask_mods: functions f(b, h, q_idx, kv_idx).

    >>> from naru.nn.attention.flex_attention import and_masks, create_mask
    >>> window = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(window, None, None, 3, 3, device="cpu").int()
    tensor([[[[1, 0, 0],
              [1, 1, 0],
              [0, 1, 1]]]], dtype=torch.int32)
    """
    return _joined(mask_mods, lambda a, b: a & b, True)


def _positions(batch: int, heads: int, queries: int, keys: int, device: Any) -> list[Tensor]:
    """The indices of batch, head, query and key, each along a separate dimension, so that functions of them broadcast."""
    shapes = ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))
    return [_C.arange(n, device=device).view(shape) for n, shape in zip((batch, heads, queries, keys), shapes)]


def create_mask(mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask of the keys that each query sees, bool (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: a mask mod, f(b, h, q_idx, kv_idx), or a score mod, f(score, b, h, q_idx, kv_idx), where -inf masks. It is called once, with tensors that
            broadcast against each other; so it must not branch on values.
        B, H: 1 if None.
        device: the current device of the best kind if None.

    >>> from naru.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2, device="cpu")
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    if device is None:
        device = _C.device("cpu")
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _positions(*sizes, device)
    required = [p for p in inspect.signature(mod_fn).parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(required) == 5:
        seen = mod_fn(_C.zeros(sizes, device=device), *places) != -math.inf
    else:
        seen = mod_fn(*places)
    return seen.expand(sizes)


def _in_order(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(the number of key blocks of each query block, key block indices with the selected ones first)"""
    order = _C.argsort(blocks.to(_C.int32), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(_C.int32), order.to(_C.int32)


class BlockMask:
    """A mask mod, and the blocks of scores that it shows in part (kv_num_blocks, kv_indices) and in full (full_kv_num_blocks, full_kv_indices).

    Made by `create_block_mask`. naru's attention uses only the mask mod.

    Args:
        mask: bool (B, H, queries, keys).
        BLOCK_SIZE: the block sizes of queries and of keys.
        mask_mod: f(b, h, q_idx, kv_idx).

    >>> from naru.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    >>> mask.shape, mask.kv_num_blocks, mask.full_kv_num_blocks
    ((1, 1, 8, 8), tensor([[[1, 1]]], dtype=torch.int32), tensor([[[0, 1]]], dtype=torch.int32))
    """

    def __init__(self, mask: Tensor, BLOCK_SIZE: tuple[int, int], mask_mod: Callable[..., Tensor]) -> None:
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod
        self.seq_lengths = (mask.shape[-2], mask.shape[-1])
        rows, columns = (-(-n // size) for n, size in zip(self.seq_lengths, BLOCK_SIZE))
        padded = F.pad(mask, (0, columns * BLOCK_SIZE[1] - mask.shape[-1], 0, rows * BLOCK_SIZE[0] - mask.shape[-2]))
        counts = padded.view(*mask.shape[:2], rows, BLOCK_SIZE[0], columns, BLOCK_SIZE[1]).sum((3, 5))
        full = counts == BLOCK_SIZE[0] * BLOCK_SIZE[1]
        self._blocks = counts > 0
        self.kv_num_blocks, self.kv_indices = _in_order(self._blocks & ~full)
        self.full_kv_num_blocks, self.full_kv_indices = _in_order(full)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self._blocks.shape[:2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of blocks that need not be computed."""
        return 100 * (1 - self._blocks.float().mean().item())

    def to_dense(self) -> Tensor:
        """The mask of blocks to compute, int32 (B, H, blocks of queries, blocks of keys)."""
        return self._blocks.to(_C.int32)

    def to(self, device: Any) -> BlockMask:
        """The mask on another device."""
        return create_block_mask(self.mask_mod, *self.shape, device=device, BLOCK_SIZE=self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    **options: Any,
) -> BlockMask:
    """The BlockMask of a mask mod; see `create_mask`. Other options are ignored.

    Args:
        mask_mod: f(b, h, q_idx, kv_idx). B, H: the sizes of batch and heads, if mask_mod depends on them; 1 if None.
        Q_LEN, KV_LEN: the numbers of queries and keys.
        device: the best kind's current device if None.
        BLOCK_SIZE: one block size, or those of queries and of keys.

    >>> from naru.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    >>> mask.to_dense(), mask.sparsity()
    (tensor([[[[1, 0],
              [1, 1]]]], dtype=torch.int32), 25.0)
    """
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), sizes, mask_mod)


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, own = query.size(1), key.size(1)
    if not enable_gqa and heads != own:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={own}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and (own == 0 or heads % own):
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={own}.")
    if block_mask is not None and block_mask.seq_lengths != (query.size(-2), key.size(-2)):
        raise ValueError(
            f"flex_attention: wanted a block_mask for {query.size(-2)} queries and {key.size(-2)} keys, got one for {block_mask.seq_lengths}; "
            "make a new one with create_block_mask"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(query · keyᵀ · scale)) · value, over the keys that block_mask shows; a fully masked query gives 0.

    Args:
        query: (B, Hq, L, E). key: (B, Hkv, S, E). value: (B, Hkv, S, Ev). The result is (B, Hq, L, Ev).
        score_mod: f(score, b, h, q_idx, kv_idx), called once with all scores and index tensors that broadcast against them.
        block_mask: the result of `create_block_mask`.
        scale: 1 / sqrt(E) if None.
        enable_gqa: heads of key and value are repeated to those of query.
        return_lse: whether to return the logarithms of the sums of exponentials (B, Hq, L), too; return_aux: an AuxRequest for more results.
        kernel_options: ignored.

    Without score_mod and additional results, it calls `scaled_dot_product_attention`, whose memory, except for the mask, does not grow with L · S.
    ValueError for invalid sizes.

    >>> import naru
    >>> from naru.nn.attention.flex_attention import flex_attention
    >>> x = naru.ones(1, 1, 2, 1)
    >>> flex_attention(x, x, naru.tensor([[[[1.0], [3.0]]]]), score_mod=lambda s, b, h, q, k: naru.where(q >= k, s, -float("inf"))).flatten()
    tensor([1., 2.])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    places = _positions(query.size(0), query.size(1), query.size(2), key.size(2), query.device)
    seen = None if block_mask is None else block_mask.mask_mod(*places)
    if score_mod is None and not return_lse and return_aux is None:
        return F.scaled_dot_product_attention(query, key, value, seen, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        key, value = (t.repeat_interleave(query.size(1) // t.size(1), 1) for t in (key, value))
    scores = query @ key.mT * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(query.dtype)
    if seen is not None:
        scores = _C.where(seen, scores, -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    out = _C.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0) @ value
    lse = _C.logsumexp(scores, -1) if return_lse or (return_aux is not None and return_aux.lse) else None
    if return_aux is not None:
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


__getattr__ = _missing.module_getattr(__name__)
