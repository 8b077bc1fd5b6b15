"""`torch.return_types`: the classes of named tuple results (`torch.max(x, 0)`)."""

from __future__ import annotations

from typing import Any

from . import _C

# Calls that return named tuples, on a matrix.
_CALLS: dict[str, tuple] = {
    **{name: (0,) for name in ("max", "min", "median", "nanmedian", "mode", "cummax", "cummin", "sort")},
    "topk": (1,), "kthvalue": (1,), "aminmax": (),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    from ._missing import fail

    if name in _CALLS:
        found = type(getattr(_C.zeros(1, 1, device="cpu"), name)(*_CALLS[name]))
        globals()[name] = found
        return found
    fail("return_types", name)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
