"""`torch.backends.opt_einsum`: in which order einsum multiplies; naru has its own."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package opt_einsum is used: no.

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
    """Nothing is to be set.

    >>> naru.backends.opt_einsum.set_flags(_enabled=True); naru.backends.opt_einsum.enabled
    False
    """
