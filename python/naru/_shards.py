"""Shards: the fixed parts of a batch, which processes share among them."""

from __future__ import annotations

from typing import Any


def shards_of(rank: int, ranks: int, shards: int) -> range:
    """The shards of a rank: consecutive, and at most one more on some ranks than on others."""
    return range(shards * rank // ranks, shards * (rank + 1) // ranks)


def require_shards(shards: Any, ranks: int, what: str) -> int:
    """The number of shards, checked."""
    if isinstance(shards, bool) or not isinstance(shards, int):
        raise TypeError(f"{what}: shards must be an int, got {type(shards).__name__}")
    if shards < ranks:
        raise ValueError(f"{what}: shards must be at least the number of processes, {ranks}, so that each has one; got {shards}")
    return shards
