"""Fallback: what happens when a device does not support an operator.

"error": NotImplementedError at the call. "warn": the work runs on the CPU, with copies in both directions, and each operator emits a
UserWarning the first time. "count": it runs on the CPU without a warning. `report()` shows what that cost.

Unless a policy is set, the environment variable NARU_FALLBACK (error, warn, count) applies to all kinds of device, then
PYTORCH_ENABLE_MPS_FALLBACK=1 ("warn", for mps); both are read at each call. Otherwise the policy is "error".

>>> import naru
>>> naru.fallback.reset()
>>> with naru.virtual("mps", without=["sort"]), naru.fallback.policy("count"):
...     naru.tensor([3.0, 1.0, 2.0], device="mps").sort().values.tolist()
...     [(use.op, use.calls) for use in naru.fallback.report()]
[1.0, 2.0, 3.0]
[('sort', 1)]
"""

from __future__ import annotations

from typing import NamedTuple

from . import _C

_POLICIES = ("error", "warn", "count")


class FallbackUse(NamedTuple):
    """Work that ran on the CPU: the operator `op`, the `kind` of device that does not support it, the number of `calls`, the `bytes` copied in
    both directions, and the time in `milliseconds`.

    >>> naru.fallback.FallbackUse("sort", "mps", 2, 48, 0.1).calls
    2
    """

    op: str
    kind: str
    calls: int
    bytes: int
    milliseconds: float


def get_policy(kind: str) -> str:
    """Returns the policy in effect for a `kind` of device: "error", "warn" or "count".

    >>> with naru.fallback.policy("count"):
    ...     naru.fallback.get_policy("mps")
    'count'
    """
    return _POLICIES[_C._fallback_policy(kind)]


def set_policy(policy: str | None) -> str | None:
    """Sets the `policy` for all kinds; None: use the environment variables. Returns the previous setting. ValueError for another word.

    >>> before = naru.fallback.set_policy("warn")
    >>> naru.fallback.get_policy("cuda"), naru.fallback.set_policy(before)
    ('warn', 'warn')
    """
    if policy is not None and policy not in _POLICIES:
        raise ValueError(f"fallback policy: wanted 'error', 'warn' or 'count', got {policy!r}")
    before = _C._set_fallback_policy(-1 if policy is None else _POLICIES.index(policy))
    return None if before < 0 else _POLICIES[before]


class policy:
    """`with naru.fallback.policy(name):` sets the policy `name` for the block.

    >>> with naru.virtual("mps", without="sort"), naru.fallback.policy("count"):
    ...     naru.tensor([3, 1, 2], device="mps").sort().values.tolist()
    [1, 2, 3]
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._before = set_policy(self._name)

    def __exit__(self, *exception: object) -> None:
        set_policy(self._before)


def report() -> list[FallbackUse]:
    """What ran on the CPU so far, longest time first.

    >>> with naru.virtual("mps", without="sort"), naru.fallback.policy("count"):
    ...     naru.fallback.reset()
    ...     _ = naru.tensor([3, 1, 2], device="mps").sort()
    ...     [(use.op, use.kind, use.calls) for use in naru.fallback.report()]
    [('sort', 'mps', 1)]
    """
    return [FallbackUse(*use) for use in _C._fallback_report()]


def reset() -> None:
    """Clears the report; each operator may warn again.

    >>> naru.fallback.reset(); naru.fallback.report()
    []
    """
    _C._reset_fallback_report()
