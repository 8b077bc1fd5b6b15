"""Worker pools, as used by the loader. `put` gives a worker a task, `get` returns the answer of a worker."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import select
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from ..._exceptions import ExceptionWrapper
from .pin_memory import pin_memory
from .transport import Channel, Views, unpack
from .worker import Job, Task, parents_ends, run_process, serve

if TYPE_CHECKING:
    from .fetch import Source

# Interval of checks for processes that died without their socket being closed.
_LOOK_SECONDS = 1.0
# Time for workers to finish a batch that is no longer needed.
_GRACE_SECONDS = 5.0

Answer = tuple[tuple[int, int], Any]


class WorkerPool(Protocol):
    """The interface of a pool of workers."""

    processes: list[Any]  # of `multiprocessing`; none if the workers are threads

    def put(self, worker: int, task: Task) -> None:
        """Gives a worker a task. Tasks of one worker are done in order."""

    def get(self, seconds: float | None) -> Answer:
        """The next answer of any worker: the task's tag, and a batch, End or ExceptionWrapper. TimeoutError after `seconds`."""

    def stop(self, grace: float = _GRACE_SECONDS) -> None:
        """Stops all workers; those that do not end within `grace` seconds are killed."""

    def drop(self) -> None:
        """Tells all workers to stop, without waiting. May be called on any thread (finalizers.py)."""


class ThreadPool:
    """Workers that are threads of this process, for data sets that spend their time outside of Python."""

    def __init__(self, source: Source, workers: int) -> None:
        self.processes: list[Any] = []
        self._tasks: list[queue.SimpleQueue[Task | None]] = [queue.SimpleQueue() for _ in range(workers)]
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        answers = self._answers
        for i, tasks in enumerate(self._tasks):
            args = (source, tasks.get, lambda task, value: answers.put((task.tag, value)), f"in DataLoader worker thread {i}")
            threading.Thread(target=serve, args=args, daemon=True, name="naru-loader").start()

    def put(self, worker: int, task: Task) -> None:
        self._tasks[worker].put(task)

    def get(self, seconds: float | None) -> Answer:
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def stop(self, grace: float = _GRACE_SECONDS) -> None:
        self.drop()

    def drop(self) -> None:
        for tasks in self._tasks:
            tasks.put(None)


class ProcessPool:
    """Workers that are processes."""

    def __init__(self, job: Job, context: Any) -> None:
        self._owner = os.getpid()
        self._channels: list[Channel] = []
        self.processes: list[Any] = []
        self._views: list[Views] = []
        self._ready: list[int] = []
        self._stopped = False
        _live.add(self)
        try:
            for i in range(job.workers):
                self._start(job, i, context)
        except BaseException:
            self.stop(grace=0)
            raise
        self._numbers = {channel.fileno(): i for i, channel in enumerate(self._channels)}
        self._poll = select.poll()
        for file in self._numbers:
            self._poll.register(file, select.POLLIN)

    def _start(self, job: Job, number: int, context: Any) -> None:
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        parents_ends.add(channel)
        self._channels.append(channel)
        self._views.append(Views())
        with theirs:
            process = context.Process(target=run_process, args=(job, number, theirs), daemon=True)
            process.start()
        self.processes.append(process)

    def put(self, worker: int, task: Task) -> None:
        message = pickle.dumps((task, self._views[worker].free()), 5)
        # `get` notices a worker that has died.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channels[worker].send(message)

    def get(self, seconds: float | None) -> Answer:
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._ready:
            left = _LOOK_SECONDS if deadline is None else min(deadline - time.monotonic(), _LOOK_SECONDS)
            if left <= 0:
                raise TimeoutError
            self._ready = [self._numbers[file] for file, _ in self._poll.poll(left * 1000)]
            if not self._ready:
                for i, process in enumerate(self.processes):
                    # First read what it sent before it died.
                    if not process.is_alive() and not self._channels[i].wait(0):
                        self._fail(i)
        worker = self._ready.pop()
        try:
            return unpack(*self._channels[worker].receive(), self._views[worker])
        except (EOFError, ConnectionResetError):
            self._fail(worker)

    def _fail(self, worker: int) -> Any:
        process = self.processes[worker]
        process.join(_GRACE_SECONDS)
        pid, code = process.pid, process.exitcode
        raise RuntimeError(f"DataLoader worker (pid(s) {pid}) exited unexpectedly with {_ending(code)}") from RuntimeError(
            f"DataLoader worker (pid {pid}) {_cause(code)}"
        )

    def stop(self, grace: float = _GRACE_SECONDS) -> None:
        if self._stopped or os.getpid() != self._owner:  # a forked child has a copy of this object, but not the workers
            return
        self._stopped = True
        self.drop()
        deadline = time.monotonic() + grace
        try:
            for process in self.processes:
                process.join(max(0, deadline - time.monotonic()))
        finally:
            for end in (type(process).terminate, type(process).kill) if self.processes else ():
                alive = [process for process in self.processes if process.is_alive()]
                for process in alive:
                    end(process)
                for process in alive:
                    process.join(1)


    def drop(self) -> None:
        # A worker ends when its channel is closed; `multiprocessing` reaps it when the next process starts, and at exit.
        if os.getpid() == self._owner:
            for channel in self._channels:
                channel.close()
                parents_ends.discard(channel)
            _live.discard(self)


def _ending(code: int | None) -> str:
    if code is None:
        return "its channel closed"
    if code < 0:
        known = -code in signal.valid_signals() and -code < getattr(signal, "SIGRTMIN", signal.NSIG)
        name = signal.Signals(-code).name if known else f"{-code}"
        out = " (often: out of memory)" if -code == signal.SIGKILL else ""
        return f"signal {name}{out}. Run with num_workers=0 to see what it was doing"
    return f"exit code {code}. Run with num_workers=0 to see what it was doing"


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"is killed by signal: {signal.strsignal(-code)}. "
    return (
        f"exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. "
        "Rerunning with num_workers=0 may give better error trace."
    )


# Pools of this process.
_live: set[ProcessPool] = set()


@atexit.register
def _stop_all() -> None:
    # No batch is needed any more: no grace period.
    for pool in list(_live):
        pool.stop(grace=0)


class PinningPool:
    """Wraps another pool, and copies its batches to page-locked memory on a thread while the loop runs."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self.processes = pool.processes
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # One entry per task: the thread waits for an answer only if one is due.
        self._expected: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="naru-pin")
        self._thread.start()

    def _run(self) -> None:
        while self._expected.get():
            answer = self._next()
            if answer is None:
                break
            self._answers.put(answer)
            del answer
        if self._stopped:
            self._pool.drop()

    def _next(self) -> Any:
        while not self._stopped:
            try:
                tag, value = self._pool.get(0.1)
            except TimeoutError:
                continue
            except BaseException as error:
                return error
            if not isinstance(value, ExceptionWrapper):
                try:
                    value = pin_memory(value)
                except Exception:
                    value = ExceptionWrapper(where="in pin memory thread")
            return tag, value
        return None

    def put(self, worker: int, task: Task) -> None:
        self._pool.put(worker, task)
        self._expected.put(True)

    def get(self, seconds: float | None) -> Answer:
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self, grace: float = _GRACE_SECONDS) -> None:
        self.drop()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._pool.stop(grace)

    def drop(self) -> None:
        # The thread drops the inner pool when it is not using it.
        self._stopped = True
        self._expected.put(False)
