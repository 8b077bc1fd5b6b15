"""Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import no_grad
from .optimizer import Optimizer, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Steps scaled by the ratio of the running root mean squares of past steps (u) and gradients (v).

    v = rho · v + (1 - rho) · g²;  d = sqrt(u + eps) / sqrt(v + eps) · g;  u = rho · u + (1 - rho) · d²;  p -= lr · d.
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

    def _stateful(self, group: dict[str, Any]) -> bool:
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                rho, eps = group["rho"], group["eps"]
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    state = self._state_on_device(param)
                    if len(state) == 0:
                        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu")
                        state["square_avg"] = _C.zeros_like(param.detach())
                        state["acc_delta"] = _C.zeros_like(param.detach())
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if group["weight_decay"] != 0:
                        grad = grad + param * group["weight_decay"]
                    square, steps = state["square_avg"], state["acc_delta"]
                    square.mul_(rho).add_(grad * grad, alpha=1 - rho)
                    delta = (steps + eps).sqrt() / (square + eps).sqrt() * grad
                    steps.mul_(rho).add_(delta * delta, alpha=1 - rho)
                    param.add_(delta, alpha=-number(group["lr"]))
        return loss
