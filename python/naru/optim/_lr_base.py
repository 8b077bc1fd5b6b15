"""The base class of learning-rate schedules."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .optimizer import Optimizer


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use `scheduler.step()` to step "
    "the scheduler. With an epoch, the closed form is used instead of the chainable one, where there is one."
)


def _warn(text: str, stacklevel: int = 3) -> None:
    import warnings

    warnings.warn(text, UserWarning, stacklevel=stacklevel)


def _set_rate(group: dict[str, Any], value: Any) -> None:
    if hasattr(group["lr"], "fill_"):  # a learning rate given as a tensor stays that tensor
        group["lr"].fill_(value.squeeze() if hasattr(value, "squeeze") else value)
    else:
        group["lr"] = value


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _copied(value: Any) -> Any:
    """A copy of a rate or momentum, so that later writes to the user's tensor have no effect."""
    return value.clone() if hasattr(value, "clone") else value


def _watch_step(optimizer: Any) -> None:
    watched, step = weakref.ref(optimizer), optimizer.step.__func__

    @functools.wraps(step)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        mine = watched()
        mine._opt_called = True
        return step(mine, *args, **kwargs)

    optimizer.step = stepped
    optimizer._step_watched = None


class LRScheduler:
    """Base of the schedules. A subclass defines `get_lr`, which returns the rates for `last_epoch`, one for each group.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        last_epoch: the epoch to resume from; -1 starts from the beginning and stores each group's rate as "initial_lr".

    >>> class Halved(naru.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [group["initial_lr"] * 0.5**self.last_epoch for group in self.optimizer.param_groups]
    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = Halved(optimizer)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copied(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                        f">= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but "
                        f"haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training "
                        f"run (not recommended)"
                    )
        self.base_lrs: list[Any] = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps_of(optimizer)
        self._initial_step()

    @staticmethod
    def _count_steps_of(optimizer: Optimizer) -> None:
        """Makes the optimizer record that it has stepped."""
        if hasattr(optimizer, "_opt_called"):
            return
        optimizer._opt_called = False  # type: ignore[attr-defined]
        optimizer._step_watched = getattr(optimizer.step, "__func__", None)  # type: ignore[attr-defined]
        if not hasattr(optimizer, "_optimizer_step_post_hooks"):  # a wrapper of another package, without hooks: replace its step
            _watch_step(optimizer)
            return

        def note(opt: Any, args: Any, kwargs: Any) -> None:
            opt._opt_called = True
            handle.remove()  # only the first step matters

        handle = optimizer.register_step_post_hook(note)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    _is_initial = False

    def _undo(self) -> None:
        """Reverts the count of the last step, for a schedule that restarts."""
        self.last_epoch -= 1

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`; subclasses define it."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The last rates that were set: numbers, or tensors for groups whose rate is one.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> naru.optim.lr_scheduler.StepLR(optimizer, 1).get_last_lr()
        [1.0]
        """
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advances one epoch (or to `epoch`) and sets the rates.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> schedule = naru.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        first = self._step_count == 1 and not self._is_initial
        if first and getattr(self.optimizer.step, "__func__", None) is not getattr(self.optimizer, "_step_watched", None):
            _warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
                "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
            )
        elif first and not getattr(self.optimizer, "_opt_called", True):
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
            _warn(EPOCH_DEPRECATION_WARNING)
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            rates = closed() if closed is not None else self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list[Any]:
        """Copies of the groups' rates: numbers, or tensors where the rate is one."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The schedule's state, without the optimizer.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> naru.optim.lr_scheduler.StepLR(optimizer, 1).state_dict()["last_epoch"]
        0
        """
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> schedule = naru.optim.lr_scheduler.StepLR(optimizer, 1)
        >>> schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 7})
        >>> schedule.last_epoch
        7
        """
        self.__dict__.update(state_dict)


def _per_group(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(f"Expected {count} {name}, but got {len(value)}")
    return [_copied(v) for v in value]
