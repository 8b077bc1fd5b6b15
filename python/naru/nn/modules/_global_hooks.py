"""Hooks of all modules: of their calls, and of what is registered with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

_global_forward_hooks: dict[int, Callable] = {}
_global_forward_always: dict[int, bool] = {}
_global_forward_kwargs: dict[int, bool] = {}
_global_forward_pre_hooks: dict[int, Callable] = {}
_global_backward_hooks: dict[int, Callable] = {}
_global_backward_pre_hooks: dict[int, Callable] = {}
# All of them, so that a call without hooks tests one dict.
_global_call_hooks: dict[int, bool] = {}

_registration_hooks: dict[str, dict[int, Callable]] = {"parameter": {}, "buffer": {}, "module": {}}


def _add(hooks: dict[int, Callable], hook: Callable[..., Any], *marks: dict[int, bool]) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=[*marks, _global_call_hooks])
    hooks[handle.id] = hook
    for mark in (*marks, _global_call_hooks):
        mark[handle.id] = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before every module's forward."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after every module's forward; with_kwargs: `hook(module, args, kwargs, output)`."""
    marks = [mark for mark, wanted in ((_global_forward_kwargs, with_kwargs), (_global_forward_always, always_call)) if wanted]
    return _add(_global_forward_hooks, hook, *marks)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when the gradients of a module's inputs have been computed."""
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before every module's backward; what it returns replaces grad_output."""
    return _add(_global_backward_pre_hooks, hook)


register_module_backward_hook = register_module_full_backward_hook


def _register(kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(_registration_hooks[kind])
    _registration_hooks[kind][handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` where a parameter is registered; what it returns, if not None, takes its place."""
    return _register("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` where a buffer is registered; what it returns, if not None, takes its place."""
    return _register("buffer", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` where a module is registered; what it returns, if not None, takes its place."""
    return _register("module", hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What is to be registered in place of a value, by the hooks."""
    for hook in list(_registration_hooks[kind].values()):
        new = hook(module, name, value)
        value = value if new is None else new
    return value
