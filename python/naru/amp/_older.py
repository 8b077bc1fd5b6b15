"""The older names of `torch.amp` in the namespaces of devices: `torch.cuda.amp`, `torch.cpu.amp`."""

from __future__ import annotations

from typing import Any

from .autocast_mode import autocast
from .grad_scaler import GradScaler


def of_kind(kind: str, low: Any) -> tuple[type[autocast], type[GradScaler]]:
    """`autocast` (to `low` by default) and `GradScaler` for one kind of device."""

    def warn(name: str) -> None:
        import warnings

        warnings.warn(
            f"`torch.{kind}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{kind}', args...)` instead.",
            FutureWarning,
            stacklevel=3,
        )

    class Autocast(autocast):
        def __init__(self, enabled: bool = True, dtype: Any = low, cache_enabled: bool = True) -> None:
            warn("autocast")
            super().__init__(kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class Scaler(GradScaler):
        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            warn("GradScaler")
            super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    for made, base in ((Autocast, autocast), (Scaler, GradScaler)):
        made.__name__ = made.__qualname__ = base.__name__
        made.__module__ = f"naru.{kind}.amp"
    Autocast.__doc__ = f"""`torch.amp.autocast("{kind}")` with `enabled`, `dtype` ({low}) and `cache_enabled`. Deprecated: warns.

    >>> with naru.virtual("cuda"), naru.{kind}.amp.autocast():
    ...     (naru.ones(1, 1, device="{kind}") @ naru.ones(1, 1, device="{kind}")).dtype
    {low}
    """
    Scaler.__doc__ = f"""`torch.amp.GradScaler("{kind}")` with `init_scale`, `growth_factor`, `backoff_factor`, `growth_interval` and `enabled`.
    Deprecated: warns.

    >>> with naru.virtual("cuda"):
    ...     naru.{kind}.amp.GradScaler(init_scale=8.0).scale(naru.tensor([1.0, 2.0]))
    tensor([ 8., 16.])
    """
    return Autocast, Scaler
