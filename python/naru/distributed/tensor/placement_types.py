"""Placements: how a distributed tensor lies on the ranks along a dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _missing

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

    Shards are as `torch.chunk` makes them: all of ceil(size / ranks) rows but the last ones, which may be smaller or empty.

    Args:
        dim: the dimension.

    >>> naru.distributed.tensor.Shard(0)
    Shard(dim=0)
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """A split of a dimension that later dimensions of the mesh have split before, into `split_factor` parts."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor.

    >>> naru.distributed.tensor.Replicate() == naru.distributed.tensor.Replicate()
    True
    """

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """The tensor is a pending reduction of the processes' values.

    Args:
        reduce_op: "sum", "avg", "min", "max" or "product".

    >>> naru.distributed.tensor.Partial()
    Partial(sum)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


__getattr__ = _missing.module_getattr(__name__)
