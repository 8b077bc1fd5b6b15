"""`torch.version`: version and build information. naru links no driver, so the build has no driver version."""

from __future__ import annotations

from .torch_version import NARU_VERSION, __version__

__all__ = ["__version__", "naru", "cuda", "hip", "git_version", "debug"]

naru: str = NARU_VERSION
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version: str = ""
debug: bool = False
