"""The Adadelta optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Adadelta"]


class Adadelta(Descent):
    """Scales steps by the ratio of the running root mean squares of past steps (u) and gradients (v).

    v = rho · v + (1 - rho) · g²;  d = sqrt(u + eps) / sqrt(v + eps) · g;  u = rho · u + (1 - rho) · d²;  p -= lr · d.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        weight_decay: adds weight_decay · p to the gradient.
        foreach: ignored: the parameters of a group are always updated together.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Adadelta([p], lr=1.0).step()
    >>> p.data
    tensor([0.9968])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("rho value", rho, 0.0 <= rho <= 1.0)
        check_option("epsilon value", eps, eps >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": zero_steps(), "square_avg": zeros_for(param), "acc_delta": zeros_for(param)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        _C._adadelta_step(param, grad, state["square_avg"], state["acc_delta"], number(group["lr"]), group["rho"], group["eps"])
