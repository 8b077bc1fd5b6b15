"""`torch.__future__`: how module conversion (`Module.to` and the like) treats parameters."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion", "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]  # fmt: skip

_overwrite: bool = False
_swap: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether `Module.to` and the like replace parameters with new ones. The old parameters then keep their values.

    Args:
        value: False (the default): parameters stay the same objects and their data changes.

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
    """Returns the value set by `set_overwrite_module_params_on_conversion`.

    >>> naru.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether `Module.to` and the like, and `load_state_dict`, update parameters with `torch.utils.swap_tensors`.

    Args:
        value: whether they do; takes precedence over `set_overwrite_module_params_on_conversion`. Swapping can change the type of
            parameters that are Tensor subclasses.

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
    """Returns the value set by `set_swap_module_params_on_conversion`.

    >>> naru.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap
