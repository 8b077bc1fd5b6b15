"""`torch.__future__`: how the conversion of modules is to treat their parameters."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion", "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]  # fmt: skip

_overwrite: bool = False
_swap: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether `Module.to` and the like put new parameters in place of the old ones, which keep their values.

    Args:
        value: False, as at the start: parameters stay the same objects and get new elements.

    >>> naru.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer = naru.nn.Linear(2, 1)
    >>> before = layer.weight
    >>> layer.double().weight is before
    False
    >>> naru.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` has set.

    >>> naru.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether `Module.to` and the like, and `load_state_dict`, give parameters their new values by `torch.utils.swap_tensors`.

    Args:
        value: whether they do; it goes before `set_overwrite_module_params_on_conversion`. Parameters of subclasses of Tensor can change their
            type by it.

    >>> naru.__future__.set_swap_module_params_on_conversion(True)
    >>> layer = naru.nn.Linear(2, 1)
    >>> before = layer.weight
    >>> layer.double().weight is before, before.dtype
    (True, torch.float64)
    >>> naru.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` has set.

    >>> naru.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap
