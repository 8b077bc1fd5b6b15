"""`torch.distributed.tensor`: tensors whose elements lie on the ranks of a mesh."""

from __future__ import annotations

from ... import _missing
from . import _norms, _rules, _shapes  # noqa: F401
from ._dtensor import DTensor
from ._factories import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
