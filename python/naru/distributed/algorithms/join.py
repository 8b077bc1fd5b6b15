"""`torch.distributed.algorithms.join`: ranks with different numbers of batches."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from ... import _C, _missing
from .. import _collectives

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank that has no more batches does for one Joinable while others go on.

    >>> naru.distributed.algorithms.join.JoinHook().main_hook() is None
    True
    """

    def main_hook(self) -> None:
        """Takes part in the communication of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when all ranks have finished. `is_last_joiner`: whether this rank was among the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


class Joinable(abc.ABC):
    """An object that communicates in each iteration, for `Join`. It calls `Join.notify_join_context(self)` before it does.

    >>> issubclass(naru.nn.parallel.DistributedDataParallel, naru.distributed.algorithms.join.Joinable)
    True
    """

    _join_config = _JoinConfig(False, False, False)
    _active_ranks = 0  # how many ranks go on in this iteration, for main_hook

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object, with the options of Join."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device of what Join itself communicates."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The ranks of what Join itself communicates."""


class JoinableGroup(Joinable):
    """A Joinable whose ranks are those of its `process_group`; Join counts them on the cpu."""

    process_group: Any

    @property
    def join_device(self) -> Any:
        """The cpu: where Join counts ranks."""
        return _C.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group


class Join:
    """Within it, ranks may have different numbers of batches: those that have finished take part in the others' communication.

    Args:
        joinables: the objects that communicate: DistributedDataParallel, ZeroRedundancyOptimizer, or others; of one process group.
        enable: False disables it.
        throw_on_early_termination: whether to raise RuntimeError on all ranks when the first one has finished.
        kwargs: options of the objects' join_hook.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> model = naru.nn.parallel.DistributedDataParallel(naru.nn.Linear(1, 1))
    >>> with naru.distributed.algorithms.Join([model]):
    ...     model(naru.ones(1, 1)).sum().backward()
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = [joinable.join_process_group for joinable in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throws, self._group = joinables, enable, throw_on_early_termination, groups[0]
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            if self._enable and kind is None:
                self._follow()
        finally:
            for joinable in self._joinables:
                joinable._join_config = Joinable._join_config

    def _follow(self) -> None:
        last = True
        while active := _count(self._group, self._joinables[0].join_device, False):
            if self._throws:
                _raise()
            for joinable in self._joinables:
                joinable._active_ranks = active
            for hook in self._hooks:
                hook.main_hook()
            last = False
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> int | None:
        """Says that this rank goes on; returns how many do, within a Join whose first object it is. (PyTorch returns a Work.)"""
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        active = _count(joinable.join_process_group, joinable.join_device, True)
        if config.throw_on_early_termination and active < joinable.join_process_group.size():
            _raise()
        return active


def _count(group: Any, device: Any, here: bool) -> int:
    """How many ranks go on."""
    number = _C.tensor([int(here)], dtype=_C.int64, device=device)
    _collectives.all_reduce(number, group=group)
    return int(number.item())


def _raise() -> None:
    raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")


__getattr__ = _missing.module_getattr(__name__)
