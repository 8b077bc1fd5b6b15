"""From sample indices to batches: shared by the loading process and worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _C
from ..dataset import IterableDataset, Subset, TensorDataset
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


@dataclass(frozen=True)
class Source:
    """A data set, and how to make batches from it."""

    dataset: Any
    batched: bool  # indices come in lists, one per batch
    collate: Callable[[Any], Any]
    drop_last: bool
    iterable: bool | None = None  # samples come by iteration; None: if the data set is an IterableDataset

    @property
    def streams(self) -> bool:
        """Whether samples come by iteration rather than by index."""
        return isinstance(self.dataset, IterableDataset) if self.iterable is None else self.iterable

    def fetcher(self) -> Callable[[Any], Any]:
        """Starts a pass: returns a function from an index, or a list of them, to a batch; it raises StopIteration at the end of an iterable data set."""
        if self.streams:
            return self._stream()
        if not self.batched:
            return lambda index: self.collate(self.dataset[index])
        gather = self.gather()
        if gather is not None:
            return gather
        many = getattr(self.dataset, "__getitems__", None)
        if many:
            return lambda indices: self.collate(many(indices))
        return lambda indices: self.collate([self.dataset[i] for i in indices])

    def _stream(self) -> Callable[[Any], Any]:
        samples = iter(self.dataset)
        ended = False

        def fetch(indices: Any) -> Any:
            nonlocal ended
            if ended:
                raise StopIteration
            if not self.batched:
                return self.collate(next(samples))
            # For an iterable data set, only the number of indices matters.
            batch = [sample for _, sample in zip(indices, samples)]
            ended = len(batch) < len(indices)
            if not batch or (ended and self.drop_last):
                raise StopIteration
            return self.collate(batch)

        return fetch

    def rows(self) -> tuple[tuple[Tensor, ...], Tensor | None] | None:
        """For a TensorDataset, or a Subset of one: its tensors, and the rows that are its samples (None: all, in order).

        None if a batch may not be equal to these rows.
        """
        if self.collate is not default_collate or default_collate_fn_map.get(Tensor) is not collate_tensor_fn:
            return None
        dataset = self.dataset
        positions: Tensor | None = None
        while type(dataset) is Subset:
            inner = _C.as_tensor(list(dataset.indices), dtype=_C.int64, device="cpu")
            positions = inner if positions is None else inner[positions]
            dataset = dataset.dataset
        return (dataset.tensors, positions) if type(dataset) is TensorDataset else None

    def gather(self) -> Callable[[list[int]], list[Tensor]] | None:
        """A function that gathers a batch from a TensorDataset, or a Subset of one, at once; None for other data sets.

        The result is the same as collating the samples one by one.
        """
        found = self.rows()
        if found is None:
            return None
        tensors, positions = found

        def gather(indices: list[int]) -> list[Tensor]:
            index = _C.tensor(indices, dtype=_C.int64, device="cpu")
            if positions is not None:
                index = positions[index]
            return [tensor[index if tensor.device.type == "cpu" else index.to(tensor.device)] for tensor in tensors]

        return gather
