"""`torch.distributed.fsdp.sharded_grad_scaler`: loss scaling where each rank sees a part of the gradients."""

from __future__ import annotations

from typing import Any

from ... import _missing
from ...amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """`GradScaler`, which asks all ranks whether a gradient was not finite. (GradScaler does so, too, where gradients are DTensors.)

    Args:
        device, init_scale, backoff_factor, growth_factor, growth_interval, enabled: as for GradScaler.
        process_group: ignored: the ranks are those of the gradients' meshes.

    >>> naru.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler("cpu", init_scale=4.0).get_scale()
    4.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)


__getattr__ = _missing.module_getattr(__name__)
