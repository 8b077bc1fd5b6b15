"""Losses as modules. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from ... import _C
from .. import functional as F
from .._reduction import legacy_reduction
from .module import Module

Tensor = _C.Tensor

__all__ = [
    "L1Loss", "MSELoss", "NLLLoss", "CrossEntropyLoss", "BCELoss", "BCEWithLogitsLoss", "SmoothL1Loss", "HuberLoss",
    "KLDivLoss", "PoissonNLLLoss", "GaussianNLLLoss", "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
    "SoftMarginLoss", "TripletMarginLoss",
]  # fmt: skip


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = legacy_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.weight: Tensor | None


class L1Loss(_Loss):
    """|input - target|

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.L1Loss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)²

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> import naru
    >>> naru.nn.MSELoss()(naru.zeros(2), naru.tensor([1.0, 3.0]))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative log-probability in (N, C, ...) of the target classes (N, ...).

    Args:
        weight: a factor for each class, (C,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        ignore_index: a class whose targets are ignored.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.NLLLoss()(naru.tensor([[-0.5, -2.0]]), naru.tensor([0]))
    tensor(0.5000)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of logits (N, C, ...) and classes (N, ...) or class probabilities (N, C, ...).

    Args:
        weight: a factor for each class, (C,).
        ignore_index: a class whose targets are ignored.
        label_smoothing: in [0, 1], how much of the target is distributed uniformly over all classes.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.CrossEntropyLoss()(naru.tensor([[2.0, 0.0]]), naru.tensor([0]))
    tensor(0.1269)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities and targets of one shape.

    Args:
        weight: a factor for each element, which broadcasts.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.BCELoss()(naru.tensor([0.5, 0.9]), naru.tensor([1.0, 1.0]))
    tensor(0.3993)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits and targets of one shape; pos_weight scales the term of positive targets.

    Args:
        weight: a factor for each element, which broadcasts.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.BCEWithLogitsLoss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.3005)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class SmoothL1Loss(_Loss):
    """d² / (2 beta) where d = |input - target| < beta, else d - beta / 2

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.SmoothL1Loss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.8125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """d² / 2 where d = |input - target| <= delta, else delta (d - delta / 2)

    Args:
        reduction: "mean", "sum" or "none".

    >>> naru.nn.HuberLoss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.8125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target (log(target) - input), where input is log-probabilities; reduction may also be "batchmean"

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        log_target: whether the target is log-probabilities, too.

    >>> naru.nn.KLDivLoss(reduction='batchmean')(naru.tensor([[0.5, 0.5]]).log(), naru.tensor([[0.25, 0.75]]))
    tensor(0.1308)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """exp(input) - target · input

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: whether Stirling's approximation of log(target!) is added where the target is above 1.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        eps: added to the rate before the logarithm, if log_input is False.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.PoissonNLLLoss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(4.2689)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target)² / var) / 2

    Args:
        full: whether the constant log(2π) / 2 is added.
        eps: the lower bound of the variance.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.GaussianNLLLoss()(naru.tensor([1.0]), naru.tensor([2.0]), naru.tensor([1.0]))
    tensor(0.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class _MarginLoss(_Loss):
    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.CosineEmbeddingLoss()(naru.tensor([[1.0, 0.0]]), naru.tensor([[0.0, 1.0]]), naru.tensor([1.0]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """input where target is 1, max(0, margin - input) where it is -1

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.HingeEmbeddingLoss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(1.2500)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """max(0, -target (input1 - input2) + margin)

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.MarginRankingLoss()(naru.tensor([1.0]), naru.tensor([2.0]), naru.tensor([1.0]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target · input))

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.SoftMarginLoss()(naru.tensor([0.5, 2.0]), naru.tensor([1.0, 0.0]))
    tensor(0.5836)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, |anchor - positive| - |anchor - negative| + margin)

    Args:
        p: the order p of the distances' norm.
        eps: added to the differences.
        swap: whether to use the distance between positive and negative where it is smaller than that between anchor and negative.
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.TripletMarginLoss()(naru.tensor([[0.0]]), naru.tensor([[1.0]]), naru.tensor([[3.0]]))
    tensor(0.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )
