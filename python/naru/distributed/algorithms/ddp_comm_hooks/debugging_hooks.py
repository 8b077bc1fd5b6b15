"""`torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks`: a hook that sends nothing."""

from __future__ import annotations

from typing import Any

from .... import _missing
from ....futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: Any) -> Future:
    """Leaves each rank its own gradients of `bucket`, to see what a step takes without communication. The first argument is ignored.

    >>> model.register_comm_hook(None, noop_hook)  # doctest: +SKIP
    """
    made: Future = Future()
    made.set_result(bucket.buffer())
    return made


__getattr__ = _missing.module_getattr(__name__)
