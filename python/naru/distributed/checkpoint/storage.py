"""`torch.distributed.checkpoint.storage`: what writes and reads bytes."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import _missing

if TYPE_CHECKING:
    from ...futures import Future
    from .metadata import Metadata, MetadataIndex, StorageMeta
    from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Where an item was written.

    Args:
        index: its name and place.
        size_in_bytes: its bytes.
        storage_data: where they are, in the storage's own words.

    >>> naru.distributed.checkpoint.storage.WriteResult(None, 4, None).size_in_bytes
    4
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint's bytes. `save` calls its methods in the order in which they are here.

    >>> issubclass(naru.distributed.checkpoint.FileSystemWriter, naru.distributed.checkpoint.StorageWriter)
    True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins a checkpoint of that name."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is called on all ranks."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """May change what this rank writes."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """May change what each rank writes; on the coordinator."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Writes this rank's items: a Future of WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the metadata; on the coordinator."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it can write a checkpoint of that name."""
        return True

    def storage_meta(self) -> StorageMeta | None:
        """What the metadata says of the storage."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint's bytes. `load` calls its methods in the order in which they are here.

    >>> issubclass(naru.distributed.checkpoint.FileSystemReader, naru.distributed.checkpoint.StorageReader)
    True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins a checkpoint of that name."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The checkpoint's metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is called on all ranks."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """May change what this rank reads."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """May change what each rank reads; on the coordinator."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Reads this rank's items into what the planner says."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it can read a checkpoint of that name."""
        return True


__getattr__ = _missing.module_getattr(__name__)
