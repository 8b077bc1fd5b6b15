"""`DistributedSampler`: a data set shared out among processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from .sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample number, from the `rank`-th on, so that processes with equal arguments share the data set.

    All get equally many: without drop_last the first numbers come again at the end, with it some are left out. The order is random
    with shuffle, drawn from seed and epoch: call `set_epoch` before each pass.

    Args:
        dataset: of which the length counts.
        num_replicas: how many processes there are; None: as torch.distributed has it.
        rank: this process, from 0; None: as torch.distributed has it.
        shuffle: whether the order is random.
        seed: of the order, the same in all processes.
        drop_last: whether samples that do not go round are left out.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
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
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas
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
        return iter([numbers[i % size] for i in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for another epoch."""
        self.epoch = epoch
