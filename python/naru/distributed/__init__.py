"""`torch.distributed`: not there yet. `is_available()` says so, and programs that ask it run in one process.

What programs import at their beginning and need not call can be imported: classes of which there are no objects, and functions that raise
NotImplementedError with what to use instead. `naru check` lists them as missing where a program uses them.
"""

from __future__ import annotations

import enum
from typing import Any

from .. import _missing

__all__ = ["ReduceOp", "group", "is_available", "is_initialized"]

# Classes that programs compare with, or name in annotations.
_CLASSES = frozenset(
    "Backend DeviceMesh DistBackendError DistError DistNetworkError DistStoreError FileStore GradBucket HashStore P2POp PrefixStore ProcessGroup "
    "ProcessGroupGloo ProcessGroupNCCL Store TCPStore Work".split()
)


class ReduceOp(enum.Enum):
    """How values of several processes become one.

    >>> naru.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


reduce_op = ReduceOp


class _Group(type):
    @property
    def WORLD(cls) -> None:
        """The group of all processes: there is none."""


class group(metaclass=_Group):
    """The names of groups that are always there.

    >>> naru.distributed.group.WORLD is None
    True
    """

    NON_GROUP_MEMBER = object()


GroupMember = group


def is_available() -> bool:
    """Whether there is more than names: no.

    >>> is_available(), is_initialized()
    (False, False)
    """
    return False


def _never() -> bool:
    """Whether that is there, or has begun: no.

    >>> naru.distributed.is_initialized()
    False
    """
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = _never


def is_backend_available(backend: str) -> bool:
    """Whether processes can be joined by that means: by none.

    >>> is_backend_available("gloo")
    False
    """
    return False


def _not_begun(group: Any = None) -> Any:
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


get_rank = get_world_size = _not_begun


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in _missing.names().get("distributed", ()):
        if name in _CLASSES:
            found: Any = _missing.absent_class(f"distributed.{name}")
        elif name.islower() and f"distributed.{name}" not in _missing.names():
            found = _missing.absent_function(f"distributed.{name}")
        else:
            found = None
        if found is not None:
            globals()[name] = found
            return found
    _missing.fail("distributed", name)
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")
