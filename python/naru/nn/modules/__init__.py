"""The layers of `torch.nn`, one file for each family."""

from __future__ import annotations

import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

from ... import _missing
from . import utils as utils
from .activation import *
from .attention import *
from .batchnorm import *
from .batchnorm import _InstanceNorm
from .class_loss import *
from .container import *
from .conv import *
from .dropout import *
from .flatten import *
from . import image as _image
from .image import *
from .lazy import *
from .linear import *
from .loss import *
from .module import Module as Module
from .normalization import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *

# PyTorch's module names, from which programs import classes that are elsewhere here.
_ELSEWHERE = {
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "channelshuffle": "ChannelShuffle",
    "distance": "PairwiseDistance CosineSimilarity",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    "padding": " ".join(f"{kind}Pad{n}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for n in (1, 2, 3)),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
}
for _place, _names in _ELSEWHERE.items():
    _module = _ModuleType(f"{__name__}.{_place}", "Another place of these layers.")
    vars(_module).update({_name: globals()[_name] for _name in _names.split()}, __all__=_names.split())
    _sys.modules[_module.__name__] = globals()[_place] = _module
_sys.modules[f"{__name__}.instancenorm"]._InstanceNorm = _InstanceNorm  # type: ignore[attr-defined]
for _kind in ("_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"):  # packages have rules by these bases
    setattr(_sys.modules[f"{__name__}.padding"], _kind, getattr(_image, _kind))

if not TYPE_CHECKING:
    __all__ = [
        _name
        for _name, _value in globals().items()
        if not _name.startswith("_") and not isinstance(_value, _ModuleType) and _name not in ("annotations", "TYPE_CHECKING")
    ]
    __getattr__ = _missing.module_getattr(__name__)
