"""The operators of a program's own, by their names (`torch.library` puts them here, `torch.ops` finds them)."""

from __future__ import annotations

from typing import Any

OPERATORS: dict[str, Any] = {}
