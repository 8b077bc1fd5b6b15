"""How `torch.masked` handles sparse tensors, and which elements its operations include."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _C, _sparse_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor

_NORMALISATIONS = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def canonical_dim(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions as non-negative indices, sorted; all for None and (). RuntimeError for a repeated dimension, IndexError for one out of range.

    >>> canonical_dim((-1, 0), 3)
    (0, 2)
    """
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -max(ndim, 1) <= d < max(ndim, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {d})")
        if d % max(ndim, 1) in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % max(ndim, 1))
    return tuple(sorted(found))


def _stored(t: Tensor) -> Tensor:
    """True where the sparse tensor `t` stores an element."""
    own = t.detach().coalesce() if t.is_sparse else t.detach()
    values = own._values() if t.is_sparse else own.values()
    return _sparse_tensors.with_values(own, _C.ones_like(values, dtype=_C.uint8)).to_dense().bool()


def input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **_: Any) -> Tensor:
    """`mask`, dense and expanded to the shape of `input`. ValueError if it is None.

    >>> input_mask(naru.ones(2, 2), mask=naru.tensor([True, False]))
    tensor([[ True, False],
            [ True, False]])
    """
    if mask is None:
        raise ValueError("input_mask requires explicit mask")
    return mask.to_dense().bool().expand(input.shape)


def output_mask(op: Callable[..., Tensor], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """True for the elements of the operation's result that depend on at least one unmasked element.

    >>> output_mask(naru.masked.sum, naru.ones(2, 2), 1, mask=naru.tensor([[True, False], [False, False]]))
    tensor([ True, False])
    """
    kept = input_mask(input, *args, **kwargs)
    if op.__name__ in _NORMALISATIONS:
        return kept
    places = args[1:] if op.__name__ == "norm" else args
    dims = canonical_dim(places[0] if places else kwargs.get("dim"), input.ndim)
    return kept.any(dims, keepdim=bool(kwargs.get("keepdim", False))) if dims else kept


def takes_sparse(reduction: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Extends a reduction to sparse tensors: elements that are not stored count as 0, or are masked out if there is no mask. The layout is kept.

    Masks may be sparse, too.
    RuntimeError for compressed layouts without keepdim=True: their results must be matrices.
    """

    @functools.wraps(reduction)
    def of_any_layout(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        mask = kwargs.get("mask")
        sparse = isinstance(input, Tensor) and input.layout is not _C.strided
        if not sparse and (mask is None or mask.layout is _C.strided):
            return reduction(input, *args, **kwargs)
        if mask is not None:
            kwargs["mask"] = input_mask(input, mask=mask)
        if not sparse:
            return reduction(input, *args, **kwargs)
        if not input.is_sparse and not kwargs.get("keepdim", False):
            raise RuntimeError(f"masked.{reduction.__name__}: reductions of tensors of layout {input.layout} want keepdim=True")
        if mask is None:
            kwargs["mask"] = _stored(input)
        places = output_mask(of_any_layout, input, *args, **kwargs)
        return reduction(input.to_dense(), *args, **kwargs).sparse_mask(places.to_sparse(layout=input.layout))

    return of_any_layout
