"""Cyclic schedules: warm restarts, one cycle, many cycles."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from ._lr_base import LRScheduler, _per_group, _set_rate
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable


_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts after T_0 epochs, then after T_0 · T_mult more, and so on.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        eta_min: the lowest rate.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Advances one epoch, or to `epoch`, which may be a fraction (epoch + batch / batches)."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            cycle = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycle
        self.last_epoch = math.floor(epoch)
        self._step_count += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            _set_rate(group, rate)
        self._last_lr = self._rates()


class OneCycleLR(LRScheduler):
    """Rises from max_lr / div_factor to max_lr, then falls to the initial rate / final_div_factor. Call `step` after each batch.

    Args:
        max_lr: the highest rate: one for all groups, or a list.
        total_steps: the number of steps; alternatively, give epochs and steps_per_epoch.
        pct_start: the fraction of steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum (or beta1) moves in the opposite direction, between max_momentum and base_momentum.
        three_phase: fall to the initial rate in as many steps as the rise took, then to the final rate.
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.8117, 0.2831, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            if not isinstance(epochs, int) or epochs <= 0:
                raise ValueError(f"Expected positive integer epochs, but got {epochs}")
            if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
                raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        last = self.total_steps - 1
        # Same format as in PyTorch's checkpoints: the last step of a phase, and between which values the rate and the momentum move.
        rise = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            fall = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
            rest = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
            ends = [(pct_start * self.total_steps - 1, rise), (2 * pct_start * self.total_steps - 2, fall), (last, rest)]
        else:
            ends = [(pct_start * self.total_steps - 1, rise), (last, ("max_lr", "min_lr", "base_momentum", "max_momentum"))]
        self._schedule_phases = [dict(zip(_PHASE, (end, *names))) for end, names in ends]
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, _per_group(max_lr, optimizer, "max_lr")):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                low = _per_group(base_momentum, optimizer, "base_momentum")
                high = _per_group(max_momentum, optimizer, "max_momentum")
                for group, base, top in zip(optimizer.param_groups, low, high):
                    self._set_momentum(group, top)
                    group["max_momentum"] = top
                    group["base_momentum"] = base
        super().__init__(optimizer, last_epoch)

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end, lr_from, lr_to, momentum_from, momentum_to = (phase[key] for key in _PHASE)
                if step <= end or i == len(self._schedule_phases) - 1:
                    share = (step - start) / (end - start)
                    rates.append(self._between(group[lr_from], group[lr_to], share))
                    if self.cycle_momentum:
                        self._set_momentum(group, self._between(group[momentum_from], group[momentum_to], share))
                    break
                start = end
        return rates


class CyclicLR(LRScheduler):
    """Rises from base_lr to max_lr in step_size_up steps and falls back in step_size_down. Call `step` after each batch.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        mode: "triangular", "triangular2" (the amplitude is halved each cycle) or "exp_range" (it is multiplied by gamma ** step).
        gamma: the base for "exp_range".
        scale_fn: a function that returns the factor of the amplitude, instead of `mode`.
        scale_mode: whether scale_fn is called with the number of the "cycle" or of "iterations".
        cycle_momentum: whether momentum moves in the opposite direction.
        base_momentum: the lowest momentum.
        max_momentum: the highest momentum.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=1.0, step_size_up=2, cycle_momentum=False)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.55, 1.0, 0.55]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, _per_group(base_lr, optimizer, "base_lr")):
                _set_rate(group, low)
        self.max_lrs = _per_group(max_lr, optimizer, "max_lr")
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else ("iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _per_group(base_momentum, optimizer, "base_momentum")
            self.max_momentums = _per_group(max_momentum, optimizer, "max_momentum")
            for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
                group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _per_group(base_lr, optimizer, "base_lr")

    def scale_fn(self, x: float) -> float:
        """The factor of the amplitude for a number of the cycle or the iteration."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                momentum = high - (high - low) * height * scale
                if self.use_beta1:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return [base + (top - base) * height * scale for base, top in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """The state without functions, which can't be saved; for callable objects, their attributes."""
        state, custom = super().state_dict(), self._scale_fn_custom
        state["_scale_fn_custom"] = None if custom is None or inspect.isroutine(custom) else dict(custom.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned; the schedule keeps its function, and gets the saved attributes."""
        saved = dict(state_dict)
        attributes = saved.pop("_scale_fn_custom", None)
        super().load_state_dict(saved)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)  # type: ignore[union-attr]
