"""Samplers: the order in which samples of a data set are loaded."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized

T_co = TypeVar("T_co", covariant=True)

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]


class Sampler(Generic[T_co]):
    """Base of samplers: a subclass defines `__iter__`, over sample indices or lists of them, and may define `__len__`.

    Args:
        data_source: ignored, as in PyTorch.

    >>> class Backwards(naru.utils.data.Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __iter__(self):
    ...         return iter(range(len(self.data) - 1, -1, -1))
    ...     def __len__(self):
    ...         return len(self.data)
    >>> data = ["a", "b", "c"]
    >>> list(naru.utils.data.DataLoader(data, sampler=Backwards(data), batch_size=None))
    ['c', 'b', 'a']
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2 ...

    Args:
        data_source: a data set, or anything with a length.

    >>> list(naru.utils.data.SequentialSampler([5, 6, 7]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _seeded(generator: Any) -> dict[str, Any]:
    """Keyword arguments that draw from `generator`, or from a new generator seeded by the default one."""
    if generator is None:
        generator = _C.Generator()
        empty = _C.empty((), dtype=_C.int64, device="cpu")
        generator.manual_seed(int((empty.random_() if _C._draws_as_pytorch() else empty.random_(0, 2**62)).item()))
    return {"generator": generator}


class RandomSampler(Sampler[int]):
    """Sample indices in random order, or drawn with replacement; `num_samples` of them (all, if None).

    Args:
        data_source: a data set, or anything with a length.
        generator: draws the indices; the default one if None.

    >>> sorted(naru.utils.data.RandomSampler([5, 6, 7]))
    [0, 1, 2]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """The number of indices in a pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _parts(self) -> Iterator[Any]:
        """The indices of a pass, in tensors."""
        size = len(self.data_source)
        seeded = _seeded(self.generator)
        left = self.num_samples
        while left > 0:
            if self.replacement:
                part = _C.randint(0, size, (min(left, 65536),), dtype=_C.int64, device="cpu", **seeded)
            else:
                part = _C.randperm(size, device="cpu", **seeded)[:left]
            left -= len(part)
            yield part
        if not self.replacement and self.num_samples % size == 0 and _C._draws_as_pytorch():
            _C.randperm(size, device="cpu", **seeded)  # PyTorch draws a permutation for the remainder even if it is empty

    def __iter__(self) -> Iterator[int]:
        for part in self._parts():
            yield from part.tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order.

    Args:
        indices: the indices.
        generator: draws the order; the default one if None.

    >>> sorted(naru.utils.data.SubsetRandomSampler([2, 4]))
    [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        seeded = {} if self.generator is None else {"generator": self.generator}
        for i in _C.randperm(len(self.indices), device="cpu", **seeded).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


def order_known(sampler: Any) -> bool:
    """Whether `whole_order` returns all indices of a pass."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    return type(sampler) is SequentialSampler


def whole_order(sampler: Any) -> Any:
    """All indices of a new pass, in one tensor, with the same random draws as iteration."""
    if type(sampler) is RandomSampler:
        return next(sampler._parts())
    return _C.arange(len(sampler), device="cpu")


class WeightedRandomSampler(Sampler[int]):
    """Indices 0 to len(weights) - 1, drawn with probabilities proportional to `weights`.

    Args:
        num_samples: the number of indices.
        replacement: whether an index may be drawn again.
        generator: draws the indices; the default one if None.

    >>> list(naru.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        table = _C.as_tensor(weights, dtype=_C.float64)
        if table.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(table.shape)}")
        self.weights = table
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        seeded = {} if self.generator is None else {"generator": self.generator}
        yield from _C.multinomial(self.weights, self.num_samples, self.replacement, **seeded).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices from another sampler; the last list may be shorter, or is left out with drop_last.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # Not a generator: before Python 3.12, destroying a suspended one runs Python code, in which a Ctrl-C would be lost.
        # chain requests the sampler's iterator with the first batch, as a generator would.
        return itertools.chain.from_iterable(map(self._batches, [self.sampler]))

    def _batches(self, sampler: Iterable[int]) -> Iterator[list[int]]:
        numbers, size = iter(sampler), self.batch_size
        batches: Iterator[list[int]] = iter(lambda: list(itertools.islice(numbers, size)), [])
        return filter(lambda batch: len(batch) == size, batches) if self.drop_last else batches

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
