"""`torch.utils.checkpoint`: trades compute for memory: a checkpointed region is recomputed in backward instead of keeping its activations.

Non-reentrant (recommended): hooks on saved tensors discard what operators in the region would save; the first one that backward unpacks triggers the
recomputation. Reentrant: the region is one node, whose backward recomputes it and calls backward recursively.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from .. import _C, random
from .._missing import fail
from ..autograd import Function, backward
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ._checkpoint_conditions import _Conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Tensor = _C.Tensor

__all__ = [
    "CheckpointError", "CheckpointFunction", "DefaultDeviceType", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
    "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """The recomputation of a region does not match the original run.

    >>> from naru.utils.checkpoint import CheckpointError, checkpoint
    >>> sizes = iter([2, 3])
    >>> def part(x):
    ...     return naru.sin(x) * naru.ones(next(sizes), 1)
    >>> y = checkpoint(part, naru.ones(1, requires_grad=True), use_reentrant=False)
    >>> try:
    ...     y.sum().backward()
    ... except CheckpointError as error:
    ...     print(type(error).__name__)
    CheckpointError
    """


class DefaultDeviceType:
    """For compatibility with PyTorch: the kind of device whose random state is kept. In naru one generator serves all devices.

    >>> naru.utils.checkpoint.DefaultDeviceType.get_device_type()
    'cuda'
    """

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the kind."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """The kind."""
        return DefaultDeviceType._kind


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices of the tensor arguments, and the state of the generator, which all devices share.

    Args:
        args: anything; only tensors on devices are used.

    >>> with naru.virtual("cuda", count=1):
    ...     devices, states = naru.utils.checkpoint.get_device_states(naru.ones(1, device="cuda"), 3)
    ...     devices, len(states)
    ([0], 1)
    """
    devices = sorted({a.get_device() for a in args if isinstance(a, Tensor) and a.device.type not in ("cpu", "meta")})
    return devices, [random.get_rng_state() for _ in devices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Restores the state returned by `get_device_states`.

    Args:
        devices: indices, ignored.
        states: states of the generator.
        device_type: the devices' kind, ignored.

    >>> state = naru.get_rng_state()
    >>> before = naru.rand(1)
    >>> naru.utils.checkpoint.set_device_states([0], [state])
    >>> naru.equal(naru.rand(1), before)
    True
    """
    for state in states:
        random.set_rng_state(state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors in `inputs` (a tuple) detached from their history, with the same requires_grad.

    Args:
        inputs: a tuple (RuntimeError for anything else).

    >>> x = naru.ones(1, requires_grad=True)
    >>> y, n = naru.utils.checkpoint.detach_variable((x * 2, 3))
    >>> y.is_leaf, y.requires_grad, n
    (True, True, 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor requires grad.

    Args:
        inputs: anything; only tensors are used.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     naru.utils.checkpoint.check_backward_validity([naru.ones(1)])
    >>> len(caught)
    1
    """
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def noop_context_fn() -> tuple[Any, Any]:
    """Returns two contexts that do nothing.

    >>> forward, again = naru.utils.checkpoint.noop_context_fn()
    >>> with forward:
    ...     naru.ones(1)
    tensor([1.])
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointFunction(Function):
    """A reentrant checkpoint as one autograd node: `checkpoint(..., use_reentrant=True)`.

    >>> from naru.utils.checkpoint import checkpoint
    >>> y = checkpoint(naru.sin, naru.zeros(1, requires_grad=True), use_reentrant=True)
    >>> y.grad_fn.name()
    'CheckpointFunctionBackward'
    """

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Runs the region without recording history, and saves its arguments."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.conditions = _Conditions(preserve_rng_state)
        ctx.arguments = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Recomputes the region, and runs backward through it."""
        if _C._backward_has_inputs():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the "
                "`inputs` argument."
            )
        inputs = list(ctx.arguments)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.conditions.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


class _Stop(BaseException):
    """Stops a recomputation once all needed tensors are there; a BaseException, so that user code does not catch it."""


_ALLOWED = ("default", "none")
_settings: dict[str, bool | None] = {"early_stop": None, "debug": None}


@contextlib.contextmanager
def _setting(name: str, value: bool | None) -> Iterator[None]:
    before, _settings[name] = _settings[name], value
    try:
        yield
    finally:
        _settings[name] = before


