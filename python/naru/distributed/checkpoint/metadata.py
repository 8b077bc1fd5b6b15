"""`torch.distributed.checkpoint.metadata`: what a checkpoint's `.metadata` file holds, in PyTorch's classes."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ... import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its shape.

    Args:
        offsets: its first element's place along each dimension.
        sizes: its shape.

    >>> naru.distributed.checkpoint.ChunkStorageMetadata(naru.Size([0]), naru.Size([2])).sizes
    torch.Size([2])
    """

    offsets: Any
    sizes: Any


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801  (PyTorch's name, which is in the files)
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties:
    """What a tensor is besides its shape. Only the dtype counts when it is loaded.

    Args:
        dtype, layout, requires_grad, memory_format, pin_memory, strides: the tensor's.

    >>> naru.distributed.checkpoint.metadata.TensorProperties(naru.float32).dtype
    torch.float32
    """

    dtype: Any = None
    layout: Any = _C.strided
    requires_grad: bool = False
    memory_format: Any = _C.contiguous_format
    pin_memory: bool = False
    strides: tuple[int, ...] | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.dtype, self.layout, self.requires_grad, _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT, self.pin_memory, self.strides

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state[:5]
        self.strides = state[5] if len(state) > 5 else None
        self.memory_format = (_C.contiguous_format, _C.channels_last, _C.preserve_format)[encoding.value]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, _C.contiguous_format, False, tuple(tensor.stride()))


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint.

    Args:
        properties: its dtype and others.
        size: its shape.
        chunks: its parts.

    >>> properties = naru.distributed.checkpoint.metadata.TensorProperties(naru.int64)
    >>> naru.distributed.checkpoint.TensorStorageMetadata(properties, naru.Size([2]), []).size
    torch.Size([2])
    """

    properties: TensorProperties
    size: Any
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is no tensor.

    >>> naru.distributed.checkpoint.BytesStorageMetadata()
    BytesStorageMetadata()
    """


@dataclass
class StorageMeta:
    """How a checkpoint was written.

    Args:
        checkpoint_id: its folder.
        save_id, load_id: names of the calls.
        modules: ignored.

    >>> naru.distributed.checkpoint.metadata.StorageMeta("folder").checkpoint_id
    'folder'
    """

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint holds, and where it lies.

    Args:
        state_dict_metadata: for each name a TensorStorageMetadata or a BytesStorageMetadata.
        planner_data: for each name the path to it in the dict that was saved.
        storage_data: for each part of a tensor where its bytes are.
        storage_meta: how it was written.
        version: of the format.

    >>> naru.distributed.checkpoint.Metadata({}).state_dict_metadata
    {}
    """

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Names an object, or a part of a tensor.

    Args:
        fqn: the name.
        offset: where the part begins.
        index: which part it is, to find it faster.

    >>> from naru.distributed.checkpoint.metadata import MetadataIndex
    >>> MetadataIndex("w", [0, 2]) == MetadataIndex("w", [0, 2], index=1)
    True
    """

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else _C.Size(offset))


@dataclass
class _StorageInfo:
    """Where the bytes of a part are."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v is not None}


# --- the file: a pickle that names PyTorch's classes

_MODULE = "torch.distributed.checkpoint.metadata"
_CLASSES = {
    (_MODULE, kind.__name__): kind
    for kind in (ChunkStorageMetadata, _MEM_FORMAT_ENCODING, TensorProperties, TensorStorageMetadata, BytesStorageMetadata, StorageMeta, Metadata,
                 MetadataIndex)
}  # fmt: skip
_CLASSES["torch.distributed.checkpoint.filesystem", "_StorageInfo"] = _StorageInfo


def _layout_named(name: str) -> Any:
    return getattr(_C, name.removeprefix("torch."))


def _path(*parts: str) -> str:
    return os.path.join(*parts) if parts else ""


_CLASSES |= {
    ("torch", "Size"): _C.Size,
    ("torch.serialization", "_get_layout"): _layout_named,
    **{("pathlib", name): _path for name in ("PosixPath", "WindowsPath", "Path")},
    **{("pathlib._local", name): _path for name in ("PosixPath", "WindowsPath", "Path")},
}
_GLOBALS = {kind: name for name, kind in _CLASSES.items()}


class _Reader(pickle.Unpickler):
    """Makes nothing but a checkpoint's metadata, whatever the file says."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CLASSES:
            return _CLASSES[module, name]
        if module == "torch" and isinstance(getattr(_C, name, None), _C.dtype):
            return getattr(_C, name)
        if (module, name) in (("collections", "OrderedDict"), ("builtins", "set")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a checkpoint's .metadata holds {module}.{name}, which is no part of one")


class _Writer(pickle._Pickler):  # type: ignore[name-defined]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _C.dtype):
            return str(obj).removeprefix("torch.")
        if isinstance(obj, _C.layout):
            return _layout_named, (str(obj),)
        if isinstance(obj, _C.Size):
            return _C.Size, (tuple(obj),)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, _C.dtype):
            module, found = "torch", name
        elif obj in _GLOBALS:
            module, found = _GLOBALS[obj]
        else:
            super().save_global(obj, name)
            return
        self.save(module)
        self.save(found)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]
    dispatch[type] = dispatch[type(_path)] = save_global


def read_metadata(file: IO[bytes]) -> Metadata:
    """The metadata in a file. UnpicklingError for one that holds anything else.

    Args:
        file: the file.

    >>> import io
    >>> file = io.BytesIO()
    >>> naru.distributed.checkpoint.metadata.write_metadata(naru.distributed.checkpoint.Metadata({}), file)
    >>> naru.distributed.checkpoint.metadata.read_metadata(io.BytesIO(file.getvalue())).state_dict_metadata
    {}
    """
    found = _Reader(file).load()
    if not isinstance(found, Metadata):
        raise pickle.UnpicklingError(f"a checkpoint's .metadata must hold Metadata, got {type(found).__name__}")
    return found


def write_metadata(metadata: Metadata, file: IO[bytes]) -> None:
    """Writes metadata to a file, as PyTorch reads it.

    Args:
        metadata: the metadata; planner_data must be of plain values.
        file: the file.

    >>> import io
    >>> file = io.BytesIO()
    >>> naru.distributed.checkpoint.metadata.write_metadata(naru.distributed.checkpoint.Metadata({}), file)
    >>> b"torch.distributed.checkpoint.metadata" in file.getvalue()
    True
    """
    _Writer(file, protocol=4).dump(metadata)


__getattr__ = _missing.module_getattr(__name__)
