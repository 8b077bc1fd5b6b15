"""`use_deterministic_algorithms` and PyTorch's related switches."""

from __future__ import annotations

from .. import _C

_MODES = ("default", "warn", "error")
_warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """If `mode`, naru's own matrix product is used everywhere; its results are bitwise equal on all devices. All else is always deterministic.

    `warn_only` requests a warning instead of an error for operators without a deterministic form. All operators have one, so there is never a
    warning; `is_deterministic_algorithms_warn_only_enabled` returns the setting.

    >>> use_deterministic_algorithms(True, warn_only=True)
    >>> get_deterministic_debug_mode(), is_deterministic_algorithms_warn_only_enabled()
    (1, True)
    >>> use_deterministic_algorithms(False)
    """
    global _warn_only
    for name, value, place in (("mode", mode, " (position 1)"), ("warn_only", warn_only, "")):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type(value).__name__}")
    _C._use_deterministic_algorithms(mode)
    _warn_only = warn_only


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns the warn_only setting last passed to `use_deterministic_algorithms`.

    >>> naru.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`debug_mode` 0 or "default": off; 1 or "warn", 2 or "error": as `use_deterministic_algorithms(True)` with warn_only and without.
    TypeError or RuntimeError for other values.

    >>> naru.set_deterministic_debug_mode("error"); naru.are_deterministic_algorithms_enabled()
    True
    >>> naru.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Returns 0, 1 or 2: see `set_deterministic_debug_mode`.

    >>> naru.get_deterministic_debug_mode()
    0
    """
    if not _C.are_deterministic_algorithms_enabled():
        return 0
    return 1 if _warn_only else 2
