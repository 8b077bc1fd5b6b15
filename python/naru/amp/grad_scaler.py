"""`torch.amp.GradScaler`: keeps small gradients from vanishing in float16, and reports which steps it skipped and why."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _loaded
from ..autograd.grad_mode import no_grad
from ._scaling import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_, times, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._C import Tensor

__all__ = ["GradScaler", "OptState", "StepOutcome"]


class OptState(Enum):
    """The stage that an optimizer has reached since the scaler's last `update`.

    >>> naru.amp.grad_scaler.OptState.READY.value
    0
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class StepOutcome(NamedTuple):
    """The outcome of a call of `GradScaler.step`: whether it `stepped`, the `scale`, and the `reason` if it did not. It is true if the
    optimizer stepped.

    >>> print(naru.amp.grad_scaler.StepOutcome(False, 8.0, "1 of 1 gradients are not finite"))
    skipped at scale 8: 1 of 1 gradients are not finite
    """

    stepped: bool
    scale: float
    reason: str  # why the step was skipped; "" if it was not

    def __bool__(self) -> bool:
        return self.stepped

    def __str__(self) -> str:
        return f"stepped at scale {self.scale:g}" if self.stepped else f"skipped at scale {self.scale:g}: {self.reason}"


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _local(grad: Any) -> Any:
    """A gradient, of a DTensor this rank's part."""
    module = _loaded.distributed_tensors()
    return grad.to_local() if module is not None and isinstance(grad, module.DTensor) else grad


class _Replicas:
    """Copies of a tensor, one on each device that needs it."""

    def __init__(self, master: Tensor) -> None:
        self._master = master
        self.copies: dict[_C.device, Tensor] = {}

    def get(self, device: _C.device) -> Tensor:
        if device not in self.copies:
            self.copies[device] = self._master.to(device, non_blocking=True, copy=True)
        return self.copies[device]


