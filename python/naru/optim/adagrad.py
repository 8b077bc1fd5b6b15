"""Adagrad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import no_grad
from .optimizer import Optimizer, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far.

    At step t:  s += g²;  p -= lr / (1 + (t - 1) · lr_decay) · g / (sqrt(s) + eps).
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_option("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self._new_state(param, group["initial_accumulator_value"])

    def _new_state(self, param: Any, start: float) -> None:
        state = self.state[param]
        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu")
        state["sum"] = _C.full_like(param.detach(), start)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if len(self.state[param]) == 0:  # a group added later
                        self._new_state(param, group["initial_accumulator_value"])
                    state = self._state_on_device(param)
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if group["weight_decay"] != 0:
                        grad = grad + param * group["weight_decay"]
                    lr = number(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
                    total = state["sum"]
                    total.add_(grad * grad)
                    param.add_(grad / (total.sqrt() + group["eps"]), alpha=-lr)
        return loss
