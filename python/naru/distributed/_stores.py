"""Stores: where processes leave each other words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEFAULT = timedelta(seconds=300)


def milliseconds(timeout: timedelta | float | None) -> int:
    """Of a timedelta, or of seconds; -1 for None."""
    if timeout is None:
        return -1
    if not isinstance(timeout, (timedelta, int, float)):
        raise TypeError(f"timeout must be a datetime.timedelta, got {type(timeout).__name__}")
    return int((timeout.total_seconds() if isinstance(timeout, timedelta) else timeout) * 1000)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What all stores can: keys and values that several processes see.

    >>> store = HashStore()
    >>> store.set("name", "value")
    >>> store.get("name"), store.add("count", 2), store.check(["name", "other"])
    (b'value', 2, False)
    """

    _store: Any

    def set(self, key: str, value: str | bytes) -> None:
        """Writes `value` under `key`."""
        self._store.set(key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of `key`; waits until there is one, and raises DistStoreError when the store's timeout is over."""
        return self._store.get(key)

    def add(self, key: str, value: int) -> int:
        """Adds `value` to the number under `key` (0 at first); the sum."""
        return self._store.add(key, value)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all `keys` are there."""
        return self._store.check(list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all `keys` are there: as long as the store's timeout, or `timeout`; then DistStoreError."""
        self._store.wait(list(keys), milliseconds(timeout))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Writes `desired_value` where `expected_value` stands (or where there is nothing and it is empty); what stands there then."""
        return self._store.compare_set(key, _bytes(expected_value), _bytes(desired_value))

    def delete_key(self, key: str) -> bool:
        """Whether there was such a `key`, which is gone now."""
        return self._store.delete_key(key)

    def num_keys(self) -> int:
        """How many keys there are."""
        return self._store.num_keys()

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several `keys`, waited for."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Writes several `values` under `keys`."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait: `timeout`."""
        self._store.set_timeout(milliseconds(timeout))

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return timedelta(milliseconds=self._store.timeout())


class HashStore(Store):
    """A store within one process.

    >>> HashStore().num_keys()
    0
    """

    def __init__(self) -> None:
        self._store = _C._hash_store(milliseconds(_DEFAULT))


class PrefixStore(Store):
    """The keys of another store that begin with a prefix.

    Args:
        prefix: stands before each key, with a slash between.
        store: the other one.

    >>> store = HashStore()
    >>> PrefixStore("mine", store).set("key", "value")
    >>> store.get("mine/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.underlying_store = store
        self._store = _C._prefix_store(prefix, store._store)


class FileStore(Store):
    """A store in a file that all processes can reach.

    Args:
        file_name: the file's path.
        world_size: how many processes use it; the last one deletes it. Without, it stays.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     FileStore(os.path.join(folder, "store")).add("count", 3)
    3
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = file_name
        self._store = _C._file_store(file_name, world_size, milliseconds(_DEFAULT))


class TCPStore(Store):
    """A store that one process serves, and all others reach by TCP.

    Args:
        host_name: where the server is.
        port: the server's; 0 in the server's own process stands for one that is free (`port` says which).
        world_size: how many stores are to be connected, the server's among them; without, it is not known.
        is_master: whether this process is the server.
        timeout: for connecting, and for keys that are waited for.
        wait_for_workers: whether the server waits for all of world_size.
        multi_tenant: several stores of this process at one port share the server.
        master_listen_fd, use_libuv: accepted.

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
        self._store, self.port = _C._tcp_store(host_name, port, is_master, workers, milliseconds(timeout), wait_for_workers, multi_tenant)
