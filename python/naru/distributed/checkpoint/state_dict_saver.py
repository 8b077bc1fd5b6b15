"""`torch.distributed.checkpoint.state_dict_saver`: saving."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ... import _missing
from .. import _groups
from ..tensor._dispatch import substituted
from ..tensor._dtensor import DTensor, local_of, wrapped
from ._ranks import Ranks
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .stateful import Stateful

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """What async_save writes with: always a thread.

    >>> naru.distributed.checkpoint.state_dict_saver.AsyncCheckpointerType.THREAD.value
    'thread'
    """

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save returns where a stager is given.

    Args:
        staging_completion: a Future for the end of copying.
        upload_completion: a Future for the end of writing.

    >>> naru.distributed.checkpoint.state_dict_saver.AsyncSaveResponse(None, None).staging_completion is None
    True
    """

    staging_completion: Any
    upload_completion: Any


def _storage(given: Any, checkpoint_id: Any, kind: Any, what: str) -> Any:
    if given is None:
        if checkpoint_id is None:
            raise RuntimeError(f"`checkpoint_id` must be specified if {what} is None.")
        if not kind.validate_checkpoint_id(checkpoint_id):
            raise NotImplementedError(f"checkpoint_id {checkpoint_id}: naru has checkpoints in folders only")
        return kind(checkpoint_id)
    given.reset(checkpoint_id)
    return given


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def _save(state_dict: dict[str, Any], writer: Any, planner: Any, ranks: Ranks) -> Any:
    def local_plan() -> Any:
        planner.set_up_planner(state_dict=state_dict, storage_meta=writer.storage_meta(), is_coordinator=ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    plans = ranks.all_gather("plan", local_plan)

    def global_plan() -> Any:
        made, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(made), metadata

    made, metadata = ranks.on_coordinator("plan", global_plan)
    results = ranks.all_gather("write", lambda: writer.write_data(planner.finish_plan(made[ranks.rank]), planner).wait())

    def finish() -> Any:
        writer.finish(metadata, results)
        return metadata

    return ranks.on_coordinator("write", finish)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """Saves a state dict of all ranks, in PyTorch's files, and returns the checkpoint's Metadata. All ranks call it.

    Args:
        state_dict: tensors, DTensors, objects with a state_dict, and other values, in nested dicts and lists.
        checkpoint_id: the folder.
        storage_writer: what writes; a FileSystemWriter by default.
        planner: who writes what; a DefaultSavePlanner by default.
        process_group: the ranks; None: all.
        no_dist: whether this process saves on its own.
        use_collectives: ignored.

    CheckpointException, on all ranks, if one of them fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metadata = naru.distributed.checkpoint.save({"model": naru.nn.Linear(2, 1)}, checkpoint_id=folder)
    >>> sorted(metadata.state_dict_metadata)
    ['model.bias', 'model.weight']
    """
    writer = _storage(storage_writer, checkpoint_id, FileSystemWriter, "storage_writer")
    return _save(_states(state_dict), writer, planner or DefaultSavePlanner(), Ranks(process_group, no_dist))


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: Any, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None
) -> Any:
    """The old name of `save`, which warns (FutureWarning).

    Args:
        state_dict, storage_writer, process_group, no_dist, planner: as for `save`.
        coordinator_rank: the rank that plans.

    >>> import tempfile, warnings
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     writer = naru.distributed.checkpoint.FileSystemWriter(folder)
    ...     list(naru.distributed.checkpoint.save_state_dict({"a": naru.ones(1)}, writer).state_dict_metadata)
    ['a']
    """
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.", FutureWarning, stacklevel=2)
    return _save(_states(state_dict), storage_writer, planner or DefaultSavePlanner(), Ranks(process_group, no_dist, coordinator_rank))


def _copied(value: Any) -> Any:
    """The state dict with copies of its tensors on the cpu."""

    def copy(t: Any) -> Any:
        local = (local_of(t) if isinstance(t, DTensor) else t).detach().to("cpu", copy=True)
        return wrapped(local, t._spec) if isinstance(t, DTensor) else local

    return substituted(value, copy)


_async_groups: dict[Any, Any] = {}


def _own_group(group: Any) -> Any:
    """A group of the same ranks for a thread, whose collectives are not between those of the program."""
    if not _groups.is_initialized():
        return None
    base = _groups.world() if group is None else group
    if _async_groups.get(base) not in _groups._World.groups:
        _async_groups[base] = _groups.split_group(base, [list(range(base.size()))], group_desc="async_save")
    return _async_groups[base]


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """`save` by a thread, of copies that are made before it returns: a Future for the Metadata. All ranks call it.

    Args:
        state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist, use_collectives: as for `save`.
        async_checkpointer_type, async_stager: ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(naru.distributed.checkpoint.async_save({"a": naru.ones(2)}, checkpoint_id=folder).result().state_dict_metadata)
    ['a']
    """
    writer = _storage(storage_writer, checkpoint_id, FileSystemWriter, "storage_writer")
    copied = _copied(_states(state_dict))
    ranks = Ranks(None if no_dist else _own_group(process_group), no_dist)
    from concurrent.futures import Future as ThreadFuture

    made: ThreadFuture = ThreadFuture()

    def work() -> None:
        try:
            made.set_result(_save(copied, writer, planner or DefaultSavePlanner(), ranks))
        except BaseException as error:  # noqa: BLE001
            made.set_exception(error)

    threading.Thread(target=work, name="async_save").start()
    return made


__getattr__ = _missing.module_getattr(__name__)
