"""What a program has imported of naru: what it has not, it cannot have objects of, and importing it takes time."""

from __future__ import annotations

import sys
from typing import Any


def distributed_tensors() -> Any:
    """The module of DTensors; None if the program has not imported it."""
    return sys.modules.get("naru.distributed.tensor")
