"""`ZeroRedundancyOptimizer`: each process keeps the optimizer state of a part of the parameters."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ...autograd.grad_mode import no_grad
from ...optim.optimizer import Optimizer
from .. import _groups
from .._messages import gather_object
from ..algorithms.join import Join, JoinableGroup, JoinHook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ... import Tensor

__all__ = ["ZeroRedundancyOptimizer"]


def _to_cpu(value: Any) -> Any:
    if isinstance(value, _C.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _to_cpu(each) for key, each in value.items()}
    return value


class _Steps(JoinHook):
    """A rank without batches steps with the others: gradients are theirs (DistributedDataParallel with gradient_as_bucket_view=True)."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, JoinableGroup):
    """An optimizer with sharded state: each process updates its own parameters, and sends them to the others.

    Parameters are assigned, largest first, to the process with the fewest elements so far. Gradients must be equal on all processes, as
    DistributedDataParallel makes them.

    Args:
        params: as in any optimizer.
        optimizer_class: the optimizer, such as torch.optim.Adam.
        process_group: the processes; None: all.
        parameters_as_bucket_view: ignored.
        overlap_with_ddp: must be False; naru does not support overlapping.
        defaults: options of optimizer_class.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([2.0])
    >>> optimizer = naru.distributed.optim.ZeroRedundancyOptimizer([p], optimizer_class=naru.optim.SGD, lr=0.25)
    >>> optimizer.step()
    >>> p.data
    tensor([0.5000])
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not in naru; step() after backward does the same")
        self.process_group = _groups.world() if process_group is None else process_group
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._optimizer_class, self._optimizer_defaults = optimizer_class, defaults
        self._all_states: list[dict[str, Any]] = []
        self._loads = [0] * self.world_size
        self._owner: dict[int, int] = {}
        self.optim: Any = None
        super().__init__(params, dict(defaults))
        self._make_local()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds `param_group`, and assigns its parameters in the same way as the others."""
        super().add_param_group(param_group)
        added = self.param_groups[-1]
        for p in sorted(added["params"], key=lambda p: -p.numel()):
            rank = self._loads.index(min(self._loads))
            self._owner[id(p)] = rank
            self._loads[rank] += p.numel()
        if self.optim is not None:
            mine = self._mine(added)
            self.optim.add_param_group({**self._options(added), "params": mine})
            self._fill(added, self.optim.param_groups[-1])

    def _mine(self, group: dict[str, Any], rank: int | None = None) -> list[Tensor]:
        rank = self.rank if rank is None else rank
        return [p for p in group["params"] if self._owner[id(p)] == rank]

    @staticmethod
    def _options(group: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in group.items() if key not in ("params", "param_names")}

    @staticmethod
    def _fill(group: dict[str, Any], local: dict[str, Any]) -> None:
        """Fills in the default options of the inner optimizer."""
        for key, value in local.items():
            group.setdefault(key, value)

    def _make_local(self) -> None:
        groups = [{**self._options(group), "params": self._mine(group)} for group in self.param_groups]
        # Optimizers reject an empty list of groups, but accept empty groups.
        self.optim = self._optimizer_class(groups, **self._optimizer_defaults)
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            self._fill(group, local)

    def _options_to(self, groups: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
        for group, other in zip(groups, others, strict=True):
            other.update(self._options(group))

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Updates this process's parameters, and receives the others. `closure` recomputes the loss."""
        Join.notify_join_context(self)
        self._options_to(self.param_groups, self.optim.param_groups)  # schedulers modify the outer groups
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._options_to(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    @no_grad()
    def _exchange(self) -> None:
        for rank in range(self.world_size):
            theirs = [p.detach() for group in self.param_groups for p in self._mine(group, rank)]
            if theirs:
                self.process_group._engine.broadcast(theirs, rank, False)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank does within Join that has no more batches. The model's gradients must be views of buckets (gradient_as_bucket_view=True)."""
        return _Steps(self)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers all processes' state on rank `to`, where `state_dict` can then be called. All processes must call it."""
        self._options_to(self.param_groups, self.optim.param_groups)
        states: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(_to_cpu(self.optim.state_dict()["state"]), states, group=self.process_group, group_dst=to)
        self._all_states = states or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, in the format of the plain optimizer. RuntimeError unless `consolidate_state_dict` was called before."""
        if not self._all_states:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. "
                f"Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        state = {}
        for rank, theirs in enumerate(self._all_states):
            own = [p for group in self.param_groups for p in self._mine(group, rank)]
            for i, p in enumerate(own):
                if i in theirs:
                    state[numbers[id(p)]] = theirs[i]
        groups = [{**self._options(g), "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads this process's part of a full `state_dict`, as returned by `state_dict` or the plain optimizer."""
        saved = state_dict["param_groups"]
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        local_state: dict[int, Any] = {}
        local_groups, at = [], 0
        for group, theirs in zip(self.param_groups, saved, strict=True):
            numbers = []
            for p, number in zip(group["params"], theirs["params"], strict=True):
                if self._owner[id(p)] != self.rank:
                    continue
                if number in state_dict["state"]:
                    local_state[at] = copy.deepcopy(state_dict["state"][number])
                numbers.append(at)
                at += 1
            group.update(self._options(theirs))
            local_groups.append({**self._options(theirs), "params": numbers})
        self.optim.load_state_dict({"state": local_state, "param_groups": local_groups})

    def __repr__(self) -> str:
        return f"ZeroRedundancyOptimizer of {self.optim!r} on rank {self.rank} of {self.world_size}"


__getattr__ = _missing.module_getattr(__name__)
