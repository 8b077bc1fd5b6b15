"""`torch.mps.profiler`: signposts for Apple's Instruments, which naru does not write. `torch.profiler` has the times of each instruction."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_capturing_metal", "is_metal_capture_enabled", "metal_capture", "profile", "start", "stop"]

_MODES = {"interval", "event", "interval,event", "event,interval"}


def start(mode: str = "interval", wait_until_completed: bool = False) -> None:
    """Warns that no signposts are written. `mode`: "interval", "event" or both, with a comma; ValueError otherwise. `wait_until_completed` is ignored.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     naru.mps.profiler.start("interval,event")
    >>> "torch.profiler" in str(said[0].message)
    True
    """
    if mode.lower().replace(" ", "") not in _MODES:
        raise ValueError(f"Invalid Signpost trace mode: {mode}; wanted interval, event or interval,event")
    warnings.warn("torch.mps.profiler: naru writes no signposts; torch.profiler records the times of each instruction", stacklevel=2)


def stop() -> None:
    """Does nothing: no signposts were written.

    >>> naru.mps.profiler.stop()
    """


@contextlib.contextmanager
def profile(mode: str = "interval", wait_until_completed: bool = False) -> Iterator[None]:
    """`start` with `mode` and `wait_until_completed`, and `stop` behind the block.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with naru.mps.profiler.profile():
    ...         y = naru.ones(2) + 1
    """
    start(mode, wait_until_completed)
    try:
        yield
    finally:
        stop()


def is_metal_capture_enabled() -> bool:
    """False: naru asks Metal for no captures.

    >>> naru.mps.profiler.is_metal_capture_enabled()
    False
    """
    return False


def is_capturing_metal() -> bool:
    """False: naru asks Metal for no captures.

    >>> naru.mps.profiler.is_capturing_metal()
    False
    """
    return False


def metal_capture(fname: str) -> contextlib.AbstractContextManager[None]:
    """RuntimeError: naru asks Metal for no captures, so no `fname` is written.

    >>> try:
    ...     naru.mps.profiler.metal_capture("a.gputrace")
    ... except RuntimeError as error:
    ...     print(error)
    metal_capture: naru asks Metal for no captures (a.gputrace); torch.profiler records the times of each instruction
    """
    raise RuntimeError(f"metal_capture: naru asks Metal for no captures ({fname}); torch.profiler records the times of each instruction")
