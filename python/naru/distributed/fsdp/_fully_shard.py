"""`fully_shard`: each rank keeps a shard of each parameter, its gradient and its optimizer state; the whole is there only while it is used."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ... import _C
from ...autograd.graph import queue_callback, saved_tensors_hooks
from .._groups import world
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._dispatch import substituted
from ..tensor._dtensor import DTensor, local_of
from ._group import Group, Param
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` returns: `wait()` ends the gathering.

    Args:
        group: the parameters; None if there are none.

    >>> naru.distributed.fsdp.UnshardHandle(None).wait()
    """

    def __init__(self, group: Any = None) -> None:
        self._group = group

    def wait(self) -> None:
        """Waits until the parameters are there."""
        if self._group is not None:
            self._group.unshard()


class _Run:
    """What all states of a model share: the order of forwards, and the backward under way."""

    def __init__(self) -> None:
        self.order: list[State] = []  # of the last forward
        self.in_backward = False
        self.done: set[int] = set()  # states whose gradients were reduced in this backward
        self.states: list[State] = []


    def abandon(self) -> None:
        """Forgets a backward that has failed: gradients that were not reduced are dropped."""
        self.in_backward = False
        for state in self.states:
            if state.group is not None:
                state.group.abandon()


def _backward_runs() -> bool:
    try:
        queue_callback(lambda: None)
    except RuntimeError:
        return False
    return True


