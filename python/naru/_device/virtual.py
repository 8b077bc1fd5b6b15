"""Virtual devices: devices of any kind, on any machine, with configurable limits, delays and faults."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _C


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return "+".join(value)
    return repr(value)


class virtual:
    """Replaces the devices of a kind by `count` virtual ones, from now on or for a block.

    The host cannot access their memory, and their streams run asynchronously, as on a real device; results are bitwise equal to the cpu's.

    >>> import naru
    >>> with naru.virtual("cuda", count=4, memory="64MiB"):
    ...     print(naru.cuda.device_count(), naru.ones(2, device="cuda:3").device)
    4 cuda:3

    Several kinds at once use the syntax of NARU_VIRTUAL: naru.virtual("cuda:4(memory=64MiB;copy_delay=3ms),mps:1").

    memory: bytes of each device, or "64MiB". copy_delay, launch_delay: minimum seconds for a copy, or for any other operation, or "3ms".
    bandwidth: bytes per second of copies, or "10GB/s". peer: "on", "off" (copies between the devices go through the host) or "corrupt" (peer
    copies are reported as supported, but transfer wrong bytes). fail_allocation, fail_driver_allocation, fail_copy, fail_launch: the number of the
    operation that fails on each device, counted from 1 (allocations are requests by the program; driver allocations are requests by the cache to the
    device, which it retries). lose_after: number of copies and launches after which the device is lost. unified: whether the host uses the devices'
    memory, as on Apple's (`x.numpy(force=True)` is a view then). without: what the devices do not support:
    "fp64", "fp16", "bf16", names of operators (`naru devices --coverage` lists them), or "*" for every operator; "denormals": float32 operations
    take denormal numbers for zero; or "elements": nothing is computed and no memory is used, the host reads 0, but memory is counted as if
    elements were stored (`naru memory --predict`). execute: "ptx" (cuda only): kernels are compiled by NVRTC as for a
    GPU and interpreted, and a kernel's access out of bounds, race or divergent barrier is a RuntimeError at the next wait (docs/kernelcheck.md);
    "host": the cpu's own loops.

    Errors: RuntimeError for a kind that is not a device kind, a count below 0, or an invalid option.
    """

    def __init__(
        self,
        kind: str,
        count: int = 1,
        *,
        memory: int | str | None = None,
        copy_delay: float | str | None = None,
        launch_delay: float | str | None = None,
        bandwidth: float | str | None = None,
        peer: str | None = None,
        fail_allocation: int | None = None,
        fail_driver_allocation: int | None = None,
        fail_copy: int | None = None,
        fail_launch: int | None = None,
        lose_after: int | None = None,
        unified: bool | None = None,
        without: str | Iterable[str] | None = None,
        execute: str | None = None,
    ) -> None:
        if count < 0:
            raise RuntimeError(f"virtual: count must not be negative, got {count}")
        given = {k: v for k, v in locals().items() if k not in ("self", "kind", "count") and v is not None}
        options = ";".join(f"{name}={_value(value)}" for name, value in given.items())
        if ":" in kind and given:
            raise RuntimeError(f"virtual: options of several kinds are written behind each, as in cuda:2(memory=64MiB); got '{kind}' and {options}")
        self._before = _C._virtual_devices()
        kinds = {entry.partition(":")[0]: entry for entry in self._before.split(",") if entry}
        asked = kind.split(",") if ":" in kind else [f"{kind}:{count}" + (f"({options})" if options else "")]
        kinds.update({entry.strip().partition(":")[0]: entry.strip() for entry in asked})
        _C._set_virtual_devices(",".join(kinds.values()))

    def __enter__(self) -> virtual:
        return self

    def __exit__(self, *exception: object) -> None:
        _C._set_virtual_devices(self._before)
