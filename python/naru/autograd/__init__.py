"""`torch.autograd`: backward, grad, gradient modes, functions with a user-defined derivative."""

from __future__ import annotations

from typing import Any

from .. import _C, _missing
from . import function, functional, graph as graph
from .function import Function
from .gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

Tensor = _C.Tensor
SavedTensor = _C._SavedTensor

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "function", "functional", "grad", "gradcheck", "gradgradcheck", "inference_mode", "no_grad",
    "set_detect_anomaly", "detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


def _sequence(value: Any) -> list:
    return [value] if isinstance(value, (Tensor, graph.GradientEdge)) or value is None else list(value)


def _at(tensors: list, like: list | None = None) -> list:
    """Replaces edges by tensors at them, with the shapes of `like` if given."""
    if not any(isinstance(t, graph.GradientEdge) for t in tensors):
        return tensors
    models = [None] * len(tensors) if like is None else like
    return [
        _C._at_gradient_edge(t.node, t.output_nr, _C.zeros(()) if model is None else model) if isinstance(t, graph.GradientEdge) else t
        for t, model in zip(tensors, models)
    ]


def _values(tensors: list) -> list:
    """The tensors that autograd differentiates: for a nested tensor its values."""
    return [t._held() if getattr(t, "is_nested", False) else t for t in tensors]


def _start_gradients(outputs: list[Tensor], grads: Any) -> list[Tensor]:
    """The gradient that backward starts with, for each output: the one given, or 1 for a single element."""
    given = _sequence(grads) if grads is not None else [None] * len(outputs)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    start = []
    for i, (out, grad) in enumerate(zip(outputs, given)):
        if grad is None:
            if out.requires_grad:
                if out.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if out.is_complex():
                    raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
                grad = _C.ones_like(out.detach())
        elif not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif not out.is_same_size(grad):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of {out.shape}."
            )
        start.append(grad)
    return start


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` to the `grad` of the leaves in their histories.

    Args:
        tensors: a tensor, a GradientEdge, or several.
        grad_tensors: the gradient of each tensor; may be omitted for tensors with one element.
        retain_graph: whether to keep the graph for another backward (create_graph if None).
        create_graph: whether to record the backward itself, so that it can be differentiated.
        grad_variables: the older name of grad_tensors.
        inputs: the only tensors that get gradients.

    RuntimeError if a gradient is missing or has another shape, or if the graph has been freed.

    >>> x = naru.tensor([1.0, 2.0], requires_grad=True)
    >>> naru.autograd.backward([x * x], [naru.ones(2)]); x.grad
    tensor([2., 4.])
    """
    outputs = _at(_sequence(tensors), None if grad_tensors is None else _sequence(grad_tensors))
    if grad_variables is not None and grad_tensors is None:
        grad_tensors = grad_variables
    if inputs is not None and not _sequence(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    start = _start_gradients(outputs, grad_tensors)
    if retain_graph is None:
        retain_graph = create_graph
    _C._backward(_values(outputs), _values(start), retain_graph, create_graph, None if inputs is None else _values(_at(_sequence(inputs))))


def _batched_grad(outs: list, ins: list, starts: list, create_graph: bool, allow_unused: bool | None, materialize: bool) -> tuple[Any, ...]:
    """Runs one backward for each entry along the first dimension of the start gradients."""
    sizes = {s.shape[0] for s in starts if s is not None and s.dim()}
    if len(sizes) != 1:
        raise RuntimeError("is_grads_batched=True: expected grad_outputs whose first dimension, the batch, is of one size")
    for i, (out, start) in enumerate(zip(outs, starts)):
        if start is not None and start.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining "
                f"dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                f"{start.shape} and output[{i}] has a shape of {out.shape}."
            )
    rows = []
    for i in range(sizes.pop()):
        entry = [None if s is None else s.select(0, i) for s in starts]
        rows.append(grad(outs, ins, entry, True, create_graph, True, allow_unused, False, materialize))
    return tuple(None if column[0] is None else _C.stack(list(column)) for column in zip(*rows))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `grad` attributes are not changed.

    `grad_outputs`: the gradients of the outputs, in their shapes; may be omitted for single elements. `retain_graph`, `create_graph`: as in
    `backward`. `only_inputs` is ignored. An input that the outputs do not depend on raises RuntimeError, or gives None with `allow_unused`
    (zeros with `materialize_grads`). `is_grads_batched`: grad_outputs have a batch as their first dimension, and so do the results; each
    entry takes one backward.

    >>> x = naru.tensor(3.0, requires_grad=True)
    >>> naru.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    outs, ins = _at(_sequence(outputs), None if grad_outputs is None else _sequence(grad_outputs)), _at(_sequence(inputs))
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if allow_unused is False and materialize_grads:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if is_grads_batched:
        return _batched_grad(outs, ins, _sequence(grad_outputs), create_graph, allow_unused, materialize_grads)
    if allow_unused is None:
        allow_unused = materialize_grads
    start = _start_gradients(outs, grad_outputs)
    if retain_graph is None:
        retain_graph = create_graph
    found = _C._grad(_values(outs), _values(ins), _values(start), retain_graph, create_graph, allow_unused)
    result = [t.like(g) if g is not None and t.is_nested else g for g, t in zip(found, ins)]
    if materialize_grads:
        result = [_C.zeros_like(t, requires_grad=create_graph) if g is None else g for g, t in zip(result, ins)]
    return tuple(result)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """The old wrapper around tensors: returns the tensor `data` itself, without history. `requires_grad`: whether the result requires
    gradients. `volatile` is ignored. TypeError if data is not a tensor.

    >>> naru.autograd.Variable(naru.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        out = data.detach()
        if requires_grad:
            out.requires_grad_(True)
        return out


class set_detect_anomaly:
    """Switches anomaly detection on or off according to `mode`: at once, and restores it afterwards if used as a context manager.

    While it is on, operators record the stack of the program. A backward that fails warns with the location where the operator was called. With
    `check_nan`, a gradient with NaN in it is a failure (RuntimeError).

    >>> with naru.autograd.set_detect_anomaly(True):
    ...     naru.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_mode(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly_mode(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Anomaly detection within a block, including NaN with `check_nan`; see `set_detect_anomaly`. Warns that it is slow.

    >>> x = naru.tensor(0.0, requires_grad=True)
    >>> with naru.autograd.detect_anomaly():
    ...     try:
    ...         (x * x.log()).backward()
    ...     except RuntimeError as error:
    ...         print(error)
    Function 'LogBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        import warnings

        self.check_nan = check_nan
        self.prev = self.prev_check_nan = False
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_mode(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly_mode(self.prev, self.prev_check_nan)


_missing_name = _missing.module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name in ("anomaly_mode", "forward_ad", "profiler", "variable"):
        import importlib

        try:
            return importlib.import_module("." + name, __name__)
        except ModuleNotFoundError:
            pass
    if name in ("_profiler_enabled", "_disable_profiler"):
        return getattr(__getattr__("profiler"), name)
    return _missing_name(name)
