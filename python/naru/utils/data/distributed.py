"""`DistributedSampler`: partitions a data set among processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ..._shards import require_shards, shards_of
from .sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample index, starting from `rank`, so that processes with equal arguments partition the data set.

    All processes get the same number: without drop_last the first indices are repeated at the end, with it some are left out. With shuffle, the order
    is random, drawn from seed and epoch: call `set_epoch` before each pass.

    Args:
        dataset: the data set; only its length is used.
        num_replicas: the number of processes; None: from torch.distributed.
        rank: the rank of this process, from 0; None: from torch.distributed.
        shuffle: whether the order is random.
        seed: the seed of the order, equal on all processes.
        drop_last: leave out samples that do not divide evenly.
        shards: naru's own: the number of parts of each batch, for DistributedDataParallel(shards=...). The order is that of as many replicas, and
            this process has the samples of its consecutive `local_shards`, in turn. None: one part for each process.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    >>> [list(DistributedSampler(range(6), 2, rank, shuffle=False, shards=3)) for rank in range(2)]
    [[0, 3], [1, 2, 4, 5]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self._parts = num_replicas if shards is None else require_shards(shards, num_replicas, "DistributedSampler")
        self.local_shards = shards_of(rank, num_replicas, self._parts)
        size = len(dataset)
        each = size // self._parts if drop_last else -(-size // self._parts)
        self.num_samples = each * len(self.local_shards)
        self.total_size = each * self._parts
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = _C.Generator()
            generator.manual_seed(self.seed + self.epoch)
            numbers = _C.randperm(size, generator=generator, device="cpu").tolist()
        else:
            numbers = list(range(size))
        return iter([numbers[(start + shard) % size] for start in range(0, self.total_size, self._parts) for shard in self.local_shards])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which determines the random order."""
        self.epoch = epoch
