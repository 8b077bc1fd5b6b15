"""`torch.distributed.checkpoint.filesystem`: checkpoints in a folder: a file for each rank, and `.metadata`, which is written last."""

from __future__ import annotations

import dataclasses
import io
import os
import uuid
from typing import TYPE_CHECKING, Any

from ... import _missing
from ..._serialization.atomic_file import atomic_file
from ...futures import Future
from .metadata import Metadata, StorageMeta, _StorageInfo, read_metadata, write_metadata
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileSystemReader", "FileSystemWriter"]


def _done(value: Any) -> Future:
    made: Future = Future()
    made.set_result(value)
    return made


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to a folder, in PyTorch's files. All ranks need to see the same folder.

    Args:
        path: the folder.
        single_file_per_rank: False for a file for each tensor.
        sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict: ignored: files are always synced before the metadata is written.
        overwrite: whether a checkpoint that is there may be replaced.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = naru.distributed.checkpoint.FileSystemWriter(folder)
    ...     _ = naru.distributed.checkpoint.save({"a": naru.ones(2)}, storage_writer=writer)
    ...     sorted(os.listdir(folder))
    ['.metadata', '__0_0.distcp']
    """

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        **options: Any,
    ) -> None:
        if unknown := {k: v for k, v in options.items() if k != "_extensions" and v is not None}:
            raise NotImplementedError(f"FileSystemWriter: {', '.join(unknown)} is not there")
        self.path, self.single_file_per_rank, self.overwrite = path, single_file_per_rank, overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: Any = None) -> None:
        self.path = checkpoint_id if checkpoint_id is not None else self.path
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Any:
        """The folder."""
        return self.path

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        os.makedirs(self.path, exist_ok=True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        if not self.overwrite and os.path.exists(os.path.join(self.path, ".metadata")):
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        metadata = os.path.join(self.path, ".metadata")
        if os.path.exists(metadata):
            os.remove(metadata)  # what it describes is about to be replaced
        return [dataclasses.replace(plan, storage_data=f"__{i}_") for i, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        items = sorted(plan.items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        groups = [items] if self.single_file_per_rank else [[item] for item in items]
        results: list[WriteResult] = []
        for i, group in enumerate(g for g in groups if g):
            name = f"{plan.storage_data}{i}.distcp"
            with atomic_file(os.path.join(self.path, name)) as file:
                offset = 0
                for item in group:
                    data = _bytes_of(planner.resolve_data(item))
                    file.write(data)
                    results.append(WriteResult(item.index, len(data), _StorageInfo(name, offset, len(data))))
                    offset += len(data)
        return _done(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.storage_data = {result.index: result.storage_data for written in results for result in written}
        metadata.storage_meta = self.storage_meta()
        file = io.BytesIO()
        write_metadata(metadata, file)
        with atomic_file(os.path.join(self.path, ".metadata")) as out:
            out.write(file.getvalue())

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return isinstance(checkpoint_id, os.PathLike) or "://" not in str(checkpoint_id)


def _bytes_of(data: Any) -> Any:
    if isinstance(data, io.BytesIO):
        return data.getbuffer()
    from ...serialization import save

    made = io.BytesIO()
    local = data.detach().cpu()
    save(local.contiguous() if local.untyped_storage().nbytes() == local.nbytes else local.contiguous().clone(), made)
    return made.getbuffer()


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder, naru's or PyTorch's. Objects that are no tensors are pickles: load only files that you trust.

    Args:
        path: the folder.
        _extension_registry: ignored.

    >>> import tempfile
    >>> x = naru.zeros(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = naru.distributed.checkpoint.save({"a": naru.ones(2)}, checkpoint_id=folder)
    ...     naru.distributed.checkpoint.load({"a": x}, storage_reader=naru.distributed.checkpoint.FileSystemReader(folder))
    >>> x
    tensor([1., 1.])
    """

    def __init__(self, path: Any, _extension_registry: Any = None) -> None:
        self.path = path
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: Any = None) -> None:
        self.path = checkpoint_id if checkpoint_id is not None else self.path
        self.load_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Any:
        """The folder."""
        return self.path

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with open(os.path.join(self.path, ".metadata"), "rb") as file:
            return read_metadata(file)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def _pieces(self, plan: LoadPlan) -> Iterator[tuple[Any, io.BytesIO]]:
        files: dict[str, list[Any]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        root = os.path.realpath(self.path)
        for name, items in files.items():
            path = os.path.realpath(os.path.join(root, name))
            if os.path.commonpath((root, path)) != root:
                raise ValueError(f"load: the checkpoint {self.path} names a file outside of its folder: {name!r}")
            with open(path, "rb") as file:
                for item in items:
                    info = self.storage_data[item.storage_index]
                    if info.transform_descriptors:
                        raise NotImplementedError(f"load: {item.storage_index.fqn} was written with {info.transform_descriptors}, which is not there")
                    file.seek(info.offset)
                    data = file.read(info.length)
                    if len(data) != info.length:
                        raise ValueError(f"load: {path} ends before the {info.length} bytes at {info.offset} of {item.storage_index.fqn}")
                    yield item, io.BytesIO(data)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        from ...serialization import load

        for item, data in self._pieces(plan):
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, data)
                continue
            saved = load(data, map_location="cpu", weights_only=True)
            for dim, (first, count) in enumerate(zip(item.storage_offsets, item.lengths)):
                saved = saved.narrow(dim, first, count)
            into = planner.resolve_tensor(item).detach()
            if into.shape != saved.shape:
                raise ValueError(f"load: {item.storage_index.fqn} has a part of shape {list(saved.shape)} where {list(into.shape)} was expected")
            into.copy_(saved)
            planner.commit_tensor(item, into)
        return _done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)


__getattr__ = _missing.module_getattr(__name__)
