"""The parameters of one `fully_shard`: gathered together before they are used, and their gradients reduced together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import _C
from ...autograd.grad_mode import no_grad
from ...nn.parameter import Parameter
from .. import _collectives
from .._groups import ReduceOp
from ..tensor._dtensor import DTensor, _base, local_of, watch, wrapped
from ..tensor._layout import Spec, chunk, local_part
from ..tensor.placement_types import Replicate, Shard, _StridedShard
from ._policies import CPUOffloadPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ... import Tensor
    from ..device_mesh import DeviceMesh


class Param:
    """A parameter: its shard, and the whole of it while it is used.

    Args:
        param: the whole parameter, or a DTensor of tensor parallelism.
        places: the modules that have it, with its name there.
        mesh: of one dimension, along which it is sharded, or of two, along whose first it is replicated.
        dim: the dimension that is sharded.
        on: the device of the shard.
        same: whether the object itself becomes the shard, so that an optimizer that has it already goes on with it.
    """

    def __init__(self, param: Any, places: list[tuple[Any, str]], mesh: DeviceMesh, dim: int, on: Any, same: bool = False) -> None:
        self.places, self.dim = places, dim
        self.inner: Spec | None = param._spec if isinstance(param, DTensor) else None
        whole = local_of(param).detach() if isinstance(param, DTensor) else param.detach()
        if dim >= max(whole.dim(), 1):
            raise ValueError(f"fully_shard: dimension {dim} of a parameter of shape {list(whole.shape)} can't be sharded")
        if whole.dim() == 0:
            raise ValueError("fully_shard doesn't support scalar parameters. Change them to a 1D tensor with numel equal to 1.")
        self.local_shape = tuple(whole.shape)  # of what a rank of the inner mesh has
        count, index = mesh.shape[-1], mesh.get_local_rank(mesh.ndim - 1)
        first, rows = chunk(whole.shape[dim], count, index)
        shard = whole.narrow(dim, first, rows).contiguous().clone().to(on)
        placement = Shard(dim)
        if self.inner is not None:
            factor = math.prod(n for n, p in zip(self.inner.mesh.shape, self.inner.placements) if p == Shard(dim))
            placement = Shard(dim) if factor == 1 else _StridedShard(dim, split_factor=factor)
        placements = (*[Replicate()] * (mesh.ndim - 1), placement, *(() if self.inner is None else self.inner.placements))
        shape = self.local_shape if self.inner is None else self.inner.shape
        self.spec = Spec(mesh if self.inner is None else _joined(mesh, self.inner.mesh), placements, shape)
        if local_part(self.spec)[0] != tuple(shard.shape):
            raise NotImplementedError(
                f"fully_shard: a parameter of shape {list(shape)} with {self.spec.placements} does not split evenly on {self.spec.mesh}; choose another mesh"
            )
        if same and type(param) is Parameter:
            watch()
            param.data = shard
            param.__class__ = DTensor
            param._spec, param._is_param, self.sharded = self.spec, True, param
        else:
            self.sharded = Parameter(wrapped(shard, self.spec), param.requires_grad)
        self.padded = list(self.local_shape)
        self.padded[dim] = -(-self.padded[dim] // count)  # the shape of each rank's shard, filled up
        self.whole: Any = None
        self.seen = -1  # the version of the shard that was gathered
        self.set(self.sharded)

    def set(self, param: Any) -> None:
        """Puts a parameter into the modules."""
        for module, name in self.places:
            module._parameters[name] = param

    def current(self) -> Any:
        """The shard, which a program may have replaced."""
        module, name = self.places[0]
        found = module._parameters[name]
        if found is not self.whole and found is not self.sharded:
            if not isinstance(found, DTensor) or found.placements != self.spec.placements:
                raise RuntimeError(f"fully_shard: the parameter {name} was replaced by one that is not sharded as {self.spec.placements}")
            self.sharded = found
        return self.sharded

    def filled(self, dtype: Any, device: Any) -> Tensor:
        """The shard's elements, filled up to the same number on each rank."""
        local = local_of(self.current()).detach().to(device, dtype)
        if list(local.shape) != self.padded:
            full = _C.zeros(self.padded, dtype=local.dtype, device=local.device)
            full.narrow(self.dim, 0, local.shape[self.dim]).copy_(local)
            local = full
        return local.reshape(-1)

    def take(self, parts: Tensor) -> None:
        """Makes the whole parameter of all ranks' shards, (ranks, elements)."""
        if self.dim == 0:
            whole = parts.reshape(-1, *self.padded[1:])
        else:
            whole = _C.cat(list(parts.reshape(-1, *self.padded)), self.dim)
        whole = whole.narrow(self.dim, 0, self.local_shape[self.dim]).contiguous().clone()
        if self.whole is None:
            self.whole = Parameter(whole if self.inner is None else wrapped(whole, self.inner), self.sharded.requires_grad)
        else:
            _base["data"].__set__(self.whole, whole)
            self.whole.requires_grad_(self.sharded.requires_grad)
        self.set(self.whole)

    def free(self) -> None:
        """Drops the whole parameter's elements; the object keeps its shape and its gradient."""
        if self.whole is not None:
            empty = _C.empty(1, dtype=self.whole.dtype, device=self.whole.device)
            _base["data"].__set__(self.whole, empty.expand(self.local_shape))
        self.set(self.sharded)

    def gradient(self) -> Tensor | None:
        """The gradient of the whole parameter, on this rank."""
        return None if self.whole is None else _base["grad"].__get__(self.whole)

    def drop_gradient(self) -> None:
        """Forgets the gradient of the whole parameter."""
        _base["grad"].__set__(self.whole, None)

    def add_gradient(self, shard: Tensor) -> None:
        """Adds to the shard's gradient."""
        param = self.sharded
        grad = _base["grad"].__get__(param)
        local = shard.view(self.padded).narrow(self.dim, 0, local_of(param).shape[self.dim]).to(param.device, param.dtype)
        if grad is None:
            param.grad = wrapped(local.contiguous().clone(), self.spec)
        else:
            (local_of(grad) if isinstance(grad, DTensor) else grad).add_(local)


