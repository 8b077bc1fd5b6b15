"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["ASGD"]


class ASGD(Descent):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992): `state[p]["ax"]` is the mean of a parameter from step t0 on.

    Args:
        params: parameters or groups.
        lr: the initial eta; after step t eta is lr / (1 + lambd · lr · t) ** alpha.
        lambd: the decay term: at each step, p is multiplied by 1 - lambd · eta.
        alpha: the exponent with which eta decreases.
        t0: the step from which on parameters are averaged.
        weight_decay: adds weight_decay · p to the gradient.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.

    ValueError for options out of range.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.ASGD([p], lr=0.1).step()
    >>> p.data
    tensor([0.9500])
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("lambd value", lambd, lambd >= 0.0)
        check_option("alpha value", alpha, alpha >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        eta, mu = (_C.tensor(value, dtype=_C.float32) for value in (number(group["lr"]), 1.0))
        return {"step": zero_steps(), "eta": eta, "mu": mu, "ax": zeros_for(param)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        _C._asgd_step(param, grad, state["ax"], number(state["eta"]), number(state["mu"]), group["lambd"])
        step = int(number(state["step"]))
        state["eta"] = _C.tensor(_C._asgd_eta(step, number(group["lr"]), group["lambd"], group["alpha"]), dtype=_C.float32)
        state["mu"] = _C.tensor(_C._asgd_mu(step, group["t0"]), dtype=_C.float32)
