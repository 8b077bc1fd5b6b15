"""`FullyShardedDataParallel`, the older way to shard a module: a wrapper around what `fully_shard` makes of it."""

from __future__ import annotations

import contextlib
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ...autograd.grad_mode import no_grad
from ...nn import Module
from ...nn.utils.clip_grad import clip_grad_norm_
from .. import _groups
from .._collectives import broadcast
from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from ..device_mesh import DeviceMesh
from ..tensor._dtensor import DTensor, local_of
from ..tensor._factories import distribute_tensor
from ._fully_shard import FSDPModule, _managed, _state_of, shard
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from .wrap import chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

Tensor = _C.Tensor
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_WRAPPER = "_fsdp_wrapped_module."


class OptimStateKeyType(Enum):
    """How an optimizer's state dict names parameters.

    >>> naru.distributed.fsdp.OptimStateKeyType.PARAM_NAME.name
    'PARAM_NAME'
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


def _mesh_of(group: Any, strategy: ShardingStrategy, kind: str) -> DeviceMesh:
    if strategy in _HYBRID:
        if not isinstance(group, (tuple, list)) or len(group) != 2:
            raise ValueError("FullyShardedDataParallel: HYBRID_SHARD wants device_mesh of two dimensions, or process_group=(shard group, replica group)")
        lines = [[r for r in range(_groups.world().size())]]
        shards, count = group[0].size(), group[1].size()
        if shards * count != len(lines[0]):
            raise ValueError("FullyShardedDataParallel: the groups of HYBRID_SHARD do not make up all ranks")
        return DeviceMesh.from_group([group[1], group[0]], kind, _C.arange(shards * count).view(count, shards))
    found = _groups.world() if group is None else group
    if strategy is ShardingStrategy.NO_SHARD:
        return DeviceMesh.from_group([found, _groups.split_group(found, [[r] for r in range(found.size())])], kind, [[r] for r in found.ranks])
    return DeviceMesh.from_group(found, kind)


class FullyShardedDataParallel(Module):
    """Shards a module's parameters over the ranks: FSDP1, as a form of `fully_shard`. Parameters are always the original ones (use_orig_params).

    Args:
        module: the module, which is changed in place.
        process_group: the ranks; of HYBRID_SHARD two groups, to shard and to replicate.
        sharding_strategy: what is sharded; FULL_SHARD by default.
        cpu_offload: whether shards lie on the cpu.
        auto_wrap_policy: which submodules are gathered on their own.
        mixed_precision: the dtypes.
        ignored_modules, ignored_states: modules and parameters that are left as they are.
        param_init_fn: called with each module that has parameters on the meta device, to make them.
        device_id: the device that the module is moved to.
        sync_module_states: whether rank 0's parameters and buffers are taken.
        device_mesh: the ranks as a mesh; of HYBRID_SHARD of two dimensions, whose first one replicates.
        backward_prefetch, forward_prefetch, limit_all_gathers, use_orig_params: ignored.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> model = naru.distributed.fsdp.FullyShardedDataParallel(naru.nn.Linear(2, 1))
    >>> model(naru.ones(1, 2)).sum().backward()
    >>> list(model.state_dict())
    ['weight', 'bias']
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.sharding_strategy, self._settings = strategy, StateDictSettings()
        ignored_states = list(ignored_states or ())
        modules = [*(ignored_modules or ()), *(m for m in ignored_states if isinstance(m, Module))]
        ignored = {id(part) for m in modules for part in m.modules()}
        params = {p for m in modules for p in m.parameters()} | {p for p in ignored_states if isinstance(p, Tensor)}
        if param_init_fn is not None:
            for part in module.modules():
                if any(p.is_meta for p in part.parameters(recurse=False)):
                    param_init_fn(part)
        if device_id is not None:
            module.to(device_id if isinstance(device_id, _C.device) else _C.device("cuda", device_id) if isinstance(device_id, int) else device_id)
        kind = next((p.device.type for p in module.parameters() if not p.is_meta), "cpu")
        mesh = device_mesh if device_mesh is not None else _mesh_of(process_group, strategy, kind)
        if sync_module_states:
            with no_grad():
                for t in (*module.parameters(), *module.buffers()):
                    if not isinstance(t, DTensor):
                        for dim in range(mesh.ndim):
                            broadcast(t.detach(), group=mesh.get_group(dim), group_src=0)
        mixed = mixed_precision or MixedPrecision()
        if mixed.buffer_dtype is not None:
            for part in module.modules():
                for name, buffer in part._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        part._buffers[name] = buffer.to(mixed.buffer_dtype)
        offload = CPUOffloadPolicy() if cpu_offload is not None and cpu_offload.offload_params else OffloadPolicy()
        keeps = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2, ShardingStrategy.NO_SHARD)
        policy = MixedPrecisionPolicy(mixed.param_dtype, mixed.reduce_dtype, None, mixed.cast_forward_inputs)
        inner = chosen(module, auto_wrap_policy, ignored) if auto_wrap_policy is not None else []
        left = {id(p) for p in params}
        for part, _ in inner:
            if _state_of(part) is None:
                shard(part, [part], _managed([part], left), mesh, not keeps, None, policy, offload, same=True)
        if _state_of(module) is None:
            root = MixedPrecisionPolicy(mixed.param_dtype, mixed.reduce_dtype, None, mixed.cast_root_forward_inputs)
            shard(module, [module], _managed([module], left), mesh, None, None, root, offload, same=True)
        self._fsdp_wrapped_module = module

    @property
    def module(self) -> Any:
        """The module within."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_fsdp_wrapped_module":
                raise
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module within."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters by the names that they have in the module within."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_WRAPPER, ""), param

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers by the names that they have in the module within."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(_WRAPPER, ""), buffer

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The modules that are gathered on their own; with `root_only` the outermost ones."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    def check_is_root(self) -> bool:
        """Whether it is the outermost one."""
        return self.module._fsdp_state.is_root or self.module._fsdp_state.run is None

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, backward adds gradients up on each rank, and reduces nothing."""
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scales the gradients so that their norm, over all ranks, is at most `max_norm`; returns the norm before, a plain tensor."""
        norm = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False, with_grads: bool = False
    ) -> Iterator[None]:
        """Within it, parameters are whole. `writeback`: whether changes are kept. The other arguments are ignored; `with_grads` is not there."""
        if with_grads:
            raise NotImplementedError("summon_full_params: with_grads is not there; use p.grad.full_tensor()")
        shards = [m for m in module.modules() if isinstance(m, FSDPModule)]
        for m in shards:
            m.unshard()
        try:
            yield
        finally:
            with no_grad():
                for group in (m._fsdp_state.group for m in shards):
                    for p in group.params if group is not None and writeback else ():
                        whole = local_of(p.whole) if isinstance(p.whole, DTensor) else p.whole.detach()
                        spread = distribute_tensor(whole, p.spec.mesh, p.spec.placements, src_data_rank=None) if p.inner is None else None
                        if spread is not None:
                            local_of(p.sharded).copy_(local_of(spread))
            for m in shards:
                m.reshard()

    # --- state dicts

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> StateDictSettings:
        """Sets what state_dict returns; returns what was set before."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("FullyShardedDataParallel: LOCAL_STATE_DICT is not there; use SHARDED_STATE_DICT")
        full = state_dict_type is StateDictType.FULL_STATE_DICT
        configs = (FullStateDictConfig, FullOptimStateDictConfig) if full else (ShardedStateDictConfig, ShardedOptimStateDictConfig)
        before = FullyShardedDataParallel.get_state_dict_type(module)
        settings = StateDictSettings(state_dict_type, state_dict_config or configs[0](), optim_state_dict_config or configs[1]())
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What is set."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        return found[0]._settings if found else StateDictSettings()

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Iterator[None]:
        """Within it, state_dict returns that."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for m in FullyShardedDataParallel.fsdp_modules(module):
                m._settings = before

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The state dict, of whole tensors or DTensors, as set_state_dict_type says. All ranks call it."""
        made = self.module.state_dict(prefix=prefix, keep_vars=keep_vars)
        kind, config = self._settings.state_dict_type, self._settings.state_dict_config
        if kind is StateDictType.FULL_STATE_DICT:
            whole = {name: v.full_tensor().detach() if isinstance(v, DTensor) else v for name, v in made.items()}
            made.clear()
            if not getattr(config, "rank0_only", False) or _groups.world().rank() == 0:
                made.update(whole)
        if config.offload_to_cpu:
            made.update({name: v.cpu() for name, v in made.items()})
        if destination is not None:
            destination.update(made)
            return destination
        return made

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads a state dict of whole tensors, of which each rank takes its parts, or of DTensors."""
        current = self.module.state_dict()
        made = {}
        for name, value in state_dict.items():
            like = current.get(name.replace(_WRAPPER, ""))
            if isinstance(like, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
                value = distribute_tensor(value.detach().to(like.dtype), like.device_mesh, like.placements, src_data_rank=None)
            made[name.replace(_WRAPPER, "")] = value
        return self.module.load_state_dict(made, strict=strict, assign=assign)

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """The optimizer's state dict by the parameters' names, of whole tensors or DTensors as set_state_dict_type says. All ranks call it."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full, config = settings.state_dict_type is StateDictType.FULL_STATE_DICT, settings.optim_state_dict_config
        made = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=full))
        if full and getattr(config, "rank0_only", False) and _groups.world().rank():
            return {}
        if config.offload_to_cpu:
            for state in made["state"].values():
                state.update({key: v.cpu() for key, v in state.items() if isinstance(v, Tensor)})
        return made

    sharded_optim_state_dict = optim_state_dict

    @staticmethod
    def full_optim_state_dict(model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None) -> dict[str, Any]:
        """The optimizer's state dict by the parameters' names, of whole tensors on the cpu; with `rank0_only` empty on other ranks."""
        made = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=True))
        for state in made["state"].values():
            state.update({key: v.cpu() for key, v in state.items() if isinstance(v, Tensor)})
        return {} if rank0_only and _groups.world().rank() else made

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """An optimizer's state dict by the parameters' names as one by their numbers in `model.parameters()`, or the other way round."""
        names = [name for name, _ in model.named_parameters()]
        to_id = optim_state_key_type is OptimStateKeyType.PARAM_ID
        keys: dict[Any, Any] = {name: i for i, name in enumerate(names)} if to_id else dict(enumerate(names))
        groups = [{**g, "params": sorted(keys[p] for p in g["params"])} for g in optim_state_dict["param_groups"]]
        return {"state": {keys[p]: state for p, state in optim_state_dict["state"].items()}, "param_groups": groups}

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False, load_directly: bool = False, group: Any = None
    ) -> dict[str, Any]:
        """A state dict of optim_state_dict as `optim.load_state_dict` takes it: each rank's parts, by numbers. `load_directly`: whether it is loaded, too."""
        names = {id(p): name for name, p in model.named_parameters()}
        params = [p for g in optim.param_groups for p in g["params"]]
        numbers = {names[id(p)].replace(_WRAPPER, ""): i for i, p in enumerate(params)}
        state = {}
        for name, found in optim_state_dict["state"].items():
            p = params[numbers[name]]
            state[numbers[name]] = {
                key: distribute_tensor(v.detach(), p.device_mesh, p.placements, src_data_rank=None)
                if isinstance(p, DTensor) and isinstance(v, Tensor) and not isinstance(v, DTensor) and tuple(v.shape) == tuple(p.shape)
                else v.detach().clone()
                if isinstance(v, Tensor) and not isinstance(v, DTensor)
                else v
                for key, v in found.items()
            }
        groups = [{**g, "params": [numbers[name] for name in g["params"]]} for g in optim_state_dict["param_groups"]]
        made = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(made)
        return made


__getattr__ = _missing.module_getattr(__name__)
