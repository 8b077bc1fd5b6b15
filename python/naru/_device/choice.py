"""Choosing a device: the best one, or one that has what is wanted."""

from __future__ import annotations

import re
from typing import Any

from .. import _C

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
          "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # fmt: skip


def byte_count(size: int | str) -> int:
    """A number of bytes, also from "8GiB", "512M" (both powers of two) or "8GB" (a power of ten); ValueError for other texts.

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
    """A device, and why those of other kinds were not chosen: `others` maps each kind but cpu to the reason."""

    others: dict[str, str]


def best_device() -> BestDevice:
    """The first device beside the cpu (kinds in the order cuda, rocm, xpu, mps), else the cpu.

    >>> import naru
    >>> with naru.virtual("cuda"):
    ...     device = naru.best_device()
    ...     print(naru.ones(2, device=device).device, "cuda" in device.others)
    cuda:0 False

    Its `others` says why the other kinds were not chosen, in the words of `naru doctor`.
    """
    chosen, others = _C._best_device()
    best = BestDevice(chosen)
    best.others = others
    return best


def pick(kind: str | None = None, *, free_memory: int | str = 0, uuid: Any = "", pci: str = "") -> _C.device:
    """A device that has what is wanted: of the first kind that has one (cuda, rocm, xpu, mps) the one with the most free memory.

    free_memory: bytes that new tensors could take, as a number or as text ("8GiB"). uuid: "GPU-5a1b...", or what it begins with. pci: an
    address such as "0000:17:00.0" or "17:00". The cpu is picked only as kind "cpu".

    >>> import naru
    >>> with naru.virtual("cuda", count=2):
    ...     naru.pick("cuda", free_memory="1MiB", uuid=naru.cuda.get_device_properties(1).uuid)
    device(type='cuda', index=1)

    Errors: RuntimeError that lists what each device has when none fits; ValueError for a size or an address that is none.
    """
    return _C._pick(kind or "", byte_count(free_memory), str(uuid or ""), pci or "")
