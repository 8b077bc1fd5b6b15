"""`torch._inductor.config`: settings of a compiler that is not here. Any may be set; what is not set is False, and its groups are empty."""

from __future__ import annotations

from typing import Any


class _Group:
    """Settings by name: any may be set; what is not set is False."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False


triton, cpp, cuda, aot_inductor, trace = (_Group() for _ in range(5))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return False
