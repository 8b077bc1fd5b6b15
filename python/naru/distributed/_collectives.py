"""Collectives: operations that all ranks of a group call together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..futures import Future
from ._groups import ProcessGroup, ReduceOp, member
from ._stores import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from .. import Tensor


class Work:
    """An asynchronous operation, returned by collectives with async_op=True.

    Args:
        work: the engine's operation.
        result: the value of its future.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> work = naru.distributed.all_reduce(naru.ones(1), async_op=True)
    >>> work.wait(), work.is_completed()
    (True, True)
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(self, work: Any, result: Any = None) -> None:
        self._work = work
        self._result = result

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the operation is done, or for `timeout`; raises its error."""
        if not self._work.wait(milliseconds(timeout)):
            raise RuntimeError("Work.wait: the operation is not done when the timeout ends")
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended, successfully or not."""
        return self._work.is_completed()

    def is_success(self) -> bool:
        """Whether the operation has ended successfully."""
        return self._work.is_success()

    def exception(self) -> BaseException | None:
        """The operation's error; None if there is none, or before the end."""
        if not self._work.is_completed():
            return None
        try:
            self._work.wait(-1)
        except Exception as error:  # noqa: BLE001
            return error
        return None

    def source_rank(self) -> int:
        """The source rank of a recv."""
        return self._work.source()

    def result(self) -> list[Tensor]:
        """The tensors that were written."""
        return list(self._result or [])

    def synchronize(self) -> None:
        """Same as wait."""
        self.wait()

    def get_future(self) -> Future:
        """A Future for the list of tensors."""
        future: Future = Future()

        def done() -> None:
            error = self.exception()
            if error is None:
                future.set_result(self.result())
            else:
                future.set_exception(error)

        self._work.then(done)
        return future


def _code(op: ReduceOp) -> int:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a ReduceOp, as ReduceOp.SUM, got {type(op).__name__}")
    if op is ReduceOp.PREMUL_SUM:
        raise NotImplementedError("ReduceOp.PREMUL_SUM is not in naru: multiply, then SUM")
    return op.value


def _in_group(group: ProcessGroup, of_all: int | None, of_group: int | None, name: str) -> int:
    """The rank in the group, given as a global rank or as a group rank."""
    if of_group is not None:
        if of_all is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        return of_group
    if of_all is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    if of_all not in group.ranks:
        raise ValueError(f"Global rank {of_all} is not part of group {group}")
    return group.ranks.index(of_all)


def _given(work: Any, async_op: bool, result: list[Tensor]) -> Work | None:
    return Work(work, result) if async_op else None


def _flat(tensor: Tensor, count: int, what: str) -> list[Tensor]:
    """Views of `count` equal parts of a tensor, which are stored consecutively."""
    if tensor.numel() % count:
        raise ValueError(f"{what}: the tensor's {tensor.numel()} elements are not as many for each of {count} ranks")
    if not tensor.is_contiguous():
        raise ValueError(f"{what}: Tensors must be contiguous")
    return list(tensor.detach().view(-1).chunk(count)) if tensor.numel() else [tensor] * count


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduces `tensor` over all ranks with `op`, into each rank's tensor: bitwise equal on all of them.

    `group`: the ranks; None: all. With `async_op` returns a Work immediately, and the tensor must not be used until its wait() returns.
    DistBackendError if the ranks' calls do not match, or a rank has died or does not arrive in time.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> x = naru.ones(2)
    >>> naru.distributed.all_reduce(x, op=naru.distributed.ReduceOp.SUM)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.all_reduce([tensor], _code(op), async_op), async_op, [tensor])


def all_reduce_coalesced(tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """all_reduce of several `tensors` at once; `op`, `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.all_reduce_coalesced([naru.ones(2), naru.ones(3)])
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.all_reduce(list(tensors), _code(op), async_op), async_op, list(tensors))


def reduce(
    tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: int | None = None
) -> Work | None:
    """Reduces `tensor` with `op` into that of rank `dst` (or `group_dst`, a rank of `group`). `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.reduce(naru.ones(2), dst=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.reduce([tensor], _in_group(g, dst, group_dst, "dst"), _code(op), async_op), async_op, [tensor])


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Copies rank `src`'s `tensor` (or that of `group_src`, a rank of `group`) to those of all others. `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.broadcast(naru.ones(2), src=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.broadcast([tensor], _in_group(g, src, group_src, "src"), async_op), async_op, [tensor])


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Copies each rank's `tensor` into `tensor_list`, one per rank, on all ranks. `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = [naru.zeros(2)]
    >>> naru.distributed.all_gather(out, naru.ones(2))
    >>> out
    [tensor([1., 1.])]
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.all_gather(list(tensor_list), [tensor], async_op), async_op, list(tensor_list))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Concatenates all ranks' `input_tensor` into `output_tensor`. `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = naru.zeros(2)
    >>> naru.distributed.all_gather_into_tensor(out, naru.ones(2))
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    parts = _flat(output_tensor, g.size(), "all_gather_into_tensor")
    return _given(g._engine.all_gather(parts, [input_tensor], async_op), async_op, [output_tensor])


