"""`torch.distributed.checkpoint.stateful`: objects with a state dict."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from ... import _missing

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object whose state `save` takes, and `load` gives back.

    >>> isinstance(naru.nn.Linear(1, 1), naru.distributed.checkpoint.stateful.Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what was saved."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)

__getattr__ = _missing.module_getattr(__name__)
