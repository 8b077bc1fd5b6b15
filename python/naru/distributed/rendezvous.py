"""How processes meet: implements `init_method`, and handlers that programs register for their own kinds of it."""

from __future__ import annotations

import itertools
import os
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlparse

from . import _launchers
from ._stores import FileStore, PrefixStore, Store, TCPStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["register_rendezvous_handler", "rendezvous"]

_turns = itertools.count()  # how often this process has met others by env://
_OWN = ("env", "tcp", "file")
_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def _tcp(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    return TCPStore(host, port, world_size, rank == 0, timeout, wait_for_workers=False, multi_tenant=True)


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]) -> None:
    """Lets `init_process_group` take "scheme://..." as its init_method.

    Args:
        scheme: the part of the URL before "://"; RuntimeError if there is a handler for it.
        handler: called with the URL (in which query parameters give rank and world_size) and timeout; an iterator of (store, rank, world_size).

    >>> naru.distributed.register_rendezvous_handler("env", lambda url, timeout: iter(()))
    Traceback (most recent call last):
    RuntimeError: Rendezvous handler for env:// already registered
    """
    if scheme in _handlers or scheme in _OWN:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """An iterator of the store, the rank and the number of processes that meet at a URL.

    Args:
        url: "env://", "tcp://host:port", "file:///path", or one whose scheme has a handler.
        rank, world_size: unless these are -1, in place of the URL's.
        kwargs: timeout, a timedelta.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, rank, size = next(naru.distributed.rendezvous(f"file://{folder}/store", rank=0, world_size=1))
    >>> rank, size
    (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    yield meet(url, rank, world_size, **kwargs)


def _by_handler(url: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    given = [f"{name}={value}" for name, value in (("rank", rank), ("world_size", world_size)) if value >= 0]
    if given:
        url += ("&" if urlparse(url).query else "?") + "&".join(given)
    return next(iter(_handlers[urlparse(url).scheme](url, timeout=timeout)))


def _by_launcher(at: _launchers.Place, timeout: timedelta) -> Store:
    turn = next(_turns)
    told = _launchers.address(at, turn)
    if told is not None:
        return _tcp(*told, at.rank, at.size, timeout)
    # mpiexec passes on where rank 0 listens, so its port is one that is free, and the token that other processes do not know.
    pmi = _launchers.Pmi(timeout)
    if at.rank:
        host, port, token = pmi.share(None, turn).split("|")
        os.environ["NARU_STORE_TOKEN"] = bytes.fromhex(token).decode()
        return _tcp(host, int(port), at.rank, at.size, timeout)
    host, token = _launchers.host_for_others(at), os.environ.setdefault("NARU_STORE_TOKEN", secrets.token_hex(32))
    store = TCPStore(host, 0, at.size, True, timeout, wait_for_workers=False)
    pmi.share(f"{host}|{store.port}|{token.encode().hex()}", turn)
    return store


def meet(url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = timedelta(seconds=300)) -> tuple[Store, int, int]:
    """The store, rank and number of processes for a `url` (with `rank` and `world_size`, unless these are -1)."""
    parts = urlparse(url)
    if parts.scheme in _handlers:
        return _by_handler(url, rank, world_size, timeout)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    if parts.scheme == "env":
        at = _launchers.place(rank, world_size)
        rank, world_size = at.rank, at.size
        store = _by_launcher(at, timeout)
        # What an earlier attempt of the launcher has left in a store that outlives it must not be found.
        attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
        return PrefixStore(f"attempt_{attempt}", store) if attempt else store, rank, world_size
    if parts.scheme not in ("tcp", "file"):
        raise RuntimeError(f'No rendezvous handler for {parts.scheme}://: naru has "env://", "tcp://host:port" and "file:///path"')
    for name, value in (("rank", rank), ("world size", world_size)):
        if value < 0:
            raise ValueError(f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: {name} parameter missing")
    if parts.scheme == "file":
        path = parts.netloc + parts.path
        if not path:
            raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
        return FileStore(path, world_size), rank, world_size
    if not parts.port:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    return _tcp(parts.hostname or "localhost", parts.port, rank, world_size, timeout), rank, world_size