def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """PyTorch's newer name of all_gather_into_tensor: concatenates all ranks' `input_tensor` into `output_tensor`. `group` and `async_op` as there.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = naru.zeros(2)
    >>> naru.distributed.all_gather_single(out, naru.ones(2))
    >>> naru.distributed.destroy_process_group()
    """
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[list[Tensor]], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """all_gather of several tensors, `input_tensor_list`: `output_tensor_lists` has each rank's list. `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = [[naru.zeros(2), naru.zeros(1)]]
    >>> naru.distributed.all_gather_coalesced(out, [naru.ones(2), naru.ones(1)])
    >>> out
    [[tensor([1., 1.]), tensor([1.])]]
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    if not input_tensor_list:
        raise ValueError("all_gather_coalesced: input_tensor_list must not be empty")
    if len(output_tensor_lists) != g.size() or any(len(each) != len(input_tensor_list) for each in output_tensor_lists):
        raise ValueError(
            f"all_gather_coalesced: output_tensor_lists must hold a list of {len(input_tensor_list)} tensors for each of the group's {g.size()} ranks"
        )
    work = None
    for i, tensor in enumerate(input_tensor_list):  # they are done in their order, so the last one is enough to wait for
        work = g._engine.all_gather([each[i] for each in output_tensor_lists], [tensor], async_op)
    return _given(work, async_op, [t for each in output_tensor_lists for t in each])


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copies each rank's `tensor` into `gather_list` on rank `dst` (0 by default; or `group_dst`, a rank of `group`); None on other ranks.

    `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.gather(naru.ones(2), [naru.zeros(2)], dst=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    root = _in_group(g, g.ranks[0] if dst is None and group_dst is None else dst, group_dst, "dst")
    if root == g.rank() and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return _given(g._engine.gather(list(gather_list or []), [tensor], root, async_op), async_op, list(gather_list or []))


def gather_single(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """gather whose result is one tensor: concatenates each rank's `tensor` into `gather_tensor` on rank `dst`; None on other ranks.

    `dst`, `group_dst`, `group` and `async_op` as in gather.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = naru.zeros(2)
    >>> naru.distributed.gather_single(naru.ones(2), out, dst=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    parts = None if gather_tensor is None else _flat(gather_tensor, g.size(), "gather_single")
    return gather(tensor, parts, dst, group, async_op, group_dst)


gather_into_tensor = gather_single


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies this rank's entry of rank `src`'s `scatter_list` (0 by default; or `group_src`, a rank of `group`) into `tensor`.

    `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.scatter(naru.zeros(2), [naru.ones(2)], src=0)
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    root = _in_group(g, g.ranks[0] if src is None and group_src is None else src, group_src, "src")
    if root == g.rank() and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    return _given(g._engine.scatter([tensor], list(scatter_list or []), root, async_op), async_op, [tensor])


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduces `input_list`, one tensor per rank, with `op`, and writes this rank's one to `output`. `group`, `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.reduce_scatter(naru.zeros(2), [naru.ones(2)])
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.reduce_scatter([output], list(input_list), _code(op), async_op), async_op, [output])


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """reduce_scatter of an `input` that is the concatenation of the parts; `output`, `op`, `group` and `async_op` as in reduce_scatter.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.reduce_scatter_tensor(naru.zeros(2), naru.ones(2))
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    parts = _flat(input.contiguous(), g.size(), "reduce_scatter_tensor")
    return _given(g._engine.reduce_scatter([output], parts, _code(op), async_op), async_op, [output])


def reduce_scatter_single(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """PyTorch's newer name of reduce_scatter_tensor: reduces `input` with `op`, and each rank gets its part in `output`. `group`, `async_op` as there.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> out = naru.zeros(2)
    >>> naru.distributed.reduce_scatter_single(out, naru.ones(2))
    >>> naru.distributed.destroy_process_group()
    """
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Sends `input_tensor_list`, one tensor per rank, and receives `output_tensor_list`. `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.all_to_all([naru.zeros(2)], [naru.ones(2)])
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.all_to_all(list(output_tensor_list), list(input_tensor_list), async_op), async_op, list(output_tensor_list))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """all_to_all of parts of `input` and `output` along the first dimension: equal parts, or `input_split_sizes` and `output_split_sizes`.

    `group` and `async_op` as in all_reduce.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.all_to_all_single(naru.zeros(2), naru.ones(2))
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None

    def parts(tensor: Tensor, sizes: list[int] | None, what: str) -> list[Tensor]:
        length = tensor.shape[0] if tensor.dim() else 0
        if sizes:
            if len(sizes) != g.size() or sum(sizes) != length:
                raise RuntimeError(f"Split sizes doesn't match total dim 0 size: {what} has {length} rows, and its split sizes are {sizes}")
        elif length % g.size():
            raise RuntimeError(f"Tensor's dim 0 does not divide equally across group size: {what} has {length} rows for {g.size()} ranks")
        return list(tensor.detach().split(list(sizes) if sizes else [length // g.size()] * g.size()))

    outputs, inputs = parts(output, output_split_sizes, "output"), parts(input, input_split_sizes, "input")
    return _given(g._engine.all_to_all(outputs, inputs, async_op), async_op, [output])


def barrier(group: Any = None, async_op: bool = False, device_ids: list[int] | None = None) -> Work | None:
    """Waits until all ranks of `group` have called it. `async_op` as in all_reduce; `device_ids` is ignored.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.barrier()
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return None
    return _given(g._engine.barrier(async_op), async_op, [])


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """barrier of `group` that waits for `timeout` at most, and whose error names the missing ranks (all of them, with or without
    `wait_all_ranks`).

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.monitored_barrier()
    >>> naru.distributed.destroy_process_group()
    """
    if (g := member(group)) is None:
        return
    before = g._engine.timeout()
    if timeout is not None:
        g._engine.set_timeout(milliseconds(timeout))
    try:
        g._engine.barrier(False)
    finally:
        g._engine.set_timeout(before)
