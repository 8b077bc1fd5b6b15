"""Losses of PyTorch's top-level namespace: those of nn.functional with a number for the reduction, 0 (none, the default), 1 (mean) or 2 (sum)."""

from __future__ import annotations

from .. import _C
from .._functions.arguments import takes_tensors
from ..nn import functional as F

Tensor = _C.Tensor


def _word(function: str, reduction: int) -> str:
    if not isinstance(reduction, int) or isinstance(reduction, bool):
        raise TypeError(f"{function}(): argument 'reduction' must be int, not {type(reduction).__name__}")
    return {1: "mean", 2: "sum"}.get(reduction, "none")


@takes_tensors
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """nn.functional.binary_cross_entropy_with_logits of `input`, `target`, `weight` and `pos_weight`, with a number for the `reduction`.

    >>> import naru
    >>> binary_cross_entropy_with_logits(naru.zeros(2), naru.ones(2))
    tensor([0.6931, 0.6931])
    """
    word = _word("binary_cross_entropy_with_logits", reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=word)


@takes_tensors
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.cosine_embedding_loss of `input1`, `input2`, `target` and `margin`, with a number for the `reduction`.

    >>> import naru
    >>> cosine_embedding_loss(naru.eye(2), naru.ones(2, 2), naru.tensor([1, -1]))
    tensor([0.2929, 0.7071])
    """
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word("cosine_embedding_loss", reduction))


@takes_tensors
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """nn.functional.hinge_embedding_loss of `input`, `target` and `margin`, with a number for the `reduction`.

    >>> import naru
    >>> hinge_embedding_loss(naru.tensor([0.25, 0.25]), naru.tensor([1.0, -1.0]))
    tensor([0.2500, 0.7500])
    """
    return F.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", reduction))


@takes_tensors
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """nn.functional.kl_div of `input` and `target`, with a number for the `reduction`. `log_target`: the target holds logarithms.

    >>> import naru
    >>> kl_div(naru.zeros(2), naru.ones(2), 2)
    tensor(0.)
    """
    return F.kl_div(input, target, reduction=_word("kl_div", reduction), log_target=log_target)


@takes_tensors
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.margin_ranking_loss of `input1`, `input2`, `target` and `margin`, with a number for the `reduction`.

    >>> import naru
    >>> margin_ranking_loss(naru.tensor([1.0, 2.0]), naru.tensor([2.0, 1.0]), naru.ones(2))
    tensor([1., 0.])
    """
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_word("margin_ranking_loss", reduction))


@takes_tensors
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """nn.functional.poisson_nll_loss of `input`, `target`, `log_input`, `full` and `eps`, with a number for the `reduction`.

    >>> import naru
    >>> poisson_nll_loss(naru.zeros(2), naru.ones(2), True, False, 1e-8, 2)
    tensor(2.)
    """
    return F.poisson_nll_loss(input, target, log_input, full=full, eps=eps, reduction=_word("poisson_nll_loss", reduction))


@takes_tensors
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False, reduction: int = 0
) -> Tensor:
    """nn.functional.triplet_margin_loss of `anchor`, `positive`, `negative`, `margin`, `p`, `eps` and `swap`, with a number for the `reduction`.

    >>> import naru
    >>> triplet_margin_loss(naru.zeros(2, 1), naru.ones(2, 1), naru.ones(2, 1), eps=0)
    tensor([1., 1.])
    """
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_word("triplet_margin_loss", reduction))
