"""The RMSprop optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["RMSprop"]


class RMSprop(Descent):
    """Divides steps by the root of a running mean of the squared gradient.

    v = alpha · v + (1 - alpha) · g²;  p -= lr · g / (sqrt(v) + eps). centered subtracts the square of the running mean of g
    from v. With momentum, the steps are accumulated first.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        weight_decay: adds weight_decay · p to the gradient.
        capturable: whether `step()` may be captured in a graph.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.RMSprop([p], lr=0.1).step()
    >>> p.data
    tensor([1.7881e-07])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        check_option("momentum value", momentum, momentum >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_option("alpha value", alpha, alpha >= 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": zero_steps(), "square_avg": zeros_for(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_for(param)
        if group["centered"]:
            state["grad_avg"] = zeros_for(param)
        return state

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        _C._rmsprop_step(
            param,
            grad,
            state["square_avg"],
            state.get("momentum_buffer"),
            state["grad_avg"] if group["centered"] else None,
            number(group["lr"]),
            group["alpha"],
            group["eps"],
            group["momentum"],
        )
