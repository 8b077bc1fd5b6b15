"""Steps of a save or a load on all ranks: an error on one is raised on all of them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from .. import _groups, _messages
from .api import CheckpointException

if TYPE_CHECKING:
    from collections.abc import Callable


class Ranks:
    """The ranks of a group, or this process alone.

    Args:
        group: the group; None: the default one.
        alone: whether this process is on its own.
        coordinator: the rank that plans, within the group.
    """

    def __init__(self, group: Any, alone: bool, coordinator: int = 0) -> None:
        self.alone = alone or not _groups.is_initialized()
        self.group = None if self.alone else (_groups.world() if group is None else group)
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()
        self.coordinator = coordinator
        self.is_coordinator = self.alone or self.rank == coordinator

    def _tried(self, step: Callable[[], Any]) -> tuple[bool, Any]:
        try:
            return True, step()
        except Exception as error:  # noqa: BLE001
            return False, (error, traceback.format_exc())

    def _raised(self, name: str, found: list[tuple[bool, Any]]) -> list[Any]:
        failures = {rank: value for rank, (good, value) in enumerate(found) if not good}
        if failures:
            raise CheckpointException(name, failures) from next(iter(failures.values()))[0]
        return [value for _, value in found]

    def all_gather(self, name: str, step: Callable[[], Any]) -> list[Any]:
        """The results of the step on each rank."""
        mine = self._tried(step)
        if self.alone:
            return self._raised(name, [mine])
        found: list[Any] = [None] * self.size
        _messages.all_gather_object(found, mine, group=self.group)
        return self._raised(name, found)

    def on_coordinator(self, name: str, step: Callable[[], Any]) -> Any:
        """The result of the step on the coordinator, on each rank."""
        mine = self._tried(step) if self.is_coordinator else None
        if self.alone:
            return self._raised(name, [mine])[0]  # type: ignore[list-item]
        told = [mine]
        _messages.broadcast_object_list(told, src=self.group.ranks[self.coordinator], group=self.group)
        good, value = told[0]  # type: ignore[misc]
        if not good:
            raise CheckpointException(name, {self.coordinator: value}) from value[0]
        return value
