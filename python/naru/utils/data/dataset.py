"""Data sets: samples by index (`Dataset`) or in sequence (`IterableDataset`)."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Tensor = _C.Tensor
T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split",
]  # fmt: skip


class Dataset(Generic[T_co]):
    """Samples by index: a subclass defines `__getitem__` and `__len__`.

    `__getitems__(indices)`, if defined, returns the samples of a whole batch as a list.

    >>> class Squares(naru.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> [batch.tolist() for batch in naru.utils.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in sequence: a subclass defines `__iter__`.

    >>> class Countdown(naru.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [batch.tolist() for batch in naru.utils.data.DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of the i-th rows of the tensors, which must have equal first sizes.

    >>> import naru
    >>> data = TensorDataset(naru.arange(3), naru.zeros(3, 2))
    >>> len(data), data[1]
    (3, (tensor(1), tensor([0., 0.])))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


def _samples_of(data: Any, indices: Iterable[int]) -> list[Any]:
    """The samples at a list of indices; fetched together if the data set supports it."""
    if not callable(getattr(data, "__getitems__", None)):
        return [data[i] for i in indices]
    wanted = list(indices)
    found = data.__getitems__(wanted)
    if len(found) != len(wanted):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(wanted)}, got {len(found)}")
    return found


class StackDataset(Dataset):
    """Combines the samples of several data sets into tuples or, given keywords, dicts.

    >>> naru.utils.data.StackDataset([1, 2], [3, 4])[1]
    (2, 4)
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        sets = list(args) or list(kwargs.values())
        self._length = len(sets[0])  # type: ignore[arg-type]
        if any(len(d) != self._length for d in sets):  # type: ignore[arg-type]
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {key: data[index] for key, data in self.datasets.items()}
        return tuple(data[index] for data in self.datasets)

    def __getitems__(self, indices: Iterable[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = {key: _samples_of(data, indices) for key, data in self.datasets.items()}
            return [dict(zip(columns, row)) for row in zip(*columns.values())]
        return list(zip(*(_samples_of(data, indices) for data in self.datasets)))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Concatenates several data sets.

    Args:
        datasets: data sets with a length (AssertionError for none).

    >>> len(naru.utils.data.ConcatDataset([[1, 2], [3]]))
    3
    """

    datasets: list[Dataset]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The cumulative lengths of the data sets in `sequence`."""
        return list(accumulate(len(d) for d in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """Older spelling of `cumulative_sizes` (FutureWarning)."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        if which:
            index -= self.cumulative_sizes[which - 1]
        return self.datasets[which][index]


class ChainDataset(IterableDataset):
    """Concatenates several iterable data sets.

    Args:
        datasets: iterable data sets (AssertionError for others, during iteration).

    >>> class Count(naru.utils.data.IterableDataset):
    ...     def __init__(self, *numbers):
    ...         self.numbers = numbers
    ...     def __iter__(self):
    ...         return iter(self.numbers)
    >>> list(naru.utils.data.ChainDataset([Count(1, 2), Count(3)]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for data in self.datasets:
            if not isinstance(data, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from data

    def __len__(self) -> int:
        return sum(len(data) for data in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset[T_co]):
    """Selected samples of a data set.

    Args:
        dataset: the data set.
        indices: the indices of the samples.

    >>> list(naru.utils.data.Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    dataset: Dataset
    indices: Sequence[int]

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        wanted = [self.indices[i] for i in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(wanted) if callable(many) else [self.dataset[i] for i in wanted]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Splits the data set randomly into parts of the given lengths, or fractions that add up to 1.

    If fractions do not divide evenly, the first parts get one more sample each.

    Args:
        dataset: the data set.
        generator: draws the permutation; the default one if None.

    >>> import naru
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    sizes: list[int]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for i, share in enumerate(lengths):
            if share < 0 or share > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
            sizes.append(math.floor(len(dataset) * share))
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                import warnings

                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2)
    else:
        sizes = list(lengths)  # type: ignore[arg-type]
    if sum(sizes) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    seeded = {} if generator is None else {"generator": generator}
    order = _C.randperm(sum(sizes), **seeded).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]
