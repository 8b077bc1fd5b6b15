"""Messages between processes: pickles over a socket, with large data in shared memory.

Shared memory is anonymous (memfd) and passed as an open file, which is closed once it is mapped: /dev/shm is not needed, and
files do not stay open. A block is reused when all data in it has been released, so that a steady stream of batches allocates no new memory.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import select
import socket
import struct
import tempfile
import weakref
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from .... import _C
from ...._utils import _rebuild_parameter
from ..._exceptions import ExceptionWrapper

Tensor = _C.Tensor

# Larger data goes to shared memory. Small messages fit into the socket's buffer, so that a worker need not wait for a reader.
LARGE = 32 << 10
_HEADER = struct.Struct("=QI")
_MAX_FILES = 200  # per message; the system's limit is 253


class Channel:
    """One end of a socket that transfers messages, each with open files attached."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: bytes, files: list[int] | None = None) -> None:
        header = _HEADER.pack(len(message), len(files or ()))
        if files:
            socket.send_fds(self._socket, [header], files)
            self._socket.sendall(message)
        else:
            self._socket.sendall(header + message)

    def receive(self) -> tuple[bytearray, list[int]]:
        """The next message and its files. EOFError if the other end is closed."""
        header, files, _, _ = socket.recv_fds(self._socket, _HEADER.size, _MAX_FILES)
        header += self._exactly(_HEADER.size - len(header)) if header else b""
        if not header:
            raise EOFError
        size, count = _HEADER.unpack(header)
        if count != len(files):
            for file in files:
                os.close(file)
            raise OSError(f"a message came with {len(files)} of {count} files: the limit on open files (ulimit -n) is reached")
        return self._exactly(size), list(files)

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            n = self._socket.recv_into(view[got:])
            if n == 0:
                raise EOFError
            got += n
        return data

    def wait(self, seconds: float) -> bool:
        """Waits that long until there is something to receive (or the other end is closed); returns whether there is."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        self._socket.close()


class Place(NamedTuple):
    """The first `size` bytes of a block."""

    block: int
    size: int


def _shared_file(size: int) -> int:
    """An anonymous open file of that size, in memory if the system supports it."""
    try:
        file = os.memfd_create("naru-batch", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.TemporaryFile() as named:
            file = os.dup(named.fileno())
        if hasattr(os, "posix_fallocate"):  # macOS has none
            os.posix_fallocate(file, 0, size)  # a full disk is an error here, rather than a crash at the first write
    os.ftruncate(file, size)
    return file


def _mapped(file: int, size: int) -> memoryview:
    """The file's bytes, mapped. (An `mmap` object would keep a file descriptor open.)"""
    return memoryview(_C._map_file(file, size))


