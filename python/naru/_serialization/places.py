"""Where PyTorch has naru's objects: a pickle refers to classes and functions by module, and the two libraries' modules differ."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES = ("1d", "2d", "3d")


def _sized(*kinds: str) -> str:
    return " ".join(kind + size for kind in kinds for size in _SIZES)


# Classes that are in a different file in PyTorch, by package: PyTorch's file.
_FILES = {
    "torch.nn.modules": {
        "adaptive": "AdaptiveLogSoftmaxWithLoss",
        "batchnorm": _sized("LazyBatchNorm"),
        "channelshuffle": "ChannelShuffle",
        "conv": _sized("LazyConv", "LazyConvTranspose"),
        "distance": "PairwiseDistance CosineSimilarity",
        "fold": "Fold Unfold",
        "instancenorm": _sized("InstanceNorm", "LazyInstanceNorm") + " _InstanceNorm",
        "linear": "LazyLinear",
        "linear_cross_entropy_options": "LinearCrossEntropyOptions",
        "loss": "CTCLoss LinearCrossEntropyLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss2d "
        "TripletMarginWithDistanceLoss",
        "module": "_WrappedHook",
        "padding": _sized("CircularPad", "ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad"),
        "pixelshuffle": "PixelShuffle PixelUnshuffle",
        "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    },
    "torch.optim": {
        "": "Adafactor Muon",
        "adamw": "AdamW",
        "nadam": "NAdam",
    },
}
_CLASSES = {
    package: {name: f"{package}.{file}".rstrip(".") for file, names in files.items() for name in names.split()}
    for package, files in _FILES.items()
}
# Files that PyTorch does not have, by name prefix.
_STARTS = {
    "torch.nested._tensor": "torch.nested._internal.nested_tensor",
    "torch.nn._packed": "torch.nn.utils.rnn",
    "torch.nn._": "torch.nn.functional",
    "torch._functions.": "torch",
    "torch.optim._lr_": "torch.optim.lr_scheduler",
    "torch.distributions._transforms": "torch.distributions.transforms",
    "torch.distributions._matrix_transforms": "torch.distributions.transforms",
    "torch.distributions._number_transforms": "torch.distributions.transforms",
}
# PyTorch's name for its core, and names that differ from its public API.
_CORE = {"torch._C._nn": "torch.nn.functional"}
_CORE_NAMES = {"log_sigmoid": "logsigmoid"}


def torch_name(obj: Any) -> tuple[str, str]:
    """The module and name that PyTorch uses for a global of naru (or of other packages)."""
    module, name = getattr(obj, "__module__", "") or "", getattr(obj, "__qualname__", "")
    if module == "naru._C":
        return "torch", name
    if module == "naru" or module.startswith("naru."):
        module = "torch" + module[4:]
    if not module.startswith("torch."):
        return module, name
    for package, places in _CLASSES.items() if isinstance(obj, type) else ():
        if name in places and module.startswith(package + "."):
            return places[name], name
    return next((place for start, place in _STARTS.items() if module.startswith(start)), module), name


def find(module: str, name: str, get: Callable[[str, str], Any]) -> Any:
    """naru's global for a PyTorch global. get: looks a name up in a module; raises AttributeError or ImportError if there is none."""
    if module == "torch._C" and name in ("_VariableFunctionsClass", "TensorBase"):
        return sys.modules["naru"] if name != "TensorBase" else get("naru", "Tensor")
    if module in _CORE:
        module, name = _CORE[module], _CORE_NAMES.get(name, name)
    module = "naru" + module[5:]
    try:
        return get(module, name)
    except (AttributeError, ImportError):
        # Another file of the same package: the package itself exports the name, too.
        for package in (*_CLASSES, "torch.distributions"):
            package = "naru" + package[5:]
            if module.startswith(package + "."):
                found = getattr(importlib.import_module(package), name, None)
                if found is not None:
                    return found
        raise
