"""How a tensor of several processes lies on a dimension of a mesh. Plain values: packages make them as they are imported; there are no such tensors."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _placeholders

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What `Shard`, `Replicate` and `Partial` have in common.

    >>> naru.distributed.tensor.Replicate().is_replicate()
    True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it cuts a tensor along `dim`, or along any dimension."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of the tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is what `reduce_op`, or anything, makes of the processes' own."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a piece of the tensor, cut along a dimension.

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
    """The tensor is what a reduction makes of the processes' own.

    Args:
        reduce_op: "sum", "avg", "min", "max" or "product".

    >>> naru.distributed.tensor.Partial().reduce_op
    'sum'
    """

    reduce_op: str = "sum"


__getattr__ = _placeholders.module_getattr(__name__)
