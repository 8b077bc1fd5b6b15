"""`torch.amp.GradScaler`: keeps small gradients from vanishing in float16, and says which steps it took and which not."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from .. import _C
from ..autograd.grad_mode import no_grad

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class StepOutcome(NamedTuple):
    """What became of a call of `GradScaler.step`: whether it `stepped`, at what `scale`, and the `reason` why not. It counts as True where the
    optimizer stepped.

    >>> print(naru.amp.grad_scaler.StepOutcome(False, 8.0, "1 of 1 gradients are not finite"))
    skipped at scale 8: 1 of 1 gradients are not finite
    """

    stepped: bool
    scale: float
    reason: str  # why the step was skipped; "" where it was not

    def __bool__(self) -> bool:
        return self.stepped

    def __str__(self) -> str:
        return f"stepped at scale {self.scale:g}" if self.stepped else f"skipped at scale {self.scale:g}: {self.reason}"


class _Progress:
    """How far an optimizer is since the last `update`."""

    def __init__(self) -> None:
        self.stage = _READY
        self.found: dict[Any, Any] = {}  # device -> a tensor that is finite where all gradients there are
        self.bad: bool | None = None  # `found`, once it was read

    def has_found(self) -> bool:
        if self.bad is None:
            self.bad = any(not math.isfinite(total.item()) for total in self.found.values())
        return self.bad


class GradScaler:
    """Scales losses, unscales gradients, skips steps whose gradients are not finite, and adapts the scale.

    Args:
        device: the kind of device; without one of that kind it warns and is off.
        init_scale: the scale at first.
        growth_factor: what the scale is multiplied by after `growth_interval` steps without a gradient that is not finite.
        backoff_factor: what it is multiplied by after a step that was skipped.
        enabled: False makes every method do what is done without a scaler.

    After `step(optimizer)`, which returns what PyTorch's does, `last_step` tells what happened:

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

    last_step: StepOutcome | None = None

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
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._used = False
        self._progress: dict[int, _Progress] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or the tensors of a (nested) list, tuple or iterable, times the scale."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _need_scale(self, what: str) -> None:
        if not self._used:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                "earlier in the iteration."
            )

    def _gradients(self, optimizer: Any) -> list[tuple[int, int, Any]]:
        return [
            (g, i, parameter.grad)
            for g, group in enumerate(optimizer.param_groups)
            for i, parameter in enumerate(group["params"])
            if parameter.grad is not None
        ]

    def unscale_(self, optimizer: Any) -> None:
        """Divides the optimizer's gradients by the scale, and looks for those that are not finite. Once between updates."""
        if not self._enabled:
            return
        self._need_scale("unscale_")
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        gradients = self._gradients(optimizer)
        if any(grad.dtype == _C.float16 for _, _, grad in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with no_grad():
            for _, _, grad in gradients:
                grad.mul_(1.0 / self._scale)
                # 0 * x is 0 for every finite x, and nan for every other.
                total = (grad * 0).sum()
                progress.found[grad.device] = progress.found[grad.device] + total if grad.device in progress.found else total
        progress.stage = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)`, and what it returns; or nothing and None, where a gradient is not finite. See `last_step`."""
        if not self._enabled:
            result = optimizer.step(*args, **kwargs)
            self.last_step = StepOutcome(True, 1.0, "")
            return result
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_scale("step")
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage == _READY:
            self.unscale_(optimizer)
        if not progress.found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        progress.stage = _STEPPED
        if progress.has_found():
            self.last_step = StepOutcome(False, self._scale, self._why(optimizer))
            return None
        result = optimizer.step(*args, **kwargs)
        self.last_step = StepOutcome(True, self._scale, "")
        return result

    def _why(self, optimizer: Any) -> str:
        gradients = self._gradients(optimizer)
        bad = [(g, i, grad) for g, i, grad in gradients if not _C.isfinite(grad).all().item()]
        if not bad:  # clipped or replaced since unscale_()
            return "a gradient was not finite when it was unscaled"
        g, i, grad = bad[0]
        infinite, nan = (int(_C.isinf(grad).sum().item()), int(_C.isnan(grad).sum().item()))
        return (
            f"{len(bad)} of {len(gradients)} gradients are not finite; the first is of parameter {i} in group {g}, "
            f"shape {tuple(grad.shape)}: {infinite} inf, {nan} nan of {grad.numel()}"
        )

    def update(self, new_scale: Any = None) -> None:
        """Once an iteration, after all steps: a smaller scale if one was skipped, a greater one after `growth_interval` good ones."""
        if not self._enabled:
            return
        self._need_scale("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError("new_scale should be a float or a 1-element tensor with requires_grad=False.")
            self._scale = float(new_scale)
        else:
            found = [progress for progress in self._progress.values() if progress.found]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any([progress.has_found() for progress in found]):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    self._scale = grown if grown < 2.0**128 else self._scale  # float32's range
                    self._growth_tracker = 0
        self._progress = {}

    def get_scale(self) -> float:
        """The scale; 1.0 where disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many good steps in a row make the scale grow."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors and interval, and the number of good steps in a row; {} where disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back a state from `state_dict`; does nothing where disabled. RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._scale = float(state_dict["scale"])
        self._growth_factor = float(state_dict["growth_factor"])
        self._backoff_factor = float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])
        self._growth_tracker = int(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        if self._progress:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
            )
        return self.__dict__.copy()
