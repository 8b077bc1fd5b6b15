"""`torch.distributed.nn.functional`: differentiable collectives; backward communicates in the opposite direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ...autograd.function import Function
from .. import _collectives, _groups

if TYPE_CHECKING:
    from ... import Tensor

__all__ = ["all_gather", "all_reduce", "broadcast"]


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


__getattr__ = _missing.module_getattr(__name__)
