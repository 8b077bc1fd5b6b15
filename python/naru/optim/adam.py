"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Adam", "AdamW"]


class Adam(Descent):
    """Steps scaled by running means of the gradient (m) and of its square (v).

    At step t:  p -= lr · m̂ / (sqrt(v̂) + eps)  with m̂ = m / (1 - beta1ᵗ), v̂ = v / (1 - beta2ᵗ). weight_decay adds
    weight_decay · p to the gradient, or with decoupled_weight_decay shrinks p itself (AdamW). amsgrad takes the largest v
    so far.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Adam([p], lr=0.1).step()
    >>> p.data
    tensor([0.9000])
    """

    _may_be_differentiable = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        for i in (0, 1):
            check_option(f"beta parameter at index {i}", betas[i], 0.0 <= number(betas[i]) < 1.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": zero_steps(), "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_for(param)
        return state

    def _update_group(self, group: dict[str, Any], pairs: list[tuple[Tensor, Tensor]]) -> None:
        if group["capturable"]:
            self._update_on_device(group, pairs)
            return
        # Parameters that have taken the same number of steps are updated together.
        lists = _Lists(group["amsgrad"])
        count = 0
        for param, grad in pairs:
            state = self.state[param]
            if not state or state["exp_avg"].device != param.device:
                state = self._state_for(param, group)
            steps = state["step"]
            if isinstance(steps, Tensor):
                now = int(steps.add_(1).item())
            else:  # a number, in files from before PyTorch 1.12
                state["step"] = steps = steps + 1
                now = int(steps)
            if now != count:
                if count:
                    self._update_together(lists, count, group)
                    lists = _Lists(group["amsgrad"])
                count = now
            lists.append(param, grad, state)
        self._update_together(lists, count, group)

    def _update_on_device(self, group: dict[str, Any], pairs: list[tuple[Tensor, Tensor]]) -> None:
        """One step of a group whose steps are counted on the device, so that a graph may hold it."""
        beta1, beta2 = group["betas"]
        begun: dict[Any, Tensor] = {}
        together: dict[int, tuple[Tensor, _Lists]] = {}
        for param, grad in pairs:
            device, new = param.device, not self.state[param]
            state = self._state_for(param, group)
            if new:
                if device not in begun:
                    begun[device] = _C.zeros((), dtype=_C.float32, device=device)
                state["step"] = begun[device]
            steps = state["step"]
            if not isinstance(steps, Tensor) or steps.device != device:
                steps = state["step"] = _C.tensor(float(steps), dtype=_C.float32, device=device)
            together.setdefault(id(steps), (steps, _Lists(group["amsgrad"])))[1].append(param, grad, state)
        for steps, lists in together.values():
            _C._adam_step_on_device(
                *lists.all(), steps, group["lr"], number(beta1), number(beta2), group["eps"], group["weight_decay"],
                group["decoupled_weight_decay"], group["amsgrad"], group["maximize"],
            )  # fmt: skip

    def _update_differentiably(self, group: dict[str, Any], pairs: list[tuple[Tensor, Tensor]]) -> None:
        beta1, beta2 = (number(b) for b in group["betas"])
        lr, decay = number(group["lr"]), group["weight_decay"]
        for param, grad in pairs:
            if group["maximize"]:
                grad = -grad
            state = self._state_for(param, group)
            state["step"] = state["step"] + 1
            count = float(state["step"])
            if decay and group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            elif decay:
                grad = grad + decay * param
            mean = state["exp_avg"] = beta1 * state["exp_avg"] + (1 - beta1) * grad
            square = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"] = _C.maximum(state["max_exp_avg_sq"], square)
            root = (square / (1 - beta2**count)).sqrt() + group["eps"]
            param.sub_(lr / (1 - beta1**count) * mean / root)

    def _update_together(self, lists: _Lists, count: int, group: dict[str, Any]) -> None:
        """Step number `count` of the parameters of the lists."""
        beta1, beta2 = group["betas"]
        _C._adam_step(
            *lists.all(), count, number(group["lr"]), number(beta1), number(beta2), group["eps"], group["weight_decay"],
            group["decoupled_weight_decay"], group["amsgrad"], group["maximize"],
        )  # fmt: skip


class _Lists:
    """Parameters that are updated together: their gradients and their state, a list of each."""

    def __init__(self, amsgrad: bool) -> None:
        self._lists: tuple[list[Tensor], ...] = ([], [], [], [], [])
        self._amsgrad = amsgrad

    def append(self, param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        params, grads, means, squares, largest = self._lists
        params.append(param)
        grads.append(grad)
        means.append(state["exp_avg"])
        squares.append(state["exp_avg_sq"])
        if self._amsgrad:
            largest.append(state["max_exp_avg_sq"])

    def all(self) -> tuple[list[Tensor], ...]:
        """Parameters, gradients, means, squares, largest squares (none without amsgrad)."""
        return self._lists


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p -= lr · weight_decay · p."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
