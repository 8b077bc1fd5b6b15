"""`torch.distributed.device_mesh`: not there: there are no meshes of devices; groups of ranks are made by new_group."""

from __future__ import annotations

from ._placeholders import module_getattr as _module_getattr

__all__: list[str] = []

__getattr__ = _module_getattr(__name__)
