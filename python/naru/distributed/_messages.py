"""Point-to-point messages between ranks, and collectives of Python objects."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from .. import _C
from ._collectives import Work, _in_group, all_gather, broadcast, gather, scatter
from ._groups import ProcessGroup, member, world

if TYPE_CHECKING:
    from collections.abc import Callable

    from .. import Tensor


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Sends `tensor` to rank `dst` (or `group_dst`, a rank of `group`), and returns a Work; the receiver must use the same `tag`.

    >>> naru.distributed.isend(naru.ones(2), dst=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    if (g := member(group)) is None:
        return None
    return Work(g._engine.send([tensor], _in_group(g, dst, group_dst, "dst"), tag, True), [tensor])


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Receives a tensor with `tag` from rank `src` (or `group_src`, a rank of `group`; from any rank without either) into `tensor`; returns a Work.

    >>> naru.distributed.irecv(naru.ones(2), src=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    if (g := member(group)) is None:
        return None
    sender = -1 if src is None and group_src is None else _in_group(g, src, group_src, "src")
    return Work(g._engine.recv([tensor], sender, tag, True), [tensor])


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends `tensor` to rank `dst` (or `group_dst`, a rank of `group`); the receiver must use the same `tag`. Returns when `tensor` may be modified.

    >>> naru.distributed.send(naru.ones(2), dst=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receives a tensor with `tag` from rank `src` (or `group_src`, a rank of `group`; from any rank without either) into `tensor`; returns the source.

    >>> naru.distributed.recv(naru.ones(2), src=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    g = member(group)
    assert g is not None
    return g.ranks[work.source_rank()]


class P2POp:
    """One message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: the tensor to send, or to receive into.
        peer: the other rank; or use group_peer, a rank of the group.
        group: the group; None: the default one.
        tag: the same on both sides.
        group_peer: instead of peer.

    >>> naru.distributed.P2POp(naru.distributed.isend, naru.ones(2), 1).peer
    1
    """

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0, group_peer: int | None = None
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts all messages in `p2p_op_list`, and returns their Works: one for each, or one for all those of a group between devices.

    >>> naru.distributed.batch_isend_irecv([])
    Traceback (most recent call last):
    ValueError: p2p_op_list must not be empty
    """
    if not p2p_op_list:
        raise ValueError("p2p_op_list must not be empty")
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    by_group: dict[int, tuple[Any, list[Any]]] = {}
    for each in p2p_op_list:
        if (g := member(each.group)) is None:
            continue
        sends = each.op is isend
        any_rank = not sends and each.peer is None and each.group_peer is None
        peer = -1 if any_rank else _in_group(g, each.peer, each.group_peer, "dst" if sends else "src")
        by_group.setdefault(id(g), (g, []))[1].append((sends, each.tensor, peer, each.tag))
    return [Work(work, [m[1] for m in messages]) for g, messages in by_group.values() for work in g._engine.exchange(messages)]


# --- Python objects, as pickles. Only for processes that trust each other, such as those of one program.


_CPU = _C.device("cpu")  # also when the default device is another


def _packed(value: Any) -> Tensor:
    file = io.BytesIO()
    pickle.dump(value, file)
    return _C.frombuffer(bytearray(file.getvalue()), dtype=_C.uint8)


# What the pickles of tensors, and of values about them, refer to; beside these, dtypes.
_DATA = frozenset({
    ("naru._utils", "_tensor_from_bytes"), ("naru.nn.parameter", "Parameter"), ("naru._C", "device"), ("naru._C", "Size"), ("naru._C", "strided"),
    ("naru._C", "channels_last"), ("collections", "OrderedDict"), ("builtins", "complex"), ("builtins", "slice"),
})  # fmt: skip


class _DataUnpickler(pickle.Unpickler):
    """Reads tensors and plain data, and calls nothing else. (The reader of files would import this package.)"""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _DATA and not (module == "naru._C" and name.startswith("_dtype_")):
            raise pickle.UnpicklingError(
                f"Weights only load failed. An object refers to {module}.{name}; weights_only=True takes tensors and plain data only"
            )
        return super().find_class(module, name)


def _unpacked(tensor: Tensor, weights_only: bool = False) -> Any:
    data = io.BytesIO(bytes(tensor.numpy()))
    return (_DataUnpickler if weights_only else pickle.Unpickler)(data).load()


