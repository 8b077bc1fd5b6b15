"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent
from .optimizer import check_option, differentiable_number, number

Tensor = _C.Tensor

__all__ = ["SGD"]


class SGD(Descent):
    """Gradient descent with momentum.

    With g the gradient plus weight_decay · p:  v = momentum · v + (1 - dampening) · g (the first time v = g), and
    p -= lr · v, or lr · (g + momentum · v) with nesterov. maximize maximises the objective.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        foreach: ignored: the parameters of a group are always updated together.
        differentiable: whether autograd records the step; then lr, momentum and weight_decay that require gradients get them.
        fused: ignored: updates are always fused.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.SGD([p], lr=0.1).step()
    >>> p.data
    tensor([0.9500])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("momentum value", momentum, momentum >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    _reads_gradients = True

    def _stateful(self, group: dict[str, Any]) -> bool:
        return group["momentum"] != 0

    def _update_group(self, group: dict[str, Any], params: list[Tensor], grads: None) -> None:
        momentum = group["momentum"]
        momenta = [self._state_on_device(p).get("momentum_buffer") for p in params] if momentum != 0 else []
        made = _C._sgd_step(
            params, momenta, number(group["lr"]), momentum, group["dampening"], number(group["weight_decay"]), group["nesterov"],
            group["maximize"],
        )  # fmt: skip
        if momentum != 0:
            for param, buffer in zip(params, made):
                self.state[param]["momentum_buffer"] = buffer

    def _update_differentiably(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        momentum, lr, decay = (differentiable_number(group[name]) for name in ("momentum", "lr", "weight_decay"))
        for param, grad in zip(params, grads):
            if group["maximize"]:
                grad = -grad
            if decay:
                grad = grad + decay * param.clone()  # backward needs the parameter as it was
            if momentum:
                before = self.state[param].get("momentum_buffer")
                buffer = grad.detach().clone() if before is None else momentum * before + (1 - group["dampening"]) * grad
                self.state[param]["momentum_buffer"] = buffer
                grad = grad + momentum * buffer if group["nesterov"] else buffer
            param.sub_(lr * grad)
