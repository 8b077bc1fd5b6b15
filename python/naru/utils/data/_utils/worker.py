"""Workers: processes or threads that make batches."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _C
from ..._exceptions import ExceptionWrapper
from ..dataset import IterableDataset
from .transport import Arena, Channel, pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fetch import Source

# How often a worker looks whether its parent is alive, where the closed socket does not tell.
WATCH_SECONDS = 5.0
# The parent's ends of all channels: a forked worker closes those it inherits, else nobody would see the parent go.
parents_ends: set[Channel] = set()


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself."""

    id: int  # from 0 to num_workers - 1
    num_workers: int
    seed: int  # the base seed of the pass in which the worker was started, plus id
    dataset: Any  # the worker's own copy


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader: its `id`, `num_workers`, `seed` and `dataset` (its own copy). Elsewhere None.

    >>> naru.utils.data.get_worker_info() is None
    True
    """
    return _info


@dataclass(frozen=True)
class Job:
    """What a worker is started with."""

    source: Source
    init: Callable[[int], Any] | None
    base_seed: int
    workers: int


class End:
    """The answer to a task when an iterable data set has no more samples."""


@dataclass(frozen=True)
class Task:
    """A batch wanted from a worker: the pass and the place in it, and the index or indices."""

    tag: tuple[int, int]
    index: Any


def serve(
    source: Source, receive: Callable[[], Task | None], reply: Callable[[Task, Any], None], where: str, broken: Any = None
) -> None:
    """Answers tasks until None comes: a batch, an ExceptionWrapper, or End. `broken`: what to answer instead."""
    now = -1
    fetch: Any = None
    failure = broken
    while (task := receive()) is not None:
        if task.tag[0] != now:
            now, failure = task.tag[0], broken
            if broken is None:
                fetch, failure = _caught(source.fetcher, where)
        if failure is not None:
            reply(task, failure)
            continue
        batch, failed = _caught(lambda: fetch(task.index), where, isinstance(source.dataset, IterableDataset))
        reply(task, failed or batch)
        del batch, failed, task


def _caught(call: Callable[[], Any], where: str, ends: bool = False) -> tuple[Any, Any]:
    """What `call` returns, and what stands for the exception it raised."""
    try:
        return call(), None
    except StopIteration if ends else () as _:
        return None, End()
    except Exception:
        return None, ExceptionWrapper(where=where)


# --- processes


def seed_worker(base_seed: int, worker: int) -> int:
    """Seeds Python's, naru's and NumPy's random numbers, in each worker differently; returns its seed."""
    seed = base_seed + worker
    random.seed(seed)
    _C.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy as np

        # NumPy's generator is Python's: seeded with the same number, both would give the same stream.
        entropy = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        np.random.seed(np.random.SeedSequence(entropy).generate_state(4))
    return seed


class _Inbox:
    """Tasks, taken from the channel by a thread: the parent never waits for a worker that is at work."""

    def __init__(self, channel: Channel, arena: Arena) -> None:
        self._tasks: queue.SimpleQueue[tuple[Task, list[int]] | None] = queue.SimpleQueue()
        self._arena = arena
        self._parent = os.getppid()
        threading.Thread(target=self._listen, args=(channel,), daemon=True, name="naru-inbox").start()

    def _listen(self, channel: Channel) -> None:
        import pickle

        with contextlib.suppress(EOFError, OSError):
            while True:
                while not channel.wait(WATCH_SECONDS):
                    if os.getppid() != self._parent:
                        raise EOFError
                message, _ = channel.receive()
                self._tasks.put(pickle.loads(message))
        self._tasks.put(None)
        # Nobody wants what is being made, and if the parent is dead, nobody ends what does not end by itself.
        time.sleep(WATCH_SECONDS)
        os._exit(1)

    def get(self) -> Task | None:
        received = self._tasks.get()
        if received is None:
            return None
        task, free = received
        self._arena.reuse(free)
        return task


def run_process(job: Job, worker: int, sock: socket.socket) -> None:
    """The life of a worker process."""
    global _info
    channel = Channel(sock)
    for end in list(parents_ends):
        end.close()
    # Ctrl-C reaches the whole group of processes; the parent decides. (A handler, not SIG_IGN: what a data set starts is not to
    # inherit it.) The parent's own handlers mean nothing here.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _C.set_num_threads(1)
    seed = seed_worker(job.base_seed, worker)
    dataset = job.source.dataset
    _info = WorkerInfo(worker, job.workers, seed, dataset)
    where = f"in DataLoader worker process {worker}"
    arena = Arena()
    inbox = _Inbox(channel, arena)

    def reply(task: Task, result: Any) -> None:
        try:
            message = pack(task.tag, result, arena)
        except Exception:
            message = pack(task.tag, ExceptionWrapper(where=where), arena)
        channel.send(message, arena.files)
        arena.sent()

    broken = None
    if job.init is not None:
        _, broken = _caught(lambda: job.init(worker), where)  # type: ignore[misc]
    # A closed channel: the parent wants no more.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(job.source, inbox.get, reply, where, broken)
    channel.close()