def _sizes(mine: int, g: ProcessGroup) -> list[int]:
    own, all_of_them = _C.tensor([mine], dtype=_C.int64, device=_CPU), [_C.zeros(1, dtype=_C.int64, device=_CPU) for _ in range(g.size())]
    all_gather(all_of_them, own, g)
    return [int(each) for each in all_of_them]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Puts each rank's `obj` into `object_list`, on all ranks of `group`. Objects must be picklable.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> found = [None]
    >>> naru.distributed.all_gather_object(found, {"loss": 1.5})
    >>> found
    [{'loss': 1.5}]
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return
    mine = _packed(obj)
    sizes = _sizes(mine.numel(), g)
    room = _C.zeros(max(sizes), dtype=_C.uint8, device=_CPU)
    room[: mine.numel()] = mine
    parts = [_C.empty_like(room) for _ in sizes]
    all_gather(parts, room, g)
    for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        object_list[i] = _unpacked(part[:size])


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> None:
    """Puts each rank's `obj` into `object_gather_list` on rank `dst` (or `group_dst`, a rank of `group`); None on the others.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> found = [None]
    >>> naru.distributed.gather_object("zero", found, dst=0)
    >>> found
    ['zero']
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return
    root = _in_group(g, g.ranks[0] if dst is None and group_dst is None else dst, group_dst, "dst")
    mine = _packed(obj)
    sizes = _sizes(mine.numel(), g)
    room = _C.zeros(max(sizes), dtype=_C.uint8, device=_CPU)
    room[: mine.numel()] = mine
    parts = [_C.empty_like(room) for _ in sizes] if root == g.rank() else None
    if root == g.rank() and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    gather(room, parts, group=g, group_dst=root)
    if parts is not None and object_gather_list is not None:
        for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            object_gather_list[i] = _unpacked(part[:size])


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None, weights_only: bool = False
) -> None:
    """Copies the objects of rank `src`'s `object_list` (or of `group_src`, a rank of `group`) to the lists of all others, of the same length.

    weights_only: read tensors and plain data only, so that a sender cannot run code here (UnpicklingError for anything else). `device` is ignored.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.broadcast_object_list(["a", 1], src=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return
    root = _in_group(g, g.ranks[0] if src is None and group_src is None else src, group_src, "src")
    own = g.rank() == root
    size = _C.zeros(1, dtype=_C.int64, device=_CPU)
    packed = _packed(list(object_list)) if own else None
    if packed is not None:
        size[0] = packed.numel()
    broadcast(size, group=g, group_src=root)
    data = packed if packed is not None else _C.empty(int(size), dtype=_C.uint8, device=_CPU)
    broadcast(data, group=g, group_src=root)
    if not own:
        found = _unpacked(data, weights_only)
        if len(found) != len(object_list):
            raise ValueError(f"broadcast_object_list: rank {root} has {len(found)} objects, and this rank's list {len(object_list)}")
        object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Puts this rank's object of rank `src`'s `scatter_object_input_list` (or `group_src`, a rank of `group`) at index 0 of
    `scatter_object_output_list`.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> found = [None]
    >>> naru.distributed.scatter_object_list(found, ["mine"], src=0)
    >>> found
    ['mine']
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return
    if not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _in_group(g, g.ranks[0] if src is None and group_src is None else src, group_src, "src")
    own = g.rank() == root
    packed = [_packed(each) for each in scatter_object_input_list or []] if own else []
    if own and len(packed) != g.size():
        raise ValueError(f"scatter_object_input_list must hold one object for each of {g.size()} ranks, got {len(packed)}")
    size = _C.zeros(2, dtype=_C.int64, device=_CPU)
    sizes = [_C.tensor([max(p.numel() for p in packed), each.numel()], dtype=_C.int64, device=_CPU) for each in packed]
    scatter(size, sizes or None, group=g, group_src=root)
    room = int(size[0])
    padded = []
    for each in packed:
        padded.append(_C.zeros(room, dtype=_C.uint8, device=_CPU))
        padded[-1][: each.numel()] = each
    mine = _C.empty(room, dtype=_C.uint8, device=_CPU)
    scatter(mine, padded or None, group=g, group_src=root)
    scatter_object_output_list[0] = _unpacked(mine[: int(size[1])])


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None, use_batch: bool = False
) -> None:
    """Sends the objects of `object_list` to rank `dst` (or `group_dst`, a rank of `group`). `device` and `use_batch` are ignored.

    >>> naru.distributed.send_object_list(["a"], dst=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    packed = _packed(list(object_list))
    send(_C.tensor([packed.numel()], dtype=_C.int64, device=_CPU), dst, group, 0, group_dst)
    send(packed, dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
    use_batch: bool = False,
) -> int:
    """Receives what rank `src` (or `group_src`, a rank of `group`) sends with send_object_list into `object_list`; returns the source.

    weights_only: read tensors and plain data only, so that a sender cannot run code here (UnpicklingError for anything else). `device` and
    `use_batch` are ignored.

    >>> naru.distributed.recv_object_list([None], src=1)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    size = _C.zeros(1, dtype=_C.int64, device=_CPU)
    source = recv(size, src, group, 0, group_src)
    packed = _C.empty(int(size), dtype=_C.uint8, device=_CPU)
    recv(packed, source, group)
    found = _unpacked(packed, weights_only)
    if len(found) != len(object_list):
        raise ValueError(f"recv_object_list: rank {source} sent {len(found)} objects, and the list holds {len(object_list)}")
    object_list[:] = found
    return source


def get_rank(group: Any = None) -> int:
    """This process's rank in `group`; -1 if it is not a member.

    >>> naru.distributed.get_rank()
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    found = world() if group is None else group
    return found.rank() if isinstance(found, ProcessGroup) else -1


def get_world_size(group: Any = None) -> int:
    """The number of processes in `group`; -1 if this one is not a member.

    >>> naru.distributed.get_world_size()
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """
    found = world() if group is None else group
    return found.size() if isinstance(found, ProcessGroup) else -1
