"""`DataLoader`: loads a data set in batches."""

from __future__ import annotations

import functools
import os
import select
import sys
import warnings
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C, accelerator
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import Source
from ._utils.finalizers import forget, when_gone
from ._utils.order import Order
from ._utils.pin_memory import pin_memory
from ._utils.worker import Job, get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, order_known, whole_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ._utils.worker_pool import WorkerPool
    from .dataset import Dataset

Tensor = _C.Tensor
T_co = TypeVar("T_co", covariant=True)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class _EndlessSampler(Sampler):
    """Placeholder for the indices of an iterable data set, which has none."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset: a data set with samples by index (`__getitem__`, `__len__`) or an IterableDataset.
        batch_size: samples per batch; None yields single samples.
        shuffle: random order, redrawn for each pass.
        sampler, batch_sampler: the order, instead of shuffle (and of batch_size and drop_last).
        num_workers: the number of processes that load batches ahead of time; 0 loads each batch on request. A TensorDataset with
            the default collate_fn and no worker_init_fn is loaded by threads instead, which need not copy the batch.
        collate_fn: makes a batch from a list of samples (default: `default_collate`).
        pin_memory: copy the tensors of a batch to page-locked memory (on a thread, if there are workers), which allows asynchronous copies
            to devices. Objects with a method `pin_memory` are replaced by its result.
        drop_last: leave out an incomplete last batch.
        timeout: seconds to wait for a batch from a worker before RuntimeError; 0 for no limit.
        worker_init_fn: called in each worker with its id, after its random numbers are seeded.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver" or a context of `multiprocessing`.
        generator: draws the random order, and the base seed of the workers.
        prefetch_factor: pending batches per worker (2).
        persistent_workers: keep the workers, and their copies of the data set, after a pass.
        pin_memory_device: ignored, as in PyTorch.
        in_order: return batches in the order of the sampler. False: as they become available.

    An exception in a worker is raised here, with the same type and the worker's traceback as text. A worker that dies raises
    RuntimeError. Batches are passed through shared memory that does not count against /dev/shm.

    >>> import naru
    >>> from naru.utils.data import TensorDataset
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
    pin_memory_device: str
    prefetch_factor: int | None

    _fixed = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
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
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
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
        self._length_told: int | None = None  # of an iterable data set, once len() was called
        self._iterator: _WorkersIterator | None = None
        self._fixed = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context of `multiprocessing` that starts the workers; None for the default one."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            import multiprocessing

            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start method, "
                    f"but got multiprocessing_context={context}"
                )
        self._context = context

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        return _DatasetKind.Iterable if self._iterable else _DatasetKind.Map

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        samples = self._length_told = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:  # batches, of the type that collate_fn returns
        if not self.persistent_workers or self._in_this_process():
            return self._get_iterator()
        if self._iterator is None or self._iterator.broken:
            self._iterator = self._get_iterator()
        else:
            self._iterator.begin(self)
        return self._iterator

    def _get_iterator(self) -> Any:
        """A new pass. PyTorch's name, which loaders that are made of this one call or replace."""
        rows = self._rows_at_once()
        if rows is not None:
            return _RowsIterator(self, *rows)
        return _SingleProcessDataLoaderIter(self) if self._in_this_process() else _WorkersIterator(self)

    def _threads_suffice(self) -> bool:
        """Whether workers can be threads: no Python code of the user runs in them."""
        return self.worker_init_fn is None and self.multiprocessing_context is None and self._source().gather() is not None

    def _in_this_process(self) -> bool:
        """Whether samples are loaded by the program itself: without workers, or where worker processes can't be connected (Windows)."""
        if self.num_workers == 0 or hasattr(select, "poll") or self._threads_suffice():
            return self.num_workers == 0
        warnings.warn(f"DataLoader: worker processes need select.poll, which {sys.platform} lacks; samples are loaded in this process", stacklevel=3)
        return True

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than processors."""
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {processors}, which is smaller than what this DataLoader is going to create. More workers than "
                "processors make loading slower, not faster, unless they mostly wait.",
                stacklevel=3,
            )

    def _source(self) -> Source:
        return Source(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)

    def _rows_at_once(self) -> tuple[tuple[Any, ...], Any] | None:
        """If batches are rows of cpu tensors in a known order, so that no Python code is needed to make them: the tensors, and the rows that are
        samples (see Source.rows). None otherwise."""
        if self._iterable or type(self.batch_sampler) is not BatchSampler or not order_known(self.batch_sampler.sampler):
            return None
        if self.timeout or self.persistent_workers or self.worker_init_fn is not None or self.multiprocessing_context is not None:
            return None
        if self.num_workers > 0 and not (self.in_order and self.prefetch_factor):
            return None
        rows = self._source().rows()
        return rows if rows and all(type(t) is _C.Tensor and t.device.type == "cpu" for t in rows[0]) else None

    def _start_pool(self, base_seed: int, pin: bool) -> WorkerPool:
        """Starts the workers of a pass."""
        from ._utils.worker_pool import PinningPool, ProcessPool, ThreadPool

        source = self._source()
        pool: WorkerPool
        if self._threads_suffice():
            pool = ThreadPool(source, self.num_workers)
        elif not hasattr(select, "poll"):  # DataLoader itself loads in this process then; this is another's loader, or a call of the iterator's class
            raise RuntimeError(
                f"DataLoader: {self.num_workers} worker processes were asked for, which need select.poll; {sys.platform} lacks it. Use num_workers=0, "
                "or naru's DataLoader, which loads in this process then"
            )
        else:
            import multiprocessing

            job = Job(source, self.worker_init_fn, base_seed, self.num_workers)
            pool = ProcessPool(job, self.multiprocessing_context or multiprocessing.get_context())
        return PinningPool(pool) if pin else pool


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")


class _DatasetKind:
    """PyTorch's private names for how samples are taken from a data set: by index, or by iteration."""

    Map = 0
    Iterable = 1