def _joined(outer: DeviceMesh, inner: DeviceMesh) -> DeviceMesh:
    if outer._root != inner._root:
        raise ValueError(
            f"FSDP requires the DP and model parallel TP mesh to have the same parent mesh but got: DP's global mesh: {outer._root}, TP's: {inner._root}"
        )
    names = (*outer.mesh_dim_names, *inner.mesh_dim_names) if outer.mesh_dim_names and inner.mesh_dim_names else None
    return outer._root._child((*outer._dims, *inner._dims), names)


class Group:
    """The parameters that are gathered and reduced together.

    Args:
        params: the parameters.
        mesh: as for Param.
        mp_policy, offload_policy: the policies.
        accumulated: called when the gradients of all parameters are there.
    """

    def __init__(self, params: list[Param], mesh: DeviceMesh, mp_policy: Any, offload_policy: Any, accumulated: Callable[[], None]) -> None:
        self.params, self.mp_policy = params, mp_policy
        self.shard_group = mesh.get_group(mesh.ndim - 1)
        self.replicate_group = mesh.get_group(0) if mesh.ndim == 2 else None
        self.device_type = mesh.device_type
        self.to_cpu = isinstance(offload_policy, CPUOffloadPolicy)
        self.unsharded = False
        self.requires_sync = self.requires_all_reduce = True
        self.factor: float | None = None  # what summed gradients are divided by, instead of the number of ranks
        self.arrived = 0
        self._accumulated = accumulated
        self._gathering: tuple[Any, Tensor, list[list[Param]]] | None = None
        self._reducing: list[Any] | None = None  # (work, what is sent, the result, the parameters) of each batch
        self._partial: dict[Any, Tensor] = {}  # sums within the shard group that wait for the all_reduce
        self._hooked: set[int] = set()

    def _batches(self, dtype_of: Callable[[Param], Any], params: Sequence[Param]) -> list[tuple[Any, list[Param]]]:
        found: dict[Any, list[Param]] = {}
        for p in params:
            found.setdefault(dtype_of(p), []).append(p)
        return list(found.items())

    # --- parameters

    @no_grad()
    def unshard(self, async_op: bool = False) -> None:
        """Gathers the parameters, unless they are there and as the shards are; with async_op only begins to."""
        if self.unsharded and all(p.seen == p.sharded._version for p in self.params):
            return
        if self._gathering is None:
            self._gathering = self._gather(async_op)
        if not async_op:
            self._finish_gather()

    def _gather(self, async_op: bool) -> Any:
        if self.unsharded:
            self.reshard()
        made = []
        for p in self.params:
            p.seen = p.current()._version
        for dtype, params in self._batches(lambda p: self.mp_policy.param_dtype if p.sharded.is_floating_point() and self.mp_policy.param_dtype else p.sharded.dtype, self.params):
            mine = _C.cat([p.filled(dtype, self.device_type) for p in params])
            out = _C.empty(self.shard_group.size() * mine.numel(), dtype=mine.dtype, device=mine.device)
            work = _collectives.all_gather_into_tensor(out, mine, self.shard_group, async_op)
            made.append((work, mine, out.view(self.shard_group.size(), -1), params))
        return made

    def _finish_gather(self) -> None:
        for work, _, out, params in self._gathering or ():
            if work is not None:
                work.wait()
            first = 0
            for p in params:
                count = math.prod(p.padded)
                p.take(out[:, first : first + count])
                first += count
        self._gathering = None
        self.unsharded = True
        for p in self.params:
            if id(p.whole) not in self._hooked and p.whole.requires_grad:
                self._hooked.add(id(p.whole))
                p.whole.register_post_accumulate_grad_hook(self._arrival)

    def reshard(self) -> None:
        """Drops the gathered parameters: the modules have the shards."""
        if self._gathering is not None:
            self._finish_gather()
        if self.unsharded:
            for p in self.params:
                p.free()
            self.unsharded = False

    # --- gradients

    def _arrival(self, param: Any) -> None:
        self.arrived += 1
        if self.arrived == sum(p.whole is not None and p.whole.requires_grad for p in self.params):
            self.arrived = 0
            self._accumulated()

    @no_grad()
    def reduce(self) -> None:
        """Begins to average the gradients over the ranks; `finish_reduce` adds them to those of the shards."""
        self.finish_reduce()
        with_gradient = [p for p in self.params if p.gradient() is not None]
        if not self.requires_sync or not with_gradient:
            return
        begun = []
        for dtype, params in self._batches(lambda p: self.mp_policy.reduce_dtype or p.gradient().dtype, with_gradient):  # type: ignore[union-attr]
            size = self.shard_group.size()
            flat = _C.cat([self._rows(p, dtype, size) for p in params], 1)
            for p in params:
                p.drop_gradient()
            out = _C.empty(flat.shape[1], dtype=dtype, device=flat.device)
            op = ReduceOp.AVG if self.factor is None else ReduceOp.SUM
            work = _collectives.reduce_scatter_tensor(out, flat.view(-1), op, self.shard_group, async_op=True)
            begun.append((work, flat, out, params))
        self._reducing = begun

    def _rows(self, p: Param, dtype: Any, size: int) -> Tensor:
        """The gradient as (ranks, elements of a filled shard)."""
        grad = p.gradient()
        grad = (local_of(grad) if isinstance(grad, DTensor) else grad).to(dtype)
        short = p.padded[p.dim] * size - grad.shape[p.dim]
        if short:
            shape = list(grad.shape)
            shape[p.dim] = short
            grad = _C.cat([grad, _C.zeros(shape, dtype=dtype, device=grad.device)], p.dim)
        if p.dim:
            grad = _C.cat([part.reshape(1, -1) for part in grad.chunk(size, p.dim)])
        return grad.reshape(size, -1)

    def _take_gradients(self, begun: list[Any]) -> None:
        for work, flat, out, params in begun:
            work.wait()
            if self.replicate_group is not None:
                key = tuple(id(p) for p in params)
                if key in self._partial:
                    out.add_(self._partial.pop(key))
                if not self.requires_all_reduce:
                    self._partial[key] = out
                    continue
                _collectives.all_reduce(out, ReduceOp.AVG if self.factor is None else ReduceOp.SUM, self.replicate_group)
            if self.factor is not None:
                out.div_(self.factor)
            first = 0
            for p in params:
                count = math.prod(p.padded)
                p.add_gradient(out[first : first + count])
                first += count

    @no_grad()
    def finish_reduce(self) -> None:
        """Waits for the reduction that was begun."""
        if self._reducing is not None:
            begun, self._reducing = self._reducing, None
            self._take_gradients(begun)

    def abandon(self) -> None:
        """Drops gathered parameters and gradients that were not reduced, after a backward that has failed."""
        for work, *_ in self._reducing or ():
            work.wait()
        self._reducing, self.arrived = None, 0
        if self.requires_sync:
            for p in self.params:
                if p.whole is not None:
                    p.drop_gradient()
        self.reshard()
