"""Losses of pairs and triplets, and of targets 1 or -1."""

from __future__ import annotations

from .. import _C
from .._functions.arguments import takes_tensors
from ._reduction import chosen_reduction, legacy_reduction

Tensor = _C.Tensor


@takes_tensors
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; cos over the last dimension.

    Args:
        input1, input2: (N, D) or (D,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.cosine_embedding_loss(naru.tensor([[1.0, 0.0]]), naru.tensor([[0.0, 1.0]]), naru.tensor([1.0]))
    tensor(1.)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _C.cosine_embedding_loss(input1, input2, target, margin, reduction)


@takes_tensors
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1.

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.hinge_embedding_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.2500)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _C.hinge_embedding_loss(input, target, margin, reduction)


@takes_tensors
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target (input1 - input2) + margin).

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.margin_ranking_loss(naru.tensor([1.0]), naru.tensor([2.0]), naru.tensor([1.0]))
    tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    return _C.margin_ranking_loss(input1, input2, target, margin, reduction)


@takes_tensors
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target · input)).

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.soft_margin_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.5836)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    return _C.soft_margin_loss(input, target, reduction)


@takes_tensors
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), distances as p-norms over the last dimension.

    Args:
        eps: added to the differences.
        swap: whether to use the distance between positive and negative where it is smaller than that between anchor and negative.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.triplet_margin_loss(naru.tensor([[0.0]]), naru.tensor([[1.0]]), naru.tensor([[3.0]]))
    tensor(0.)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    return _C.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
