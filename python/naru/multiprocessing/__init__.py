"""`torch.multiprocessing`: Python's multiprocessing, with tensors passed as shared memory.

A cpu tensor put into a queue, a pipe or the arguments of a process is moved to shared memory once; its bytes are not copied again:
all processes see each other's writes. Autograd history is not sent: a tensor that requires grad must be a leaf. Tensors on devices
are copied.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import *  # noqa: F403
from typing import Any

from .. import _missing
from . import reductions, spawn as _spawn
from .reductions import init_reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [
    "set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", "ProcessContext", "ProcessExitedException",
    "ProcessRaisedException", "SpawnContext", "init_reductions", "reductions", "spawn", "start_processes",
]  # fmt: skip
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]

_STRATEGIES = {"file_descriptor"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts `new_strategy`; memory is always shared by open files ("file_descriptor").

    >>> set_sharing_strategy("file_descriptor")
    """
    assert new_strategy in _STRATEGIES
    _strategy[0] = new_strategy


def get_sharing_strategy() -> str:
    """Returns the strategy set last.

    >>> naru.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy[0]


def get_all_sharing_strategies() -> set[str]:
    """Returns the strategies that can be set.

    >>> "file_descriptor" in naru.multiprocessing.get_all_sharing_strategies()
    True
    """
    return set(_STRATEGIES)


init_reductions()
del _spawn


def __getattr__(name: str) -> Any:
    if hasattr(multiprocessing, name):
        return getattr(multiprocessing, name)
    _missing.fail("multiprocessing", name)
    raise AttributeError(f"module 'torch.multiprocessing' has no attribute {name!r}")
