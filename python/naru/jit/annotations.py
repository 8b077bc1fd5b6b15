"""`torch.jit.annotations`: names of `typing`, which programs import from here."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

__all__ = ["Any", "Dict", "List", "NamedTuple", "Optional", "Tuple", "Union"]
