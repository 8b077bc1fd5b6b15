"""`DataLoader`: a data set in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C
from .collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Tensor = _C.Tensor
T_co = TypeVar("T_co", covariant=True)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


def get_worker_info() -> None:
    """What a worker process knows of itself; None, as samples are loaded in the calling process."""
    return None


class _EndlessSampler(Sampler):
    """Stands for the numbers of an iterable data set, which has none."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset: samples by number (`__getitem__`, `__len__`) or an IterableDataset.
        batch_size: samples to a batch; None gives single samples.
        shuffle: random order, new for each pass.
        sampler, batch_sampler: the order, in place of shuffle (and of batch_size and drop_last).
        collate_fn: makes a batch from a list of samples (`default_collate`).
        pin_memory: tensors of the batch are copied to page-locked memory, where a device is there to gain by it.
        drop_last: leave out a last batch that is not full.
        num_workers: accepted; samples are loaded in the calling process, whatever the number. Loading by several workers is
            yet to come.
        generator: draws the random order.

    >>> import naru
    >>> loader = DataLoader(TensorDataset(naru.arange(5)), batch_size=2)
    >>> [batch[0].tolist() for batch in loader]
    [[0, 1], [2, 3], [4]]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            if shuffle not in (False, None):
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
            if sampler is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}")
            if batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
                    f"batch_sampler={batch_sampler}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None:
            if self._iterable:
                sampler = _EndlessSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order

    def __len__(self) -> int:
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[T_co]:
        batches = self._iterable_batches() if self._iterable else self._numbered_batches()
        if self.pin_memory and _C.is_available("cuda"):
            batches = map(_pin, batches)
        return batches

    def _numbered_batches(self) -> Iterator[Any]:
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_sampler is None:
            for index in self.sampler:
                yield collate(dataset[index])
            return
        gather = _whole_batches(dataset) if collate is default_collate else None
        if gather is not None:
            for indices in self.batch_sampler:
                yield gather(indices)
            return
        many = getattr(dataset, "__getitems__", None)
        for indices in self.batch_sampler:
            yield collate(many(indices) if many else [dataset[i] for i in indices])

    def _iterable_batches(self) -> Iterator[Any]:
        import itertools

        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)


def _whole_batches(dataset: Any) -> Callable[[list[int]], Any] | None:
    """A function that gathers a batch of a TensorDataset (or of a Subset of one) at once; None for other data sets.

    The result is what collating the samples one by one would give.
    """
    positions: Tensor | None = None
    while type(dataset) is Subset:
        inner = _C.as_tensor(list(dataset.indices), dtype=_C.int64, device="cpu")
        positions = inner if positions is None else inner[positions]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset:
        return None

    def gather(indices: list[int]) -> list[Tensor]:
        index = _C.tensor(indices, dtype=_C.int64, device="cpu")
        if positions is not None:
            index = positions[index]
        return [tensor[index if tensor.device.type == "cpu" else index.to(tensor.device)] for tensor in dataset.tensors]

    return gather


def _pin(batch: Any) -> Any:
    """`batch` with its CPU tensors in page-locked memory."""
    if isinstance(batch, Tensor):
        return batch.pin_memory() if batch.device.type == "cpu" else batch
    if isinstance(batch, dict):
        return {key: _pin(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_pin, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(_pin, batch))
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch
