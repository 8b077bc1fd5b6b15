"""`torch.distributed.nn.functional`: differentiable collectives; backward communicates in the opposite direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ...autograd.function import Function
from .. import _collectives, _groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ... import Tensor

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        made = tensor.detach().clone()
        _collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, gradient)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Any:
        ctx.group = group
        made = [_C.empty_like(tensor) for _ in range(group.size())]
        _collectives.all_gather(made, tensor.contiguous(), group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        mine = _C.empty_like(gradients[ctx.group.rank()])
        _collectives.reduce_scatter(mine, list(gradients), group=ctx.group)
        return None, mine


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = tensor.detach().clone()
        _collectives.broadcast(made, group=group, group_src=src)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        made = gradient.contiguous().clone()
        _collectives.reduce(made, group=ctx.group, group_dst=ctx.src)
        return None, None, made if ctx.group.rank() == ctx.src else _C.zeros_like(made)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        made = tensor.detach().clone()
        _collectives.reduce(made, op=op, group=group, group_dst=dst)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, gradient)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        made = [_C.zeros_like(tensor) for _ in range(group.size())]
        _collectives.gather(tensor.contiguous(), made if group.rank() == dst else None, group=group, group_dst=dst)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = _C.zeros_like(tensors[0])
        _collectives.scatter(made, [t.contiguous() for t in tensors] if group.rank() == src else None, group=group, group_src=src)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, gradient)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        made = _C.empty_like(output)
        _collectives.reduce_scatter(made, [t.contiguous() for t in tensors], op, group)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, gradient)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Sequence[Tensor], *tensors: Tensor) -> Any:
        ctx.group, ctx.models = group, [_C.empty_like(t) for t in tensors]
        made = [_C.empty_like(t) for t in outputs]
        _collectives.all_to_all(made, [t.contiguous() for t in tensors], group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.models, *gradients)


def _group_of(group: Any) -> Any:
    return _groups.world() if group is None or group is _groups.group.WORLD else group


def all_reduce(tensor: Tensor, op: Any = _groups.ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or other reduction `op`) of all ranks' `tensor`; its gradient is the sum of all ranks' gradients. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.all_reduce(naru.ones(2))
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    return _AllReduce.apply(op, _group_of(group), tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' `tensor`; its gradient is the sum of each rank's gradient for it. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.all_gather(naru.ones(2))
    (tensor([1., 1.]),)
    >>> naru.distributed.destroy_process_group()
    """
    return _AllGather.apply(_group_of(group), tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Rank `src`'s `tensor`; its gradient is the sum of all ranks' on that rank, and zero on others. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.broadcast(naru.ones(2), src=0)
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    found = _group_of(group)
    return _Broadcast.apply(found.ranks.index(src), found, tensor)


def reduce(tensor: Tensor, dst: int, op: Any = _groups.ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or other reduction `op`) of all ranks' `tensor`, on rank `dst`; each rank's gradient is that of rank `dst`. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.reduce(naru.ones(2), dst=0)
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    found = _group_of(group)
    return _Reduce.apply(found.ranks.index(dst), op, found, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' `tensor` on rank `dst`, and zeros on others; each rank's gradient is that of its part on rank `dst`. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.gather(naru.ones(2))
    (tensor([1., 1.]),)
    >>> naru.distributed.destroy_process_group()
    """
    found = _group_of(group)
    return _Gather.apply(found.ranks.index(dst), found, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This rank's of the `tensors` of rank `src`, whose gradients are all ranks'. Other ranks give tensors of the same sizes. `group`: the ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.scatter([naru.ones(2)])
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    found = _group_of(group)
    return _Scatter.apply(found.ranks.index(src), found, *tensors)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = _groups.ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or other reduction `op`) of all ranks' tensors for this rank, of the size of `output`. `input_list`: one for each of the `group`'s ranks.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.reduce_scatter(naru.zeros(2), [naru.ones(2)])
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    return _ReduceScatter.apply(op, _group_of(group), output, *input_list)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """What each rank of `group` has for this rank in its `input_tensor_list`, of the sizes of `output_tensor_list`.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.all_to_all([naru.zeros(2)], [naru.ones(2)])
    (tensor([1., 1.]),)
    >>> naru.distributed.destroy_process_group()
    """
    return _AllToAll.apply(_group_of(group), list(output_tensor_list), *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None, input_split_sizes: Sequence[int] | None = None, group: Any = None
) -> Tensor:
    """all_to_all of the rows of one tensor `input`, of the size of `output`. Without split sizes each rank of `group` has as many rows.

    `output_split_sizes`, `input_split_sizes`: how many rows come from and go to each rank.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> naru.distributed.nn.functional.all_to_all_single(naru.zeros(2), naru.ones(2))
    tensor([1., 1.])
    >>> naru.distributed.destroy_process_group()
    """
    found = _group_of(group)
    size = found.size()
    for t, sizes, name in ((output, output_split_sizes, "output"), (input, input_split_sizes, "input")):
        if sizes is None and t.size(0) % size:
            raise ValueError(f"all_to_all_single: the {t.size(0)} rows of {name} do not divide among {size} ranks; give {name}_split_sizes")
    outputs = output.split(list(output_split_sizes) if output_split_sizes is not None else output.size(0) // size)
    inputs = input.split(list(input_split_sizes) if input_split_sizes is not None else input.size(0) // size)
    return _C.cat(all_to_all(outputs, inputs, found))


__getattr__ = _missing.module_getattr(__name__)
