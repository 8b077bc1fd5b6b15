"""`torch.distributed.checkpoint`: checkpoints that several ranks write and read, in PyTorch's files."""

from __future__ import annotations

from ... import _missing
from . import (
    api,
    default_planner,
    filesystem,
    format_utils,
    metadata,
    optimizer,
    planner,
    state_dict,
    state_dict_loader,
    state_dict_saver,
    stateful,
    storage,
)
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .optimizer import load_sharded_optimizer_state_dict
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader",
    "FileSystemWriter", "LoadPlan", "LoadPlanner", "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "api", "async_save", "default_planner", "filesystem", "format_utils", "load", "load_sharded_optimizer_state_dict", "load_state_dict", "metadata",
    "optimizer", "planner", "save", "save_state_dict", "state_dict", "state_dict_loader", "state_dict_saver", "stateful", "storage",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
