"""`torch._dynamo.config`: settings of a compiler that is not here. Any may be set; what is not set is False."""

from __future__ import annotations

from typing import Any

suppress_errors = verbose = False
cache_size_limit = recompile_limit = 8


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return False
