"""Optimizer hooks around steps, of one optimizer or of all, and around saving and loading."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import _C
from ..utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()

# The names of the hook dicts of one optimizer.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _add(hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before each step of every optimizer.

    Args:
        hook: the hook. `args` begins with the optimizer; a result other than None is the new (args, kwargs).

    Returns a handle whose `remove()` removes the hook.

    >>> from naru.optim.optimizer import register_optimizer_step_pre_hook
    >>> handle = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__))
    >>> naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0).step()
    SGD
    >>> handle.remove()
    """
    return _add(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after each step of every optimizer.

    Args:
        hook: the hook; `args` begins with the optimizer, and the result is ignored.

    Returns a handle whose `remove()` removes the hook.

    >>> from naru.optim.optimizer import register_optimizer_step_post_hook
    >>> handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__))
    >>> naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0).step()
    SGD
    >>> handle.remove()
    """
    return _add(_global_post_hooks, hook)


class OptimizerHooks:
    """The methods of `Optimizer` that register hooks."""

    if TYPE_CHECKING:
        _optimizer_step_pre_hooks: OrderedDict[int, Any]
        _optimizer_step_post_hooks: OrderedDict[int, Any]
        _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
        _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
        _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
        _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]

    def _begin_hooks(self) -> None:
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        # Wraps `step` when the first object of the class is created, as PyTorch does. A wrapper class that never calls __init__ has no hooks.
        step = getattr(type(self), "step", None)
        if step is not None and not hasattr(step, "hooked"):
            type(self).step = with_hooks(step)  # type: ignore[attr-defined]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; if it returns a pair, that replaces args and kwargs.
        `args` begins with the optimizer.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("before"))
        >>> optimizer.step()
        before
        """
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step; `args` begins with the optimizer.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("after"))
        >>> optimizer.step()
        after
        """
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` at the start of `state_dict`."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` at the end of `state_dict`; its result, if not None, replaces the state."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before loading; its result, if not None, is loaded instead."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` wrapped so that it runs the step hooks: those of all optimizers and the optimizer's own."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _C._capturing():
            self._check_capture()
        pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if not pre and not post and not _global_pre_hooks and not _global_post_hooks:
            return step(self, *args, **kwargs)
        args = (self, *args)  # what hooks see, and may replace
        for hook in [*_global_pre_hooks.values(), *pre.values()]:
            new = hook(self, args, kwargs)
            if new is not None:
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {new}.")
                args, kwargs = new
        out = step(*args, **kwargs)
        for hook in [*post.values(), *_global_post_hooks.values()]:
            hook(self, args, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper
