"""`torch.distributed.checkpoint.api`: the error of checkpoints."""

from __future__ import annotations

from typing import Any

from ... import _missing

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Some ranks failed to save or load a checkpoint.

    Args:
        msg: what was done.
        failures: for each of these ranks (its error, a summary of the stack).

    >>> str(naru.distributed.checkpoint.CheckpointException("save", {1: (ValueError("no"), None)}))
    "CheckpointException ranks:dict_keys([1])\\nRank 1: ValueError('no')"
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """For each rank that failed (its error, a summary of the stack)."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"Rank {rank}: {found[0]!r}" for rank, found in self._failures.items()]
        return "\n".join([f"CheckpointException ranks:{self._failures.keys()}", *lines])


__getattr__ = _missing.module_getattr(__name__)
