"""Virtual devices: devices of any kind, on any machine, with limits, delays and faults as asked for."""
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

    Their memory is out of the host's reach and their streams run on their own, as a real device's do; results have the cpu's bits.

    >>> import naru
    >>> with naru.virtual("cuda", count=4, memory="64MiB"):
    ...     print(naru.cuda.device_count(), naru.ones(2, device="cuda:3").device)
    4 cuda:3

    Several kinds at once are written as in NARU_VIRTUAL: naru.virtual("cuda:4(memory=64MiB;copy_delay=3ms),mps:1").

    memory: bytes of each device, or "64MiB". copy_delay, launch_delay: seconds that a copy, or anything else, takes at least, or "3ms".
    bandwidth: bytes a second of copies, or "10GB/s". peer: "on", "off" (copies between the devices pass through the host) or "corrupt" (they
    say they can, and the bytes arrive wrong). fail_allocation, fail_driver_allocation, fail_copy, fail_launch: which one of each device fails,
    counted from 1 (allocations are what the program asks for, driver allocations what the cache asks the device for, and then asks again).
    lose_after: so many copies and launches, then the device is lost. without: what the devices do not support: "fp64", "fp16", "bf16", names of operators
    (`naru devices --coverage` lists them), or "*" for every operator; or "elements": nothing is computed, no memory is taken, and what the host reads is 0, but
    memory is counted as if there were elements (`naru memory --predict`).

    Errors: RuntimeError for a kind that is not a device kind, a count below 0, or an option that can't be read.
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
        without: str | Iterable[str] | None = None,
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
