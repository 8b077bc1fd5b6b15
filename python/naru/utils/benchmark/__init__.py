"""`torch.utils.benchmark`: measures statements (`Timer`), and compares measurements (`Compare`)."""

from __future__ import annotations

from typing import Any

from ..._missing import fail
from ._compare import Compare
from ._measurement import Measurement, TaskSpec, select_unit, trim_sigfig, unit_to_english
from ._timer import Language, Timer, timer

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig", "unit_to_english"]


def __getattr__(name: str) -> Any:
    fail("utils.benchmark", name)
    raise AttributeError(f"module 'torch.utils.benchmark' has no attribute {name!r}")
