"""Forward pre-hooks that compute a tensor of a module, as the older norms and pruning are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def take_off(module: Any, is_it: Callable[[Any], bool]) -> bool:
    """Has the first such hook that `is_it` picks undo what it did, and takes it off the module; False where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if is_it(hook):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return True
    return False
