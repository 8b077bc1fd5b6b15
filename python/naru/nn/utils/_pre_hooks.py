"""Forward pre-hooks that compute a tensor of a module, as the older weight norm, spectral norm and pruning do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def take_off(module: Any, is_it: Callable[[Any], bool]) -> bool:
    """Removes the module's first pre-hook for which `is_it` is true, and undoes its changes; returns False if there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if is_it(hook):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return True
    return False
