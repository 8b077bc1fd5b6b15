"""`torch.nn`: modules, parameters, functional forms, initialisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _missing
from . import (
    attention as attention,
    common_types as common_types,
    functional as functional,
    grad as grad,
    init as init,
    modules as modules,
    parallel as parallel,
    parameter as parameter,
    utils as utils,
)
from .modules import *
from .modules.module import Module as Module
from .parallel import DataParallel as DataParallel
from .parameter import (
    Buffer as Buffer,
    Parameter as Parameter,
    UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
)

if not TYPE_CHECKING:
    __all__ = [name for name in dir() if not name.startswith("_") and name not in ("annotations", "TYPE_CHECKING")]
    __getattr__ = _missing.module_getattr(__name__)
