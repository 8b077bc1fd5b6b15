"""RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import no_grad
from .optimizer import Optimizer, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of the squared gradient.

    v = alpha · v + (1 - alpha) · g²;  p -= lr · g / (sqrt(v) + eps). centered subtracts the running mean of g, squared,
    from v. With momentum the steps are summed up first.
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

    def _stateful(self, group: dict[str, Any]) -> bool:
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                lr, alpha, momentum = number(group["lr"]), group["alpha"], group["momentum"]
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    state = self._state_on_device(param)
                    if len(state) == 0:
                        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu")
                        state["square_avg"] = _C.zeros_like(param.detach())
                        if momentum > 0:
                            state["momentum_buffer"] = _C.zeros_like(param.detach())
                        if group["centered"]:
                            state["grad_avg"] = _C.zeros_like(param.detach())
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if group["weight_decay"] != 0:
                        grad = grad + param * group["weight_decay"]
                    square = state["square_avg"]
                    square.mul_(alpha).add_(grad * grad, alpha=1 - alpha)
                    if group["centered"]:
                        mean = state["grad_avg"]
                        mean.add_(grad - mean, alpha=1 - alpha)
                        scale = (square - mean * mean).sqrt() + group["eps"]
                    else:
                        scale = square.sqrt() + group["eps"]
                    change = grad / scale
                    if momentum > 0:
                        change = state["momentum_buffer"].mul_(momentum).add_(change)
                    param.add_(change, alpha=-lr)
        return loss
