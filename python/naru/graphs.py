"""Graphs: work is recorded once and replayed, under PyTorch's names (`torch.cuda.CUDAGraph`, `torch.accelerator.Graph`), on every device.

>>> import naru as torch
>>> x = torch.zeros(2)
>>> g = torch.Graph(device="cpu")
>>> with torch.graph(g):
...     y = x * 2 + 1          # recorded, not done
>>> g.replay(), y
(None, tensor([1., 1.]))
>>> _ = x.copy_(torch.tensor([1.0, 2.0]))
>>> g.replay(), y
(None, tensor([3., 5.]))
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from . import _C
from ._device.kind import current_kind
from ._serialization.atomic_file import atomic_file
from .autograd.function import Function, once_differentiable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .streams import Stream

__all__ = ["Graph", "graph", "graph_pool_handle", "make_graphed_callables"]

_pools = itertools.count(1)
_MODES = ("default", "global", "thread_local", "relaxed")


def graph_pool_handle() -> tuple[int, int]:
    """Returns a token for `pool=`. Each graph has its own memory, so the token only has to be accepted.

    >>> isinstance(naru.cuda.graph_pool_handle(), tuple)
    True
    """
    return 0, next(_pools)


class Graph(_C._Graph):
    """Work recorded between `capture_begin` and `capture_end` (or in `with naru.graph(g):`), executed by each `replay`.

    Args:
        device: the device whose work is recorded (default: the current accelerator, or the cpu if there is none).
        keep_graph, pool, capture_error_mode: accepted as in PyTorch. Captures are per thread, as with "thread_local".

    Everything that the thread submits to the device is recorded. The graph keeps the memory that was used until `reset()`: replays read and
    write the same tensors, with their contents at that time. Random numbers are drawn again in each replay. An operation that needs a value
    on the host raises RuntimeError during a capture.

    >>> x, g = naru.zeros(2), naru.Graph(device="cpu")
    >>> with naru.graph(g):
    ...     y = x + 1
    >>> _ = x.fill_(4.0); g.replay(); y
    tensor([5., 5.])
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        device: Any = None,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ) -> None:
        super().__init__()
        self._asked = device
        self._pool = pool
        _check_mode(capture_error_mode)

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
        *,
        device: Any = None,
    ) -> None:
        """Starts recording what the thread submits to the device."""
        _check_mode(capture_error_mode)
        self._begin(str(_device(device if device is not None else self._asked)))
        self._pool = pool or self._pool or graph_pool_handle()

    def capture_end(self) -> None:
        """Ends the capture; RuntimeError if anything in it could not be recorded."""
        self._end()

    def instantiate(self) -> None:
        """Does nothing: the graph is ready when the capture ends."""
        if not self._captured:
            raise RuntimeError("Graph: instantiate() called without a preceding successful capture")

    def pool(self) -> tuple[int, int]:
        """The token of the graph's memory pool."""
        if self._pool is None:
            raise RuntimeError("Graph: pool() called without a preceding successful capture")
        return self._pool

    @property
    def device(self) -> _C.device | None:
        """The device it runs on; None before a capture."""
        text = self._device
        return None if text is None else _C.device(text)

    def enable_debug_mode(self) -> None:
        """Does nothing: `debug_dump` always works."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the recorded instructions to a file in Graphviz format: one node per instruction, in order."""
        nodes = [f'  n{i} [label="{text}"];\n' for i, text in enumerate(self._operators())]
        edges = [f"  n{i} -> n{i + 1};\n" for i in range(len(nodes) - 1)]
        with atomic_file(debug_path, "w", encoding="utf-8") as file:
            file.write("digraph {\n" + "".join(nodes + edges) + "}\n")

    def __enter__(self) -> None:
        self.capture_begin()

    def __exit__(self, kind: Any, *exc: object) -> None:
        if kind is None:
            self.capture_end()
        else:
            self._abandon()

    def __repr__(self) -> str:
        return f"<naru.Graph on {self._device}, {len(self._operators())} instructions>" if self._captured else "<naru.Graph, empty>"


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise RuntimeError(f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {mode}")


def _device(device: Any) -> _C.device:
    if device is not None:
        return _C.device(device)
    return _C.device(current_kind() or "cpu")


class graph:
    """`with naru.graph(g):` (or `torch.cuda.graph(g)`) captures the block's work in `g`.

    Args:
        cuda_graph: the `Graph`.
        pool, capture_error_mode: as in `Graph`.
        stream: the current stream in the block; default: a side stream that other threads do not use.
        enable_annotations, annotation_config, check_input_liveness: accepted as in PyTorch.
        device: default: the stream's, the graph's, or the current accelerator.

    >>> x, g = naru.zeros(2), naru.Graph(device="cpu")
    >>> with naru.graph(g):
    ...     y = x * 2
    >>> _ = x.fill_(3.0); g.replay(); y
    tensor([6., 6.])
    """

    _kind: str | None = None

    def __init__(
        self,
        cuda_graph: Graph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        annotation_config: dict[str, Any] | None = None,
        check_input_liveness: bool = False,
        *,
        device: Any = None,
    ) -> None:
        if device is None:
            device = stream.device if stream is not None else cuda_graph._asked or self._kind
        self.device = _device(device)
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream

    def __enter__(self) -> None:
        from .streams import Stream, StreamContext

        _C.synchronize(self.device)
        if self.capture_stream is None:
            self.capture_stream = Stream(self.device)
        self._context = StreamContext(self.capture_stream)
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, device=self.capture_stream.device)
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *exc: object) -> None:
        try:
            self.cuda_graph.__exit__(kind, *exc)
        finally:
            self._context.__exit__(None, None, None)


