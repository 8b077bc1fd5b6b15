"""`torch.version`: version and build information. naru links no driver, so the build has no driver version; `hip` is the one of the machine's HIP
where `torch.cuda` names AMD's devices."""

from __future__ import annotations

from . import _C, _missing
from .torch_version import NARU_VERSION, __version__

__all__ = ["__version__", "naru", "cuda", "hip", "git_version", "debug"]

naru: str = NARU_VERSION
cuda: str | None = None
hip: str | None
xpu: str | None = None
git_version: str = ""
debug: bool = False

_missing_name = _missing.module_getattr(__name__)


def __getattr__(name: str) -> str | None:
    # Only now, as it asks the drivers.
    if name != "hip":
        return _missing_name(name)
    if not _C.is_available("cuda"):
        return None
    device = _C._describe_device(_C.device("cuda", 0))
    return device["driver"].removeprefix("HIP ") if device["backend"] == "rocm" else None
