"""Registration of a module's hooks, and the calls that run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...utils.hooks import RemovableHandle
from ._global_hooks import (
    _global_backward_hooks,
    _global_backward_last_node,
    _global_backward_pre_hooks,
    _global_forward_always,
    _global_forward_hooks,
    _global_forward_kwargs,
    _global_forward_pre_hooks,
)
from ._hooks import BackwardHooks, watch_last_node

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable

class HookMethods:
    """The methods of `Module` that register hooks."""

    if TYPE_CHECKING:
        forward: Callable[..., Any]
        _backward_pre_hooks: OrderedDict[int, Any]
        _backward_hooks: OrderedDict[int, Any]
        _forward_hooks: OrderedDict[int, Any]
        _forward_hooks_with_kwargs: OrderedDict[int, bool]
        _forward_hooks_always_called: OrderedDict[int, bool]
        _forward_pre_hooks: OrderedDict[int, Any]
        _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    # Set to True on an instance when its first hook is registered, so that a call without hooks tests one flag.
    _hooked: bool = False
    # Whether its backward hooks were registered by register_full_backward_hook; None if there are none.
    _is_full_backward_hook: bool | None = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; its result, if not None, replaces the arguments.

        Args:
            prepend: whether the hook is called before the others.
            with_kwargs: whether it is called as `hook(module, args, kwargs)`, and returns a pair (args, kwargs).

        Returns a handle whose `remove()` removes the hook.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        >>> layer(naru.tensor([-1.5, 1.0]))
        tensor([0., 2.])
        >>> handle.remove()
        """
        self._hooked = True
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after forward; its result, if not None, replaces the output.

        Args:
            prepend: whether the hook is called before the others.
            with_kwargs: whether it is called as `hook(module, args, kwargs, output)`.
            always_call: whether to call the hook even if forward raises.

        Returns a handle whose `remove()` removes the hook.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, output: output * 2)
        >>> layer(naru.tensor([-1.5, 1.0]))
        tensor([0., 2.])
        >>> handle.remove()
        """
        self._hooked = True
        handle = RemovableHandle(
            self._forward_hooks, extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` once the gradients of the inputs have been computed.

        If the hook returns a value other than None, it replaces grad_input for the rest of backward.

        Args:
            prepend: whether the hook is called before the others.

        Returns a handle whose `remove()` removes the hook.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> layer(naru.tensor([-1.5, 1.0], requires_grad=True)).sum().backward()
        (tensor([0., 1.]),)
        """
        handle = self._add_backward_hook(hook, full=True)
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def _add_backward_hook(self, hook: Callable[..., Any], full: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them.")
        self._hooked = True
        self._is_full_backward_hook = full
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` with the gradients of the last node of forward. If forward has more nodes, these are not the
        gradients of the module's inputs (FutureWarning). Prefer `register_full_backward_hook`; RuntimeError if both are used.

        Args:
            hook: its result, if not None, replaces grad_input.

        Returns a handle whose `remove()` removes the hook.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> layer(naru.tensor([-1.5, 1.0], requires_grad=True) * 1).sum().backward()
        (tensor([0., 1.]),)
        """
        return self._add_backward_hook(hook, full=False)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the module's backward; its result, if not None, replaces grad_output.

        Args:
            prepend: whether the hook is called before the others.

        Returns a handle whose `remove()` removes the hook.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
        >>> x = naru.tensor([-1.5, 1.0], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([0., 2.])
        """
        self._hooked = True
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """(full hooks, hooks of the last node) for this module's backward, including global ones."""
        full: list[Any] = []
        last: list[Any] = []
        (last if _global_backward_last_node else full).extend(_global_backward_hooks.values())
        (last if self._is_full_backward_hook is False else full).extend(self._backward_hooks.values())
        return full, last

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_with_hooks(self, args: tuple, kwargs: dict) -> Any:
        called: set[int] = set()
        result: Any = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = None
            (hooks, last), pre_hooks = self._get_backward_hooks(), self._get_backward_pre_hooks()
            if hooks or pre_hooks:
                backward = BackwardHooks(self, hooks, pre_hooks)
                args = backward.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                called.add(key)
                with_kwargs = key in self._forward_hooks_with_kwargs or key in _global_forward_kwargs
                new = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                if new is not None:
                    result = new
            if backward is not None:
                result = backward.watch_outputs(result)
            if last:
                watch_last_node(self, last, args, result)
            return result
        except Exception:
            # Hooks registered with always_call run although forward failed; forward's error takes precedence over theirs.
            for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                always = key in self._forward_hooks_always_called or key in _global_forward_always
                if always and key not in called:
                    try:
                        if key in self._forward_hooks_with_kwargs or key in _global_forward_kwargs:
                            hook(self, args, kwargs, result)
                        else:
                            hook(self, args, result)
                    except Exception as error:
                        import warnings

                        warnings.warn(
                            "module forward hook with ``always_call=True`` raised an exception that was silenced "
                            f"as another error was raised in forward: {error}",
                            stacklevel=3,
                        )
            raise

    def _run_pre_hooks(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                new = hook(self, args, kwargs)
                if new is not None:
                    if not (isinstance(new, tuple) and len(new) == 2):
                        raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}.")
                    args, kwargs = new
            else:
                new = hook(self, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
        return args, kwargs
