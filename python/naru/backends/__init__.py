"""`torch.backends`: switches of libraries. Those that naru does not need can be set and read, without effect."""

from __future__ import annotations

import sys
import types

from .. import _missing
from . import _precision, cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


class _Backends(types.ModuleType):
    @property
    def fp32_precision(self) -> str:
        """The precision of float32 products unless a more specific switch is set: "ieee", "tf32" or "none"."""
        return _precision.everywhere()

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        _precision.set_everywhere(precision)


sys.modules[__name__].__class__ = _Backends

__getattr__ = _missing.module_getattr(__name__)
