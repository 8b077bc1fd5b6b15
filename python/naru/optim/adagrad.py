"""The Adagrad optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Adagrad"]


class Adagrad(Descent):
    """Divides steps by the root of the sum of all squared gradients so far.

    At step t:  s += g²;  p -= lr / (1 + (t - 1) · lr_decay) · g / (sqrt(s) + eps).

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        weight_decay: adds weight_decay · p to the gradient.
        initial_accumulator_value: the initial value of the sums of squares.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.
        fused: ignored: updates are always fused.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Adagrad([p], lr=0.1).step()
    >>> p.data
    tensor([0.9000])
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
                self._state_for(param, group)

    def share_memory(self) -> None:
        """Moves the sums and step counts to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()
            state["step"].share_memory_()

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": zero_steps(), "sum": _C.full_like(param.detach(), group["initial_accumulator_value"])}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = int(number(state["step"]))
        _C._adagrad_step(param, grad, state["sum"], step, number(group["lr"]), group["lr_decay"], group["eps"])
