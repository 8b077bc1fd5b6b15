"""`torch.backends.cudnn`: whether cuDNN computes convolutions on cuda. The switches are accepted for compatibility with PyTorch, without effect: naru
only uses deterministic algorithms of cuDNN. `use_deterministic_algorithms` disables cuDNN, and `torch.backends.cuda.matmul.allow_tf32` applies to
convolutions, too."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from .. import _C

enabled: bool = True
benchmark: bool = False
benchmark_limit: int | None = 10
deterministic: bool = False
allow_tf32: bool = False


def is_available() -> bool:
    """Whether there are cuda devices, and a cuDNN library for them.

    >>> naru.backends.cudnn.is_available()
    False
    """
    return version() is not None


def version() -> int | None:
    """cuDNN's version, 91900 for 9.19.0; None if it is not in use.

    >>> naru.backends.cudnn.version() is None
    True
    """
    if not _C._availability("cuda")["available"]:
        return None
    # If it cannot be used, the reason follows the name.
    found = re.search(r"\bcuDNN (\d+)\.(\d+)\.(\d+)(?=[,;]|$)", _C._describe_device("cuda:0")["libraries"])
    return None if found is None else int(found[1]) * 10000 + int(found[2]) * 100 + int(found[3])


class flags(contextlib.ContextDecorator):
    """A context manager, and a decorator of functions, that sets the `switches` (enabled, benchmark, benchmark_limit, deterministic, allow_tf32) and
    restores the old values at the end.

    >>> with naru.backends.cudnn.flags(benchmark=True):
    ...     naru.backends.cudnn.benchmark
    True
    """

    def __init__(self, **switches: Any) -> None:
        self._switches = switches

    def _recreate_cm(self) -> flags:
        """A new context for each call of a decorated function, which may be recursive."""
        return flags(**self._switches)

    def __enter__(self) -> None:
        self._before = {name: globals()[name] for name in self._switches}
        globals().update(self._switches)

    def __exit__(self, *exc: object) -> None:
        globals().update(self._before)


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN supports a `tensor`: on cuda, with a supported dtype.

    >>> naru.backends.cudnn.is_acceptable(naru.ones(1))
    False
    """
    known = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")
    return tensor.device.type == "cuda" and str(tensor.dtype) in known and is_available()


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Sets the switches that are not None; returns all previous values.

    >>> before = naru.backends.cudnn.set_flags(_benchmark=True); naru.backends.cudnn.benchmark
    True
    >>> naru.backends.cudnn.set_flags(*before)[1]
    True
    """
    given = {"enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit, "deterministic": _deterministic,
             "allow_tf32": _allow_tf32}  # fmt: skip
    before = tuple(globals()[name] for name in given)
    globals().update({name: value for name, value in given.items() if value is not None})
    return before
