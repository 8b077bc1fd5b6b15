"""`torch.utils.module_tracker`: tracks the modules being called, in forward and backward."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from ..autograd.graph import queue_callback, register_multi_grad_hook
from ..nn.modules._global_hooks import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ModuleTracker"]


def _differentiable(tree: Any) -> list[_C.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, _C.Tensor) and leaf.requires_grad]


class ModuleTracker:
    """Within `with ModuleTracker() as tracker:`, `tracker.parents` is the set of the names of modules being called, including "Global".

    A name is the class of the outermost module and the path from there: "ResNet.layer1.0". In backward, a module is active from the gradients of its
    results to those of its inputs; if its inputs need no gradients, it stays active to the end of backward. `on_change` is called before the set changes.

    >>> import naru
    >>> layer = naru.nn.Sequential(naru.nn.Linear(2, 1))
    >>> with ModuleTracker() as tracker:
    ...     _ = layer[0].register_forward_pre_hook(lambda *args: print(sorted(tracker.parents)))
    ...     _ = layer(naru.ones(1, 2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self.parents = {"Global"}
        self._on_change = on_change or (lambda: None)
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._resets = False  # whether a reset at the end of this backward is registered

    @property
    def is_bw(self) -> bool:
        """Whether a backward runs on this thread."""
        return _C._current_backward() != 0

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name_of(self, module: Any) -> str:
        """The module's name. Its children are named at the same time, so that they keep the name from the first module that called them."""
        if module not in self._names:
            self._names[module] = type(module).__name__
            for path, child in module.named_modules():
                if path:
                    self._names.setdefault(child, f"{self._names[module]}.{path}")
        return self._names[module]

    def _add(self, name: str) -> None:
        self._on_change()
        if self.is_bw and not self._resets:
            self._resets = True
            queue_callback(self._reset)
        self.parents.add(name)

    def _drop(self, name: str) -> None:
        self._on_change()
        self.parents.discard(name)

    def _reset(self) -> None:
        self._on_change()
        self.parents, self._resets = {"Global"}, False

    def _before(self, module: Any, args: Any) -> None:
        name = self._name_of(module)
        self._add(name)
        if tensors := _differentiable(args):
            self._handles.append(register_multi_grad_hook(tensors, lambda grads: self._drop(name)))

    def _after(self, module: Any, args: Any, result: Any) -> None:
        name = self._name_of(module)
        self._drop(name)
        if tensors := _differentiable(result):
            self._handles.append(register_multi_grad_hook(tensors, lambda grads: self._add(name)))


__getattr__ = _missing.module_getattr(__name__)
