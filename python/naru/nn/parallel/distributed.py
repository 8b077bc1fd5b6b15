"""`DistributedDataParallel`: not there yet, as there is one process; programs may import it and compare modules with it."""

from __future__ import annotations

from ... import _missing

__all__ = ["DistributedDataParallel"]

DistributedDataParallel = _missing.absent_class("nn.parallel.DistributedDataParallel")

__getattr__ = _missing.module_getattr(__name__)
