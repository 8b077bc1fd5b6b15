"""The cross entropy of logits whose classes are sharded."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ._dtensor import local_of, wrapped
from ._layout import dual, local_part
from .placement_types import Partial, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._dtensor import DTensor

_active = [0]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Within it, `cross_entropy` of logits (N, C) that are sharded along the classes sends some numbers for each sample, not the logits.

    >>> with naru.distributed.tensor.parallel.loss_parallel():
    ...     pass
    """
    _active[0] += 1
    try:
        yield
    finally:
        _active[0] -= 1


def is_loss_parallel() -> bool:
    """Whether a block of `loss_parallel` is open."""
    return _active[0] > 0


def sharded_cross_entropy(x: DTensor, target: DTensor, ignore_index: int) -> Any:
    """The cross entropy of each sample: of logits `x` (N, C), for the classes `target` (N,), of which `ignore_index` counts as 0."""
    greatest = x.detach().amax(1, keepdim=True)
    z = x - greatest.redistribute(placements=dual(greatest.placements))
    sums = z.exp().sum(1)
    # The logits of the targets: each rank has those of its classes.
    rows = tuple(Replicate() if p == Shard(1) else p for p in z.placements)
    local, classes = local_of(z), local_of(target.redistribute(placements=rows))
    first, count = local_part(z._spec)[1][1], local_part(z._spec)[0][1]
    mine = (classes >= first) & (classes < first + count) & (classes != ignore_index)
    if count:
        picked = local.gather(1, ((classes - first) * mine).unsqueeze(1)).squeeze(1) * mine.to(local.dtype)
    else:
        picked = local.sum(1)
    placements = tuple(Partial() if p == Shard(1) else p for p in z.placements)
    chosen = wrapped(picked, z._spec._replace(placements=placements, shape=tuple(target.shape)))
    each = sums.redistribute(placements=dual(sums.placements)).log() - chosen.redistribute(placements=dual(placements))
    return each * wrapped((classes != ignore_index).to(local.dtype), z._spec._replace(placements=rows, shape=tuple(target.shape)))
