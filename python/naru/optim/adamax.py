"""The Adamax and NAdam optimizers, variants of Adam."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Adamax", "NAdam"]


def check_betas(lr: Any, betas: tuple[float, float], eps: float, weight_decay: float) -> None:
    """ValueError for Adam's options if they are out of range."""
    check_option("learning rate", lr, number(lr) >= 0.0)
    check_option("epsilon value", eps, eps >= 0.0)
    for i in (0, 1):
        check_option(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)
    check_option("weight_decay value", weight_decay, weight_decay >= 0.0)


class Adamax(Descent):
    """Adam with the largest decayed gradient instead of the root mean square.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        lr: the learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: adds weight_decay · p to the gradient.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Adamax([p], lr=0.1).step()
    >>> p.data
    tensor([0.9000])
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_betas(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": zero_steps(), "exp_avg": zeros_for(param), "exp_inf": zeros_for(param)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = int(number(state["step"]))
        _C._adamax_step(param, grad, state["exp_avg"], state["exp_inf"], step, number(group["lr"]), *group["betas"], group["eps"])


class NAdam(Descent):
    """Adam with Nesterov's momentum.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        lr: the learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: adds weight_decay · p to the gradient.
        momentum_decay: how fast the momentum coefficient grows.
        decoupled_weight_decay: whether weight_decay shrinks the parameters themselves, as in AdamW.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.
        differentiable: whether autograd records the step.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.NAdam([p], lr=0.1).step()
    >>> p.data
    tensor([0.8944])
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_betas(lr, betas, eps, weight_decay)
        check_option("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        product = _C.tensor(1.0, dtype=_C.float32)
        return {"step": zero_steps(), "mu_product": product, "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = int(number(state["step"]))
        state["mu_product"] *= _C._nadam_mu(step, group["betas"][0], group["momentum_decay"])
        _C._nadam_step(
            param,
            grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            number(state["mu_product"]),
            step,
            number(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["momentum_decay"],
            group["decoupled_weight_decay"],
        )
