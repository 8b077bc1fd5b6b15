"""`torch.version`: what this build is. naru links no driver, so no driver's version belongs to the build."""

from __future__ import annotations

from .torch_version import NARU_VERSION, __version__

__all__ = ["__version__", "naru", "cuda", "hip", "git_version", "debug"]

naru: str = NARU_VERSION
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version: str = ""
debug: bool = False
