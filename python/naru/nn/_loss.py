"""Losses of `torch.nn.functional`.

`reduction` is "mean", "sum" or "none"; the older `size_average` and `reduce` are accepted with a warning.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._functions.arguments import takes_tensors
from ._reduction import REDUCTIONS, check_reduction, chosen_reduction, legacy_reduction, reduce_loss

Tensor = _C.Tensor


def _warn_shapes(input: Tensor, target: Tensor) -> None:
    import warnings

    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
        "This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=4,
    )


def _need_tensors(op: str, input: Any, target: Any) -> None:
    for name, value in (("input", input), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(value).__name__}")


def _weighted(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduces losses; with weights, "mean" is the weighted mean."""
    if weight is None:
        return reduce_loss(losses, reduction)
    if weight.shape != losses.shape:
        raise ValueError("Inputs and weights must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduce_loss(losses, reduction)


@takes_tensors
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits and target classes.

    Args:
        input: logits, (C,), (N, C) or (N, C, d1, ...).
        target: class indices (), (N,) or (N, d1, ...), or probabilities of the input's shape.
        weight: a factor for each class, (C,).
        ignore_index: a class whose targets are ignored.
        label_smoothing: in [0, 1], how much of the target is distributed uniformly over all classes.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> import naru
    >>> naru.nn.functional.cross_entropy(naru.zeros(2, 4), naru.tensor([1, 3]))
    tensor(1.3863)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_tensors("cross_entropy_loss", input, target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    return _C.cross_entropy(
        input,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


@takes_tensors
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of the log-probabilities `input` (N, C, ...) at the classes `target` (N, ...).

    Args:
        weight: a factor for each class, (C,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        ignore_index: a class whose targets are ignored.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.nll_loss(naru.tensor([[-0.5, -2.0]]), naru.tensor([0]))
    tensor(0.5000)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.dim() > 0 and input.dim() > 0 and input.dim() > 1 and input.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]}).")
    return _C.nll_loss(input, target, weight=weight, reduction=reduction, ignore_index=ignore_index)


@takes_tensors
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)², reduced. The shapes should be equal; they broadcast with a warning.

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".
        weight: a factor for each element, or None.

    >>> naru.nn.functional.mse_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(2.1250)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_tensors("mse_loss", input, target)
    if input.shape != target.shape:
        _warn_shapes(input, target)
    if weight is None:
        return _C.mse_loss(input, target, reduction=reduction)
    return _weighted(_C.mse_loss(input, target, reduction="none"), weight, reduction)


@takes_tensors
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, reduced.

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".
        weight: a factor for each element, or None.

    >>> naru.nn.functional.l1_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.2500)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    _need_tensors("l1_loss", input, target)
    if input.shape != target.shape:
        _warn_shapes(input, target)
    if weight is None:
        return _C.l1_loss(input, target, reduction=reduction)
    return _weighted(_C.l1_loss(input, target, reduction="none"), weight, reduction)


@takes_tensors
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) where d = |input - target| < beta, else d - beta / 2, reduced.

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.smooth_l1_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.8125)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if input.shape != target.shape:
        _warn_shapes(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    return _C.smooth_l1_loss(input, target, reduction, beta)


@takes_tensors
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d² / 2 where d = |input - target| <= delta, else delta (d - delta / 2), reduced.

    Args:
        reduction: "mean", "sum" or "none".
        weight: a factor for each element, or None.

    >>> naru.nn.functional.huber_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.8125)
    """
    check_reduction(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if input.shape != target.shape:
        _warn_shapes(input, target)
    if weight is None:
        return _C.huber_loss(input, target, reduction, delta)
    return _weighted(_C.huber_loss(input, target, "none", delta), weight, reduction)


@takes_tensors
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)), reduced; logarithms are clamped to at least -100.

    `input` must be between 0 and 1 (RuntimeError) and have the target's shape.

    Args:
        weight: a factor for each element, which broadcasts.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.binary_cross_entropy(naru.tensor([0.5, 0.9]), naru.tensor([1.0, 1.0]))
    tensor(0.3993)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    return _C.binary_cross_entropy(input, target, weight, reduction)


@takes_tensors
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow; pos_weight scales the term of positive targets.

    Args:
        target: the same shape as input.
        weight: a factor for each element, which broadcasts.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.binary_cross_entropy_with_logits(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.3005)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _C.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@takes_tensors
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target (log(target) - input), where `input` is log-probabilities; reduction may also be "batchmean".

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        log_target: whether the target is log-probabilities, too.

    >>> naru.nn.functional.kl_div(naru.tensor([[0.5, 0.5]]).log(), naru.tensor([[0.25, 0.75]]), reduction='batchmean')
    tensor(0.1308)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        import warnings

        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL math definition.",
            stacklevel=2,
        )
    if not isinstance(reduction, str):
        raise ValueError(f"{reduction} is not a valid value for reduction; wanted 'none', 'mean', 'sum' or 'batchmean'")
    return _C._kl_div(input, target, reduction, log_target)


@takes_tensors
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    size_average: bool | None = None,
    full: bool = False,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target · input, or input - target · log(input + eps) with log_input=False.

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        full: whether Stirling's approximation of log(target!) is added where the target is above 1.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.poisson_nll_loss(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(4.2689)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return _C.poisson_nll_loss(input, target, log_input, full, eps, reduction)


@takes_tensors
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)² / var) / 2; var is clamped to at least eps.

    Args:
        full: whether the constant log(2π) / 2 is added.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.functional.gaussian_nll_loss(naru.tensor([1.0]), naru.tensor([2.0]), naru.tensor([1.0]))
    tensor(0.5000)
    """
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * _C.ones_like(input)
    return _C._gaussian_nll_loss(input, target, var, full, eps, reduction)
