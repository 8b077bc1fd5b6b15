"""Private names of `torch.optim.optimizer` that third-party optimizers import."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import set_grad_enabled

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a step: gradients are disabled in it unless the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(fused, foreach): always False, as naru fuses steps anyway."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices that support capturable steps."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex parameters, and their states and gradients, by real views, in place."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = _C.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = _C.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: Any = None) -> Any:
    return _C.float64 if not is_fused and _C.get_default_dtype() == _C.float64 else _C.float32


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    return lambda func: func