class _LoaderByAttributes(DataLoader):
    """What an iterator asks of a loader, read from an object that is not a DataLoader but has the attributes that PyTorch's has, private ones among
    them: packages with loaders of their own (fastai's) give such objects to PyTorch's iterators."""

    # The attributes that an object may leave out, and the values they then have.
    _OPTIONAL = {
        "pin_memory": False, "pin_memory_device": "", "timeout": 0, "worker_init_fn": None, "generator": None, "num_workers": 0, "prefetch_factor": None,
        "persistent_workers": False, "in_order": True,
    }  # fmt: skip
    _WANTED = ("dataset", "collate_fn", "drop_last", "_dataset_kind", "_auto_collation", "_index_sampler")

    def __init__(self, other: Any) -> None:
        lacking = [name for name in self._WANTED if not hasattr(other, name)]
        if lacking:
            raise TypeError(
                f"DataLoader's iterator: wanted a DataLoader, or an object with its attributes, got {type(other).__name__} without "
                f"{', '.join(lacking)}; iterate over torch.utils.data.DataLoader(dataset)"
            )
        for name, default in self._OPTIONAL.items():
            setattr(self, name, getattr(other, name, default))
        self.dataset, self.collate_fn, self.drop_last = other.dataset, other.collate_fn, other.drop_last
        self._context = getattr(other, "multiprocessing_context", None)
        self._length_told = getattr(other, "_IterableDataset_len_called", None)
        self._iterable, self._batched, self._indices = other._dataset_kind == _DatasetKind.Iterable, bool(other._auto_collation), other._index_sampler
        if self.num_workers > 0 and self.prefetch_factor is None:
            self.prefetch_factor = 2

    @property
    def _index_sampler(self) -> Any:
        return self._indices

    def _source(self) -> Source:
        return Source(self.dataset, self._batched, self.collate_fn, self.drop_last, self._iterable)


def _loader_of(given: Any) -> DataLoader:
    return given if isinstance(given, DataLoader) else _LoaderByAttributes(given)


class _Iterator:
    """One pass over a loader."""

    def _open(self, loader: DataLoader) -> int:
        """Initializes a pass; returns the base seed, which is drawn before the order is."""
        # No reference to the loader, which holds this object if workers are persistent: both must be released when they are dropped.
        self._sampler, self._dataset, self._num_workers = loader._index_sampler, loader.dataset, loader.num_workers
        self._given = 0
        self._length_told = loader._length_told
        self._indices = iter(loader._index_sampler)
        seeded = {} if loader.generator is None else {"generator": loader.generator}
        return int(_C.empty((), dtype=_C.int64, device="cpu").random_(**seeded).item())

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self._sampler)

    def _next(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next()
        self._given += 1
        if self._length_told is not None and self._given > self._length_told:
            self._warn_of_length()
        return batch

    def _warn_of_length(self) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._length_told}(when accessing "
            f"len(dataloader)), but {self._given} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica "
                "at each worker: each has a copy of the data set and gives all its samples, unless get_worker_info() tells it "
                "which are its own."
            )
        warnings.warn(text, stacklevel=3)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


