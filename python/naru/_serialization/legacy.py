"""PyTorch's file format before 1.6: a sequence of pickles (a magic number, a version, the system, the object, the keys of its storages),
then each storage, preceded by its number of elements."""

from __future__ import annotations

import pickle
import struct
import sys
from typing import IO, TYPE_CHECKING, Any

from .. import _C
from .._utils import unread
from .pickler import Pickler
from .storages import LoadedStorage, bytes_to_tensor, size_of, swapped, tensor_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_VERSION = 1001


def write_legacy(obj: Any, file: Any, protocol: int, kind: type[Pickler] = Pickler) -> None:
    """Writes `obj` in the legacy format."""
    system = {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little", "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for part in (MAGIC_NUMBER, _VERSION, system):
        file.write(pickle.dumps(part, protocol))
    pickler = kind(file, protocol, legacy=True)
    pickler.dump(obj)
    keys = sorted(str(i) for i in range(len(pickler.storages)))
    file.write(pickle.dumps(keys, protocol))
    for key in keys:
        flat = pickler.storages[int(key)]
        file.write(struct.pack("=q", flat.numel()))
        file.write(tensor_to_bytes(flat))


class LegacyReader:
    """Reads a file in the legacy format.

    Args:
        file: open, at its first byte.
        length: number of bytes from there to the end.
        place: moves a tensor to its target device.
        unpickle: reads one pickle, given a function that resolves persistent ids to storages.
    """

    def __init__(
        self, file: IO[bytes], length: int, place: Callable[[Tensor, str], Tensor], unpickle: Callable[[Callable[[Any], Any] | None], Any]
    ) -> None:
        self._file, self._length, self._place, self._unpickle = file, length, place, unpickle
        self._storages: dict[str, tuple[LoadedStorage, Any]] = {}
        self._views: dict[str, LoadedStorage] = {}
        self._promised = 0

    def read(self) -> Any:
        """Reads the object."""
        if self._magic() != MAGIC_NUMBER:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = self._unpickle(None)
        if version != _VERSION:
            raise RuntimeError(f"Invalid protocol version: {version}")
        system = self._unpickle(None)
        swap = isinstance(system, dict) and bool(system.get("little_endian", True)) != (sys.byteorder == "little")
        begin, (result, again) = self._file.tell(), self._first()
        keys = self._unpickle(None)
        if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(self._storages):
            raise RuntimeError("the file is damaged: its storages are not those that its pickle speaks of")
        for key in map(str, keys):
            self._fill(*self._storages[key], swap)
        if again:
            end = self._file.tell()
            self._file.seek(begin)
            result = self._unpickle(self.storage)
            self._file.seek(end)
        return result

    def _magic(self) -> Any:
        """The first pickle. UnpicklingError if it is none: a file of any other format comes here."""
        begin = self._file.tell()
        is_pickle = self._file.read(1) == b"\x80"
        self._file.seek(begin)
        try:
            return self._unpickle(None)
        except Exception as error:  # noqa: BLE001: unpickling arbitrary bytes raises many types
            if is_pickle and isinstance(error, EOFError):
                raise
            raise pickle.UnpicklingError(f"{error} (the file is not a file written by torch.save: no zip archive, and no pickle)") from error

    def _first(self) -> tuple[Any, bool]:
        """The object, over storages that are not filled yet, and whether it must be rebuilt after they are."""
        unread.begun, unread.waiting = True, False
        try:
            return self._unpickle(self.storage), unread.waiting
        finally:
            unread.begun = False

    def _fill(self, storage: LoadedStorage, dtype: Any, swap: bool) -> None:
        size = size_of(dtype)
        (numel,) = struct.unpack("<q", self._exactly(8))
        if numel != storage.tensor.numel():
            raise RuntimeError(f"the file is damaged: a storage should have {storage.tensor.numel()} elements and has {numel}")
        data = self._exactly(numel * size)
        if swap and size > 1:
            data = swapped(data, size)
        storage.tensor.copy_(bytes_to_tensor(data, dtype))

    def _exactly(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            part = self._file.read(min(size - len(data), 64 << 20))
            if not part:
                raise RuntimeError("the file is damaged: it is cut short")
            data += part
        return data

    def storage(self, pid: tuple[Any, ...]) -> LoadedStorage:
        """The storage for a persistent id; it is filled after the pickle is read."""
        _, kind, key, location, numel = pid[:5]
        if isinstance(location, bytes):
            location = location.decode("ascii")
        key, location, dtype = str(key), str(location), kind.dtype
        if dtype is None:
            raise RuntimeError(f"the file holds a {kind.name}, which is not supported yet")
        if key not in self._storages:
            self._promised += numel * size_of(dtype)
            if self._promised > self._length:
                raise RuntimeError(f"the file is damaged: its storages should have {self._promised} bytes, and it has {self._length}")
            self._storages[key] = LoadedStorage(self._place(_C.zeros(numel, dtype=dtype), location), location), dtype
        elif dtype != self._storages[key][1] and dtype == _C.bool:
            raise RuntimeError("the file has a storage once as numbers and once as bool")
        storage = self._storages[key][0].as_dtype(dtype)
        view = pid[5] if len(pid) > 5 else None
        if view is None:
            return storage
        view_key, offset, size = view
        if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size <= storage.tensor.numel():
            raise ValueError("a view of a storage reaches beyond it")
        if str(view_key) not in self._views:
            self._views[str(view_key)] = LoadedStorage(storage.tensor[offset : offset + size], location)
        return self._views[str(view_key)]
