"""`torch.utils.deterministic`: `fill_uninitialized_memory`, whether deterministic mode fills the result of `empty` with NaN, the largest integer or True.

>>> naru.utils.deterministic.fill_uninitialized_memory
True
"""

from __future__ import annotations

import sys
import types

from .. import _C


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return _C._get_deterministic_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _C._set_deterministic_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
