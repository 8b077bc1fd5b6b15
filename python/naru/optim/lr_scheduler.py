"""Learning-rate schedules: `scheduler.step()` after each epoch (or batch) sets the rates of the optimizer's groups."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
    "SequentialLR", "ChainedScheduler", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "PolynomialLR", "OneCycleLR",
    "CyclicLR", "ReduceLROnPlateau",
]  # fmt: skip


def _warn(text: str, stacklevel: int = 3) -> None:
    import warnings

    warnings.warn(text, UserWarning, stacklevel=stacklevel)


def _set_rate(group: dict[str, Any], value: Any) -> None:
    if hasattr(group["lr"], "fill_"):  # a rate given as a tensor stays one
        group["lr"].fill_(value)
    else:
        group["lr"] = value


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


class LRScheduler:
    """Base of the schedules. A subclass defines `get_lr`, the rates for `last_epoch`, in order of the groups.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to go on from; -1 starts anew and notes each group's rate as "initial_lr".
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _number(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                        f">= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but "
                        f"haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training "
                        f"run (not recommended)"
                    )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps_of(optimizer)
        self._initial_step()

    @staticmethod
    def _count_steps_of(optimizer: Optimizer) -> None:
        """Lets the schedule see whether the optimizer has stepped."""
        if hasattr(optimizer, "_opt_called"):
            return
        optimizer._opt_called = False  # type: ignore[attr-defined]

        def note(opt: Any, args: Any, kwargs: Any) -> None:
            opt._opt_called = True
            handle.remove()  # once is enough

        handle = optimizer.register_step_post_hook(note)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    _is_initial = False

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`; for subclasses."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes one epoch on (or to `epoch`) and sets the rates."""
        if self._step_count == 1 and not self._is_initial and not getattr(self.optimizer, "_opt_called", True):
            _warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should "
                "call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will "
                "result in PyTorch skipping the first value of the learning rate schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            rates = closed() if closed is not None else self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set_rate(group, rate)
        self._last_lr = [_number(group["lr"]) for group in self.optimizer.param_groups]

    def _rates(self) -> list[Any]:
        return [_number(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All of the schedule's state but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """initial rate · lr_lambda(epoch); one function for all groups or one for each.

    >>> import naru
    >>> opt = naru.optim.SGD([naru.nn.Parameter(naru.zeros(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5 ** epoch)
    >>> opt.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(lr_lambda, optimizer, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state without functions; callable objects are kept by their attributes."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if not hasattr(fn, "__dict__") or hasattr(fn, "__code__") else dict(fn.__dict__) for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        saved = dict(state_dict)
        for fn, attributes in zip(self.lr_lambdas, saved.pop("lr_lambdas")):
            if attributes is not None:
                fn.__dict__.update(attributes)
        self.__dict__.update(saved)

    def get_lr(self) -> list[Any]:
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(LambdaLR):
    """Each epoch's rate is the last one's times lr_lambda(epoch)."""

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        return [rate * fn(self.last_epoch) for fn, rate in zip(self.lr_lambdas, self._rates())]


def _per_group(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"Expected {count} {name}, but got {len(value)}")
    return list(value)


class StepLR(LRScheduler):
    """The rate times gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return self._rates()
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The initial rate times `factor` until epoch `total_iters`, then the initial rate."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [rate * (1.0 / self.factor) for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        scale = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * scale for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes from start_factor to end_factor in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        rates = self._rates()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in rates]
        if self.last_epoch > self.total_iters:
            return rates
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [rate * (1.0 + change / before) for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """initial rate · (1 - epoch / total_iters) ** power, 0 from epoch total_iters on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        rates = self._rates()
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return rates
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (now / before) ** self.power for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial rate down to eta_min in T_max epochs, along a cosine, and up again.

    eta_min + (initial rate - eta_min) · (1 + cos(π · epoch / T_max)) / 2
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        rates = self._rates()
        if self.last_epoch == 0:
            return rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._closed()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # Leaving the lowest point, where the ratio of neighbouring rates is 0 / 0.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, rates)]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _closed(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    _get_closed_form_lr = _closed


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0 epochs, then after T_0 · T_mult, and so on."""

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
        """Goes one epoch on, or to `epoch`, which may be a fraction (epoch + batch / batches)."""
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
    """Up from max_lr / div_factor to max_lr, then down to the start rate / final_div_factor; a step for each batch.

    Args:
        max_lr: the highest rate, one or one for each group.
        total_steps: the number of steps, or epochs and steps_per_epoch.
        pct_start: the share of steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum (or beta1) moves the other way, between base_momentum and max_momentum.
        three_phase: come down as long as up, then to the end rate.
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
        self._anneal = anneal_strategy
        last = self.total_steps - 1
        # Each phase: its last step, and what the rate and the momentum go from and to.
        if three_phase:
            self._phases = [
                (float(pct_start * self.total_steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (float(2 * pct_start * self.total_steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._phases = [
                (float(pct_start * self.total_steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (last, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
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
        if self._anneal == "linear":
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
            for i, (end, lr_from, lr_to, momentum_from, momentum_to) in enumerate(self._phases):
                if step <= end or i == len(self._phases) - 1:
                    share = (step - start) / (end - start)
                    rates.append(self._between(group[lr_from], group[lr_to], share))
                    if self.cycle_momentum:
                        self._set_momentum(group, self._between(group[momentum_from], group[momentum_to], share))
                    break
                start = end
        return rates


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up in step_size_up steps and down in step_size_down; a step for each batch."""

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
        self._scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else ("iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _per_group(base_momentum, optimizer, "base_momentum")
            self.max_momentums = _per_group(max_momentum, optimizer, "max_momentum")
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _per_group(base_lr, optimizer, "base_lr")

    def scale_fn(self, x: float) -> float:
        """The factor of the amplitude, for a cycle's or an iteration's number."""
        if self._scale_fn is not None:
            return self._scale_fn(x)
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


class SequentialLR(LRScheduler):
    """One schedule after the other; the next takes over at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self.optimizer = optimizer
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Making the schedules has changed the rates: back to the start, then the first one's first step.
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes one epoch on."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state, with that of each schedule."""
        state = {k: v for k, v in LRScheduler.state_dict(self).items() if k != "_schedulers"}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        saved = dict(state_dict)
        for scheduler, state in zip(self._schedulers, saved.pop("_schedulers")):
            scheduler.load_state_dict(state)
        self.__dict__.update(saved)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each step applies all of them."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        self.optimizer = optimizer or schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer for s in schedulers):
            raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer")
        self._schedulers = schedulers
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Steps each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when a measure has not improved for more than `patience` epochs.

    Args:
        mode: "min" (the measure should fall) or "max".
        threshold: an improvement counts if it exceeds this, relative ("rel") or absolute ("abs").
        cooldown: epochs to wait after a reduction. min_lr: lower bounds. eps: smaller changes are not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _per_group(min_lr, optimizer, "min_lrs")
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.mode_worse = self.best
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` improves on `best` by more than the threshold."""
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the epoch's measure and reduces the rates where it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs):
                old = _number(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    _set_rate(group, new)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()
