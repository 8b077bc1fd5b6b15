"""`torch._inductor`: the settings that public programs write. There is no such compiler; kernels are compiled without being asked."""

from __future__ import annotations

from . import config

__all__ = ["config"]
