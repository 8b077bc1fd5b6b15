"""`torch.distributed.checkpoint.planner`: who writes and reads what."""

from __future__ import annotations

import abc
import io
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ... import _C, _missing
from ..tensor._dtensor import DTensor, local_of
from ..tensor._layout import local_part
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties, TensorStorageMetadata

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip

Tensor = _C.Tensor


class WriteItemType(Enum):
    """What an item to write is.

    >>> naru.distributed.checkpoint.planner.WriteItemType.TENSOR.name
    'TENSOR'
    """

    TENSOR = 1
    SHARD = 2
    BYTE_IO = 3


class LoadItemType(Enum):
    """What an item to read is.

    >>> naru.distributed.checkpoint.planner.LoadItemType.TENSOR.name
    'TENSOR'
    """

    TENSOR = 1
    BYTE_IO = 2


@dataclass(frozen=True)
class BytesIOWriteData:
    """An object's bytes to write.

    Args:
        nbytes: their number, where it is known.

    >>> naru.distributed.checkpoint.planner.BytesIOWriteData(3).nbytes
    3
    """

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor to write.

    Args:
        chunk: where it is.
        properties: the tensor's dtype and others.
        size: the whole tensor's shape.

    >>> from naru.distributed.checkpoint.planner import TensorWriteData
    >>> TensorWriteData(chunk=None, properties=None, size=naru.Size([2])).size
    torch.Size([2])
    """

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Any


@dataclass(frozen=True)
class WriteItem:
    """An object, or a part of a tensor, to write.

    Args:
        index: its name and place.
        type: what it is.
        bytes_io_data, tensor_data: more of it, by its type.

    >>> from naru.distributed.checkpoint.planner import WriteItem, WriteItemType
    >>> WriteItem(None, WriteItemType.BYTE_IO).tensor_storage_size() is None
    True
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the part of a tensor; None of what is no tensor."""
        if self.tensor_data is None:
            return None
        return self.tensor_data.chunk.sizes.numel() * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Elements to read from a part of a saved tensor, or an object.

    Args:
        type: what it is.
        dest_index: which object, or part of a tensor, they are for.
        dest_offsets: where they begin in it.
        storage_index: which part of a saved tensor they are in.
        storage_offsets: where they begin in it.
        lengths: their number along each dimension.

    >>> from naru.distributed.checkpoint.planner import LoadItemType, ReadItem
    >>> ReadItem(LoadItemType.TENSOR, None, naru.Size([0]), None, naru.Size([0]), naru.Size([2])).lengths
    torch.Size([2])
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Any
    storage_index: MetadataIndex
    storage_offsets: Any
    lengths: Any


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes.

    Args:
        items: the items.
        storage_data, planner_data: what the storage and the planner add.
        usable: whether it is not to be taken from an earlier save.

    >>> naru.distributed.checkpoint.SavePlan([]).items
    []
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads.

    Args:
        items: the items.
        storage_data, planner_data: what the storage and the planner add.

    >>> naru.distributed.checkpoint.LoadPlan([]).items
    []
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = field(default=None)


class SavePlanner(abc.ABC):
    """Says what each rank writes. `save` calls its methods in the order in which they are here; a subclass may change any.

    >>> issubclass(naru.distributed.checkpoint.DefaultSavePlanner, naru.distributed.checkpoint.SavePlanner)
    True
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: Any = None, is_coordinator: bool = False) -> None:
        """Begins a save, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank has, on all ranks."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each rank writes, and the checkpoint's metadata; on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The last change to what this rank writes."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the BytesIO, of an item."""


class LoadPlanner:
    """Says what each rank reads. `load` calls its methods in the order in which they are here; a subclass may change any.

    >>> issubclass(naru.distributed.checkpoint.DefaultLoadPlanner, naru.distributed.checkpoint.LoadPlanner)
    True
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        """Begins a load, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each rank reads; on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The last change to what this rank reads."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes an object's bytes."""

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Where the elements of an item are to be written."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Is called when the elements are written."""


# --- items of objects


def parts_of(tensor: Any) -> list[tuple[ChunkStorageMetadata, Any]]:
    """The parts of a tensor that this rank has: where each is, and its elements."""
    if isinstance(tensor, DTensor):
        if tensor.device_mesh.get_coordinate() is None:
            return []
        sizes, offsets = local_part(tensor._spec)
        return [(ChunkStorageMetadata(_C.Size(offsets), _C.Size(sizes)), local_of(tensor).detach())] if _C.Size(sizes).numel() or not tensor.numel() else []
    return [(ChunkStorageMetadata(_C.Size([0] * tensor.dim()), tensor.size()), tensor.detach())]


def write_items(fqn: str, value: Any) -> list[WriteItem]:
    """What is written of an object by its name."""
    if not isinstance(value, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
    made = []
    for chunk, elements in parts_of(value):
        properties = TensorProperties.create_from_tensor(elements)
        made.append(WriteItem(MetadataIndex(fqn, chunk.offsets), kind, tensor_data=TensorWriteData(chunk, properties, value.size())))
    return made


def read_items(fqn: str, saved: Any, value: Any) -> list[ReadItem]:
    """What is read for an object by its name."""
    if isinstance(saved, BytesStorageMetadata):
        index, zero = MetadataIndex(fqn), _C.Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, zero, index, zero, zero)]
    if not isinstance(value, Tensor):
        raise ValueError(f"load: {fqn} is a tensor in the checkpoint, and {type(value).__name__} in the state dict to load into")
    made = []
    for chunk, _ in parts_of(value):
        for i, other in enumerate(saved.chunks):
            first = [max(a, b) for a, b in zip(chunk.offsets, other.offsets)]
            last = [min(a + n, b + m) for a, n, b, m in zip(chunk.offsets, chunk.sizes, other.offsets, other.sizes)]
            lengths = [b - a for a, b in zip(first, last)]
            if all(n > 0 for n in lengths):
                made.append(
                    ReadItem(
                        LoadItemType.TENSOR, MetadataIndex(fqn, chunk.offsets), _C.Size(a - b for a, b in zip(first, chunk.offsets)),
                        MetadataIndex(fqn, other.offsets, i), _C.Size(a - b for a, b in zip(first, other.offsets)), _C.Size(lengths),
                    )
                )  # fmt: skip
    return made


def metadata_of(item: WriteItem) -> TensorStorageMetadata | BytesStorageMetadata:
    """What the metadata says of an item's object, without its parts."""
    if item.tensor_data is None:
        return BytesStorageMetadata()
    return TensorStorageMetadata(item.tensor_data.properties, item.tensor_data.size, [])


__getattr__ = _missing.module_getattr(__name__)