class GradScaler:
    """Scales losses, unscales gradients, skips steps whose gradients are not finite, and adapts the scale.

    Args:
        device: the kind of device; if there is none of that kind, the scaler warns and is disabled.
        init_scale: the initial scale.
        growth_factor: multiplies the scale after `growth_interval` steps in a row with finite gradients.
        backoff_factor: multiplies the scale after a skipped step.
        enabled: False makes every method behave as if there were no scaler.

    After `step(optimizer)`, which returns what PyTorch's returns, `last_step` reports what happened:

    >>> import naru as torch
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale((w * float("inf")).sum()).backward()
    >>> scaler.step(optimizer); scaler.update()
    >>> print(scaler.last_step)
    skipped at scale 8: 1 of 1 gradients are not finite; the first is of parameter 0 in group 0, shape (2,): 2 inf, 0 nan of 2
    >>> scaler.get_scale()
    4.0
    """

    _last: StepOutcome | Callable[[], StepOutcome] | None = None

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda" and not _C.is_available("cuda"):
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._device = device
        self._enabled = enabled
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        # float32 and int32, created on the device of the first loss.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    @property
    def last_step(self) -> StepOutcome | None:
        """The outcome of the last `step`, a `StepOutcome`; None before the first."""
        if callable(self._last):
            self._last = self._last()
        return self._last

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=dev)
        self._growth_tracker = _C.full((), self._init_growth_tracker, dtype=_C.int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {funcname} but {name} is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                    "earlier in the iteration."
                )
        return self._scale, self._growth_tracker  # type: ignore[return-value]

    def scale(self, outputs: Any) -> Any:
        """A tensor, or the tensors of a (nested) list, tuple or iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return times(outputs, self._scale.to(outputs.device, non_blocking=True))  # type: ignore[union-attr]
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _gradients(self, optimizer: Any) -> list[tuple[int, int, Any]]:
        """The gradients with their group and parameter indices. Sparse ones give their values, coalesced for float16, whose sums may overflow."""
        found = []
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if parameter.grad is None:
                    continue
                if parameter.grad.is_sparse:
                    if parameter.grad.dtype == _C.float16:
                        parameter.grad = parameter.grad.coalesce()
                    found.append((g, i, parameter.grad._values()))
                else:
                    found.append((g, i, _local(parameter.grad)))
        return found

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool) -> dict[_C.device, Tensor]:
        """Multiplies the gradients by `inv_scale`. Returns copies of `found_inf` by device, 1 where a gradient was not finite."""
        inverses, founds, lists = _Replicas(inv_scale), _Replicas(found_inf), defaultdict(list)
        with no_grad():
            for _, _, grad in self._gradients(optimizer):
                if not allow_fp16 and grad.dtype == _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                lists[grad.device].append(grad)
        for device, grads in lists.items():
            _amp_foreach_non_finite_check_and_unscale_(grads, founds.get(device), inverses.get(device))
        if (module := _loaded.distributed_tensors()) is not None:
            module._norms.agree(founds.copies, [p for group in optimizer.param_groups for p in group["params"]])
        return founds.copies

    def unscale_(self, optimizer: Any) -> None:
        """Divides the optimizer's gradients by the scale, and checks that they are finite. At most once between updates."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, wide(scale).reciprocal().float(), _C.zeros_like(scale), False)
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: Any) -> dict[_C.device, Tensor]:
        """Checks that the gradients are finite, and leaves them scaled."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, _C.ones_like(scale), _C.zeros_like(scale), True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[_C.device, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls `optimizer.step(*args, **kwargs)` and returns its result; skips it and returns None if a gradient is not finite. See `last_step`.

        An optimizer with `_step_supports_amp_scaling` decides by itself whether to skip. It reads the scale, and whether a gradient is not finite, from the
        tensors `optimizer.grad_scale` and `optimizer.found_inf`, or gets the scaler if its `step` accepts `grad_scaler` (a FutureWarning).
        """
        if not self._enabled:
            result = optimizer.step(*args, **kwargs)
            self._last = StepOutcome(True, 1.0, "")
            return result
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_scale(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        scale = self._scale.clone()  # type: ignore[union-attr]
        if any([found.item() for found in optimizer_state["found_inf_per_device"].values()]):
            self._last = StepOutcome(False, scale.item(), self._why(optimizer))
            return None
        result = optimizer.step(*args, **kwargs)
        self._last = lambda: StepOutcome(True, scale.item(), "")  # the scale is read from the device only when `last_step` is used
        return result

    def _step_with_scale(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """A step of an optimizer that handles the scale itself."""
        scale: Tensor = self._scale.clone()  # type: ignore[union-attr]
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
                optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
            else:
                optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
            optimizer.found_inf = sum(found.to(scale.device, non_blocking=True) for found in state["found_inf_per_device"].values())
            result = optimizer.step(*args, **kwargs)
            del optimizer.grad_scale, optimizer.found_inf
        found = list(state["found_inf_per_device"].values())

        def outcome() -> StepOutcome:
            bad = any([x.item() for x in found])
            return StepOutcome(not bad, scale.item(), "the optimizer was told that a gradient is not finite" * bad)

        self._last = outcome
        return result

    def _why(self, optimizer: Any) -> str:
        gradients = self._gradients(optimizer)
        bad = [(g, i, grad) for g, i, grad in gradients if not _C.isfinite(grad).all().item()]
        if not bad:  # the gradients were clipped or replaced since unscale_()
            return "a gradient was not finite when it was unscaled"
        g, i, grad = bad[0]
        infinite, nan = (int(_C.isinf(grad).sum().item()), int(_C.isnan(grad).sum().item()))
        return (
            f"{len(bad)} of {len(gradients)} gradients are not finite; the first is of parameter {i} in group {g}, "
            f"shape {tuple(grad.shape)}: {infinite} inf, {nan} nan of {grad.numel()}"
        )

    def update(self, new_scale: Any = None) -> None:
        """Call it once an iteration, after all steps: lowers the scale if a step was skipped, and raises it after `growth_interval` good ones."""
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, _C.Tensor):
            if new_scale.device.type != _C.device(self._device).type or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = [x.to(scale.device, non_blocking=True) for state in self._per_optimizer_states.values() for x in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _amp_update_scale_(scale, growth_tracker, sum(found), self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1.0 if disabled."""
        return (self._init_scale if self._scale is None else self._scale.item()) if self._enabled else 1.0

    def _get_growth_tracker(self) -> int:
        return (self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()) if self._enabled else 0

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor that multiplies the scale after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor that multiplies the scale after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of good steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of good steps in a row after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors and interval, and the number of good steps in a row; {} if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned; does nothing if disabled. RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
            )
        # Stored as numbers, not tensors: the loading process may not have this device.
        numbers = {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker(), "_scale": None, "_growth_tracker": None}
        return self.__dict__ | numbers | {"_last": self.last_step}
