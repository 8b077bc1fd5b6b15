"""Sends tasks to workers ahead of time, and reorders their answers: shared by processes and threads."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..._exceptions import ExceptionWrapper
from .worker import End, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .worker_pool import WorkerPool


class Order:
    """Passes over the data set with a pool of workers.

    Args:
        pool: the workers.
        workers: the number of workers.
        prefetch: pending batches per worker.
        in_order: return batches in the order of their indices; otherwise as they become available.
        timeout: seconds to wait for a batch; 0 for no limit.
    """

    def __init__(self, pool: WorkerPool, workers: int, prefetch: int, in_order: bool, timeout: float) -> None:
        self.pool = pool
        self._workers = workers
        self._prefetch = prefetch
        self._in_order = in_order
        self._timeout = timeout
        self._pass = -1
        self.broken: BaseException | None = None  # why the pool was stopped

    def begin(self, indices: Iterator[Any]) -> None:
        """Starts a pass. Pending answers of the previous pass are discarded."""
        self._pass += 1
        self._indices = indices
        self._next_sent = self._next_wanted = 0
        self._doer: dict[int, int] = {}  # the worker of each task whose answer has not been returned
        self._early: dict[int, Any] = {}  # answers that came before their turn
        self._load = [0] * self._workers
        self._turns = itertools.cycle(range(self._workers))
        self._ended = [False] * self._workers
        for _ in range(self._prefetch * self._workers):
            self._send()

    def _send(self) -> None:
        """Sends one more task to the next worker, if there is a worker and a task."""
        worker = self._choose()
        if worker is None:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._doer[self._next_sent] = worker
        self._load[worker] += 1
        self.pool.put(worker, Task((self._pass, self._next_sent), index))
        self._next_sent += 1

    def _choose(self) -> int | None:
        able = [w for w in range(self._workers) if not self._ended[w]]
        if not able:
            return None
        if self._in_order:
            return next(w for w in self._turns if not self._ended[w])
        return min(able, key=lambda w: self._load[w])

    def next(self) -> Any:
        """The next batch. StopIteration at the end of the pass; raises the error of a worker."""
        while self._doer:
            number, answer = self._take()
            worker = self._doer.pop(number)
            self._load[worker] -= 1
            if isinstance(answer, End):
                self._ended[worker] = True
            self._send()
            if isinstance(answer, ExceptionWrapper):
                answer.reraise()
            if not isinstance(answer, End):
                return answer
        raise StopIteration

    def _take(self) -> tuple[int, Any]:
        wanted = self._next_wanted
        while not (self._in_order and wanted in self._early):
            number, answer = self._receive()
            if not self._in_order:
                return number, answer
            self._early[number] = answer
        self._next_wanted += 1
        return wanted, self._early.pop(wanted)

    def _receive(self) -> tuple[int, Any]:
        if self.broken is not None:
            raise RuntimeError("this pass of the DataLoader has ended with an error; start another one") from self.broken
        while True:
            try:
                (which, number), answer = self.pool.get(self._timeout or None)
            except TimeoutError:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
            except (RuntimeError, KeyboardInterrupt) as error:  # a worker has died, or all should stop
                self.broken = error
                self.pool.stop(grace=0)
                raise
            if which == self._pass:
                return number, answer
