"""The loop that all optimizers share: parameters that have a gradient, and the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import enable_grad
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class Descent(Optimizer):
    """An optimizer that updates each parameter by its gradient and its state.

    A subclass says what the state begins with (`_new_state`) and how one parameter is updated (`_update`), or how all of a group are
    (`_update_group`).
    """

    # Whether _update decays weights in a way of its own.
    _decays_itself = False
    # Whether _update_group reads the gradients itself, in C++: `grads` is None there.
    _reads_gradients = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once; `closure` computes the loss again and returns it."""
        loss = None if closure is None else self._run_closure(closure)
        recording = _C.is_grad_enabled()
        _C._set_grad_enabled(False)  # no_grad(), in a tenth of its time
        try:
            for group in self.param_groups:
                differentiable = bool(group.get("differentiable"))
                params, grads = _C._with_gradients(group["params"], differentiable or not self._reads_gradients)
                if params and differentiable:
                    with enable_grad():
                        self._update_differentiably(group, params, grads)
                elif params:
                    self._update_group(group, params, grads)
        finally:
            _C._set_grad_enabled(recording)
        return loss

    def _stateful(self, group: dict[str, Any]) -> bool:
        return True

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """What a parameter's state begins with."""
        raise NotImplementedError

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Updates one parameter and its state; `grad` has its sign (maximize) and its weight decay."""
        raise NotImplementedError

    def _update_group(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Updates the parameters of a group that have gradients."""
        maximize, decay = group["maximize"], group.get("weight_decay", 0)
        decoupled = self._decays_itself or group.get("decoupled_weight_decay", False)
        for param, grad in zip(params, grads):
            state = self._state_for(param, group)
            state["step"] += 1
            if maximize:
                grad = -grad
            if decay != 0 and not decoupled:
                grad = grad + param * decay
            self._update(param, grad, state, group)

    def _update_differentiably(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """The same as a part of the history, for parameters that are no leaves. The state is made anew, as backward needs the old one."""
        for param in params:
            state = self._state_for(param, group)
            state.update({key: value.clone() for key, value in state.items() if isinstance(value, Tensor)})
        self._update_group(group, params, grads)

    def _state_for(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, begun where there is none yet, and moved after it where it has changed its device."""
        state = self._state_on_device(param)
        if not state:
            if param.is_complex():
                raise NotImplementedError(
                    f"{type(self).__name__}: complex parameters are not supported; train a real one p, and compute with view_as_complex(p)"
                )
            state.update(self._new_state(param, group))
        return state


def zero_steps() -> Tensor:
    """The count of steps that a state begins with."""
    return _C.tensor(0.0, dtype=_C.float32, device="cpu")


def zeros_for(param: Tensor) -> Tensor:
    """Zeros of a parameter's shape, type and device."""
    return _C.zeros_like(param.detach())
