"""`torch.autograd.graph`: access to the graph that backward traverses, and hooks on the tensors it saves."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Tensor = _C.Tensor
Node = _C.Node

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "queue_callback", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class _Local(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.disabled: str | None = None
        self.copying = False  # within allow_mutation_on_saved_tensors


_here = _Local()


class GradientEdge(NamedTuple):
    """The edge of a tensor's gradient: input `output_nr` of `node`. `grad` and `backward` accept it in place of the tensor. `ownership_token` is None.

    >>> x = naru.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> edge = naru.autograd.graph.get_gradient_edge(y)
    >>> naru.autograd.grad((y * y).sum(), edge)
    (tensor([6., 6.]),)
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of `tensor` flows along. RuntimeError if it does not require one.

    >>> import naru
    >>> get_gradient_edge(naru.ones(1, requires_grad=True)).node.name()
    'torch::autograd::AccumulateGrad'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Any) -> None:
    """Increments the version of the `tensor`, or of each of several, as an in-place write does.

    >>> x = naru.ones(1)
    >>> before = x._version
    >>> naru.autograd.graph.increment_version(x); x._version - before
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(t)


class saved_tensors_hooks:
    """Within it, each tensor that an operator saves for backward is passed to `pack_hook(tensor)`, whose result is saved instead; backward calls
    `unpack_hook(result)` to get the tensor. Only the innermost hooks apply. In-place writes to saved tensors are not detected.

    RuntimeError if pack_hook writes to its tensor; TypeError in backward if unpack_hook does not return a tensor.

    >>> import naru
    >>> x = naru.tensor([2.0], requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), lambda values: naru.tensor(values)):
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _here.disabled is not None:
            raise RuntimeError(_here.disabled)
        self._scope = _C._SavedHooksScope()
        self._scope.enter(self.pack_hook, self.unpack_hook)
        _here.depth += 1

    def __exit__(self, *args: object) -> None:
        _here.depth -= 1
        self._scope.leave()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.pack_hook, self.unpack_hook):
                return func(*args, **kwargs)

        return wrapped


class save_on_cpu(saved_tensors_hooks):
    """Within it, tensors saved for backward are kept in host memory (pinned, if `pin_memory`) until backward needs them. `device_type` is
    ignored: this applies to tensors on every kind of device.

    >>> x = naru.ones(2, requires_grad=True)
    >>> with save_on_cpu():
    ...     y = x.exp()
    >>> y.sum().backward(); x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if not pin_memory or tensor.device.type == "cpu":
                return tensor.device, tensor.cpu()
            packed = _C.empty(tensor.size(), dtype=tensor.dtype, pin_memory=True)
            return tensor.device, packed.copy_(tensor)

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within it, `saved_tensors_hooks` raises RuntimeError with `error_message`, and this call raises it if such hooks are active.

    >>> with naru.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     naru.autograd.graph.save_on_cpu().__enter__()
    Traceback (most recent call last):
        ...
    RuntimeError: no hooks here
    """
    if _here.depth:
        raise RuntimeError(error_message)
    before, _here.disabled = _here.disabled, error_message
    try:
        yield
    finally:
        _here.disabled = before


class _Handles:
    def __init__(self, handles: list) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Removes the hook from all tensors."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def queue_callback(callback: Callable[[], None]) -> None:
    """Calls `callback()` when the backward that runs on this thread has finished, after earlier callbacks; not if backward fails.

    For use in hooks and in the backward of Functions. RuntimeError outside of a backward.

    >>> import naru
    >>> x = naru.ones(2, requires_grad=True)
    >>> _ = x.register_hook(lambda grad: naru.autograd.graph.queue_callback(lambda: print("over")))
    >>> x.sum().backward()
    over
    """
    _C._queue_callback(callback)


def _reached(tensors: Sequence[Tensor]) -> list[Any]:
    return [_C._gradient_edge(t) for t in tensors]


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all") -> Any:
    """Calls fn(grads) in each backward once the gradients of all `tensors` are known (None for those that get none); with `mode`="any",
    fn(grad) at the first one. Returns a handle with remove(). ValueError for another mode.

    It does not wait for tensors that the current backward does not reach.

    >>> x, y = naru.ones(2, requires_grad=True), naru.ones(2, requires_grad=True)
    >>> hook = naru.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads))
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2., 2.]), tensor([3., 3.])]
    >>> hook.remove()
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    found: dict[int, list[Any]] = {}
    count: dict[int, int] = {}
    reachable: dict[int, int] = {}

    def called(index: int, grad: Tensor) -> None:
        key = _C._current_backward()
        with lock:
            first = key not in found
            grads = found.setdefault(key, [None] * len(tensors))
            count[key] = count.get(key, 0) + 1
            grads[index] = grad
            if first and mode == "all":
                reachable[key] = sum(_C._is_reached(*edge) for edge in _reached(tensors))
            done = first if mode == "any" else count[key] == reachable[key]
            if mode == "all" and done:
                del found[key], count[key], reachable[key]
        if done:
            fn(grad if mode == "any" else grads)

    return _Handles([t.register_hook(functools.partial(called, i)) for i, t in enumerate(tensors)])


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Within it, tensors saved for backward may be written in place afterwards: backward sees their old values.

    Each saved tensor is copied (PyTorch copies only those that are written). RuntimeError if nested.

    >>> import naru
    >>> x = naru.ones(2, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x.clone(); z = y.sin(); _ = y.mul_(0.0)
    ...     z.sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """
    if _here.copying:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    _here.copying = True
    try:
        with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            yield
    finally:
        _here.copying = False


__getattr__ = _missing.module_getattr(__name__)
