"""Adamax and NAdam, two relatives of Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import no_grad
from .optimizer import Optimizer, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Adamax", "NAdam"]


def _check(lr: Any, betas: tuple[float, float], eps: float, weight_decay: float) -> None:
    check_option("learning rate", lr, number(lr) >= 0.0)
    check_option("epsilon value", eps, eps >= 0.0)
    for i in (0, 1):
        check_option(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)
    check_option("weight_decay value", weight_decay, weight_decay >= 0.0)


class Adamax(Optimizer):
    """Adam with the largest decayed gradient in place of the root mean square."""

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
        _check(lr, betas, eps, weight_decay)
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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    state = self._state_on_device(param)
                    if len(state) == 0:
                        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu")
                        state["exp_avg"] = _C.zeros_like(param.detach())
                        state["exp_inf"] = _C.zeros_like(param.detach())
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if group["weight_decay"] != 0:
                        grad = grad + param * group["weight_decay"]
                    mean, largest = state["exp_avg"], state["exp_inf"]
                    mean.add_(grad - mean, alpha=1 - beta1)
                    largest.copy_(_C.maximum(largest * beta2, grad.abs() + group["eps"]))
                    size = number(group["lr"]) / (1 - beta1 ** state["step"].item())
                    param.sub_(mean / largest * size)
        return loss


class NAdam(Optimizer):
    """Adam with Nesterov's momentum."""

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
        _check(lr, betas, eps, weight_decay)
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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                lr, decay = number(group["lr"]), group["momentum_decay"]
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    state = self._state_on_device(param)
                    if len(state) == 0:
                        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu")
                        state["mu_product"] = _C.tensor(1.0, dtype=_C.float32)
                        state["exp_avg"] = _C.zeros_like(param.detach())
                        state["exp_avg_sq"] = _C.zeros_like(param.detach())
                    state["step"] += 1
                    now = state["step"].item()
                    if group["maximize"]:
                        grad = -grad
                    if group["weight_decay"] != 0:
                        if group["decoupled_weight_decay"]:
                            param.mul_(1 - lr * group["weight_decay"])
                        else:
                            grad = grad + param * group["weight_decay"]
                    mu = beta1 * (1.0 - 0.5 * 0.96 ** (now * decay))
                    mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((now + 1) * decay))
                    state["mu_product"] *= mu
                    product = state["mu_product"].item()
                    mean, square = state["exp_avg"], state["exp_avg_sq"]
                    mean.add_(grad - mean, alpha=1 - beta1)
                    square.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
                    scale = (square / (1 - beta2**now)).sqrt() + group["eps"]
                    param.add_(grad / scale, alpha=-lr * (1.0 - mu) / (1.0 - product))
                    param.add_(mean / scale, alpha=-lr * mu_next / (1.0 - product * mu_next))
        return loss
