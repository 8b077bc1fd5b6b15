"""What is computed of several distributed tensors together."""

from __future__ import annotations

from typing import Any

from ... import _C
from ...autograd.grad_mode import no_grad
from .._collectives import all_reduce
from .._groups import ReduceOp
from ._dtensor import DTensor, wrapped
from ._layout import Spec, dual
from .placement_types import Replicate

Tensor = _C.Tensor


@no_grad()
def total_norm(tensors: list[Any], order: float, error_if_nonfinite: bool) -> Any:
    """The norm of the order `order`, a replicated DTensor on the first tensor's mesh. Tensors may be on several meshes."""
    norms = []
    for t in tensors:
        norm = t.norm(order)
        norms.append(norm.redistribute(placements=dual(norm.placements)).to_local() if isinstance(norm, DTensor) else norm)
    total = _C._get_total_norm(norms, order, error_if_nonfinite)
    mesh = next(t for t in tensors if isinstance(t, DTensor)).device_mesh
    return wrapped(total, Spec(mesh, (Replicate(),) * mesh.ndim, ()))


@no_grad()
def agree(found: dict[Any, Any], params: list[Any]) -> None:
    """Sets the numbers, one for each device, to the greatest of all ranks that have parts of the parameters."""
    groups = {id(group): group for p in params if isinstance(p, DTensor) for group in p.device_mesh.get_all_groups()}
    for group in groups.values():
        for number in found.values():
            all_reduce(number, ReduceOp.MAX, group)