_BaseDataLoaderIter = _Iterator  # PyTorch's name


class _SingleProcessDataLoaderIter(_Iterator):
    """One pass without workers: batches are loaded on request."""

    def __init__(self, loader: Any) -> None:
        loader = _loader_of(loader)
        self._pin = loader.pin_memory and _pins(loader)
        self._open(loader)
        if loader.timeout:
            raise AssertionError("timeout is for workers: with num_workers=0 it must be 0")
        self._fetch = loader._source().fetcher()

    def _next(self) -> Any:
        batch = self._fetch(next(self._indices))
        return pin_memory(batch) if self._pin else batch


class _RowsIterator(_Iterator):
    """One pass over rows of tensors, gathered by threads of the library, or by this thread on request."""

    def __init__(self, loader: DataLoader, tensors: tuple[Any, ...], positions: Any) -> None:
        pin = loader.pin_memory and _pins(loader)
        self._open(loader)
        self._options = loader.num_workers, loader.prefetch_factor or 1, pin
        self._tensors, self._positions = tensors, positions
        self._batches: Any = None
        if loader.num_workers > 0:
            self._start()

    def _start(self) -> Any:
        order = whole_order(self._sampler.sampler)
        if self._positions is not None:
            order = self._positions[order]
            order = _C.where(order < 0, order + self._tensors[0].size(0), order)
        batches = _C._Batches(list(self._tensors), order, self._sampler.batch_size, self._sampler.drop_last, *self._options)
        self._batches = batches  # its threads end when it is destroyed
        return batches

    def __next__(self) -> Any:
        batches = self._batches
        if batches is None:
            batches = self._start()
        return next(batches)


def _drop(pool: WorkerPool, running: list[Any]) -> None:
    pool.drop()
    running.clear()


class _WorkersIterator(_Iterator):
    """Passes over batches that workers load ahead of time."""

    def __init__(self, loader: Any) -> None:
        loader = _loader_of(loader)
        pin = loader.pin_memory and _pins(loader)
        base_seed = self._open(loader)
        pool = loader._start_pool(base_seed, pin)
        self._pool = pool
        # The workers end with this object; at interpreter exit the pool itself ends them.
        self._running = [self._indices]  # destroying a generator may run Python code, so keep it until the workers end
        self._dropped = when_gone(self, functools.partial(_drop, pool, self._running))
        factor = loader.prefetch_factor
        if not factor:
            raise AssertionError("prefetch_factor must be greater than 0 where there are workers")
        self._order = Order(pool, loader.num_workers, factor, loader.in_order, loader.timeout)
        self._persistent = loader.persistent_workers
        self._order.begin(self._indices)

    @property
    def broken(self) -> bool:
        """Whether the workers were stopped after an error."""
        return self._order.broken is not None

    @property
    def _workers(self) -> list[Any]:
        """The worker processes: PyTorch's name."""
        return self._pool.processes

    def _shutdown_workers(self) -> None:
        """Stops the workers: PyTorch's name, which programs call that take one pass for several."""
        self._pool.stop()
        forget(self._dropped)

    def begin(self, loader: DataLoader) -> None:
        """Starts a new pass with the same workers."""
        for before in self._running:
            if isinstance(before, GeneratorType):
                before.close()
        self._open(loader)
        self._running[:] = [self._indices]
        self._order.begin(self._indices)

    def _next(self) -> Any:
        try:
            return self._order.next()
        except StopIteration:
            if not self._persistent:
                self._pool.stop()
                forget(self._dropped)
            raise


_MultiProcessingDataLoaderIter = _WorkersIterator


def _pins(loader: DataLoader) -> bool:
    """Whether there is a device that benefits from page-locked memory."""
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
            f"pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    if accelerator.is_available():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.", stacklevel=4
    )
    return False
