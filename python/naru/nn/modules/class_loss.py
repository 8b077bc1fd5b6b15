"""Losses for several classes, for sequences and for triplets, and distances as modules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .loss import NLLLoss, _Loss, _WeightedLoss
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor

__all__ = [
    "CosineSimilarity", "PairwiseDistance", "MultiMarginLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "CTCLoss",
    "TripletMarginWithDistanceLoss", "NLLLoss2d", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions", "AdaptiveLogSoftmaxWithLoss",
]  # fmt: skip


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along `dim`; norms are clamped to at least `eps`.

    >>> naru.nn.CosineSimilarity()(naru.tensor([[1.0, 0.0]]), naru.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension.

    Args:
        keepdim: whether to keep the last dimension, with size 1.

    >>> naru.nn.PairwiseDistance()(naru.tensor([[0.0, 0.0]]), naru.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class MultiMarginLoss(_WeightedLoss):
    """The mean over classes i other than the target y of max(0, margin - x[y] + x[i])^p, times weight[y]

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.MultiMarginLoss()(naru.tensor([[2.0, 1.5]]), naru.tensor([0]))
    tensor(0.2500)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum over targets y and non-target classes i of max(0, 1 - (x[y] - x[i])), divided by the number of classes

    Args:
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.MultiLabelMarginLoss()(naru.tensor([[0.1, 0.2]]), naru.tensor([[1, -1]]))
    tensor(0.4500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of logits and targets (N, C), the mean over classes

    Args:
        weight: a factor for each class, (C,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        reduction: "mean", "sum" or "none".

    >>> naru.nn.MultiLabelSoftMarginLoss()(naru.tensor([[0.1, 0.2]]), naru.tensor([[1.0, 0.0]]))
    tensor(0.7213)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Connectionist temporal classification: see `functional.ctc_loss`.

    Args:
        blank: the index of the blank label.
        reduction: "mean" (each loss is divided by its target's length first), "sum" or "none".
        zero_infinity: whether the loss of targets too long for their input is 0.

    >>> naru.nn.CTCLoss()(naru.zeros(2, 1, 2).log_softmax(-1), naru.tensor([[1]]), naru.tensor([2]), naru.tensor([1]))
    tensor(0.2877)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); d is PairwiseDistance() by default.

    Args:
        distance_function: a function of two tensors, d.
        swap: whether to use the distance between positive and negative where it is smaller than that between anchor and negative.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.TripletMarginWithDistanceLoss()(naru.tensor([[0.0]]), naru.tensor([[1.0]]), naru.tensor([[3.0]]))
    tensor(0.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The deprecated name of NLLLoss.

    Args:
        weight: a factor for each class, (C,).
        size_average, reduce: deprecated (they warn): reduce=False means reduction="none", else size_average=False means "sum".
        ignore_index: a class whose targets are ignored.
        reduction: "mean", "sum" or "none".

    >>> naru.nn.NLLLoss2d()(-naru.ones(1, 2, 1, 1), naru.tensor([[[0]]]))
    tensor(1.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        import warnings

        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement.", FutureWarning, stacklevel=2
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's options to compute `linear_cross_entropy` in chunks of the batch. naru ignores them with a warning, and computes all logits at once.

    Args:
        allow_retain_graph, batch_chunk_size, chunking_method, acc_policy, acc_dtype: stored and otherwise ignored.

    >>> naru.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
    64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: _C.dtype | None = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """`functional.linear_cross_entropy` with its own linear layer, from (N, in_features) to (N, num_classes, *out_features).

    Args:
        in_features: the size of the input's last dimension.
        num_classes: the number of classes.
        out_features: additional dimensions; each element along them is classified separately.
        bias: whether the layer has a bias.
        device, dtype: the device and dtype of the layer's parameters.
        reduction: "mean", "sum" or "none".
        weight: a factor for each class, (num_classes,); RuntimeError for another shape.
        ignore_index: the class whose targets are ignored.
        label_smoothing: in [0, 1], how much of each target is distributed uniformly over all classes.
        options: ignored with a warning; see `LinearCrossEntropyOptions`.

    >>> loss = naru.nn.LinearCrossEntropyLoss(2, 3)
    >>> _ = naru.nn.init.zeros_(loss.linear.weight)
    >>> loss(naru.ones(4, 2), naru.tensor([0, 1, 2, 0]))
    tensor(1.0986, grad_fn=<NllLossBackward0>)
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * prod(out_features), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outs, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*outs, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(outs),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax for many classes, most of them rare (Grave et al., 2016).

    Args:
        cutoffs: increasing numbers between 1 and n_classes - 1. Classes below the first are in the head, the others in clusters between two of them.
        div_value: the projection of cluster i has in_features / div_value^(i + 1) hidden features.
        head_bias: whether the head has a bias.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: input (N, in_features) and target (N), or (in_features) and (). The result is (output, loss): the targets' log
    probabilities, and the negative of their mean.

    >>> softmax = naru.nn.AdaptiveLogSoftmaxWithLoss(4, 6, cutoffs=[2])
    >>> found = softmax(naru.ones(3, 4), naru.tensor([0, 3, 5]))
    >>> naru.allclose(found.loss, -found.output.mean())
    True
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if any(a >= b for a, b in pairwise(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1 or any(int(c) != c for c in ends):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            hidden = int(in_features // div_value**i)
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **made), Linear(hidden, high - low, bias=False, **made))
            )

    def reset_parameters(self) -> None:
        """Reinitialises all weights."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:
                layer.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        rank = target.dim()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != rank + 1:
            raise RuntimeError(f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with size {input.size()}")
        if target.numel() and not target.is_meta and not 0 <= (low := int(target.min().item())) <= (high := int(target.max().item())) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were found. "
            )

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        # The index of a row's target in the head (a class or a cluster), and the log-probability within the cluster.
        output, place = input.new_zeros(target.size(0)), target
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                local = F.log_softmax(self.tail[i](input[rows]), 1).gather(1, (target[rows] - low).unsqueeze(1))
                output = output.index_copy(0, rows, local.squeeze(1))
                place = place.index_fill(0, rows, self.shortlist_size + i)
        output = output + F.log_softmax(self.head(input), 1).gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes: (N, in_features) to (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        first = self.shortlist_size
        clusters = [F.log_softmax(layer(input), 1) + head[:, first + i : first + i + 1] for i, layer in enumerate(self.tail)]
        return _C.cat([head[:, :first], *clusters], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row: (N, in_features) to (N)."""
        best = self.head(input).argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        return best.index_copy(0, rows, self.log_prob(input[rows]).argmax(1)) if rows.numel() else best
