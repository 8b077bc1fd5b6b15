"""Workers: processes or threads that load batches."""

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
from .transport import Arena, Channel, pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fetch import Source

# How often a worker checks that its parent is alive, in case the closed socket does not tell.
WATCH_SECONDS = 5.0
# The parent's ends of all channels: a forked worker closes the ones it inherits, otherwise the parent's end would not be noticed.
parents_ends: set[Channel] = set()


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's information about itself."""

    id: int  # from 0 to num_workers - 1
    num_workers: int
    seed: int  # the base seed of the pass that started the worker, plus id
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
    """The parameters with which a worker is started."""

    source: Source
    init: Callable[[int], Any] | None
    base_seed: int
    workers: int


class End:
    """The answer to a task if an iterable data set has no more samples."""


@dataclass(frozen=True)
class Task:
    """A batch to load: (pass, number of the batch), and the index or indices."""

    tag: tuple[int, int]
    index: Any


def serve(
    source: Source, receive: Callable[[], Task | None], reply: Callable[[Task, Any], None], where: str, broken: Any = None
) -> None:
    """Answers tasks until it receives None, with a batch, an ExceptionWrapper, or End. `broken`: the answer to give instead, if any."""
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
        batch, failed = _caught(lambda: fetch(task.index), where, source.streams)
        reply(task, failed or batch)
        del batch, failed, task


def _caught(call: Callable[[], Any], where: str, ends: bool = False) -> tuple[Any, Any]:
    """(the result of `call`, None), or (None, the object that represents its exception)."""
    try:
        return call(), None
    except StopIteration if ends else () as _:
        return None, End()
    except Exception:
        return None, ExceptionWrapper(where=where)


# --- processes


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers to seed NumPy's generator with in a worker."""
    import numpy as np

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def seed_worker(base_seed: int, worker: int) -> int:
    """Seeds the random numbers of Python, naru and NumPy, differently in each worker; returns the worker's seed."""
    seed = base_seed + worker
    random.seed(seed)
    _C.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy as np

        # NumPy's generator is the same as Python's: seeded with the same number, both would give the same stream.
        np.random.seed(_generate_state(base_seed, worker))
    return seed


class _Inbox:
    """Receives tasks from the channel on a thread, so that the parent never waits for a busy worker."""

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
        # The batch being made is no longer needed, and if the parent is dead, no other process ends a worker that hangs.
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
    """The main function of a worker process."""
    global _info
    channel = Channel(sock)
    for end in list(parents_ends):
        end.close()
    # Ctrl-C reaches the whole process group; the parent decides. (A handler, not SIG_IGN, which processes started by a data set would
    # inherit.) The parent's own handlers must not run here.
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
    # A closed channel: the parent needs no more answers.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(job.source, inbox.get, reply, where, broken)
    channel.close()
