"""`torch.optim.swa_utils`: averages of a model's parameters during training, and the learning-rate schedule for them."""

from __future__ import annotations

import copy
import itertools
import math
from typing import TYPE_CHECKING, Any, Literal

from .. import _C, _missing
from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm
from ._lr_base import LRScheduler, _per_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .optimizer import Optimizer

Tensor = _C.Tensor
PARAM_LIST = tuple[Tensor, ...] | list[Tensor]

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _in_place(average: Callable[[Tensor, Tensor, Any], Tensor]) -> Callable[[Any, Any, Any], None]:
    """Lifts an averaging function to lists of tensors, which it updates in place."""

    def update(averaged: PARAM_LIST, current: PARAM_LIST, count: Any) -> None:
        with _C.no_grad():
            for old, new in zip(averaged, current, strict=True):
                old.copy_(average(old, new, count))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The function (average, value, count) -> decay · average + (1 - decay) · value. ValueError unless decay is in [0, 1].

    >>> naru.optim.swa_utils.get_ema_avg_fn(0.75)(naru.tensor(4.0), naru.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with _C.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[PARAM_LIST, PARAM_LIST, Any], None]:
    """Like `get_ema_avg_fn`, for lists of tensors, and in place. ValueError unless decay is in [0, 1].

    >>> averages = [naru.tensor(4.0)]
    >>> naru.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [naru.tensor(8.0)], 1)
    >>> averages
    [tensor(5.)]
    """
    return _in_place(get_ema_avg_fn(decay))


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The function (average, value, count) -> the mean of count + 1 values, where `average` is the mean of the first `count`.

    >>> naru.optim.swa_utils.get_swa_avg_fn()(naru.tensor(4.0), naru.tensor(8.0), naru.tensor(3))
    tensor(5.)
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with _C.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn() -> Callable[[PARAM_LIST, PARAM_LIST, Any], None]:
    """Like `get_swa_avg_fn`, for lists of tensors, and in place.

    >>> averages = [naru.tensor(4.0)]
    >>> naru.optim.swa_utils.get_swa_multi_avg_fn()(averages, [naru.tensor(8.0)], naru.tensor(3))
    >>> averages
    [tensor(5.)]
    """
    return _in_place(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model (`module`) whose parameters are running averages of the model's.

    Args:
        model: the model that is copied.
        device: the device of the copy; the model's device if None.
        avg_fn: the function (average, value, count) that returns the next average; equal weights if None.
        multi_avg_fn: a function of lists that updates the averages in place; not together with avg_fn (AssertionError).
        use_buffers: whether buffers are averaged, too; otherwise they are copied from the model.

    >>> import naru
    >>> model = naru.nn.Linear(1, 1, bias=False)
    >>> average = naru.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = naru.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (3.0, 3)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[PARAM_LIST, PARAM_LIST, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the averaged model."""
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return [t.detach() for t in itertools.chain(model.parameters(), buffers)]

    def update_parameters(self, model: Module) -> None:
        """Updates the averages with the model's current parameters; the first call copies them."""
        own = self._tensors(self.module)
        new = [value.to(average.device) for average, value in zip(own, self._tensors(model))]
        count = int(self.n_averaged.item())
        with _C.no_grad():
            if count == 0:
                for average, value in zip(own, new):
                    average.copy_(value)
            elif self.avg_fn is None:
                update = self.multi_avg_fn or get_swa_multi_avg_fn()
                for kind in dict.fromkeys((t.device, t.dtype) for t in own):
                    pairs = [(average, value) for average, value in zip(own, new) if (average.device, average.dtype) == kind]
                    update([a for a, _ in pairs], [v for _, v in pairs], self.n_averaged.to(kind[0]))
            else:
                for average, value in zip(own, new):
                    average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
            if not self.use_buffers:
                for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    average.detach().copy_(value.detach().to(average.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running means and variances of the model's batch norms, in one pass over the batches of `loader`.

    Args:
        loader: batches, or lists whose first element is one.
        model: the model, called with each batch in training mode; its mode is restored.
        device: the device that batches are moved to first.

    >>> norm = naru.nn.BatchNorm1d(1)
    >>> naru.optim.swa_utils.update_bn([naru.tensor([[1.0], [3.0]]), naru.tensor([[5.0], [7.0]])], norm)
    >>> norm.running_mean
    tensor([4.])
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    with _C.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rates of all groups to swa_lr, and keeps them there.

    Args:
        optimizer: the optimizer whose groups' "lr" is set.
        swa_lr: the final rate: one for all groups, or a list of one for each.
        anneal_epochs: the number of epochs until then.
        anneal_strategy: "cos" or "linear". ValueError for others.
        last_epoch: the epoch to resume from; -1 starts from the beginning.

    >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
    >>> schedule = naru.optim.swa_utils.SWALR(optimizer, swa_lr=0.0, anneal_epochs=4, anneal_strategy="linear")
    >>> [(optimizer.step(), schedule.step(), schedule.get_last_lr()[0])[2] for _ in range(5)]
    [0.75, 0.5, 0.25, 0.0, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1
    ) -> None:
        if isinstance(swa_lr, (list, tuple)) and len(swa_lr) != len(optimizer.param_groups):
            raise ValueError(
                "swa_lr must have the same length as optimizer.param_groups: "
                f"swa_lr has {len(swa_lr)}, optimizer.param_groups has {len(optimizer.param_groups)}"
            )
        for rate, group in zip(_per_group(swa_lr, optimizer, "swa_lr"), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """The fraction of the distance to swa_lr, for a fraction of the epochs."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        """The rates for the current epoch."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, at / max(1, self.anneal_epochs)))) for at in (step - 1, step))
        rates = []
        for group, rate in zip(self.optimizer.param_groups, self._rates()):
            goal = group["swa_lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


__getattr__ = _missing.module_getattr(__name__)
