"""What a program chooses for `fully_shard`: dtypes, and where shards lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module under `fully_shard`; None: as they are.

    Args:
        param_dtype: of parameters in forward and backward; shards, and thus the optimizer, keep theirs.
        reduce_dtype: of the gradients' reduction.
        output_dtype: of what forward returns.
        cast_forward_inputs: whether forward's floating-point arguments become param_dtype.

    >>> naru.distributed.fsdp.MixedPrecisionPolicy(param_dtype=naru.bfloat16, reduce_dtype=naru.float32).param_dtype
    torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards lie on the mesh's devices.

    >>> naru.distributed.fsdp.OffloadPolicy()
    OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the optimizer's state lie on the cpu.

    Args:
        pin_memory: ignored.

    >>> naru.distributed.fsdp.CPUOffloadPolicy().pin_memory
    True
    """

    pin_memory: bool = True
