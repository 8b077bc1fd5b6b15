"""Adam and AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .optimizer import Optimizer, _move_state, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
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

    def _stateful(self, group: dict[str, Any]) -> bool:
        return True

    def _new_state(self, state: dict[str, Any], param: Tensor, amsgrad: bool, steps: Tensor | None = None) -> None:
        state["step"] = _C.tensor(0.0, dtype=_C.float32, device="cpu") if steps is None else steps
        state["exp_avg"] = _C.zeros_like(param.detach())
        state["exp_avg_sq"] = _C.zeros_like(param.detach())
        if amsgrad:
            state["max_exp_avg_sq"] = _C.zeros_like(param.detach())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once."""
        loss = self._run_closure(closure)
        for group in self.param_groups:
            amsgrad = group["amsgrad"]
            if group["capturable"]:
                self._step_on_device(group)
                continue
            # Parameters that have taken the same number of steps are updated together.
            lists: tuple[list[Tensor], ...] = ([], [], [], [], [])
            count = 0
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                state = self.state[param]
                if not state:
                    self._new_state(state, param, amsgrad)
                mean = state["exp_avg"]
                if mean.device != param.device:
                    _move_state(state, param.device)
                    mean = state["exp_avg"]
                steps = state["step"]
                if isinstance(steps, Tensor):
                    steps.add_(1)
                    now = int(steps.item())
                else:  # a number, in files from before PyTorch 1.12
                    now = state["step"] = steps + 1
                if now != count:
                    if count:
                        self._update(lists, count, group)
                        lists = ([], [], [], [], [])
                    count = now
                lists[0].append(param)
                lists[1].append(grad)
                lists[2].append(mean)
                lists[3].append(state["exp_avg_sq"])
                if amsgrad:
                    lists[4].append(state["max_exp_avg_sq"])
            if count:
                self._update(lists, count, group)
        return loss

    def _step_on_device(self, group: dict[str, Any]) -> None:
        """One step of a group whose steps are counted on the device, so that a graph may hold it."""
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        begun: dict[Any, Tensor] = {}
        together: dict[int, tuple[Tensor, tuple[list[Tensor], ...]]] = {}
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            device, state = param.device, self.state[param]
            if not state:
                if device not in begun:
                    begun[device] = _C.zeros((), dtype=_C.float32, device=device)
                self._new_state(state, param, amsgrad, begun[device])
            if state["exp_avg"].device != device:
                _move_state(state, device)
            steps = state["step"]
            if not isinstance(steps, Tensor) or steps.device != device:
                steps = state["step"] = _C.tensor(float(steps), dtype=_C.float32, device=device)
            lists = together.setdefault(id(steps), (steps, ([], [], [], [], [])))[1]
            for into, tensor in zip(lists, (param, grad, state["exp_avg"], state["exp_avg_sq"])):
                into.append(tensor)
            if amsgrad:
                lists[4].append(state["max_exp_avg_sq"])
        for steps, lists in together.values():
            _C._adam_step_on_device(
                *lists, steps, group["lr"], number(beta1), number(beta2), group["eps"], group["weight_decay"],
                group["decoupled_weight_decay"], amsgrad, group["maximize"],
            )  # fmt: skip

    def _update(self, lists: tuple[list[Tensor], ...], count: int, group: dict[str, Any]) -> None:
        """Step number `count` of the parameters in lists[0]."""
        beta1, beta2 = group["betas"]
        params, grads, means, squares, largest = lists
        _C._adam_step(
            params,
            grads,
            means,
            squares,
            largest,
            count,
            number(group["lr"]),
            number(beta1),
            number(beta2),
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["amsgrad"],
            group["maximize"],
        )


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
