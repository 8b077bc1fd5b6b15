"""PyTorch's file format since 1.6: a zip archive with one pickle and the bytes of each storage."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from typing import IO, TYPE_CHECKING, Any

from .. import _C
from .config import LoadEndianness, settings
from .pickler import Pickler
from .storages import LoadedStorage, bytes_to_tensor, size_of, swapped, tensor_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

# Limits on the total size of decompressed records (PyTorch writes none): a multiple of the file's length, plus a constant.
MAX_EXPANSION = 16
FREE_EXPANSION = 64 << 20


def write_archive(
    obj: Any, file: IO[bytes], root: str, protocol: int, tells_byte_order: bool = True, kind: type[Pickler] = Pickler
) -> None:
    """Writes `obj` as an archive whose records are in the folder `root`."""
    text = io.BytesIO()
    pickler = kind(text, protocol)
    pickler.dump(obj)
    archive = _C._ZipWriter(file.write)
    for name, record in (("data.pkl", text.getvalue()), (".format_version", b"1"), (".storage_alignment", b"64"), ("byteorder", sys.byteorder.encode())):
        if tells_byte_order or name != "byteorder":
            archive.add(f"{root}/{name}".encode(), record)
    for i, flat in enumerate(pickler.storages):
        archive.add(f"{root}/data/{i}".encode(), bytes(flat.nbytes) if settings.skips_data else tensor_to_bytes(flat))
    archive.add(f"{root}/version".encode(), b"3\n")
    archive.finish()


class ArchiveReader:
    """The records of an archive. RuntimeError if it is damaged, or claims more bytes than it can contain."""

    def __init__(self, archive: zipfile.ZipFile, length: int, seen: memoryview | None = None) -> None:
        self._archive = archive
        self._seen = seen  # the mapped file's bytes, if storages should alias them
        self._records = {info.filename: info for info in archive.infolist()}
        self._check_sizes(archive.infolist(), length)
        pickles = [name for name in self._records if name.split("/", 1)[-1] == "data.pkl"]
        if len(pickles) != 1:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found (no file written by torch.save)")
        self._root = pickles[0][: -len("data.pkl")]
        self._swap = self._byte_order() != sys.byteorder
        self._storages: dict[str, LoadedStorage] = {}

    def _byte_order(self) -> str:
        if f"{self._root}byteorder" in self._records:
            order = self.read("byteorder").decode()
            if order not in ("little", "big"):
                raise ValueError(f"Unknown endianness type: {order[:20]}")
            return order
        if settings.endianness is LoadEndianness.NATIVE:
            return sys.byteorder
        return "big" if settings.endianness is LoadEndianness.BIG else "little"

    def _in_place(self, record: zipfile.ZipInfo, dtype: Any) -> Any:
        """The elements in place in the mapped file; None if that is not possible."""
        if self._seen is None or record.compress_type != zipfile.ZIP_STORED or self._swap or dtype is _C.bool or not record.file_size:
            return None
        head = bytes(self._seen[record.header_offset : record.header_offset + 30])
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            return None
        start = record.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        if start + record.file_size > len(self._seen) or start % size_of(dtype):
            return None
        return _C.frombuffer(self._seen[start : start + record.file_size], dtype=dtype)

    @staticmethod
    def _check_sizes(records: list[zipfile.ZipInfo], length: int) -> None:
        def damaged(why: str) -> RuntimeError:
            return RuntimeError(f"PytorchStreamReader failed reading zip archive: the file is damaged: {why}")

        held = expanded = 0
        for r in records:
            if r.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise damaged(f"{r.filename!r} is compressed by method {r.compress_type}, wanted stored or deflated")
            if r.compress_type == zipfile.ZIP_STORED and r.compress_size != r.file_size:
                raise damaged(f"{r.filename!r} has {r.compress_size} bytes and should have {r.file_size}")
            if r.header_offset + r.compress_size > length:
                raise damaged(f"{r.filename!r} reaches beyond the file's {length} bytes")
            held += r.compress_size
            expanded += r.file_size if r.compress_type != zipfile.ZIP_STORED else 0
        if held > length:
            raise damaged(f"its records have {held} bytes and the file {length}: they overlap")
        if expanded > MAX_EXPANSION * length + FREE_EXPANSION:
            raise damaged(f"compressed records of {expanded} bytes in a file of {length}: at most {MAX_EXPANSION} times its length is read")

    def read(self, name: str) -> bytearray:
        """The bytes of a record."""
        if self._root + name not in self._records:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        record = self._records[self._root + name]
        data = bytearray(record.file_size)
        view, got = memoryview(data), 0
        try:
            with self._archive.open(record) as file:
                while got < len(data):
                    n = file.readinto(view[got : got + (16 << 20)])
                    if not n:
                        raise EOFError("it is cut short")
                    got += n
        except Exception as error:  # zipfile raises many types for a damaged archive
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: the file is damaged: {error}") from error
        return data

    def storage(self, pid: tuple[Any, ...], place: Callable[[_C.Tensor, str], _C.Tensor]) -> LoadedStorage:
        """The storage for a persistent id. Each is read once."""
        _, kind, key, location, numel = pid[:5]
        key, location, dtype = str(key), str(location), kind.dtype
        if dtype is None:
            raise RuntimeError(f"the file holds a {kind.name}, which is not supported yet")
        if key not in self._storages:
            record = self._records.get(f"{self._root}data/{key}")
            if record is None:
                raise RuntimeError(f"PytorchStreamReader failed locating file data/{key}: file not found")
            size = size_of(dtype)
            if record.file_size != numel * size:
                raise ValueError(f"storage {key} should have {numel * size} bytes and has {record.file_size}")
            flat = self._in_place(record, dtype)
            if flat is None:
                data = self.read(f"data/{key}")
                if self._swap and size > 1:
                    data = swapped(data, size)
                flat = bytes_to_tensor(data, dtype)
            self._storages[key] = LoadedStorage(place(flat, location), location)
        return self._storages[key].as_dtype(dtype)


class WithSeekable(io.RawIOBase):
    """A user's file object that can read and seek, plus the methods that `zipfile` needs."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
