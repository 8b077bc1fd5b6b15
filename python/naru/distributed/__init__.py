"""`torch.distributed`: several processes, on one host or several, that compute together.

The engine is naru's own, in C++: shared memory between processes of one host, MPI between hosts. It is called "gloo", and is used
for every backend name, but for tensors on cuda devices with "nccl". Calls of collectives are checked for consistency between ranks, and all
ranks report a rank that dies.
"""

from __future__ import annotations

import enum
import os
from typing import Any

from .. import _C, _missing
from .._buckets import GradBucket
from . import _groups, _launchers
from ._collectives import (
    Work,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    gather_into_tensor,
    gather_single,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from ._groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    _set_pg_timeout,  # noqa: F401
    default_pg_timeout,
    destroy_process_group,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    set_timeout,
    split_group,
)
from ._messages import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    get_rank,
    get_world_size,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from ._shrink import SHRINK_ABORT, SHRINK_DEFAULT, shrink_group
from ._stores import FileStore, HashStore, PrefixStore, QueueEmptyError, Store, TCPStore
from .rendezvous import register_rendezvous_handler, rendezvous

__all__ = [
    "Backend", "DebugLevel", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "GradBucket", "GroupMember", "HashStore",
    "P2POp", "PrefixStore", "QueueEmptyError", "ProcessGroup", "ReduceOp", "SHRINK_ABORT", "SHRINK_DEFAULT", "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced",
    "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_into_tensor", "gather_object", "gather_single", "get_backend",
    "get_backend_config", "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv", "is_available", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
    "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "set_debug_level", "set_timeout", "shrink_group", "split_group", "supports_complex",
]  # fmt: skip

DistError, DistBackendError, DistNetworkError, DistStoreError = _C._DistError, _C._DistBackendError, _C._DistNetworkError, _C._DistStoreError
reduce_op = ReduceOp

# Classes that programs compare with, or use in annotations.
_CLASSES = frozenset("ProcessGroupGloo ProcessGroupNCCL".split())
_MODULES = frozenset("algorithms checkpoint device_mesh elastic fsdp launch nn optim run tensor".split())


def is_available() -> bool:
    """Whether naru was built with process groups and stores: True on Linux, False on macOS and Windows.

    >>> is_available()
    True
    """
    return hasattr(_C, "_ProcessGroup")


def is_gloo_available() -> bool:
    """Whether "gloo", naru's own engine, is available: True where process groups are.

    >>> is_gloo_available()
    True
    """
    return is_available()


def is_mpi_available() -> bool:
    """Whether there is a library of MPI with the standard ABI, for the backend "mpi". It is opened for this.

    >>> naru.distributed.is_mpi_available() in (True, False)
    True
    """
    return is_available() and bool(_C._mpi_path())


def is_nccl_available() -> bool:
    """Whether there are cuda devices and NVIDIA's library NCCL, for the backend "nccl". It is opened for this.

    >>> naru.distributed.is_nccl_available() in (True, False)
    True
    """
    return is_available() and not _C._device_library_obstacle()


def _never() -> bool:
    """Whether the backend is available: False.

    >>> naru.distributed.is_ucc_available()
    False
    """
    return False


is_ucc_available = is_xccl_available = _never


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process.

    >>> is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether the `backend` is available: "gloo" and "fake" are, "mpi" and "nccl" where there is a library.

    >>> is_backend_available("gloo"), is_backend_available("ucc")
    (True, False)
    """
    asked = {"mpi": is_mpi_available, "nccl": is_nccl_available}
    return backend.lower() in ("gloo", "fake") or asked.get(backend.lower(), _never)()


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether `reduceOp` can reduce complex numbers.

    >>> supports_complex(ReduceOp.SUM), supports_complex(ReduceOp.MAX)
    (True, False)
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)


class DebugLevel(enum.Enum):
    """How much is checked. naru's engine always compares what ranks call; for NCCL the variable TORCH_DISTRIBUTED_DEBUG=DETAIL asks for it.

    >>> DebugLevel.OFF.name
    'OFF'
    """

    OFF, INFO, DETAIL = range(3)


_debug_level = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """The level that set_debug_level has set; OFF at first.

    >>> get_debug_level()
    <DebugLevel.OFF: 0>
    """
    return _debug_level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Sets the `level` that get_debug_level returns.

    >>> set_debug_level(DebugLevel.INFO); get_debug_level().name
    'INFO'
    >>> set_debug_level(DebugLevel.OFF)
    """
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level: level must be a DebugLevel, got {type(level).__name__}")
    _debug_level[0] = level


def get_backend(group: Any = None) -> str:
    """The name of the backend of `group`.

    >>> init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> get_backend()
    'gloo'
    >>> destroy_process_group()
    """
    return (_groups.world() if group is None else group).backend


def get_backend_config(group: Any = None) -> str:
    """The backend of each kind of device of `group`, as "device:name,device:name".

    >>> init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> get_backend_config()
    'cpu:gloo,cuda:gloo'
    >>> destroy_process_group()
    """
    name = get_backend(group)
    return name if ":" in name else ",".join(f"{device}:{name}" for device in ("cpu", "cuda"))


def get_default_backend_for_device(device: Any) -> str:
    """The backend that init_process_group takes for a `device`, or a kind of device.

    >>> get_default_backend_for_device("cuda:0")
    'nccl'
    """
    kind = device.type if isinstance(device, _C.device) else _C.device(str(device)).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The global ranks of the members of `group`.

    >>> init_process_group(store=HashStore(), rank=0, world_size=1)
    >>> get_process_group_ranks()
    [0]
    >>> destroy_process_group()
    """
    return list((_groups.world() if group is None else group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of the rank `group_rank` of `group`.

    >>> init_process_group(store=HashStore(), rank=0, world_size=1)
    >>> get_global_rank(naru.distributed.group.WORLD, 0)
    0
    >>> destroy_process_group()
    """
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in `group` of the process with that `global_rank`.

    >>> init_process_group(store=HashStore(), rank=0, world_size=1)
    >>> get_group_rank(naru.distributed.group.WORLD, 0)
    0
    >>> destroy_process_group()
    """
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this host, from torchrun's variable LOCAL_RANK or those of mpirun and srun; `fallback_rank` if there is none.

    >>> get_node_local_rank(fallback_rank=0)
    0
    """
    found = _launchers.local_rank()
    if found is not None:
        return found
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work")
    return fallback_rank


def get_pg_count() -> int:
    """The number of groups.

    >>> get_pg_count()
    0
    """
    return len(_groups._World.groups)


def __getattr__(name: str) -> Any:
    if name in ("DeviceMesh", "init_device_mesh"):
        from . import device_mesh

        return getattr(device_mesh, name)
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("_") and name in _missing.names().get("distributed", ()):
        if name in _CLASSES:
            found: Any = _missing.absent_class(f"distributed.{name}")
        elif name.islower() and f"distributed.{name}" not in _missing.names():
            found = _missing.absent_function(f"distributed.{name}")
        else:
            found = None
        if found is not None:
            globals()[name] = found
            return found
    _missing.fail("distributed", name)
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")