class State:
    """One `fully_shard`: its modules, their group of parameters, and what is set for them."""

    def __init__(self, modules: list[Any], reshard_after_forward: bool | None, mp_policy: MixedPrecisionPolicy) -> None:
        self.modules, self.mp_policy = modules, mp_policy
        self.reshard_after_forward = reshard_after_forward
        self.reshard_after_backward = True
        self.group: Group | None = None
        self.run: _Run | None = None
        self.is_root = False
        self.depth = 0  # forwards under way
        self.forward_prefetch: list[State] = []
        self.backward_prefetch: list[State] | None = None

    def begin(self) -> _Run:
        """Joins the states of the modules within, at the first forward: this one is their root."""
        if self.run is None:
            self.run, self.is_root = _Run(), True
            self.run.states.append(self)
            for module in self.modules:
                for part in module.modules():
                    state = _state_of(part)
                    if state is not None and state is not self and state not in self.run.states:
                        state.run, state.is_root = self.run, False
                        self.run.states.append(state)
            if self.reshard_after_forward is None:
                self.reshard_after_forward = False
        return self.run

    def call(self, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls a module's forward with whole parameters."""
        run = self.begin()
        if run.in_backward and not _backward_runs():  # the last one has failed
            run.abandon()
        recomputing = run.in_backward
        if self.is_root and not recomputing and not self.depth:
            run.order = []
        if self.group is not None:
            self.group.unshard()
        if not recomputing:
            for state in self.forward_prefetch:
                if state.group is not None:
                    state.group.unshard(async_op=True)
        if self.mp_policy.cast_forward_inputs and self.mp_policy.param_dtype is not None:
            args, kwargs = _cast(args, self.mp_policy.param_dtype), _cast(kwargs, self.mp_policy.param_dtype)
        self.depth += 1
        try:
            if self.group is None or not _C.is_grad_enabled():
                made = forward(*args, **kwargs)
            else:
                with saved_tensors_hooks(self._pack, _unpack):
                    made = forward(*args, **kwargs)
        finally:
            self.depth -= 1
        if not recomputing and not self.depth:
            if self in run.order:
                run.order.remove(self)
            run.order.append(self)
        if self.group is not None and self.reshard_after_forward is not False and not recomputing and not self.depth:
            self.group.reshard()
        if self.mp_policy.output_dtype is not None:
            made = _cast(made, self.mp_policy.output_dtype)
        return self._watched(made)

    def _pack(self, t: Any) -> Any:
        """What is kept of a tensor for backward: of a parameter, or a view of one, only which it is."""
        base = t._base
        for p in self.group.params:  # type: ignore[union-attr]
            if t is p.whole:
                return p, None
            if base is not None and base is p.whole:
                return p, (tuple(t.shape), t.stride(), t.storage_offset())
        return t

    def _watched(self, made: Any) -> Any:
        """The outputs, whose gradients make the parameters whole again."""

        def watch(t: Any) -> Any:
            if t.requires_grad:
                t.register_hook(self._before_backward)
            return t

        return substituted(made, watch) if _C.is_grad_enabled() else made

    # --- backward

    def _before_backward(self, grad: Any) -> None:
        run = self.run
        assert run is not None
        if not run.in_backward:
            run.in_backward = True
            run.done.clear()
            for state in run.states:
                if state.group is not None:
                    state.group.arrived = 0
            queue_callback(functools.partial(_finish, run))
        if self.group is not None:
            self.group.unshard()
        for state in self._next_backward(run):
            if state.group is not None and id(state) not in run.done:
                state.group.unshard(async_op=True)

    def _next_backward(self, run: _Run) -> list[State]:
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        at = run.order.index(self) if self in run.order else 0
        return run.order[at - 1 : at] if at else []

    def after_backward(self) -> None:
        """Reduces the gradients, and drops the whole parameters."""
        assert self.run is not None and self.group is not None
        self.run.done.add(id(self))
        for state in self.run.states:  # the reduction before this one
            if state.group is not None:
                state.group.finish_reduce()
        self.group.reduce()
        if self.reshard_after_backward:
            self.group.reshard()


def _finish(run: _Run) -> None:
    """The end of a backward: reduces what was not complete (parameters that were not used), and waits for all reductions."""
    run.in_backward = False
    for state in run.states:
        if state.group is not None and id(state) not in run.done and any(p.gradient() is not None for p in state.group.params):
            state.after_backward()
        elif state.group is not None and state.reshard_after_backward and id(state) not in run.done:
            state.group.reshard()
    for state in run.states:
        if state.group is not None:
            state.group.finish_reduce()


def _unpack(kept: Any) -> Any:
    if isinstance(kept, Tensor):
        return kept
    p, view = kept
    return p.whole if view is None else (local_of(p.whole) if isinstance(p.whole, DTensor) else p.whole).as_strided(*view)


def _cast(value: Any, dtype: Any) -> Any:
    return substituted(value, lambda t: t.to(dtype) if t.is_floating_point() else t)


class FSDPModule:
    """What `fully_shard` adds to a module's class.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> isinstance(naru.distributed.fsdp.fully_shard(naru.nn.Linear(2, 1)), naru.distributed.fsdp.FSDPModule)
    True
    >>> naru.distributed.destroy_process_group()
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of the class that fully_shard was called on: a copy made by its constructor is not sharded."""
        kind = cls.__mro__[2]
        made = kind.__new__(kind, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    _fsdp_state: State

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_state.call(super().__call__, args, kwargs)  # type: ignore[misc]

    def _states(self, recurse: bool = True) -> list[State]:
        parts = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return list({id(s): s for s in map(_state_of, parts) if s is not None}.values())

    def _groups(self, recurse: bool = True) -> list[Group]:
        return [s.group for s in self._states(recurse) if s.group is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Makes this module's parameters whole, those of modules within that are sharded apart excepted. With `async_op` returns a handle."""
        self._fsdp_state.begin()
        group = self._fsdp_state.group
        if group is not None:
            group.unshard(async_op)
        return UnshardHandle(group) if async_op else None

    def reshard(self) -> None:
        """Drops this module's whole parameters: it has the shards again."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.reshard()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted for PyTorch's sake: each backward ends with all that it has begun."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward reduces gradients. Without, they are added up on each rank, for a later backward that does."""
        for group in self._groups(recurse):
            group.requires_sync = group.requires_all_reduce = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward also reduces gradients between replicas, on a mesh of two dimensions."""
        for group in self._groups(recurse):
            group.requires_all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether forward drops the whole parameters at its end."""
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether backward drops the whole parameters at its end."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Modules whose parameters begin to be gathered when this one's forward begins."""
        self._fsdp_state.forward_prefetch = [m._fsdp_state for m in modules]

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Modules whose parameters begin to be gathered when this one's backward begins; by default that of the module called before it."""
        self._fsdp_state.backward_prefetch = [m._fsdp_state for m in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What the sum of all ranks' gradients is divided by, instead of their number."""
        for group in self._groups(False):
            group.factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Accepted for PyTorch's sake: backward gathers what it needs."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted for PyTorch's sake."""

    def _set_unshard_async_op(self, async_op: bool) -> None:
        """Accepted for PyTorch's sake."""

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        for group in self._groups():
            group.reshard()
        return super()._apply(*args, **kwargs)  # type: ignore[misc]

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.reshard()
        super()._save_to_state_dict(*args, **kwargs)  # type: ignore[misc]

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.reshard()
        super()._load_from_state_dict(*args, **kwargs)  # type: ignore[misc]


def _state_of(module: Any) -> State | None:
    return module.__dict__.get("_fsdp_state")


def _managed(modules: list[Any], ignored: set[int]) -> dict[int, tuple[Any, list[tuple[Any, str]]]]:
    """The parameters of the modules that no other fully_shard has: by id, with the places where each is."""
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    seen: set[int] = set()

    def visit(module: Any) -> None:
        if id(module) in seen or _state_of(module) is not None:
            return
        seen.add(id(module))
        for name, param in module._parameters.items():
            if param is not None and id(param) not in ignored:
                found.setdefault(id(param), (param, []))[1].append((module, name))
        for child in module.children():
            visit(child)

    for module in modules:
        visit(module)
    return found


def device_type_of(params: Sequence[Any]) -> str:
    """The kind of devices that parameters are sharded on: theirs, if that is no host's, else cuda where there is some."""
    kinds = [p.device.type for p in params if p.device.type not in ("meta", "cpu")]
    return kinds[0] if kinds else "cuda" if _C.is_available("cuda") else "cpu"


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
    offload_policy: OffloadPolicy = OffloadPolicy(),
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Shards a module's parameters over the ranks, in place, and returns it: FSDP2.

    Parameters become DTensors of which each rank has a part of the rows. Forward and backward gather them, backward averages gradients over the ranks and
    leaves each rank its part. Call it on the layers of a model first and then on the model: each call is gathered on its own.

    Args:
        module: the module, or a list of modules that are gathered together.
        mesh: of one dimension, or of two: parameters are replicated along the first (HSDP) and sharded along the second. None: all ranks.
        reshard_after_forward: whether whole parameters are dropped between forward and backward. None: of all modules but the outermost. A number, as True.
        shard_placement_fn: from a parameter to the Shard that says which dimension is split; None from it, and by default: the first.
        mp_policy: the dtypes.
        offload_policy: where shards lie.
        ignored_params: parameters that are left as they are.
        dp_mesh_dims: not there (NotImplementedError): slice the mesh.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> net = naru.nn.Sequential(naru.nn.Linear(2, 4), naru.nn.Linear(4, 1))
    >>> mesh = naru.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> for layer in (*net, net):
    ...     _ = naru.distributed.fsdp.fully_shard(layer, mesh=mesh)
    >>> net(naru.ones(3, 2)).sum().backward()
    >>> net[0].weight.grad.placements
    (Shard(dim=0),)
    >>> naru.distributed.destroy_process_group()
    """
    from ...nn import Module, ModuleDict, ModuleList

    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for each in modules:
        if not isinstance(each, Module):
            raise TypeError(f"fully_shard: wanted an nn.Module, got {type(each).__name__}")
        if isinstance(each, (ModuleList, ModuleDict)) and type(each).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if _state_of(each) is not None:
            raise AssertionError("fully_shard was called on this module already")
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard: dp_mesh_dims is not there; give mesh=mesh[...] with the dimensions of data parallelism")
    found = _managed(modules, {id(p) for p in ignored_params or ()})
    if mesh is None:
        mesh = init_device_mesh(device_type_of([p for p, _ in found.values()]), (world().size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    return shard(module, modules, found, mesh, reshard_after_forward, shard_placement_fn, mp_policy, offload_policy)


def shard(
    module: Any, modules: list[Any], found: Any, mesh: DeviceMesh, reshard_after_forward: Any, shard_placement_fn: Any, mp_policy: Any, offload_policy: Any,
    same: bool = False,
) -> Any:  # fmt: skip
    """What fully_shard does once its arguments are checked. found: the parameters; same: as for Param."""
    state = State(modules, None if reshard_after_forward is None else bool(reshard_after_forward), mp_policy)
    if found:
        params = []
        for param, places in found.values():
            chosen = shard_placement_fn(param) if shard_placement_fn is not None else None
            on = "meta" if param.device.type == "meta" else "cpu" if isinstance(offload_policy, CPUOffloadPolicy) else mesh.device_type
            params.append(Param(param, places, mesh, (chosen.dim % param.dim()) if chosen is not None else 0, on, same))
        state.group = Group(params, mesh, mp_policy, offload_policy, state.after_backward)
    for each in modules:
        for part in each.modules():
            if _state_of(part) is None:
                for name, buffer in part._buffers.items():
                    if buffer is not None and buffer.device.type not in ("meta", mesh.device_type):
                        part._buffers[name] = buffer.to(mesh.device_type)
        each._fsdp_state = state
        kind = type(each)
        each.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__, "__deepcopy__": _no_copy})
    return module


def _no_copy(self: Any, memo: Any) -> Any:
    raise NotImplementedError("FSDP does not support deepcopy. Please use state dict for serialization.")


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Makes another method of a module under `fully_shard` gather its parameters, as forward does. A module without fully_shard is left alone.

    Args:
        module: the module.
        method_name: the method's name.

    >>> layer = naru.nn.Linear(2, 2)
    >>> naru.distributed.fsdp.register_fsdp_forward_method(layer, "forward")
    """
    state = _state_of(module)
    if state is None:
        return
    method = getattr(module, method_name, None)
    if method is None:
        raise ValueError(f"{type(module)} does not have a method {method_name}")

    @functools.wraps(method)
    def wrapped_method(*args: Any, **kwargs: Any) -> Any:
        return state.call(method, args, kwargs)

    module.__dict__[method_name] = wrapped_method


def share_comm_ctx(modules: Sequence[Any]) -> None:
    """Accepted for PyTorch's sake: all modules use one engine already.

    Args:
        modules: the modules.

    >>> naru.distributed.fsdp.share_comm_ctx([])
    """
