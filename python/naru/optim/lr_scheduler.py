"""Learning-rate schedules: `scheduler.step()` after each epoch (or batch) sets the learning rates of the optimizer's groups."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from .. import _missing
from ._lr_base import EPOCH_DEPRECATION_WARNING, LRScheduler, _number, _per_group, _set_rate
from ._lr_cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._lr_steps import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
    "SequentialLR", "ChainedScheduler", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "PolynomialLR", "OneCycleLR",
    "CyclicLR", "ReduceLROnPlateau",
]  # fmt: skip

_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """initial rate · lr_lambda(epoch); lr_lambda is one function for all groups or a list of one for each.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

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
        """The state without functions; for callable objects, their attributes."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if not hasattr(fn, "__dict__") or hasattr(fn, "__code__") else dict(fn.__dict__) for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned."""
        saved = dict(state_dict)
        for fn, attributes in zip(self.lr_lambdas, saved.pop("lr_lambdas")):
            if attributes is not None:
                fn.__dict__.update(attributes)
        self.__dict__.update(saved)

    def get_lr(self) -> list[Any]:
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(LambdaLR):
    """Multiplies the previous epoch's rate by lr_lambda(epoch).

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        lr_lambda: a function of the epoch, or a list of one for each group.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(3)]
    [0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._rates()
        return [rate * fn(self.last_epoch) for fn, rate in zip(self.lr_lambdas, self._rates())]


class CosineAnnealingLR(LRScheduler):
    """Follows a cosine from the initial rate down to eta_min in T_max epochs, and up again.

    eta_min + (initial rate - eta_min) · (1 + cos(π · epoch / T_max)) / 2

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.5, 0.0, 0.5]
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
            # At the lowest point the ratio of consecutive rates is 0 / 0.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, rates)]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _closed(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    _get_closed_form_lr = _closed


class SequentialLR(LRScheduler):
    """Runs schedules one after another; the next one takes over at each of the epochs `milestones`.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        schedulers: schedules of that optimizer, one more than milestones.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> warm = naru.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
    >>> rest = naru.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = naru.optim.lr_scheduler.SequentialLR(optimizer, [warm, rest], milestones=[2])
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.1, 1.0, 0.5]
    """

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
        self.last_epoch = 0
        # Creating the schedules has changed the rates. Restore the initial rates, then do the first schedule's initial step.
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for scheduler in schedulers:
            scheduler._undo()
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()
        self._go_on(last_epoch)

    def _go_on(self, last_epoch: int) -> None:
        """Advances the schedules to `last_epoch` by stepping through all epochs, which sets the active schedule, its epoch and its rate."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suppress warnings that the optimizer has not stepped
            for _ in range(last_epoch + 1):
                self.step()

    def _undo(self) -> None:
        for scheduler in self._schedulers:
            scheduler._undo()

    def step(self) -> None:  # type: ignore[override]
        """Advances one epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state, including that of each schedule."""
        state = {k: v for k, v in LRScheduler.state_dict(self).items() if k != "_schedulers"}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned."""
        saved = dict(state_dict)
        for scheduler, state in zip(self._schedulers, saved.pop("_schedulers")):
            scheduler.load_state_dict(state)
        self.__dict__.update(saved)


class ChainedScheduler(LRScheduler):
    """Applies several schedules at each step.

    Args:
        schedulers: schedules of one optimizer (ValueError for none, and for several optimizers).
        optimizer: the schedules' optimizer; that of the first if None.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> halved = naru.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> tenth = naru.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = naru.optim.lr_scheduler.ChainedScheduler([halved, tenth])
    >>> [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(3)]
    [0.5, 0.125, 0.0625]
    """

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

    _undo = SequentialLR._undo
    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not improved for more than `patience` epochs.

    Args:
        mode: "min" (the metric should decrease) or "max".
        threshold: an improvement counts if it exceeds this, relative ("rel") or absolute ("abs").
        cooldown: epochs to wait after a reduction. min_lr: lower bounds. eps: smaller changes are ignored.
        optimizer: the optimizer whose groups' "lr" is set.
        threshold_mode: "rel" or "abs".

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> schedule.step(1.0); schedule.step(2.0)
    >>> optimizer.param_groups[0]['lr']
    0.1
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
        """Whether the last reduction was less than `cooldown` epochs ago."""
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
        """Records the epoch's metric, and reduces the rates if needed.

        Args:
            metrics: the metric, a number or a tensor of one element.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> schedule = naru.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        >>> [(schedule.step(loss), schedule.get_last_lr()[0])[1] for loss in (3.0, 2.0, 2.0)]
        [1.0, 1.0, 0.5]
        """
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
            self._fit_bounds()
            for group, low in zip(self.optimizer.param_groups, self.min_lrs):
                old = _number(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    _set_rate(group, new)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _fit_bounds(self) -> None:
        """Extends `min_lrs` to groups that were added to the optimizer, if there is one bound for all."""
        count = len(self.optimizer.param_groups)
        if count == len(self.min_lrs):
            return
        if self.default_min_lr is None:
            raise RuntimeError(
                f"The number of param groups in the `optimizer` ({count}) differs from when `ReduceLROnPlateau` was initialized "
                f"({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field to "
                "match the length of the `optimizer` param groups."
            )
        self.min_lrs = [self.default_min_lr] * count

__getattr__ = _missing.module_getattr(__name__)
