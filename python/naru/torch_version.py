"""`torch.torch_version`: the class of `__version__`."""

from __future__ import annotations

from ._version import TorchVersion, __version__

__all__ = ["TorchVersion", "__version__"]
