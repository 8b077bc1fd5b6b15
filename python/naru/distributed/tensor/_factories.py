"""How distributed tensors are made: of plain ones, and by factories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from .._collectives import broadcast
from ..device_mesh import DeviceMesh, _current
from ._dtensor import DTensor, wrapped
from ._layout import Spec, local_part, move, normalized
from .placement_types import Partial, Placement, Replicate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ... import Tensor


def _mesh_or_current(device_mesh: DeviceMesh | None, what: str) -> DeviceMesh:
    if device_mesh is not None:
        return device_mesh
    if not _current:
        raise RuntimeError(f"{what}: No device mesh is currently active! Give device_mesh, or use `with mesh:`")
    return _current[-1]


def _parameter_of(made: DTensor, of: Any) -> DTensor:
    from ...nn.parameter import Parameter

    return Parameter(made, of.requires_grad) if isinstance(of, Parameter) else made.requires_grad_(of.requires_grad)


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A plain tensor, the same on all ranks, as a DTensor that is a leaf.

    Args:
        tensor: the whole tensor; that of one rank is taken.
        device_mesh: the mesh; None: that of `with mesh:`.
        placements: Shard or Replicate for each dimension of the mesh; None: Replicate.
        src_data_rank: the rank, within each line of the mesh, whose tensor is taken; None: each rank takes its own, and nothing is sent.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> naru.distributed.tensor.distribute_tensor(naru.ones(2), mesh, [naru.distributed.tensor.Shard(0)]).placements
    (Shard(dim=0),)
    >>> naru.distributed.destroy_process_group()
    """
    mesh = _mesh_or_current(device_mesh, "distribute_tensor")
    made = normalized(placements, mesh, tensor.dim(), "distribute_tensor")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != made:
            raise ValueError(f"distribute_tensor: the tensor is a DTensor already, on {tensor.device_mesh} with {tensor.placements}; use redistribute")
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if any(isinstance(p, Partial) for p in made):
        raise RuntimeError(f"Trying to distribute tensor with unsupported placements on device mesh: {made}; Partial only comes from operators")
    shape = tuple(tensor.shape)
    whole = tensor.detach()
    if whole.device.type not in (mesh.device_type, "meta"):
        whole = whole.to(mesh.device_type)
    if src_data_rank is not None and whole.device.type != "meta" and mesh._coordinate is not None and mesh.size() > 1:
        whole = whole.contiguous().clone()
        for m in range(mesh.ndim):
            broadcast(whole, group=mesh.get_group(m), group_src=src_data_rank)
    spec = Spec(mesh, made, shape)
    if mesh._coordinate is None:
        return _parameter_of(wrapped(_C.empty((0,), dtype=whole.dtype, device=whole.device), spec), tensor)
    local = move(whole, Spec(mesh, (Replicate(),) * mesh.ndim, shape), made)
    return _parameter_of(wrapped(local.clone() if local is whole and whole is not tensor and src_data_rank is None else local, spec), tensor)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Makes the parameters and buffers of a module DTensors, in place, and returns it.

    Args:
        module: the module.
        device_mesh: the mesh; None: that of `with mesh:`.
        partition_fn: called with (name, submodule, mesh) for each submodule, to distribute its parameters. Those that are left are replicated.
        input_fn: called with (module, inputs, mesh) before forward; returns the inputs.
        output_fn: called with (module, outputs, mesh) after forward; returns the outputs.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> layer = naru.distributed.tensor.distribute_module(naru.nn.Linear(2, 2), mesh)
    >>> layer.weight.placements
    (Replicate(),)
    >>> naru.distributed.destroy_process_group()
    """
    mesh = _mesh_or_current(device_mesh, "distribute_module")
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for table in (part._parameters, part._buffers):
            for key, value in table.items():
                if value is not None and not isinstance(value, DTensor):
                    table[key] = distribute_tensor(value, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def _made(
    name: str, make: Callable[..., Tensor], size: tuple, device_mesh: DeviceMesh | None, placements: Any, requires_grad: bool, random: bool, **options: Any
) -> DTensor:
    mesh = _mesh_or_current(device_mesh, name)
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    made = normalized(placements, mesh, len(shape), name)
    if any(isinstance(p, Partial) for p in made):
        raise ValueError(f"{name}: placements must be Shard or Replicate, got {made}")
    spec = Spec(mesh, made, shape)
    device = mesh.device_type
    if random:  # all ranks draw the whole tensor, so that the numbers do not depend on the layout
        local = move(make(shape, device=device, **options), Spec(mesh, (Replicate(),) * mesh.ndim, shape), made)
    else:
        local = make(local_part(spec)[0], device=device, **options)
    return wrapped(local, spec).requires_grad_(requires_grad)


def _factory(name: str, what: str, random: bool = False) -> Callable[..., DTensor]:
    make = getattr(_C, name)

    def factory(
        *size: Any, dtype: Any = None, layout: Any = _C.strided, requires_grad: bool = False, device_mesh: DeviceMesh | None = None, placements: Any = None
    ) -> DTensor:
        return _made(name, make, size, device_mesh, placements, requires_grad, random, dtype=dtype, layout=layout)

    factory.__name__ = factory.__qualname__ = name
    factory.__module__ = "naru.distributed.tensor"
    factory.__doc__ = f"""A DTensor of {what}.

    Args:
        size: the whole tensor's shape, as numbers or a tuple.
        dtype, layout, requires_grad: as for `torch.{name}`.
        device_mesh: the mesh; None: that of `with mesh:`.
        placements: Shard or Replicate for each dimension of the mesh; None: Replicate.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> naru.distributed.tensor.{name}(4, 2, device_mesh=mesh, placements=[naru.distributed.tensor.Shard(0)]).shape
    torch.Size([4, 2])
    >>> naru.distributed.destroy_process_group()
    """
    return factory


zeros = _factory("zeros", "zeros")
ones = _factory("ones", "ones")
empty = _factory("empty", "undefined elements")
rand = _factory("rand", "numbers uniform in [0, 1), the same for each layout if all ranks' generators are in the same state", True)
randn = _factory("randn", "normally distributed numbers, the same for each layout if all ranks' generators are in the same state", True)


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = _C.strided, requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
    placements: Any = None
) -> DTensor:  # fmt: skip
    """A DTensor filled with a number.

    Args:
        size: the whole tensor's shape.
        fill_value: the number.
        dtype, layout, requires_grad: as for `torch.full`.
        device_mesh: the mesh; None: that of `with mesh:`.
        placements: Shard or Replicate for each dimension of the mesh; None: Replicate.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> naru.distributed.tensor.full((2,), 7.0, device_mesh=mesh).to_local()
    tensor([7., 7.])
    >>> naru.distributed.destroy_process_group()
    """
    return _made("full", lambda shape, **more: _C.full(shape, fill_value, **more), (size,), device_mesh, placements, requires_grad, False, dtype=dtype, layout=layout)
