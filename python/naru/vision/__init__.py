"""The core of `torchvision`: datasets read from local files, transforms, box operators and the definitions of well-known networks.

Nothing is ever downloaded. Under `naru run`, `import torchvision` imports this package if torchvision is not installed.

>>> from naru.vision import models, transforms
>>> sum(p.numel() for p in models.mobilenet_v2(width_mult=0.25, num_classes=10).parameters())
250922
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..torch_version import TORCHVISION_VERSION
from . import _names

if TYPE_CHECKING:
    from . import datasets, io, models, ops, transforms, tv_tensors, utils

# The release number is torchvision's, whose semantics these are; the local part names the package.
__version__ = TORCHVISION_VERSION

# Imported on first access: torchvision imports all of these submodules.
_SUBMODULES = frozenset("datasets io models ops transforms tv_tensors utils".split())
_BACKENDS = ("PIL",)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module("." + name, __name__)
    _names.fail(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})


def set_image_backend(backend: str) -> None:
    """Sets the package that reads images. `backend` must be 'PIL', the only one here; anything else raises ValueError.

    >>> naru.vision.set_image_backend("PIL")
    """
    if backend not in _BACKENDS:
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' (naru.vision has no accimage)")


def get_image_backend() -> str:
    """Returns the name of the package that reads images: 'PIL'.

    >>> naru.vision.get_image_backend()
    'PIL'
    """
    return "PIL"


def disable_beta_transforms_warning() -> None:
    """Does nothing, as in torchvision: `transforms.v2` is no longer in beta.

    >>> naru.vision.disable_beta_transforms_warning()
    """
