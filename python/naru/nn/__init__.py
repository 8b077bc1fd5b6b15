"""`torch.nn`: modules, parameters, functional forms, initialisation."""

from __future__ import annotations

from .. import _missing
from . import attention, common_types, functional, grad, init, modules, parallel, parameter, utils
from .modules import *
from .modules.module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"]

__getattr__ = _missing.module_getattr(__name__)
