"""`torch.backends.opt_einsum`: the contraction order of einsum; naru has its own."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Returns False: the package opt_einsum is not used.

    >>> is_available()
    False
    """
    return False


def get_opt_einsum() -> None:
    """None.

    >>> naru.backends.opt_einsum.get_opt_einsum() is None
    True
    """


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> None:
    """Accepts `_enabled` and `_strategy` without effect.

    >>> naru.backends.opt_einsum.set_flags(_enabled=True); naru.backends.opt_einsum.enabled
    False
    """
