"""`torch.nn.utils.init`: modules without the draws of their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ... import _missing, random
from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module of a class whose parameters and buffers have memory but no values yet.

    Args:
        module_cls: the class; takes `device` (RuntimeError for one that does not).
        args, kwargs: its arguments. What is drawn for its parameters does not count: the generator goes on as if nothing was.

    >>> import naru
    >>> naru.nn.utils.skip_init(naru.nn.Linear, 3, 2).weight.shape
    torch.Size([2, 3])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    before = random.get_rng_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        random.set_rng_state(before)


__getattr__ = _missing.module_getattr(__name__)
