"""Process groups: their creation and their members."""

from __future__ import annotations

import enum
import os
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ._launchers import Pmi
from .rendezvous import meet
from ._stores import HashStore, PrefixStore, Store, milliseconds, native

if TYPE_CHECKING:
    from collections.abc import Sequence

default_pg_timeout = timedelta(minutes=30)
_UNSET = "Default process group has not been initialized, please make sure to call init_process_group."


class ReduceOp(enum.Enum):
    """The reduction operations of collectives.

    >>> naru.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's name for the members' type, for annotations


class Backend(str):
    """A backend name, in lower case.

    Args:
        name: "gloo", or another name.

    >>> naru.distributed.Backend("GLOO")
    'gloo'
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi"]
    # The default backend per kind of device.
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {type(name).__name__}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A set of processes that call collectives together; made by `init_process_group` and `new_group`.

    Args:
        engine: the implementation of the collectives.
        ranks: the members, by global rank.
        backend: the backend's name.
        name: the group's name.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> group = naru.distributed.group.WORLD
    >>> group.rank(), group.size(), group.name()
    (0, 1, 'gloo')
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(self, engine: Any, ranks: Sequence[int], backend: str, name: str) -> None:
        self._engine = engine
        self.ranks = list(ranks)
        self.backend = backend
        self.group_name = name
        self.group_desc = name
        self.splits = 0  # how often it was split
        self._by_library = False  # whether NCCL takes tensors on devices, if all ranks have it

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._engine.rank()

    def size(self) -> int:
        """The number of members."""
        return self._engine.size()

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    def abort(self) -> None:
        """Aborts pending operations, on all ranks, with an error."""
        self._engine.abort(f"rank {self.rank()} called abort")

    def __repr__(self) -> str:
        return f"<ProcessGroup of ranks {self.ranks}, rank {self.rank()} here>"


class _World:
    default: ProcessGroup | None = None
    groups: list[ProcessGroup] = []
    made = 0  # number of groups made in this process; part of their names
    local: dict[str, int] = {}  # number of groups made locally by a set of members
    store: Store | None = None
    process = 0  # id of the process that made the default group
    leaves_in = 0  # id of the process that leaves its groups when it ends


