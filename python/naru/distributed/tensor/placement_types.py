"""Placements of a distributed tensor on a mesh dimension. Plain values: packages create them at import; naru has no distributed tensors."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compat import placeholders

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base of `Shard`, `Replicate` and `Partial`.

    >>> naru.distributed.tensor.Replicate().is_replicate()
    True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is sharded along `dim`, or along any dimension."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of the tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is a pending reduction by `reduce_op`, or by any operation, of the processes' values."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a shard of the tensor, split along a dimension.

    Args:
        dim: the dimension.

    >>> naru.distributed.tensor.Shard(0)
    Shard(dim=0)
    """

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor.

    >>> naru.distributed.tensor.Replicate() == naru.distributed.tensor.Replicate()
    True
    """


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is a pending reduction of the processes' values.

    Args:
        reduce_op: "sum", "avg", "min", "max" or "product".

    >>> naru.distributed.tensor.Partial().reduce_op
    'sum'
    """

    reduce_op: str = "sum"


__getattr__ = placeholders.module_getattr(__name__)
