"""`torch.distributed.fsdp.api`: what a program chooses for `FullyShardedDataParallel`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from ... import _missing

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "OptimStateDictConfig", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What is sharded: FULL_SHARD drops whole parameters after forward, SHARD_GRAD_OP keeps them until backward, NO_SHARD shards nothing, HYBRID_SHARD
    shards within a part of the ranks.

    >>> naru.distributed.fsdp.ShardingStrategy.FULL_SHARD.name
    'FULL_SHARD'
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward begins to gather the next parameters: ignored, they always are early.

    >>> naru.distributed.fsdp.BackwardPrefetch.BACKWARD_PRE.name
    'BACKWARD_PRE'
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes of a module; None: as they are.

    Args:
        param_dtype: of parameters in forward and backward.
        reduce_dtype: of the gradients' reduction.
        buffer_dtype: of floating-point buffers.
        keep_low_precision_grads, _module_classes_to_ignore: ignored.
        cast_forward_inputs: whether forward's floating-point arguments become param_dtype.
        cast_root_forward_inputs: the same, of the outermost module.

    >>> naru.distributed.fsdp.MixedPrecision(param_dtype=naru.bfloat16).param_dtype
    torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """Where shards lie.

    Args:
        offload_params: whether on the cpu.

    >>> naru.distributed.fsdp.CPUOffload(offload_params=True).offload_params
    True
    """

    offload_params: bool = False


class StateDictType(Enum):
    """What `state_dict` returns: whole tensors, or DTensors. LOCAL_STATE_DICT is not there.

    >>> naru.distributed.fsdp.StateDictType.FULL_STATE_DICT.name
    'FULL_STATE_DICT'
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """How state dicts are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.

    >>> naru.distributed.fsdp.StateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How state dicts of whole tensors are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.
        rank0_only: whether only rank 0 gets them.

    >>> naru.distributed.fsdp.FullStateDictConfig(rank0_only=True).rank0_only
    True
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of the kind that is not there.

    Args:
        offload_to_cpu: whether tensors are on the cpu.

    >>> naru.distributed.fsdp.LocalStateDictConfig().offload_to_cpu
    False
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How state dicts of DTensors are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.
        _use_dtensor: ignored.

    >>> naru.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
    False
    """

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How state dicts of optimizers are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.

    >>> naru.distributed.fsdp.OptimStateDictConfig().offload_to_cpu
    True
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """How optimizers' state dicts of whole tensors are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.
        rank0_only: whether only rank 0 gets them.

    >>> naru.distributed.fsdp.FullOptimStateDictConfig().rank0_only
    False
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of the kind that is not there.

    Args:
        offload_to_cpu: whether tensors are on the cpu.

    >>> naru.distributed.fsdp.LocalOptimStateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """How optimizers' state dicts of DTensors are made.

    Args:
        offload_to_cpu: whether tensors are on the cpu.
        _use_dtensor: ignored.

    >>> naru.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
    True
    """

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What is set by `set_state_dict_type`.

    Args:
        state_dict_type, state_dict_config, optim_state_dict_config: what is set.

    >>> naru.distributed.fsdp.StateDictSettings().state_dict_type.name
    'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)


__getattr__ = _missing.module_getattr(__name__)