def of_kind(kind: str) -> tuple[type[graph], Callable[[], bool]]:
    """(graph, is_current_stream_capturing) for the namespace of a `kind`, such as `torch.cuda`."""

    def is_current_stream_capturing() -> bool:
        """Whether the thread is capturing the work of the current device."""
        return _C._is_capturing(kind)

    return type("graph", (graph,), {"_kind": kind, "__doc__": graph.__doc__, "__module__": f"torch.{kind}"}), is_current_stream_capturing


# --- functions and modules whose passes are graphs -------------------------------------------------------------------


def _flatten(value: Any, leaves: list[Any]) -> Callable[[list[Any]], Any]:
    """Appends the leaves of nested tuples, lists and dicts to `leaves`; returns a function that builds the structure of `value` from other leaves."""
    if isinstance(value, (tuple, list)):
        kind, parts = type(value), [_flatten(v, leaves) for v in value]
        if hasattr(kind, "_fields"):
            return lambda new: kind(*[p(new) for p in parts])
        return lambda new: kind(p(new) for p in parts)
    if isinstance(value, dict):
        named = {k: _flatten(v, leaves) for k, v in value.items()}
        return lambda new: {k: p(new) for k, p in named.items()}
    at = len(leaves)
    leaves.append(value)
    return lambda new: new[at]


class _Passes:
    """A callable's forward and backward pass as graphs, with their static input and output tensors."""

    def __init__(self, function: Callable[..., Any], sample: tuple[Any, ...]) -> None:
        from .nn import Module

        self.function, self.sample = function, sample
        args: list[Any] = []
        _flatten(sample, args)
        if not all(isinstance(a, _C.Tensor) for a in args):
            raise AssertionError("In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed.")
        self.parameters: tuple[Any, ...] = ()
        if isinstance(function, Module):
            if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
                raise AssertionError(
                    "Modules must not have hooks registered at the time they are passed. However, registering hooks "
                    "on modules after passing them through make_graphed_callables is allowed."
                )
            if any(b.requires_grad for b in function.buffers()):
                raise AssertionError(
                    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be trainable. "
                    "All buffers must have ``requires_grad=False``."
                )
            self.parameters = tuple(function.parameters())
        self.count = len(args)
        self.inputs = (*args, *self.parameters)
        self.device = self.inputs[0].device if self.inputs else _device(None)
        self.forward, self.backward = Graph(device=self.device), Graph(device=self.device)

    def wanted(self) -> tuple[Any, ...]:
        return tuple(i for i in self.inputs if i.requires_grad)

    def gradients(self, outputs: list[Any], given: Any, allow_unused: bool) -> Any:
        from .autograd import grad

        made = tuple(o for o in outputs if o.requires_grad)
        return grad(made, self.wanted(), given, allow_unused=allow_unused) if made else None

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            outputs: list[Any] = []
            _flatten(self.function(*self.sample), outputs)
            self.gradients(outputs, tuple(_C.empty_like(o) for o in outputs if o.requires_grad), allow_unused)

    def capture_forward(self, **options: Any) -> None:
        self.outputs: list[Any] = []
        with graph(self.forward, device=self.device, **options):
            result = self.function(*self.sample)
        self.rebuild = _flatten(result, self.outputs)

    def capture_backward(self, allow_unused: bool, **options: Any) -> None:
        self.given = tuple(_C.empty_like(o) if o.requires_grad else None for o in self.outputs)
        found: Any = None
        if any(o.requires_grad for o in self.outputs):
            with graph(self.backward, device=self.device, **options):
                found = self.gradients(self.outputs, tuple(g for g in self.given if g is not None), allow_unused)
        rest = iter(found or ())
        self.found = tuple(next(rest) if i.requires_grad and found else None for i in self.inputs)

    def __call__(self, *args: Any) -> Any:
        leaves: list[Any] = []
        _flatten(args, leaves)
        return self.rebuild(list(_Replay.apply(self, *leaves, *self.parameters)))


