"""`torch.distributed.tensor.parallel.api`: what applies a plan to a module."""

from __future__ import annotations

import copy
from fnmatch import fnmatch
from typing import Any

from .... import _missing
from ...device_mesh import DeviceMesh
from .._factories import _mesh_or_current
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any, device_mesh: DeviceMesh | None = None, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Any:
    """Splits a module over a mesh of one dimension, in place, and returns it.

    Args:
        module: the module.
        device_mesh: the mesh; None: that of `with mesh:`.
        parallelize_plan: a style for the module, or a dict from names of submodules ("*" for any part of a name) to styles.
        src_data_rank: the rank of the mesh whose parameters are taken; None: each rank takes its own.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> net = naru.nn.Sequential(naru.nn.Linear(2, 4))
    >>> parallel = naru.distributed.tensor.parallel
    >>> parallel.parallelize_module(net, mesh, {"0": parallel.ColwiseParallel()})[0].weight.placements
    (Shard(dim=0),)
    >>> naru.distributed.destroy_process_group()
    """
    mesh = _mesh_or_current(device_mesh, "parallelize_module")
    if mesh.ndim != 1:
        raise ValueError(f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! Give it one dimension: mesh['tp']")
    if parallelize_plan is None:
        import warnings

        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will do nothing.",
                      stacklevel=2)  # fmt: skip
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return _styled(module, mesh, parallelize_plan, src_data_rank)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        parts = path.split(".") if path else []
        found = [module]
        for part in parts:
            found = [child for each in found for name, child in each.named_children() if fnmatch(name, part)]
        if not found:
            import warnings

            warnings.warn(f"parallelize_plan: no submodule matches {path!r}", stacklevel=2)
        for each in found:
            _styled(each, mesh, style, src_data_rank)
    return module


def _styled(module: Any, mesh: DeviceMesh, style: ParallelStyle, src_data_rank: int | None) -> Any:
    style = copy.copy(style)
    style.src_data_rank = src_data_rank
    return style._apply(module, mesh)


__getattr__ = _missing.module_getattr(__name__)
