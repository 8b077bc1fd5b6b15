"""Virtual devices: devices of any kind, on any machine."""
from __future__ import annotations

import os

from . import _C

_spec = os.environ.get("NARU_VIRTUAL", "")


def _parse(spec: str) -> dict[str, int]:
    """{'cuda': 4, 'mps': 1} from 'cuda:4,mps:1'."""
    counts = {}
    for part in filter(None, (p.strip() for p in spec.split(","))):
        kind, _, count = part.partition(":")
        counts[kind] = int(count) if count else 1
    return counts


class virtual:
    """Replaces the devices of a kind by `count` virtual ones, from now on or for a block.

    Their memory is out of the host's reach and their streams run on their own, as a real device's do; results have the cpu's bits.

    >>> import naru
    >>> with naru.virtual("cuda", count=4):
    ...     print(naru.cuda.device_count(), naru.ones(2, device="cuda:3").device)
    4 cuda:3

    Several kinds at once are written as in NARU_VIRTUAL: naru.virtual("cuda:4,mps:1").

    Errors: RuntimeError for a kind that is not a device kind, or a count below 0.
    """

    def __init__(self, kind: str, count: int = 1) -> None:
        global _spec
        if count < 0:
            raise RuntimeError(f"virtual: count must not be negative, got {count}")
        self._before = _spec
        counts = _parse(_spec)
        counts.update(_parse(kind) if ":" in kind else {kind: count})
        self._set(",".join(f"{k}:{n}" for k, n in counts.items() if n))

    @staticmethod
    def _set(spec: str) -> None:
        global _spec
        _C._set_virtual_devices(spec)
        _spec = spec

    def __enter__(self) -> "virtual":
        return self

    def __exit__(self, *exception) -> None:
        self._set(self._before)