class Arena:
    """The sender's blocks. Blocks that the receiver has released are reused."""

    _KEPT = 8  # maximum number of free blocks

    def __init__(self) -> None:
        self._blocks: dict[int, memoryview] = {}
        self._free: list[int] = []
        self._made = 0
        # State of the message being built.
        self.new: list[tuple[int, int]] = []  # numbers and sizes
        self.files: list[int] = []
        self.dropped: list[int] = []

    def place(self, data: memoryview) -> Place | None:
        """Copies `data` to a block; None if none can be allocated."""
        size = data.nbytes
        fitting = [b for b in self._free if size <= len(self._blocks[b]) <= 2 * size + LARGE]
        block = min(fitting, key=lambda b: len(self._blocks[b]), default=0)
        if block:
            self._free.remove(block)
        else:
            try:
                block = self._new_block(size)
            except OSError:
                return None
        self._blocks[block][:size] = data
        return Place(block, size)

    def _new_block(self, size: int) -> int:
        if len(self.files) == _MAX_FILES:
            raise OSError("too many files for one message")
        size = -(-size // LARGE) * LARGE
        file = _shared_file(size)
        try:
            memory = _mapped(file, size)
        except OSError:
            os.close(file)
            raise
        self._made += 1
        self._blocks[self._made] = memory
        self.new.append((self._made, size))
        self.files.append(file)
        return self._made

    def reuse(self, blocks: list[int]) -> None:
        """Marks blocks as released by the receiver."""
        self._free += blocks
        while len(self._free) > self._KEPT:
            block = self._free.pop(0)
            del self._blocks[block]
            self.dropped.append(block)

    def sent(self) -> None:
        for file in self.files:
            os.close(file)
        self.new, self.files, self.dropped = [], [], []


class Views:
    """The receiver's side of an Arena: its blocks, mapped here."""

    def __init__(self) -> None:
        self._blocks: dict[int, memoryview] = {}
        self._leases: dict[int, tuple[weakref.ref, int]] = {}  # blocks with live views, by id of the weak reference
        self._ended: deque[weakref.ref] = deque()  # appended to by the thread that drops the last view, without Python code (see finalizers.py)

    def adopt(self, new: list[tuple[int, int]], files: list[int], dropped: list[int]) -> None:
        for (block, size), file in zip(new, files):
            try:
                self._blocks[block] = _mapped(file, size)
            finally:
                os.close(file)
        for block in dropped:
            del self._blocks[block]

    def view(self, place: Place) -> memoryview:
        """The bytes. The block becomes free when the last view of them is dropped."""
        memory = self._blocks[place.block]
        lease = (ctypes.c_ubyte * len(memory)).from_buffer(memory)
        ref = weakref.ref(lease, self._ended.append)
        self._leases[id(ref)] = (ref, place.block)
        return memoryview(lease).cast("B")[: place.size]

    def free(self) -> list[int]:
        """Blocks that have become free since the last call."""
        return [self._leases.pop(id(self._ended.popleft()))[1] for _ in range(len(self._ended))]


# --- tensors in pickles


def _tensor(buffer: Any, dtype: _C.dtype, size: tuple[int, ...], stride: tuple[int, ...], requires_grad: bool) -> Tensor:
    return _C._tensor_on(buffer, dtype, size, stride).requires_grad_(requires_grad)


def _tensor_for(device: str, tensor: Tensor, requires_grad: bool) -> Tensor:
    return tensor.to(device).requires_grad_(requires_grad)


class _Pickler(ForkingPickler):
    """Keeps the data of tensors and arrays out of the pickle."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not Tensor:
            from ....nn.parameter import Parameter

            if type(obj) is not Parameter:
                return NotImplemented
            return _rebuild_parameter, (obj.data, obj.requires_grad, {})
        if obj.requires_grad and not obj.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
                "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
                "(e.g., putting it on the queue)."
            )
        tensor = obj.detach()
        if tensor.device.type != "cpu":
            return _tensor_for, (str(tensor.device), tensor.cpu(), obj.requires_grad)
        size, stride = tuple(tensor.shape), tensor.stride()
        if 0 not in size and sum((n - 1) * s for n, s in zip(size, stride)) >= tensor.numel():
            # A view with gaps: the elements in the gaps are not sent.
            tensor = tensor.contiguous()
            stride = tensor.stride()
        return _tensor, (pickle.PickleBuffer(_C._bytes_of(tensor)), tensor.dtype, size, stride, obj.requires_grad)


def pack(tag: Any, value: Any, arena: Arena) -> bytes:
    """`value` as a message, to be sent with `arena.files`."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, 5, True, buffers.append).dump(value)
    parts = [_placed(buffer.raw(), arena) for buffer in buffers]
    body: Any = pickle.dumps((stream.getvalue(), parts), 5)
    if len(body) > LARGE:
        body = _placed(memoryview(body), arena)
    return pickle.dumps((tag, body, arena.new, arena.dropped), 5)


def _placed(data: memoryview, arena: Arena) -> Place | bytearray:
    return (arena.place(data) if data.nbytes > LARGE else None) or bytearray(data)


def unpack(message: bytearray, files: list[int], views: Views) -> tuple[Any, Any]:
    """The tag and the value of a message; an ExceptionWrapper if the value cannot be rebuilt."""
    tag, body, new, dropped = pickle.loads(message)
    views.adopt(new, files, dropped)
    if isinstance(body, Place):
        body = views.view(body)
    stream, parts = pickle.loads(body)
    buffers = [views.view(p) if isinstance(p, Place) else p for p in parts]
    try:
        return tag, pickle.loads(stream, buffers=buffers)
    except Exception:
        return tag, ExceptionWrapper(where="when a batch from a DataLoader worker process was unpickled")
