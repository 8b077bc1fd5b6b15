"""`torchvision`'s small core: data sets in local files, transforms, boxes, and the definitions of well-known networks.

Nothing is downloaded, ever. Under `naru run`, `import torchvision` gives this package where no torchvision is installed.

>>> from naru.vision import models, transforms
>>> sum(p.numel() for p in models.mobilenet_v2(width_mult=0.25, num_classes=10).parameters())
250922
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _names

if TYPE_CHECKING:
    from . import datasets, io, models, ops, transforms, tv_tensors, utils

# The first part says which torchvision's semantics these are, the local part whose package it is.
__version__ = "0.25.0+naru"

# Imported when they are first asked for: torchvision imports all of them.
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
    """Accepts 'PIL' as `backend`, which reads all images here; a ValueError of another.

    >>> naru.vision.set_image_backend("PIL")
    """
    if backend not in _BACKENDS:
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' (naru.vision has no accimage)")


def get_image_backend() -> str:
    """The name of the package that reads images: 'PIL'.

    >>> naru.vision.get_image_backend()
    'PIL'
    """
    return "PIL"


def disable_beta_transforms_warning() -> None:
    """Does nothing, as in torchvision: `transforms.v2` is no beta any more.

    >>> naru.vision.disable_beta_transforms_warning()
    """
