"""`torch.backends.cudnn`: accepted for PyTorch's sake; results are deterministic in any case."""

from __future__ import annotations

from typing import Any

enabled: bool = True
benchmark: bool = False
benchmark_limit: int | None = 10
deterministic: bool = False
allow_tf32: bool = False


def is_available() -> bool:
    """Whether cuDNN is in use: no.

    >>> naru.backends.cudnn.is_available()
    False
    """
    return False


def version() -> int | None:
    """cuDNN's version: None, as it is not in use.

    >>> naru.backends.cudnn.version() is None
    True
    """
    return None


class flags:
    """A context manager that sets the `switches` (enabled, benchmark, benchmark_limit, deterministic, allow_tf32) and puts the old values back
    at its end.

    >>> with naru.backends.cudnn.flags(benchmark=True):
    ...     naru.backends.cudnn.benchmark
    True
    """

    def __init__(self, **switches: Any) -> None:
        self._switches = switches

    def __enter__(self) -> None:
        self._before = {name: globals()[name] for name in self._switches}
        globals().update(self._switches)

    def __exit__(self, *exc: object) -> None:
        globals().update(self._before)


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would take a `tensor`: no.

    >>> naru.backends.cudnn.is_acceptable(naru.ones(1))
    False
    """
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Sets the switches that are not None; returns what all were.

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
