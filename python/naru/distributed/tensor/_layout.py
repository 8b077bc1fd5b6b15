"""Where the elements of a distributed tensor lie, and how local tensors move from one layout to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C
from ...autograd.function import Function
from .. import _collectives
from .._groups import ReduceOp
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ... import Tensor
    from ..device_mesh import DeviceMesh

_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "min": ReduceOp.MIN, "max": ReduceOp.MAX, "product": ReduceOp.PRODUCT}


class Spec(NamedTuple):
    """The layout of a distributed tensor: the mesh, a placement for each of its dimensions, and the whole tensor's shape."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]


def chunk(size: int, count: int, index: int) -> tuple[int, int]:
    """(first row, number of rows) of part `index` of `count`, as torch.chunk splits `size` rows."""
    rows = -(-size // count)
    first = min(size, rows * index)
    return first, min(size, first + rows) - first


def normalized(placements: Sequence[Placement] | Placement | None, mesh: DeviceMesh, dims: int, what: str) -> tuple[Placement, ...]:
    """The placements as a tuple, one for each dimension of the mesh, with dimensions from 0 on; None: Replicate."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    given = (placements,) if isinstance(placements, Placement) else tuple(placements)
    if len(given) != mesh.ndim:
        raise ValueError(f"{what}: `placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(given)}, "
                         f"and device_mesh.ndim: {mesh.ndim}.")  # fmt: skip
    made = []
    for p in given:
        if not isinstance(p, Placement):
            raise TypeError(f"{what}: placements must be Shard, Replicate or Partial, got {type(p).__name__}")
        if isinstance(p, Shard):
            if not -dims <= p.dim < dims:
                raise IndexError(f"{what}: {p!r} is of a dimension that a tensor of {dims} dimensions does not have")
            p = p if p.dim >= 0 else type(p)(p.dim + dims, *((p.split_factor,) if isinstance(p, _StridedShard) else ()))
        made.append(p)
    return tuple(made)


def splits(placements: Sequence[Placement], dim: int) -> list[int]:
    """The dimensions of the mesh that split dimension `dim`, in the order in which they do."""
    found = [m for m, p in enumerate(placements) if isinstance(p, Shard) and p.dim == dim]
    return [m for m in found if not isinstance(placements[m], _StridedShard)] + [m for m in found if isinstance(placements[m], _StridedShard)]


def local_part(spec: Spec, coordinate: Sequence[int] | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, offsets) of what the rank at `coordinate` of the mesh has; None: this rank. A rank outside of the mesh has nothing."""
    mesh, placements, shape = spec
    at = mesh._coordinate if coordinate is None else coordinate
    if at is None:
        return (0,), (0,)
    sizes, offsets = list(shape), [0] * len(shape)
    for dim in range(len(shape)):
        for m in splits(placements, dim):
            first, sizes[dim] = chunk(sizes[dim], mesh.shape[m], at[m])
            offsets[dim] += first
    return tuple(sizes), tuple(offsets)


def _gather(local: Tensor, spec: Spec, m: int, dim: int) -> Tensor:
    """Joins the parts along mesh dimension m, the last one that splits `dim`."""
    mesh, placements, shape = spec
    size, count = shape[dim], mesh.shape[m]
    for other in splits(placements, dim)[:-1]:
        size = chunk(size, mesh.shape[other], mesh._coordinate[other])[1]
    rows = -(-size // count)
    parts = [_C.empty((*local.shape[:dim], rows, *local.shape[dim + 1 :]), dtype=local.dtype, device=local.device) for _ in range(count)]
    mine = local.contiguous()
    if local.shape[dim] != rows:
        mine = _C.zeros(parts[0].shape, dtype=local.dtype, device=local.device)
        mine.narrow(dim, 0, local.shape[dim]).copy_(local)
    _collectives.all_gather(parts, mine, mesh.get_group(m))
    return _C.cat([p.narrow(dim, 0, chunk(size, count, i)[1]) for i, p in enumerate(parts)], dim)


def _reduce(local: Tensor, spec: Spec, m: int, to: Placement) -> tuple[Tensor, Placement]:
    """The sum (or other reduction) along mesh dimension m: this rank's shard of it if `to` says so and all shards are equal, else all of it."""
    mesh, placements, _ = spec
    op, group, count = _OPS[placements[m].reduce_op], mesh.get_group(m), mesh.shape[m]
    if isinstance(to, Shard) and local.shape[to.dim] % count == 0 and not splits(placements, to.dim):
        parts = [p.contiguous() for p in local.chunk(count, to.dim)] if local.shape[to.dim] else [local] * count
        made = _C.empty_like(parts[0])
        _collectives.reduce_scatter(made, parts, op, group)
        return made, Shard(to.dim)
    made = local.contiguous().clone()
    _collectives.all_reduce(made, op, group)
    return made, Replicate()


def _exchange(local: Tensor, spec: Spec, m: int, to: int) -> Tensor:
    """From shards of one dimension to shards of dimension `to`, along mesh dimension m, which alone splits both."""
    mesh, placements, shape = spec
    frm, count, mine = placements[m].dim, mesh.shape[m], mesh._coordinate[m]
    sent = []
    for i in range(count):
        first, rows = chunk(local.shape[to], count, i)
        sent.append(local.narrow(to, first, rows).contiguous())
    got = []
    for i in range(count):
        sizes = list(sent[mine].shape)
        sizes[frm] = chunk(shape[frm], count, i)[1]
        got.append(_C.empty(sizes, dtype=local.dtype, device=local.device))
    _collectives.all_to_all(got, sent, mesh.get_group(m))
    return _C.cat(got, frm)


def _as_partial(local: Tensor, op: str, count: int) -> Tensor:
    """This rank's part of a pending reduction to a value that each rank has."""
    if op == "sum":
        return local / count
    if op == "product":
        raise NotImplementedError("redistribute: Replicate to Partial('product') has no one meaning; stay at Replicate")
    return local


def move(local: Tensor, spec: Spec, placements: Sequence[Placement]) -> Tensor:
    """The local tensor of the same whole tensor with other placements. Ranks of the mesh call it together."""
    mesh, now, shape = spec[0], list(spec[1]), spec[2]
    if tuple(now) == tuple(placements) or mesh._coordinate is None:
        return local
    for m, (old, new) in enumerate(zip(spec.placements, placements)):
        if isinstance(old, Partial) and old != new:
            local, now[m] = _reduce(local, Spec(mesh, tuple(now), shape), m, new)
    for m, new in enumerate(placements):
        old = now[m]
        if isinstance(old, Shard) and isinstance(new, Shard) and old.dim != new.dim and type(old) is type(new) is Shard:
            if splits(now, old.dim) == [m] and not splits(now, new.dim) and splits(placements, new.dim) == [m]:
                local = _exchange(local, Spec(mesh, tuple(now), shape), m, new.dim)
                now[m] = new
    for dim in range(len(shape)):
        have, want = splits(now, dim), splits(placements, dim)
        common = 0
        while common < min(len(have), len(want)) and have[common] == want[common]:
            common += 1
        for m in reversed(have[common:]):
            local = _gather(local, Spec(mesh, tuple(now), shape), m, dim)
            now[m] = Replicate()
    for dim in range(len(shape)):
        for m in splits(placements, dim):
            if m not in splits(now, dim):
                first, rows = chunk(local.shape[dim], mesh.shape[m], mesh._coordinate[m])
                local = local.narrow(dim, first, rows).contiguous().clone()
            now[m] = placements[m]
    for m, new in enumerate(placements):
        if isinstance(new, Partial) and now[m] != new:
            local = _as_partial(local, new.reduce_op, mesh.shape[m])
    return local


def dual(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """How the gradient of a local tensor lies: as the tensor, but whole where that is pending."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def _averaged(placements: Sequence[Placement], mesh: DeviceMesh) -> int:
    """By what the gradient of the whole tensor is divided for that of a local tensor."""
    made = 1
    for m, p in enumerate(placements):
        if isinstance(p, Partial) and p.reduce_op not in ("sum", "avg"):
            raise NotImplementedError(f"{p!r} has no gradient; redistribute to Replicate before the reduction")
        made *= mesh.shape[m] if isinstance(p, Partial) and p.reduce_op == "avg" else 1
    return made


class _Move(Function):
    """`move` of a local tensor, with the gradient moved back."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: Spec, placements: tuple[Placement, ...]) -> Tensor:
        ctx.spec, ctx.placements = spec, placements
        return move(local.detach(), spec, placements)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        mesh, placements, shape = ctx.spec
        factor = _averaged(ctx.placements, mesh) / _averaged(placements, mesh)
        made = move(grad, Spec(mesh, dual(ctx.placements), shape), dual(placements))
        return made if factor == 1 else made * factor, None, None


class _Relabelled(Function):
    """A local tensor as it is, whose gradient comes with other placements than usual."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: Spec, grad_placements: tuple[Placement, ...]) -> Tensor:
        ctx.spec, ctx.grad_placements = spec, grad_placements
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        mesh, placements, shape = ctx.spec
        return move(grad, Spec(mesh, ctx.grad_placements, shape), dual(placements)), None, None


class _SummedGradient(Function):
    """A local tensor as it is; its gradient is the sum of those along dimensions of the mesh."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, mesh: DeviceMesh, dims: tuple[int, ...]) -> Tensor:
        ctx.mesh, ctx.dims = mesh, dims
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        made = grad.contiguous().clone()
        for m in ctx.dims:
            _collectives.all_reduce(made, ReduceOp.SUM, ctx.mesh.get_group(m))
        return made, None, None


def moved(local: Tensor, spec: Spec, placements: tuple[Placement, ...]) -> Tensor:
    """`move`, remembered by autograd."""
    if placements == spec.placements:
        return local
    if local.requires_grad and _C.is_grad_enabled():
        return _Move.apply(local, spec, placements)
    return move(local, spec, placements)


def relabelled(local: Tensor, spec: Spec, grad_placements: tuple[Placement, ...]) -> Tensor:
    """The local tensor for computations of the user's, whose gradient has `grad_placements`."""
    if grad_placements == dual(spec.placements) or not local.requires_grad:
        return local
    return _Relabelled.apply(local, spec, grad_placements)


def with_summed_gradient(local: Tensor, mesh: DeviceMesh, dims: tuple[int, ...]) -> Tensor:
    """The local tensor, whose gradient is summed along these dimensions of the mesh."""
    if not dims or not local.requires_grad or not _C.is_grad_enabled():
        return local
    return _SummedGradient.apply(local, mesh, dims)
