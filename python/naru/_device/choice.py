"""Selecting a device: the best one, or one that meets requirements."""

from __future__ import annotations

import re
from typing import Any

from .. import _C

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
          "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # fmt: skip


def byte_count(size: int | str) -> int:
    """Parses a number of bytes, also "8GiB", "512M" (both powers of two) or "8GB" (a power of ten); ValueError for other strings.

    >>> byte_count("1.5KiB")
    1536
    """
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    if not found or found[2].lower() not in _UNITS:
        raise ValueError(f"wanted a number of bytes such as 1024, '512M' or '8GiB', got {size!r}")
    return int(float(found[1]) * _UNITS[found[2].lower()])


class BestDevice(_C.device):
    """A device, and why other kinds were not selected: `others` maps each kind except cpu to the reason."""

    others: dict[str, str]


def best_device() -> BestDevice:
    """The first accelerator (kinds in the order cuda, rocm, xpu, mps), else the cpu.

    >>> import naru
    >>> with naru.virtual("cuda"):
    ...     device = naru.best_device()
    ...     print(naru.ones(2, device=device).device, "cuda" in device.others)
    cuda:0 False

    Its `others` has the reason why each other kind was not selected, as `naru doctor` reports it.
    """
    chosen, others = _C._best_device()
    best = BestDevice(chosen)
    best.others = others
    return best


def pick(kind: str | None = None, *, free_memory: int | str = 0, uuid: Any = "", pci: str = "") -> _C.device:
    """Selects a device that meets the requirements: in the first kind that has one (cuda, rocm, xpu, mps), the one with the most free memory.

    free_memory: bytes available for new tensors, as a number or a string ("8GiB"). uuid: "GPU-5a1b...", or a prefix of it. pci: an
    address such as "0000:17:00.0" or "17:00". The cpu is selected only with kind "cpu".

    >>> import naru
    >>> with naru.virtual("cuda", count=2):
    ...     naru.pick("cuda", free_memory="1MiB", uuid=naru.cuda.get_device_properties(1).uuid)
    device(type='cuda', index=1)

    Errors: RuntimeError that lists the properties of each device if none matches; ValueError for an invalid size or address.
    """
    return _C._pick(kind or "", byte_count(free_memory), str(uuid or ""), pci or "")
