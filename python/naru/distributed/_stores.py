"""Stores: key-value storage shared by processes."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEFAULT = timedelta(seconds=300)


def native(name: str) -> Any:
    """What the extension has of that name. RuntimeError where it was built without process groups: they use sockets and memory as Linux has them."""
    found = getattr(_C, name, None)
    if found is None:
        raise RuntimeError(f"torch.distributed: process groups and stores are there on Linux only, and this is {sys.platform}: is_available() is False")
    return found


class QueueEmptyError(_C._DistStoreError):
    """Raised by `Store.queue_pop` without waiting, for an empty queue.

    >>> issubclass(naru.distributed.QueueEmptyError, naru.distributed.DistStoreError)
    True
    """


def milliseconds(timeout: timedelta | float | None) -> int:
    """Milliseconds for a timedelta, or for seconds; -1 for None."""
    if timeout is None:
        return -1
    if not isinstance(timeout, (timedelta, int, float)):
        raise TypeError(f"timeout must be a datetime.timedelta, got {type(timeout).__name__}")
    return int((timeout.total_seconds() if isinstance(timeout, timedelta) else timeout) * 1000)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Base of all stores: keys and values shared by several processes.

    >>> store = HashStore()
    >>> store.set("name", "value")
    >>> store.get("name"), store.add("count", 2), store.check(["name", "other"])
    (b'value', 2, False)
    """

    _store: Any

    def set(self, key: str, value: str | bytes) -> None:
        """Sets `value` for `key`."""
        self._store.set(key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of `key`; waits until it is set, and raises DistStoreError after the store's timeout."""
        return self._store.get(key)

    def add(self, key: str, value: int) -> int:
        """Adds `value` to the number under `key` (initially 0); returns the sum."""
        return self._store.add(key, value)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all `keys` exist."""
        return self._store.check(list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all `keys` exist, for the store's timeout or `timeout`; then raises DistStoreError."""
        self._store.wait(list(keys), milliseconds(timeout))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Sets `desired_value` if the current value is `expected_value` (or if `key` is missing and that is empty); returns the resulting value."""
        return self._store.compare_set(key, _bytes(expected_value), _bytes(desired_value))

    def append(self, key: str, value: str | bytes) -> None:
        """Appends `value` to that of `key`; a missing key gets it."""
        self._store.append(key, _bytes(value))

    def list_keys(self) -> list[str]:
        """All keys, sorted."""
        return self._store.list_keys()

    def clone(self) -> Store:
        """Another store with the same keys, which has a timeout of its own where it has a connection of its own."""
        return self

    def has_extended_api(self) -> bool:
        """Whether append, multi_get, multi_set and queues are there: True."""
        return True

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Adds `value` at the end of the queue `key`."""
        number = self.add(f"{key}/queue/pushed", 1)
        self.set(f"{key}/queue/{number}", value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first value of the queue `key`; waits for one if `block`, and otherwise raises QueueEmptyError if there is none."""
        taken = f"{key}/queue/popped"
        deadline = time.monotonic() + self.timeout.total_seconds()
        while True:
            # Only one process can replace what it has read, because each writes a text of its own.
            found = self.get(taken).decode() if self.check([taken]) else ""
            number = int(found.partition(" ")[0] or 0) + 1
            item = f"{key}/queue/{number}"
            if not self.check([item]):
                # Another process may have taken the value meanwhile.
                if found != (self.get(taken).decode() if self.check([taken]) else ""):
                    continue
                if not block:
                    raise QueueEmptyError(f"queue_pop: the queue {key} is empty")
                self._wait_a_moment(item, deadline)
                continue
            mine = f"{number} {os.urandom(16).hex()}"
            if self.compare_set(taken, found, mine) == mine.encode():
                value = self.get(item)
                self.delete_key(item)
                return value

    def _wait_a_moment(self, key: str, deadline: float) -> None:
        """Waits for a key that another process may set and delete again, and so only for a moment."""
        left = deadline - time.monotonic()
        try:
            self.wait([key], timedelta(seconds=min(max(left, 0), 0.05)))
        except _C._DistStoreError:
            if left <= 0:
                raise _C._DistStoreError(f"queue_pop: wait timeout after {self._store.timeout()}ms, key: /{key}") from None

    def queue_len(self, key: str) -> int:
        """How many values are in the queue `key`."""
        taken = f"{key}/queue/popped"
        popped = int(self.get(taken).decode().partition(" ")[0]) if self.check([taken]) else 0
        return self.add(f"{key}/queue/pushed", 0) - popped

    def delete_key(self, key: str) -> bool:
        """Deletes `key`; returns whether it existed."""
        return self._store.delete_key(key)

    def num_keys(self) -> int:
        """The number of keys."""
        return self._store.num_keys()

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several `keys`; waits for them."""
        return self._store.multi_get(list(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Sets `values` for several `keys`."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the `timeout` of `get` and `wait`."""
        self._store.set_timeout(milliseconds(timeout))

    @property
    def timeout(self) -> timedelta:
        """The timeout of `get` and `wait`."""
        return timedelta(milliseconds=self._store.timeout())


class HashStore(Store):
    """A store within one process.

    >>> HashStore().num_keys()
    0
    """

    def __init__(self) -> None:
        self._store = native("_hash_store")(milliseconds(_DEFAULT))


class PrefixStore(Store):
    """A view of another store in which all keys have a prefix.

    Args:
        prefix: prepended to each key, followed by a slash.
        store: the other store.

    >>> store = HashStore()
    >>> PrefixStore("mine", store).set("key", "value")
    >>> store.get("mine/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.underlying_store = store
        self._store = native("_prefix_store")(prefix, store._store)


class FileStore(Store):
    """A store in a file that all processes can access.

    Args:
        file_name: the file's path.
        world_size: number of processes using it; the last one deletes it. If not given, the file stays.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     FileStore(os.path.join(folder, "store")).add("count", 3)
    3
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = file_name
        self._store = native("_file_store")(file_name, world_size, milliseconds(_DEFAULT))


class TCPStore(Store):
    """A store that one process serves, and all others access over TCP.

    Args:
        host_name: where the server is.
        port: the server's port; 0 in the server's process selects a free one (see the attribute `port`).
        world_size: number of stores that will connect, including the server's; unknown if not given.
        is_master: whether this process is the server.
        timeout: for connecting, and for waiting on keys.
        wait_for_workers: whether the server waits until world_size stores have connected.
        multi_tenant: several stores of this process on one port share the server.
        master_listen_fd, use_libuv: ignored.

    >>> server = TCPStore("localhost", 0, is_master=True)
    >>> TCPStore("localhost", server.port).set("key", "value")
    >>> server.get("key")
    b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        workers = -1 if world_size is None else world_size
        self.host = host_name
        self._store, self.port = native("_tcp_store")(host_name, port, is_master, workers, milliseconds(timeout), wait_for_workers, multi_tenant)

    _cloned: TCPStore | None = None

    def clone(self) -> TCPStore:
        """Another store with the same keys, with connections and a timeout of its own."""
        made = TCPStore.__new__(TCPStore)
        made.host, made.port = self.host, self.port
        made._cloned = self  # keeps the server alive, if it is this process's
        made._store, _ = native("_tcp_store")(self.host, self.port, False, -1, self._store.timeout(), False, False)
        return made
