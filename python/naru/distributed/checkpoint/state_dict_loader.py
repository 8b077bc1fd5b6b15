"""`torch.distributed.checkpoint.state_dict_loader`: loading."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _missing
from ._ranks import Ranks
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .state_dict_saver import _storage
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


def _load(state_dict: dict[str, Any], reader: Any, planner: Any, ranks: Ranks) -> None:
    def local_plan() -> Any:
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    plans = ranks.all_gather("plan", local_plan)
    made = ranks.on_coordinator("plan", lambda: reader.prepare_global_plan(planner.create_global_plan(plans)))
    ranks.all_gather("read", lambda: reader.read_data(planner.finish_plan(made[ranks.rank]), planner).wait())


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Loads a checkpoint into a state dict: tensors in place, each rank what it needs, however they were split when they were saved. All ranks call it.

    Args:
        state_dict: what to load: tensors, DTensors, objects with a load_state_dict, and other values, in nested dicts and lists.
        checkpoint_id: the folder.
        storage_reader: what reads; a FileSystemReader by default.
        planner: who reads what; a DefaultLoadPlanner by default.
        process_group: the ranks; None: all.
        no_dist: whether this process loads on its own.

    CheckpointException, on all ranks, if one of them fails: a name that the checkpoint lacks, another shape.

    >>> import tempfile
    >>> state = {"a": naru.zeros(2), "step": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = naru.distributed.checkpoint.save({"a": naru.ones(2), "step": 3}, checkpoint_id=folder)
    ...     naru.distributed.checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'a': tensor([1., 1.]), 'step': 3}
    """
    reader = _storage(storage_reader, checkpoint_id, FileSystemReader, "storage_reader")
    ranks = Ranks(process_group, no_dist)
    keys = list(state_dict)
    if not ranks.alone:
        keys = sorted({key for each in ranks.all_gather("keys", lambda: keys) for key in each}, key=str)
    states = {}
    for key in keys:
        if key in state_dict:
            value = state_dict[key]
            states[key] = value.state_dict() if isinstance(value, Stateful) else value
    _load(states, reader, planner or DefaultLoadPlanner(), ranks)
    for key in keys:
        if key in state_dict:
            if isinstance(state_dict[key], Stateful):
                state_dict[key].load_state_dict(states[key])
            else:
                state_dict[key] = states[key]


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: Any, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None
) -> None:
    """The old name of `load`, which warns (FutureWarning).

    Args:
        state_dict, storage_reader, process_group, no_dist, planner: as for `load`.
        coordinator_rank: the rank that plans.

    >>> import tempfile, warnings
    >>> state = {"a": naru.zeros(1)}
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     _ = naru.distributed.checkpoint.save({"a": naru.ones(1)}, checkpoint_id=folder)
    ...     naru.distributed.checkpoint.load_state_dict(state, naru.distributed.checkpoint.FileSystemReader(folder))
    >>> state
    {'a': tensor([1.])}
    """
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.", FutureWarning, stacklevel=2)
    _load(state_dict, storage_reader, planner or DefaultLoadPlanner(), Ranks(process_group, no_dist, coordinator_rank))


def _load_state_dict_from_keys(keys: Any = None, *, checkpoint_id: Any = None, storage_reader: Any = None, process_group: Any = None) -> dict[str, Any]:
    """All of a checkpoint, or what the keys begin, on each rank."""
    made: dict[str, Any] = {}
    reader = _storage(storage_reader, checkpoint_id, FileSystemReader, "storage_reader")
    wanted = {keys} if isinstance(keys, str) else None if keys is None else set(keys)
    _load(made, reader, _EmptyStateDictLoadPlanner(wanted), Ranks(process_group, False))
    return made


__getattr__ = _missing.module_getattr(__name__)