class _Replay(Function):
    @staticmethod
    def forward(ctx: Any, passes: _Passes, *inputs: Any) -> Any:
        ctx.passes, ctx.given_inputs = passes, inputs
        for mine, given in zip(passes.inputs[: passes.count], inputs):
            if mine is not given and mine.data_ptr() != given.data_ptr():
                mine.copy_(given)
        passes.forward.replay()
        return tuple(o.detach() for o in passes.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        passes = ctx.passes
        for mine, given in zip(passes.given, grads):
            if mine is not None and mine.data_ptr() != given.data_ptr():
                mine.copy_(given)
        # Copy accumulated gradients that alias the graph's output buffers, before the replay overwrites them.
        for leaf, found in zip(ctx.given_inputs, passes.found):
            kept = leaf.grad if found is not None and leaf.is_leaf else None
            if kept is not None and kept.data_ptr() == found.data_ptr():
                leaf.grad = kept.clone()
        passes.backward.replay()
        return (None, *(None if g is None else g.detach() for g in passes.found))


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
    capture_error_mode: str = "global",
    enable_annotations: bool = False,
) -> Any:
    """Functions or modules that do the same work by replaying their forward and backward passes from graphs.

    Args:
        callables: a function or module, or a tuple of them.
        sample_args: a tuple of tensors like the later arguments (shapes, dtypes, requires_grad); for a tuple of callables, a tuple of
            such tuples.
        num_warmup_iters: how often each callable runs before the capture.
        allow_unused_input: whether some inputs may be unused by the outputs.
        pool, capture_error_mode, enable_annotations: accepted as in PyTorch; see `Graph`.

    A module is returned itself, with a replaced `forward`. The replacement is used only in the mode (training or not) that the module is in now.
    Outputs and gradients use the same memory at each call.

    >>> import naru as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> x = torch.ones(4, 2)
    >>> before = layer(x)
    >>> fast = torch.make_graphed_callables(layer, (x,))
    >>> torch.equal(fast(x), before)
    True
    """
    from .nn import Module

    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    options = {"pool": pool or graph_pool_handle(), "capture_error_mode": capture_error_mode}
    all_passes = [_Passes(c, tuple(args)) for c, args in zip(callables, sample_args)]
    for p in all_passes:
        p.warm_up(num_warmup_iters, allow_unused_input)
    for p in all_passes:
        p.capture_forward(**options)
    for p in reversed(all_passes):
        p.capture_backward(allow_unused_input, **options)
    made = [_as_module(p) if isinstance(p.function, Module) else _as_function(p) for p in all_passes]
    return made[0] if single else tuple(made)


def _as_function(passes: _Passes) -> Callable[..., Any]:
    def replayed(*args: Any) -> Any:
        return passes(*args)

    replayed.__wrapped__ = passes.function  # type: ignore[attr-defined]
    return replayed


def _as_module(passes: _Passes) -> Any:
    module: Any = passes.function
    before, training = module.forward, module.training

    def forward(*args: Any) -> Any:
        return passes(*args) if module.training == training else before(*args)

    # The recorded passes call the module's original forward.
    module.forward = forward
    return module
