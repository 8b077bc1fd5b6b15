"""Atomic file writes: everything that writes a user's file uses this module (in C++: runtime/os/atomic_file.h)."""

from __future__ import annotations

import contextlib
import os
from typing import IO, TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def atomic_file(path: str | bytes | os.PathLike, mode: str = "wb", encoding: str | None = None) -> Iterator[IO[Any]]:
    """A file open for writing that replaces `path` at the end of the block, once its bytes are on disk.

    If the block raises, the process is killed or the disk is full, the old file is unchanged. Symbolic links are followed, the file mode is
    kept. OSError if the file cannot be written.

    >>> import os, tempfile
    >>> from naru._serialization.atomic_file import atomic_file
    >>> path = os.path.join(tempfile.mkdtemp(), "x")
    >>> with atomic_file(path, "w") as file:
    ...     _ = file.write("text"), os.path.exists(path)
    >>> open(path).read()
    'text'
    """
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    target = _C._AtomicFile(name)
    try:
        with open(target.fileno(), mode, encoding=encoding, closefd=False) as file:
            yield file
        target.commit()
    finally:
        target.discard()  # no effect after completion
