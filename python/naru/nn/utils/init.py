"""`torch.nn.utils.init`: modules without the draws of their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ... import _missing
from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module of a class whose parameters and buffers have memory but no values yet.

    Args:
        module_cls: the class; takes `device` (RuntimeError for one that does not).
        args, kwargs: its arguments. It is made on the meta device, and gets memory on `device` (cpu) then.

    >>> import naru
    >>> naru.nn.utils.skip_init(naru.nn.Linear, 3, 2).weight.shape
    torch.Size([2, 3])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


__getattr__ = _missing.module_getattr(__name__)
