"""Schedules that depend only on the epoch: steps, linear and polynomial decay."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from ._lr_base import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every `step_size` epochs.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        gamma: the factor.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(4)]
    [1.0, 0.5, 0.5, 0.25]
    """

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
    """Multiplies the rate by gamma at each of the epochs `milestones`.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        gamma: the factor.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(4)]
    [0.5, 0.5, 0.25, 0.25]
    """

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
    """The initial rate times `factor` until epoch `total_iters`, then the initial rate.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        factor: in [0, 1]; ValueError for others.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> [schedule.get_last_lr()[0]] + [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(3)]
    [0.5, 0.5, 1.0, 1.0]
    """

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
    """The initial rate times a factor that moves linearly from start_factor to end_factor in `total_iters` epochs.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        start_factor: above 0 and at most 1; end_factor: in [0, 1]. ValueError for others.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> [schedule.get_last_lr()[0]] + [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(3)]
    [0.5, 0.75, 1.0, 1.0]
    """

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
    """Multiplies the rate by gamma every epoch.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.5, 0.25, 0.125]
    """

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
    """initial rate · (1 - epoch / total_iters) ** power; 0 from epoch total_iters on.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> [round((optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2], 4) for _ in range(3)]
    [0.75, 0.5, 0.25]
    """

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
