"""The RAdam optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .adamax import check_betas
from .optimizer import number

Tensor = _C.Tensor

__all__ = ["RAdam"]


class RAdam(Descent):
    """Adam with steps rectified by the number of gradients so far (Liu et al., 2020); the first few steps use momentum alone.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        lr: the learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: adds weight_decay · p to the gradient.
        decoupled_weight_decay: whether weight_decay shrinks the parameters themselves, as in AdamW.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.
        differentiable: whether autograd records the step.

    ValueError for options out of range.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.RAdam([p], lr=0.1).step()
    >>> p.data
    tensor([0.9500])
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_betas(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": zero_steps(), "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = int(number(state["step"]))
        _C._radam_step(
            param, grad, state["exp_avg"], state["exp_avg_sq"], step, number(group["lr"]), *group["betas"], group["eps"],
            group["weight_decay"], group["decoupled_weight_decay"],
        )  # fmt: skip
