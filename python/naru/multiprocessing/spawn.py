"""`spawn`: runs a function in several processes, and reports their errors."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any

from .._serialization.atomic_file import atomic_file
from ._parent import can_be_told, end_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes"]


class ProcessException(Exception):
    """A started process has failed: number `error_index`, process id `pid`; `msg` describes it.

    >>> from naru.multiprocessing.spawn import ProcessException
    >>> ProcessException("no memory", 1, 4711).error_index
    1
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised in process number `error_index`, process id `error_pid`; `msg` has its traceback.

    >>> naru.multiprocessing.ProcessRaisedException("-- Process 1 terminated with the following error: ...", 1, 4711).pid
    4711
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)
        self.error_pid = error_pid


class ProcessExitedException(ProcessException):
    """Process number `error_index`, process id `error_pid`, ended by a signal, `signal_name`, or with a nonzero status, `exit_code`; `msg`
    describes it.

    >>> error = naru.multiprocessing.ProcessExitedException("process 0 terminated with exit code 3", 0, 4711, 3)
    >>> error.exit_code, str(error)
    (3, 'process 0 terminated with exit code 3')
    """

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple, error_file: str, told_of: int | None) -> None:
    end_with_parent(told_of)
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent gets the interrupt, too
    except Exception:  # noqa: BLE001
        import traceback

        with atomic_file(error_file) as file:
            file.write(traceback.format_exc().encode(errors="backslashreplace"))
        sys.exit(1)


class ProcessContext:
    """Running processes, as returned by `start_processes` with join=False: `processes`, and `error_files`, to which they write their
    exceptions.

    >>> context = naru.multiprocessing.ProcessContext([], [])
    >>> context.pids(), context.join()
    ([], True)
    """

    def __init__(self, processes: list, error_files: list[str]) -> None:
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int | None]:
        """Their process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for the next process to end. True once all have ended successfully; if one fails, ends the others and raises
        ProcessRaisedException or ProcessExitedException."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        self._raise(failed)
        return False

    def _end_others(self, grace_period: float | None) -> None:
        end = time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        if os.access(self.error_files[index], os.R_OK) and os.path.getsize(self.error_files[index]):
            with open(self.error_files[index], "rb") as file:
                text = file.read().decode()
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


class SpawnContext(ProcessContext):
    """Processes started by `spawn`; same as ProcessContext, with `processes` and `error_files`.

    >>> naru.multiprocessing.SpawnContext([], []).join()
    True
    """


def start_processes(
    fn: Callable[..., Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    **options: Any,
) -> ProcessContext | None:
    """Calls fn(i, *args) in `nprocs` processes started by `start_method` ("spawn", "fork", "forkserver"). With `join`, waits for all and
    raises ProcessRaisedException if one raised; otherwise returns a ProcessContext.

    `fn` must be importable, unless processes are forked. They end when this process is killed; with `daemon`, also when it exits normally.

    >>> def report(i, word):
    ...     print(word, i)
    >>> naru.multiprocessing.start_processes(report, ("process",), nprocs=1, start_method="fork")  # doctest: +SKIP
    """
    context = multiprocessing.get_context(start_method)
    # (With "forkserver", the server is the parent of the processes.)
    told_of = os.getpid() if can_be_told() and start_method != "forkserver" else None
    processes, files = [], []
    for i in range(nprocs):
        with tempfile.NamedTemporaryFile(prefix="naru-spawn-", suffix=".txt", delete=False) as file:
            files.append(file.name)
        process = context.Process(target=_run, args=(fn, i, args, files[i], told_of), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    started = SpawnContext(processes, files)
    if not join:
        return started
    try:
        while not started.join():
            pass
    finally:
        for name in files:
            if os.path.exists(name):
                os.unlink(name)
    return None


def spawn(
    fn: Callable[..., Any], args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Calls fn(i, *args) in `nprocs` new processes; `fn` must be importable. `args`, `join` and `daemon` as for `start_processes`; a
    `start_method` other than "spawn" emits a warning.

    >>> from mine import train                                        # doctest: +SKIP
    >>> naru.multiprocessing.spawn(train, args=("cuda",), nprocs=2)  # doctest: +SKIP
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
