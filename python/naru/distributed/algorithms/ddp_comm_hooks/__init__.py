"""`torch.distributed.algorithms.ddp_comm_hooks`: hooks that average a bucket's gradients."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from .... import _missing
from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "debugging_hooks", "default_hooks", "powerSGD_hook", "register_ddp_comm_hook"]


class DDPCommHookType(Enum):
    """The hooks by name, for `register_ddp_comm_hook`.

    >>> naru.distributed.algorithms.ddp_comm_hooks.DDPCommHookType.ALLREDUCE.name
    'ALLREDUCE'
    """

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    POWER_SGD = partial(powerSGD_hook.powerSGD_hook)
    POWER_SGD_RANK2 = partial(powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = partial(powerSGD_hook.batched_powerSGD_hook)
    BATCHED_POWER_SGD_RANK2 = partial(powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=2)
    NOOP = partial(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers a hook by its name.

    Args:
        comm_hook_type: the hook.
        model: a DistributedDataParallel.
        state: the process group (None: all), or a PowerSGDState.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> hooks = naru.distributed.algorithms.ddp_comm_hooks
    >>> hooks.register_ddp_comm_hook(hooks.DDPCommHookType.NOOP, naru.nn.parallel.DistributedDataParallel(naru.nn.Linear(1, 1)))
    >>> naru.distributed.destroy_process_group()
    """
    hook = comm_hook_type.value
    rank = hook.keywords.get("matrix_approximation_rank")
    if "POWER_SGD" in comm_hook_type.name and not isinstance(state, powerSGD_hook.PowerSGDState):
        state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank or 1)
    model.register_comm_hook(state, hook.func)


__getattr__ = _missing.module_getattr(__name__)
