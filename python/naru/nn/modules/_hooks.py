"""Backward hooks of modules: one graph node at a module's inputs and one at its outputs."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def _mark(tensors: tuple, on_grads: Callable[[tuple], tuple]) -> tuple:
    """Passes `tensors` through one graph node, whose backward calls `on_grads` with all their gradients."""
    from ...autograd import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> tuple:
            views = tuple(t.view_as(t) for t in inputs)
            ctx.mark_non_differentiable(*[view for view, t in zip(views, inputs) if not t.requires_grad])
            return views

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> tuple:
            return on_grads(grads)

    return tuple(BackwardHookFunction.apply(*tensors))


class BackwardHooks:
    """The backward hooks of one call of one module."""

    def __init__(self, module: Any, hooks: list[Callable], pre_hooks: list[Callable]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple | None = None
        self.inputs_watched = False
        self.count_inputs = 0

    def watch_inputs(self, args: tuple) -> tuple:
        """Passes the tensors in `args` through a node that calls the hooks once their gradients are known."""
        where = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        self.count_inputs = len(args)
        if not _C.is_grad_enabled() or not any(args[i].requires_grad for i in where):
            return args
        self.inputs_watched = True

        def on_grads(grads: tuple) -> tuple:
            if self.grad_outputs is None:
                # The gradients bypass the module's outputs, as in double backward.
                return grads
            full: list[Any] = [None] * len(args)
            for i, grad in zip(where, grads):
                full[i] = grad
            full = list(self._run(tuple(full)))
            self.grad_outputs = None
            return tuple(full[i] for i in where)

        marked = list(args)
        for i, tensor in zip(where, _mark(tuple(args[i] for i in where), on_grads)):
            marked[i] = tensor
        return tuple(marked)

    def watch_outputs(self, result: Any) -> Any:
        """Passes the tensors in `result` through a node that records the gradients of the outputs."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=4,
            )
            return result
        single = isinstance(result, Tensor)
        items = [result] if single else list(result)
        where = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
        if not where or not _C.is_grad_enabled() or not any(items[i].requires_grad for i in where):
            return result

        def on_grads(grads: tuple) -> tuple:
            for hook in self.pre_hooks:
                new = hook(self.module, grads)
                if new is not None:
                    new = new if isinstance(new, tuple) else (new,)
                    if len(new) != len(grads):
                        raise RuntimeError(
                            f"Backward pre hook returned an invalid number of grad_output, got {len(new)}, but expected {len(grads)}"
                        )
                    grads = new
            full: list[Any] = [None] * len(items)
            for i, grad in zip(where, grads):
                full[i] = grad
            self.grad_outputs = tuple(full)
            if not self.inputs_watched:
                # No input requires a gradient, so no later node can call the hooks: call them now.
                changed = self._run((None,) * self.count_inputs)
                if any(grad is not None for grad in changed):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
                self.grad_outputs = None
            return grads

        for i, tensor in zip(where, _mark(tuple(items[i] for i in where), on_grads)):
            items[i] = tensor
        return items[0] if single else tuple(items) if type(result) is tuple else type(result)(*items)

    def _run(self, grad_inputs: tuple) -> tuple:
        for hook in self.hooks:
            new = hook(self.module, grad_inputs, self.grad_outputs)
            if new is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(grad_inputs):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, "
                        f"got {len(new)}, but expected {len(grad_inputs)}"
                    )
                grad_inputs = new
        return grad_inputs


def watch_last_node(module: Any, hooks: list[Callable], args: tuple, result: Any) -> None:
    """Calls `hooks` in the backward of the node that made the first tensor of `result`; FutureWarning if forward has more nodes."""
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs))
    doubt = _doubt_of_last_node(node, args, result)
    if doubt is not None:
        warnings.warn(
            f"{doubt[0]} is deprecated and will be removed in future versions. This hook will be missing some {doubt[1]}. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )


def _doubt_of_last_node(node: Any, args: tuple, result: Any) -> tuple[str, str] | None:
    """The reason why the gradients of a node are not the module's, and which ones are missing; None if they may be the module's."""
    outputs = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(outputs, tuple) and all(isinstance(o, Tensor) for o in outputs)):
        return "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output"
    if not all(isinstance(a, Tensor) for a in args):
        return "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors", "of the grad_input"
    nodes = {o.grad_fn for o in outputs if o.grad_fn is not None}
    if not nodes or (len(nodes) == 1 and node not in nodes):
        return "Using a non-full backward hook when outputs are nested in python data structure", "grad_output"
    if len(nodes) > 1:
        return "Using a non-full backward hook when outputs are generated by different autograd Nodes", "grad_output"
    if {a.grad_fn for a in args if a.grad_fn is not None} != {n for n, _ in node.next_functions}:
        return "Using a non-full backward hook when the forward contains multiple autograd Nodes", "grad_input"
    return None
