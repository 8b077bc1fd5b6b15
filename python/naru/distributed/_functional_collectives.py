"""`torch.distributed._functional_collectives`: collectives that return new tensors. They are done when they return, and autograd remembers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from . import _groups
from .device_mesh import DeviceMesh
from .nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .. import Tensor

__all__: list[str] = []


class AsyncCollectiveTensor(_C.Tensor):
    """PyTorch's class of a result that is not there yet: no tensor is of it, because results are always there."""


def _group_of(group: Any) -> Any:
    """The group that is meant: a group, a mesh of one dimension, (a mesh, one of its dimensions), or ranks."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, (list, tuple)):
        if list(group) == list(_groups.world().ranks):
            return _groups.world()
        found = [g for g in _groups._World.groups if list(g.ranks) == list(group)]
        if not found:
            raise ValueError(f"functional collectives: no group of the ranks {list(group)}; make it with new_group")
        return found[0]
    return _groups.world() if group is None else group


def _op(name: str) -> Any:
    if isinstance(name, _groups.ReduceOp):
        return name
    if name.upper() not in _groups.ReduceOp.__members__:
        raise ValueError(f"reduceOp must be one of sum, avg, product, min, max, band, bor, bxor, got {name!r}")
    return _groups.ReduceOp[name.upper()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself: it is there."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensor of rank `src`."""
    return functional.broadcast(self, src, _group_of(group))


def all_reduce(self: Tensor, reduceOp: str, group: Any = None, tag: str = "") -> Tensor:  # noqa: N803
    """The reduction of all ranks' tensors by `reduceOp`: "sum", "avg" and others."""
    return functional.all_reduce(self, _op(reduceOp), _group_of(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """All ranks' tensors, joined along `gather_dim`."""
    return _C.cat(list(functional.all_gather(self.contiguous(), _group_of(group))), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any = None, tag: str = "") -> Tensor:  # noqa: N803
    """This rank's part along `scatter_dim` of the reduction of all ranks' tensors by `reduceOp`."""
    found = _group_of(group)
    if self.shape[scatter_dim] % found.size():
        raise AssertionError(f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size {found.size()}")
    parts = [p.contiguous() for p in self.chunk(found.size(), scatter_dim)]
    return functional.reduce_scatter(_C.empty_like(parts[0]), parts, _op(reduceOp), found)


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any = None, tag: str = ""
) -> Tensor:
    """The rows that all ranks have for this one; without split sizes each has as many."""
    sizes = list(self.shape)
    if output_split_sizes is not None:
        sizes[0] = sum(output_split_sizes)
    out = _C.empty(sizes, dtype=self.dtype, device=self.device)
    made = functional.all_to_all_single(out, self.contiguous(), output_split_sizes, input_split_sizes, _group_of(group))
    return made


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any = None, tag: str = "") -> list[Tensor]:  # noqa: N803
    """all_reduce of each tensor."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_single_coalesced(self: Sequence[Tensor], group: Any = None, tag: str = "") -> list[Tensor]:
    """all_gather_tensor of each tensor, along the first dimension."""
    return [all_gather_tensor(t, 0, group) for t in self]


def reduce_scatter_single_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Any = None, tag: str = ""  # noqa: N803
) -> list[Tensor]:
    """reduce_scatter_tensor of each tensor, along its own dimension."""
    return [reduce_scatter_tensor(t, reduceOp, dim, group) for t, dim in zip(inputs, scatter_dim, strict=True)]


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any = None, tag: str = "") -> Tensor:
    """The tensor of the rank that sends to this one; rank i sends to rank `src_dst[i]`."""
    found = _group_of(group)
    count = self.numel()
    sent, got = [0] * found.size(), [0] * found.size()
    sent[src_dst[found.rank()]] = count
    got[list(src_dst).index(found.rank())] = count
    return all_to_all_single(self.reshape(-1), got, sent, found).view(self.shape)


all_gather_tensor_autograd = all_gather_single = all_gather_single_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
all_gather_into_tensor_coalesced = all_gather_single_coalesced
reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

__getattr__ = _missing.module_getattr(__name__)
