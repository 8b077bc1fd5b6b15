"""`torch._dynamo.eval_frame`: names that packages compare with and ask."""

from __future__ import annotations

from typing import Any

__all__ = ["OptimizedModule", "is_dynamo_supported"]

class OptimizedModule:
    """What PyTorch's compiler wraps a module in: `torch.compile` returns the module itself, so that there is none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("torch._dynamo.OptimizedModule: torch.compile returns modules as they are, there is nothing to make one of")


def is_dynamo_supported() -> bool:
    """Whether programs can be traced: no."""
    return False
