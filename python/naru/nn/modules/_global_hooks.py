"""Hooks of all modules: on calls, and on the registration of parameters, buffers and submodules."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ... import _C
from ...utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

_global_forward_hooks: dict[int, Callable] = {}
_global_forward_always: dict[int, bool] = {}
_global_forward_kwargs: dict[int, bool] = {}
_global_forward_pre_hooks: dict[int, Callable] = {}
_global_backward_hooks: dict[int, Callable] = {}
_global_backward_last_node: dict[int, bool] = {}  # hooks of register_module_backward_hook
_global_backward_pre_hooks: dict[int, Callable] = {}
# All global hooks, so that a call without hooks tests only one dict.
_global_call_hooks: dict[int, bool] = _C._global_call_hooks

_registration_hooks: dict[str, dict[int, Callable]] = {"parameter": {}, "buffer": {}, "module": {}}


def _add(hooks: dict[int, Callable], hook: Callable[..., Any], *marks: dict[int, bool]) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=[*marks, _global_call_hooks])
    hooks[handle.id] = hook
    for mark in (*marks, _global_call_hooks):
        mark[handle.id] = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before every module's forward.

    Args:
        hook: its result, if not None, replaces the arguments.

    Returns a handle whose `remove()` removes the hook.

    >>> handle = naru.nn.modules.module.register_module_forward_pre_hook(lambda module, args: print(type(module).__name__))
    >>> _ = naru.nn.Sequential(naru.nn.ReLU(), naru.nn.Tanh())(naru.ones(1))
    Sequential
    ReLU
    Tanh
    >>> handle.remove()
    """
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after every module's forward; with_kwargs: `hook(module, args, kwargs, output)`.

    Args:
        hook: its result, if not None, replaces the output.
        always_call: whether to call the hook even if forward raises.

    Returns a handle whose `remove()` removes the hook.

    >>> handle = naru.nn.modules.module.register_module_forward_hook(lambda module, args, output: output + 1)
    >>> naru.nn.ReLU()(naru.tensor([-1.0, 1.0]))
    tensor([1., 2.])
    >>> handle.remove()
    """
    marks = [mark for mark, wanted in ((_global_forward_kwargs, with_kwargs), (_global_forward_always, always_call)) if wanted]
    return _add(_global_forward_hooks, hook, *marks)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when the gradients of a module's inputs have been computed.

    Args:
        hook: its result, if not None, replaces grad_input.

    Returns a handle whose `remove()` removes the hook.

    >>> handle = naru.nn.modules.module.register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
    >>> x = naru.tensor([-1.0, 1.0], requires_grad=True)
    >>> naru.nn.ReLU()(x).sum().backward()
    (tensor([0., 1.]),)
    >>> handle.remove()
    """
    if _global_backward_last_node:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before every module's backward; its result, if not None, replaces grad_output.

    Args:
        hook: the hook; grad_output is a tuple of the gradients of the module's outputs.

    Returns a handle whose `remove()` removes the hook.

    >>> handle = naru.nn.modules.module.register_module_full_backward_pre_hook(lambda module, grad_output: print(grad_output))
    >>> x = naru.tensor([-1.0, 1.0], requires_grad=True)
    >>> naru.nn.ReLU()(x).sum().backward()
    (tensor([1., 1.]),)
    >>> handle.remove()
    """
    return _add(_global_backward_pre_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` for the last node of every module's forward; see `Module.register_backward_hook`.

    Args:
        hook: its result, if not None, replaces grad_input.

    Returns a handle whose `remove()` removes the hook. RuntimeError together with register_module_full_backward_hook, which is preferable.

    >>> handle = naru.nn.modules.module.register_module_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
    >>> x = naru.tensor([-1.0, 1.0], requires_grad=True)
    >>> naru.nn.ReLU()(x * 1).sum().backward()
    (tensor([0., 1.]),)
    >>> handle.remove()
    """
    if len(_global_backward_hooks) > len(_global_backward_last_node):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
    return _add(_global_backward_hooks, hook, _global_backward_last_node)


def _register(kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(_registration_hooks[kind])
    _registration_hooks[kind][handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` when a parameter is registered; its result, if not None, replaces the parameter.

    Args:
        hook: applies to all modules; `remove()` of the returned handle removes it.

    >>> from naru.nn.modules.module import register_module_parameter_registration_hook
    >>> handle = register_module_parameter_registration_hook(lambda module, name, parameter: print(name, tuple(parameter.shape)))
    >>> _ = naru.nn.Linear(3, 2)
    weight (2, 3)
    bias (2,)
    >>> handle.remove()
    """
    return _register("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` when a buffer is registered; its result, if not None, replaces the buffer.

    Args:
        hook: applies to all modules; `remove()` of the returned handle removes it.

    >>> handle = naru.nn.modules.module.register_module_buffer_registration_hook(lambda module, name, buffer: print(name))
    >>> naru.nn.Module().register_buffer("scale", naru.ones(1))
    scale
    >>> handle.remove()
    """
    return _register("buffer", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` when a submodule is registered; its result, if not None, replaces the submodule.

    Args:
        hook: applies to all modules; `remove()` of the returned handle removes it.

    >>> handle = naru.nn.modules.module.register_module_module_registration_hook(lambda module, name, submodule: print(name, submodule))
    >>> _ = naru.nn.Sequential(naru.nn.ReLU())
    0 ReLU()
    >>> handle.remove()
    """
    return _register("module", hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """Applies the registration hooks to a value; returns the value to register."""
    for hook in list(_registration_hooks[kind].values()):
        new = hook(module, name, value)
        value = value if new is None else new
    return value


class WithGlobalHooks(types.ModuleType):
    """The module type of `torch.nn.modules.module`: assigning a dict to one of its global hook attributes replaces the registered hooks."""

    def __setattr__(self, name: str, value: Any) -> None:
        held = globals().get(name)
        if not isinstance(held, dict) or not isinstance(value, dict):
            super().__setattr__(name, value)
            return
        for key in [key for key in held if key not in value]:
            del held[key]
            if name.endswith("_hooks"):
                _global_call_hooks.pop(key, None)
        held.update(value)
        if name.endswith("_hooks"):
            _global_call_hooks.update(dict.fromkeys(value, True))

    def __getattr__(self, name: str) -> Any:
        held = globals().get(name) if name.startswith("_global_") else None
        if held is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return held