def set_checkpoint_early_stop(enable: bool) -> Any:
    """A context in which recomputations stop as soon as backward has what it needs (the default), or do not.

    Args:
        enable: whether they stop early.

    >>> from naru.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> def part(x):
    ...     print("run")
    ...     return x.sin()
    >>> x = naru.zeros(1, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(part, x, use_reentrant=False).backward()
    run
    run
    """
    return _setting("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """A context in which errors of recomputations list the saved tensors, or do not.

    Args:
        enabled: whether they do; None: use `checkpoint`'s `debug`.

    >>> from naru.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = naru.zeros(1, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     checkpoint(naru.sin, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([1.])
    """
    return _setting("debug", enabled)


def _metadata(t: Tensor) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


class _Holder:
    """Placeholder in the graph for a tensor that was not kept."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Frame:
    """A checkpointed call: metadata of the tensors it would have saved, in order, and how to run it again."""

    def __init__(self, again: Callable[[], Any], early_stop: bool, check: str, debug: bool) -> None:
        self.again, self.early_stop, self.check, self.debug, self.done = again, early_stop, check, debug, False
        self.kept: list[weakref.ref[_Holder]] = []
        self.known: list[dict[str, Any]] = []
        self.values: dict[Any, dict[int, Tensor]] = {}  # of the most recent backward pass

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.kept))
        self.kept.append(weakref.ref(holder))
        self.known.append(_metadata(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        key = _C._current_backward() or id(self)
        if key not in self.values or holder.number not in self.values[key]:
            if key in self.values:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                    "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your use case."
                )
            self.values = {key: self._run()}
        values = self.values[key]
        found = values[holder.number] if _C._backward_keeps_graph() else values.pop(holder.number)
        if not values:
            del self.values[key]
        return found

    def _run(self) -> dict[int, Tensor]:
        found: list[Tensor] = []
        wanted = max((i for i, ref in enumerate(self.kept) if ref() is not None), default=-1)

        def pack(tensor: Tensor) -> Tensor:
            if len(found) >= len(self.kept):
                if not self.done:  # a gradient computed inside the function needs only a part of it
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass." + self._tip()
                )
            found.append(tensor.detach())
            if self.early_stop and len(found) > wanted:
                raise _Stop
            return found[-1]

        with contextlib.suppress(_Stop), saved_tensors_hooks(pack, lambda t: t), enable_grad():
            self.again()
        self._compare(found, wanted)
        return {i: t for i, t in enumerate(found) if self.kept[i]() is not None}

    def _tip(self) -> str:
        if self.debug:
            return f"\nTensors saved during forward: {self.known}"
        return "\n\nTip: pass debug=True to torch.utils.checkpoint.checkpoint(...) to see the tensors that were saved."

    def _compare(self, found: list[Tensor], wanted: int) -> None:
        expected = wanted + 1 if self.early_stop else len(self.kept)
        if len(found) != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.kept)}\n"
                f"Number of tensors saved during recomputation: {len(found)}." + self._tip()
            )
        if self.check == "none":
            return
        other = [(i, self.known[i], _metadata(t)) for i, t in enumerate(found) if _metadata(t) != self.known[i]]
        if other:
            lines = "".join(f"tensor at position {i}:\nsaved metadata: {a}\nrecomputed metadata: {b}\n" for i, a, b in other)
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward "
                f"pass.\n{lines}." + self._tip()
            )


def _without_reentrance(
    function: Callable[..., Any], args: tuple, kwargs: dict, preserve_rng_state: bool, context_fn: Any, check: str, debug: bool, early_stop: bool
) -> Any:
    if check not in _ALLOWED:
        raise ValueError(f"determinism_check should be one of {list(_ALLOWED)}, but got {check}")
    forward_context, again_context = context_fn()
    if not _C.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    conditions = _Conditions(preserve_rng_state)

    def again() -> None:
        with conditions.again(), again_context:
            function(*args, **kwargs)

    stop = _settings["early_stop"]
    frame = _Frame(again, early_stop if stop is None else stop, check, debug if _settings["debug"] is None else bool(_settings["debug"]))
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
    frame.done = True
    return result


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls function(*args, **kwargs) so that backward recomputes the tensors it needs.

    Args:
        use_reentrant: False is recommended; if omitted, it is True, with a warning. With True, keyword arguments are not supported, one of
            `args` must require grad, and `torch.autograd.grad` and `inputs=` of backward raise RuntimeError.
        preserve_rng_state: whether the recomputation draws the same random numbers.
        context_fn: returns the contexts of the original run and the recomputation.
        determinism_check: "default" compares shapes, dtypes and devices of the tensors saved in both runs (CheckpointError), "none" nothing.
        early_stop: whether the recomputation stops once backward has all it needs.
        debug: whether errors of recomputations list the saved tensors; not with use_reentrant=True (ValueError).
        respect_saved_tensors_hooks: ignored; not with use_reentrant=True (ValueError).

    >>> import naru
    >>> x = naru.tensor([0.0, 1.0], requires_grad=True)
    >>> checkpoint(lambda t: t.exp() * 2, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([2.0000, 5.4366])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. In a future release, calling checkpoint without "
            "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        return _without_reentrance(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug or respect_saved_tensors_hooks is not None:
        raise ValueError(
            "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Calls the functions (or the modules of a Sequential) one after the other, in `segments` parts, of which all but the last are checkpointed.

    Args:
        functions: a Sequential, or a list of functions of one argument.
        segments: the number of parts.
        input: the argument of the first function.
        use_reentrant: as in `checkpoint`.
        kwargs: preserve_rng_state, as in `checkpoint`; ValueError for other keywords.

    >>> model = naru.nn.Sequential(naru.nn.Tanh(), naru.nn.ReLU(), naru.nn.Sigmoid())
    >>> x = naru.zeros(1, requires_grad=True)
    >>> y = naru.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
    >>> y
    tensor([0.5000], grad_fn=<SigmoidBackward0>)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In a future release, we "
            "will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return run

    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size) if size else ():
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(steps))(input)


def __getattr__(name: str) -> Any:
    fail("utils.checkpoint", name)
    raise AttributeError(f"module 'torch.utils.checkpoint' has no attribute {name!r}")
