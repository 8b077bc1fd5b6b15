"""`torch.nn.utils.init`: construction of modules without initialising their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ... import _missing
from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters and buffers have uninitialised memory.

    Args:
        module_cls: the class, which must accept `device` (RuntimeError).
        args, kwargs: its arguments. The module is created on the meta device, then allocated on `device` (by default cpu).

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
