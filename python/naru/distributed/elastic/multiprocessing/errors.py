"""Errors of processes started by torchrun: each writes its error to the file named by TORCHELASTIC_ERROR_FILE."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

from .... import _missing
from ...._serialization.atomic_file import atomic_file

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

T = TypeVar("T")


class ProcessFailure:
    """A failed process.

    Args:
        local_rank: its rank on this host.
        pid: its process id.
        exitcode: its exit code; negative for a signal.
        error_file: the file with its error.

    >>> from naru.distributed.elastic.multiprocessing.errors import ProcessFailure
    >>> ProcessFailure(0, 4711, -9, "").signal_name()
    'SIGKILL'
    """

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str) -> None:
        self.local_rank, self.pid, self.exitcode, self.error_file = local_rank, pid, exitcode, error_file
        self.message, self.timestamp = "", int(time.time())
        try:
            with open(error_file, encoding="utf-8") as file:
                told = json.load(file)["message"]
            self.message = told["extraInfo"]["py_callstack"] if isinstance(told, dict) else told
            if isinstance(told, dict):
                self.timestamp = int(told["extraInfo"]["timestamp"])
        except (OSError, ValueError, KeyError):
            pass  # it wrote no error

    def signal_name(self) -> str:
        """The signal that ended it; "<N/A>" if it was not a signal."""
        import signal

        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"
        except ValueError:
            return "<N/A>"


class ChildFailedError(Exception):
    """Started processes have failed.

    Args:
        name: the program's name.
        failures: ProcessFailure by rank.

    >>> from naru.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    >>> print(str(ChildFailedError("train.py", {1: ProcessFailure(1, 4711, 3, "")})).splitlines()[0])
    train.py FAILED
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def format_msg(self) -> str:
        """The error text: the first failure, then the others."""
        first, *others = sorted(self.failures.items(), key=lambda item: item[1].timestamp)
        lines = [f"{self.name} FAILED", "-" * 60]
        for title, items in (("First failure:", [first]), ("Other failures:", others)):
            lines += [title] if items else []
            for rank, failure in items:
                lines += [
                    f"  rank      : {rank} (local_rank: {failure.local_rank})",
                    f"  exitcode  : {failure.exitcode} (pid: {failure.pid}), signal: {failure.signal_name()}",
                    f"  traceback : {failure.message or 'above, if it wrote one; decorate main with torch.distributed.elastic.multiprocessing.errors.record'}",
                ]
        return "\n".join(lines)


def record(fn: Callable[..., T], error_handler: Any = None) -> Callable[..., T]:
    """Decorates a program's main function `fn`: exceptions are written where torchrun reads them, and raised again.

    `error_handler` is ignored.

    >>> from naru.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> T:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            path = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if path:
                told = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
                text = json.dumps({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": told}})
                with atomic_file(path) as file:
                    file.write(text.encode())
            raise

    return recorded


__getattr__ = _missing.module_getattr(__name__)
