"""The loop that all optimizers share: parameters that have a gradient, and the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import enable_grad
from .optimizer import Optimizer, as_real

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
    # Whether complex parameters are updated as pairs of real numbers (else _update_group sees to them), and whether there are some.
    _takes_complex = True
    _holds_complex = False

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once; `closure` computes the loss again and returns it."""
        loss = None if closure is None else self._run_closure(closure)
        before = _C._set_grad_enabled(False)  # no_grad(), in a tenth of its time
        try:
            for group in self.param_groups:
                differentiable = bool(group.get("differentiable"))
                params, grads = _C._with_gradients(group["params"], differentiable or not self._reads_gradients)
                if params and differentiable:
                    if self._holds_complex:
                        raise NotImplementedError(
                            f"{type(self).__name__}: complex parameters are not updated differentiably; train a real one p, and compute with "
                            "view_as_complex(p)"
                        )
                    with enable_grad():
                        self._update_differentiably(group, params, grads)
                elif params:
                    (self._update_as_real if self._holds_complex else self._update_group)(group, params, grads)
        finally:
            _C._restore_grad_mode(before)
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._see_complex()

    add_param_group.__doc__ = Optimizer.add_param_group.__doc__

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._see_complex()

    def _see_complex(self) -> None:
        self._holds_complex = self._takes_complex and any(p.is_complex() for group in self.param_groups for p in group["params"])

    def _update_as_real(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor] | None) -> None:
        """`_update_group` of complex parameters, their gradients and states as pairs of real numbers: what PyTorch makes of them."""
        views = [as_real(p) for p in params]
        paired = [(p, view) for p, view in zip(params, views) if p is not view]
        kept: dict[int, Tensor] = {}
        for p, view in paired:
            view.grad = as_real(p.grad)
            if p in self.state:
                self.state[view] = state = dict(self.state[p])
                for name, value in state.items():
                    if isinstance(value, Tensor) and value.is_complex():
                        state[name] = _C.view_as_real(value)
                        kept[id(state[name])] = value
        try:
            self._update_group(group, views, None if grads is None else [view.grad for view in views])  # type: ignore[arg-type,misc]
        finally:
            for p, view in paired:
                if view in self.state:
                    self.state[p] = {name: kept.get(id(value), _complex_again(value, view)) for name, value in self.state.pop(view).items()}

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
                grad = _widened(grad) + _widened(param) * decay
            self._update(param, grad, state, group)

    def _update_differentiably(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """The same as a part of the history, for parameters that are no leaves. The state is made anew, as backward needs the old one.
        NotImplementedError for an option that requires gradients: SGD and Adam, which give them, define this function themselves."""
        for name, value in group.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise NotImplementedError(f"{type(self).__name__}: {name} gets no gradient; SGD, Adam and AdamW differentiate their lr and weight_decay")
        for param in params:
            state = self._state_for(param, group)
            state.update({key: value.clone() for key, value in state.items() if isinstance(value, Tensor)})
        self._update_group(group, params, grads)

    def _state_for(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, begun where there is none yet, and moved after it where it has changed its device."""
        state = self._state_on_device(param)
        if not state:
            view = as_real(param)
            state.update({name: value if view is param else _complex_again(value, view) for name, value in self._new_state(view, group).items()})
        return state


def _widened(x: Tensor) -> Tensor:
    """In float32 where it is of 16 bits, as a step is computed."""
    return x.float() if x.dtype in (_C.float16, _C.bfloat16) else x


def _complex_again(value: Any, view: Tensor) -> Any:
    """A part of a state that has a complex parameter's elements as pairs, as complex numbers."""
    paired = isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 0 and value.shape == view.shape
    return _C.view_as_complex(value.contiguous()) if paired else value


def zero_steps() -> Tensor:
    """The count of steps that a state begins with."""
    return _C.tensor(0.0, dtype=_C.float32, device="cpu")


def zeros_for(param: Tensor) -> Tensor:
    """Zeros of a parameter's shape, type and device."""
    return _C.zeros_like(param.detach())