class _Group(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before init_process_group."""
        return _World.default


class group(metaclass=_Group):
    """The names of predefined groups.

    >>> naru.distributed.group.WORLD is None
    True
    """

    NON_GROUP_MEMBER: Any = object()


GroupMember = group


def is_initialized() -> bool:
    """Whether the default group exists.

    >>> naru.distributed.is_initialized()
    False
    """
    return _World.default is not None


def world() -> ProcessGroup:
    """The group of all processes. ValueError before init_process_group."""
    if _World.default is None:
        raise ValueError(_UNSET)
    return _World.default


def member(group: Any) -> ProcessGroup | None:
    """The group, the default one for None; None (with a warning) if this process is not a member."""
    found = world() if group is None else group
    if found is GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"Running a collective on global rank {world().rank()} which does not belong to the given group.", stacklevel=3)
        return None
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup, got {type(found).__name__}")
    return found


def _check_backend(backend: str | None) -> str:
    """The backend's name, or "device:name,device:name"."""
    if backend is None:
        return "gloo"
    text = Backend(str(backend))
    for part in text.split(","):
        name = part.rpartition(":")[2]
        if name not in ("gloo", "mpi", "nccl", "ucc", "xccl", "undefined") and text != "fake":
            raise ValueError(f"Invalid backend: '{name}'; naru has \"gloo\", \"mpi\" and \"fake\", and \"nccl\" for cuda devices")
    return text


def _by_library(backend: str | None) -> bool:
    """Whether tensors on cuda devices are NCCL's: as the backend's name says, or where it names none."""
    return backend is None or any(part.rpartition(":")[2] in ("nccl", "undefined") for part in str(backend).lower().split(","))


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Joins this process to the others, and returns when all have joined.

    Tensors on the cpu are naru's own engine's for every backend name: shared memory between processes of one host, MPI between hosts. "mpi"
    uses MPI on one host, too. Tensors on cuda devices are NCCL's with "nccl", "cpu:gloo,cuda:nccl" or None, if all ranks have it; else they
    are copied through host memory.

    Args:
        backend: "gloo", "mpi", "nccl", "cpu:gloo,cuda:nccl" or None; or "fake": this process plays one rank of `world_size`, without any others.
        init_method: where processes meet: "env://" (the default: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), "tcp://host:port", "file:///path".
        timeout: of each operation, a timedelta; 30 minutes by default.
        world_size, rank: the number of processes, and this process's rank. From the environment if not given.
        store: used instead of init_method.
        group_name, pg_options: ignored.
        device_id: ignored: the device that this process uses.

    >>> naru.distributed.init_process_group("gloo", store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> x = naru.ones(2)
    >>> naru.distributed.all_reduce(x)
    >>> naru.distributed.destroy_process_group()
    """
    if _World.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    name = _check_backend(backend)
    if name == "fake" and store is None and init_method is None:
        store = HashStore()
    if store is not None:
        if world_size <= 0:
            raise ValueError("world_size must be positive if using store")
        if rank < 0:
            raise ValueError("rank must be non-negative if using store")
    else:
        store, rank, world_size = meet(init_method or "env://", rank, world_size, timeout or timedelta(seconds=300))
    _World.store = store
    _World.process = os.getpid()
    _World.default = _made(store, rank, list(range(world_size)), name, timeout, by_library=_by_library(backend))
    if "nccl" in name and rank == 0 and (obstacle := _World.default._engine.device_obstacle()):
        warnings.warn(f"NCCL can't be used: {obstacle}. Tensors on devices go through the host's memory", stacklevel=2)


def _made(
    store: Store,
    rank: int,
    ranks: list[int],
    backend: str,
    timeout: timedelta | None,
    desc: str | None = None,
    name: str | None = None,
    by_library: bool = False,
) -> ProcessGroup:
    if name is None:
        name = str(_World.made)
        _World.made += 1
    prefixed = PrefixStore(f"group/{name}", store)
    names = [part.rpartition(":")[2] for part in backend.split(",")]
    kind = "fake" if backend == "fake" else "mpi" if "mpi" in names else ""
    limit = milliseconds(default_pg_timeout if timeout is None else timeout)
    engine = native("_ProcessGroup")(prefixed._store, rank, len(ranks), limit, kind, by_library)
    made = ProcessGroup(engine, ranks, backend, name)
    made._by_library = by_library
    made.group_desc = desc or ("default_pg" if _World.default is None else name)
    engine.set_name(name, made.group_desc, made.ranks)
    _World.groups.append(made)
    if _must_leave(engine):
        _at_exit()
    return made


def _must_leave(engine: Any) -> bool:
    """Whether other ranks would take a silent exit for a crash, or devices must outlive the group."""
    return engine is not None and (engine.transport() == "MPI" or engine.device_transport() != "")


def _at_exit() -> None:
    """Leaves groups when the program or a process of multiprocessing ends."""
    from multiprocessing.util import Finalize

    def leave() -> None:
        for each in reversed(_World.groups) if _World.process == os.getpid() else ():
            if _must_leave(each._engine) and each._engine.idle():
                each._engine = None

    if _World.leaves_in != os.getpid():
        _World.leaves_in = os.getpid()
        Pmi.mpi_is_narus = True
        Finalize(None, leave, exitpriority=0)


def destroy_process_group(group: Any = None) -> None:
    """Destroys a group, or with None all groups.

    Args:
        group: the group; None: the default one and all others.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.destroy_process_group()
    >>> naru.distributed.is_initialized()
    False
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    found = world() if group is None else group
    if found not in _World.groups:
        raise ValueError("Invalid process group specified or has been destroyed.")
    gone = list(_World.groups) if found is _World.default else [found]
    for each in reversed(gone):
        _World.groups.remove(each)
        each._engine = None
    if found is _World.default:
        _World.default = None
        _World.store = None


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Makes a group of some of the processes. All processes of the default group must call it, members or not.

    Args:
        ranks: its members; None: all.
        timeout: of each of its operations; that of the default group if not given.
        backend: as in init_process_group.
        pg_options, device_id: ignored.
        use_local_synchronization: only the members call it.
        group_desc: a description.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.new_group([0]).size()
    1
    >>> naru.distributed.destroy_process_group()
    """
    all_of = world()
    if _World.process != os.getpid():
        raise RuntimeError("new_group: this process was forked from a rank of a group and is none itself; it can make a group of its own")
    members = list(all_of.ranks) if ranks is None else sorted(ranks)
    if len(set(members)) != len(members):
        raise ValueError("the given ranks contain duplicates: each process may be in a group once")
    if wrong := [r for r in members if not 0 <= r < all_of.size()]:
        raise ValueError(f"The new group's rank should be within the world_size set by init_process_group: 0 to {all_of.size() - 1}, got {wrong}")
    name = all_of.backend if backend is None else _check_backend(backend)
    by_library = all_of._by_library if backend is None else _by_library(backend)
    if timeout is None:
        timeout = timedelta(milliseconds=all_of._engine.timeout())
    if all_of.rank() not in members:
        if not use_local_synchronization:
            _World.made += 1
        return GroupMember.NON_GROUP_MEMBER
    assert _World.store is not None
    if use_local_synchronization:
        label = "of_" + "_".join(map(str, members))
        _World.local[label] = _World.local.get(label, 0) + 1
        return _made(_World.store, members.index(all_of.rank()), members, name, timeout, group_desc, f"{label}/{_World.local[label]}", by_library)
    return _made(_World.store, members.index(all_of.rank()), members, name, timeout, group_desc, None, by_library)


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Splits a group: all of its members call this, and each gets the group of its list of ranks; None if no list has it.

    Args:
        parent_pg: the group to split; None: the default one.
        split_ranks: lists of ranks of that group, each rank in at most one.
        timeout: of each operation; that of the group if not given.
        pg_options: ignored.
        group_desc: a description.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.split_group(split_ranks=[[0]]).ranks
    [0]
    >>> naru.distributed.destroy_process_group()
    """
    parent = world() if parent_pg is None else parent_pg
    if not isinstance(parent, ProcessGroup):
        raise ValueError("split_group: this process is not a member of parent_pg")
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    flat = [r for ranks in split_ranks for r in ranks]
    if not all(split_ranks) or len(set(flat)) != len(flat) or any(not 0 <= r < parent.size() for r in flat):
        raise ValueError(f"split_group: split_ranks must be lists of ranks from 0 to {parent.size() - 1}, each at most once, got {split_ranks}")
    parent.splits += 1
    for i, ranks in enumerate(split_ranks):
        if parent.rank() in ranks:
            members = sorted(ranks)
            limit = timedelta(milliseconds=parent._engine.timeout()) if timeout is None else timeout
            name = f"{parent.group_name}/split_{parent.splits}_{i}"
            assert _World.store is not None
            mine = [parent.ranks[r] for r in members]
            return _made(_World.store, members.index(parent.rank()), mine, parent.backend, limit, group_desc, name, parent._by_library)
    return None


def set_timeout(timeout: timedelta, group: Any = None) -> None:
    """Sets the `timeout`, a timedelta, of the operations of `group` (None: the default one) that begin from now on, in this process.

    >>> from datetime import timedelta
    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.set_timeout(timedelta(seconds=30))
    >>> naru.distributed.destroy_process_group()
    """
    found = world() if group is None else group
    if not isinstance(found, ProcessGroup):
        raise ValueError("Invalid process group specified")
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    found._engine.set_timeout(milliseconds(timeout))


_set_pg_timeout = set_timeout


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Splits `group` into groups of `group_size` consecutive ranks: returns this process's, and all. Default size: LOCAL_WORLD_SIZE, the processes per host.

    `timeout`, `backend`, `pg_options` and `group_desc` as in new_group.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mine, all_of_them = naru.distributed.new_subgroups(1)
    >>> mine.size(), len(all_of_them)
    (1, 1)
    >>> naru.distributed.destroy_process_group()
    """
    of = world() if group is None else group
    size = group_size if group_size is not None else int(os.environ.get("LOCAL_WORLD_SIZE", of.size()))
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if of.size() % size:
        raise ValueError(f"The world size ({of.size()}) must be divisible by 'group_size={size}'")
    lists = [of.ranks[i : i + size] for i in range(0, of.size(), size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Makes a group for each list of ranks in `ranks_per_subgroup_list`: returns this process's group (or None), and all.

    `timeout`, `backend`, `pg_options` and `group_desc` as in new_group.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.new_subgroups_by_enumeration([[0]])[0].ranks
    [0]
    >>> naru.distributed.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    groups = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = [made for made in groups if made is not GroupMember.NON_GROUP_MEMBER]
    return (mine[0] if mine else None), groups
