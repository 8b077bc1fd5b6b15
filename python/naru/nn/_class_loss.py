"""Losses of `torch.nn.functional` for several classes, for sequences and for triplets (see `_loss.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._functions.arguments import takes_tensors
from ._reduction import REDUCTIONS, check_reduction, chosen_reduction, legacy_reduction

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


@takes_tensors
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); d is `pairwise_distance` by default.

    Args:
        distance_function: a function of two tensors, d.
        swap: whether to use the distance between positive and negative where it is smaller than that between anchor and negative.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.triplet_margin_with_distance_loss(naru.tensor([[0.0]]), naru.tensor([[1.0]]), naru.tensor([[3.0]]))
    tensor(0.)
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    a, p, n = anchor.dim(), positive.dim(), negative.dim()
    if not a == p == n:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {p}D, and negative {n}D inputs"
        )
    d = distance_function or (lambda x, y: _C._pairwise_distance(x, y, 2.0, 1e-6, False))
    between = d(positive, negative) if swap else None
    return _C._triplet_margin_of_distances(d(anchor, positive), d(anchor, negative), between, margin, reduction)


@takes_tensors
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i other than the target y of max(0, margin - input[y] + input[i])^p, times weight[y].

    Args:
        input: (N, C) or (C). target: class indices, (N,) or ().
        p: 1 or 2.
        weight: a factor for each class, (C,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> import naru
    >>> naru.nn.functional.multi_margin_loss(naru.tensor([[0.5, 0.0, 1.0]]), naru.tensor([2]))
    tensor(0.1667)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _C.multi_margin_loss(input, target, p, margin, weight, reduction)


@takes_tensors
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over targets y and non-target classes i of max(0, 1 - (input[y] - input[i])), divided by the number of classes.

    Args:
        input: (N, C) or (C). target: the same shape, class indices up to the first negative one.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.multilabel_margin_loss(naru.tensor([[0.1, 0.2]]), naru.tensor([[1, -1]]))
    tensor(0.4500)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _C.multilabel_margin_loss(input, target, reduction)


@takes_tensors
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of logits and targets (..., C), the mean over classes; weight (C,) is a factor for each.

    Args:
        input: logits.
        target: 0 or 1, of the same shape.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.multilabel_soft_margin_loss(naru.tensor([[0.1, 0.2]]), naru.tensor([[1.0, 0.0]]))
    tensor(0.7213)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    return _C._multilabel_soft_margin_loss(input, target, weight, reduction)


def _lengths(given: Any) -> Tensor:
    return given if isinstance(given, Tensor) else _C.tensor(list(given), dtype=_C.int64)


@takes_tensors
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: the negative log-probability of the targets, summed over all alignments.

    Args:
        log_probs: (T, N, C) or (T, C), results of `log_softmax`.
        targets: labels (N, S), or all concatenated (sum of the lengths).
        input_lengths, target_lengths: N integers each, a tensor or a list.
        blank: the index of the blank label.
        reduction: "mean" divides each loss by its target's length first.
        zero_infinity: whether the loss of targets too long for their input is 0.

    >>> import naru
    >>> x = naru.zeros(3, 1, 2).log_softmax(2)
    >>> naru.nn.functional.ctc_loss(x, naru.tensor([[1]]), [3], [1])
    tensor(0.2877)
    """
    check_reduction(reduction)
    return _C._ctc_loss(log_probs, targets, _lengths(input_lengths), _lengths(target_lengths), blank, reduction, zero_infinity)


@takes_tensors
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of the output of a linear layer.

    Args:
        input: (N, in) or (in,). linear_weight: (C, d1..., in). linear_bias: (C, d1...).
        target, weight, reduction, label_smoothing: as in `cross_entropy`.
        options: a `LinearCrossEntropyOptions`; ignored with a warning: the whole matrix of logits is computed.
        ignore_index: the class whose targets are ignored.

    >>> x, target = naru.eye(2), naru.tensor([0, 1])
    >>> naru.nn.functional.linear_cross_entropy(x, naru.eye(2) * 2, target)
    tensor(0.1269)
    >>> naru.nn.functional.cross_entropy(x @ (naru.eye(2) * 2).T, target)
    tensor(0.1269)
    """
    check_reduction(reduction)
    if options is not None:
        import warnings

        warnings.warn("linear_cross_entropy: options are not supported; falling back to the reference path", stacklevel=3)
    return _C._linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing)
