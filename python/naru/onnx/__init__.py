"""`torch.onnx`: exports modules to ONNX by tracing one call. Requires the package onnx (`pip install onnx`).

>>> import naru
>>> program = naru.onnx.export(naru.nn.Linear(3, 2), (naru.ones(1, 3),))  # doctest: +SKIP
>>> program.save("linear.onnx")  # doctest: +SKIP
"""

from __future__ import annotations

import enum
import inspect
from typing import Any

from .. import _C, _missing
from ..autograd.grad_mode import no_grad
from ..overrides import TorchFunctionMode
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_leaves
from . import errors
from .errors import OnnxExporterError, UnsupportedOperatorError

Tensor = _C.Tensor

__all__ = ["ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "errors", "export", "is_in_onnx_export"]

_exporting = [False]
_DEFAULT_OPSET, _LEAST_OPSET = 18, 14


class TrainingMode(enum.Enum):
    """The mode in which a module is traced.

    >>> naru.onnx.TrainingMode.EVAL.name
    'EVAL'
    """

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.Enum):
    """How to export functions that ONNX lacks; only ONNX is supported.

    >>> naru.onnx.OperatorExportTypes.ONNX.name
    'ONNX'
    """

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def is_in_onnx_export() -> bool:
    """True while a module is traced for an export.

    >>> naru.onnx.is_in_onnx_export()
    False
    """
    return _exporting[0]


class ONNXProgram:
    """An exported module.

    Args:
        model_proto: an onnx.ModelProto.

    >>> import io
    >>> class Proto:  # in place of an onnx.ModelProto
    ...     def SerializeToString(self):
    ...         return b"a model"
    >>> file = io.BytesIO()
    >>> naru.onnx.ONNXProgram(Proto()).save(file)
    >>> file.getvalue()
    b'a model'
    """

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto

    def save(self, destination: Any, **options: Any) -> None:
        """Writes the file atomically."""
        from .._serialization.atomic_file import atomic_file

        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        with atomic_file(destination) as file:
            file.write(data)


class _Recorder(TorchFunctionMode):
    """Records the functions called with traced values into a graph."""

    _sees_all, _sees_operators = True, False

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "out" or value is not None}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func))
        flat = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (tuple, list)) else [a])]
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if not any(map(self.graph.traces, flat)):
            return result
        if any(isinstance(r, Tensor) for r in results):
            self._record(name, args, kwargs, result, results)
        elif name in ("__setitem__", "__delitem__", "set_"):
            raise UnsupportedOperatorError("torch.onnx.export: x[...] = y has no ONNX here yet; nearest: torch.where, torch.cat")
        return result

    def _record(self, name: str, args: tuple, kwargs: dict[str, Any], result: Any, results: list[Any]) -> None:
        from . import _layers  # noqa: F401  # fills the table
        from ._functions import HANDLERS

        base = name
        if name.endswith("_") and not name.endswith("__"):
            base = name[:-1]
            self._check_write(name, args[0])
        make = HANDLERS.get(base) or (None if base.endswith("__") else HANDLERS.get(base.lstrip("_")))
        if make is None:
            raise UnsupportedOperatorError(f"torch.onnx.export: {name.lstrip('_')} has no ONNX here yet; called with {[type(a).__name__ for a in args]}")
        try:
            names = make(self.graph, result, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedOperatorError(f"torch.onnx.export: {name.lstrip('_')} with these arguments has no ONNX here yet: {error}") from error
        for value, to in zip(results, names if isinstance(names, list) else [names]):
            if isinstance(value, Tensor) and to is not None:
                self.graph.put(value, to)

    def _check_write(self, name: str, target: Tensor) -> None:
        if not self.graph.traces(target) and target._is_view():
            raise UnsupportedOperatorError(f"torch.onnx.export: {name} writes into memory that other tensors look at, too")
        place = target.untyped_storage().data_ptr()
        if any(x is not target and self.graph.traces(x) and x.untyped_storage().data_ptr() == place for x in self.graph._kept):
            raise UnsupportedOperatorError(f"torch.onnx.export: {name} writes into memory that other tensors look at, too")


def _named(model: Any) -> dict[int, str]:
    if not hasattr(model, "named_parameters"):
        return {}
    return {id(x): name for name, x in (*model.named_buffers(remove_duplicate=False), *model.named_parameters(remove_duplicate=False))}


def _input_names(model: Any, args: tuple, kwargs: dict[str, Any], given: Any) -> list[tuple[str, Tensor]]:
    """The tensor arguments, each with a name: the given one, or the parameter's."""
    forward = getattr(model, "forward", model)
    try:
        bound = dict(inspect.signature(forward).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        bound = {f"input_{i}": a for i, a in enumerate(args)} | kwargs
    found: list[tuple[str, Tensor]] = []
    for name, value in bound.items():
        leaves = [x for x in tree_leaves(value) if isinstance(x, Tensor)]
        found += [(name if leaf is value else f"{name}_{i}", leaf) for i, leaf in enumerate(leaves)]
    names = list(given or ())
    return [(names[i] if i < len(names) else name, x) for i, (name, x) in enumerate(found)]


def _trace(model: Any, args: tuple, kwargs: dict[str, Any], opset: int, inputs: list[tuple[str, Tensor]]) -> tuple[Any, list[Tensor]]:
    from ._graph import Graph

    graph = Graph(opset, _named(model))
    for name, x in inputs:
        graph.put(x, name)
    with no_grad(), _Recorder(graph):
        out = model(*args, **kwargs)
    return graph, [x for x in tree_leaves(out) if isinstance(x, Tensor)]


def _dynamic(inputs: list[tuple[str, Tensor]], axes: Any, shapes: Any) -> dict[str, dict[int, str]]:
    """{input: {dimension: its name}}, from dynamic_axes or dynamic_shapes."""
    found: dict[str, dict[int, str]] = {}
    if isinstance(shapes, (tuple, list)):
        shapes = {name: shape for (name, _), shape in zip(inputs, shapes)}
    for name, dims in {**(shapes or {}), **(axes or {})}.items():
        if dims is None:
            continue
        pairs = dims.items() if isinstance(dims, dict) else [(d, f"{name}_dim_{d}") for d in dims] if axes and name in axes else enumerate(dims)
        found[name] = {int(d): n if isinstance(n, str) else getattr(n, "__name__", f"{name}_dim_{d}") for d, n in pairs if n is not None}
    return found


def _other_values(value: Any) -> Any:
    """The arguments with other values: elements in reverse order, and floating-point ones with other signs and magnitudes."""
    from ..utils._pytree import tree_map

    def other(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        turned = x.flatten().flip(0).reshape(x.shape)
        return turned * -0.75 + 0.125 if x.is_floating_point() else turned

    return tree_map(other, value)


def _grown(value: Any, inputs: list[tuple[str, Tensor]], dynamic: dict[str, dict[int, str]]) -> Any:
    """The arguments with each dynamic dimension enlarged by one."""
    from ..utils._pytree import tree_map

    def longer(x: Any) -> Any:
        name = next((n for n, t in inputs if t is x), None)
        for axis in dynamic.get(name or "", {}):
            x = _C.cat([x, x.narrow(axis, 0, 1)], axis)
        return x

    return tree_map(longer, value)


def _model_proto(graph: Any, inputs: list[tuple[str, Tensor]], outputs: list[Tensor], names: Any, dynamic: dict[str, dict[int, str]], opset: int) -> Any:
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper

    from ._graph import element_of

    given = list(names or ())
    labels = [given[i] if i < len(given) else "output" if len(outputs) == 1 else f"output_{i}" for i in range(len(outputs))]
    for x, label in zip(outputs, labels):
        graph.nodes.append(("Identity", [graph.value(x)], [label], {}))
    nodes = []
    for kind, ins, outs, attributes in graph.nodes:
        options = dict(attributes)
        if kind == "ConstantOfShape":
            options["value"] = numpy_helper.from_array(np.asarray([options["value"]], np.float32))
        nodes.append(helper.make_node(kind, ins, outs, **options))
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in graph.constants.items()]
    for name, x in graph.tensors.items():
        host = x.detach().cpu().contiguous()
        if host.dtype == _C.bfloat16:
            raw = host.view(_C.int16).numpy().tobytes()
            weights.append(helper.make_tensor(name, TensorProto.BFLOAT16, list(host.shape), raw, raw=True))
        else:
            weights.append(numpy_helper.from_array(host.numpy(), name))

    def info(name: str, x: Tensor) -> Any:
        return helper.make_tensor_value_info(name, element_of(x.dtype), [dynamic.get(name, {}).get(i, n) for i, n in enumerate(x.shape)])

    proto = helper.make_graph(nodes, "main_graph", [info(n, x) for n, x in inputs], [info(n, x) for n, x in zip(labels, outputs)], weights)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(proto, producer_name="naru", opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))
    checker.check_model(model)
    return model


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Any = None,
    output_names: Any = None,
    opset_version: int | None = None,
    dynamic_axes: Any = None,
    dynamic_shapes: Any = None,
    training: Any = TrainingMode.EVAL,
    **options: Any,
) -> ONNXProgram:
    """Traces a call of `model` with `args` and exports it as an ONNX model, which is also written to the file `f`, if given.

    Args:
        model: a module, or a function of tensors. It is traced in evaluation mode unless `training` is set.
        args: a tensor, or a tuple of the arguments, in which a trailing dict holds keyword arguments; `kwargs` are further keyword arguments.
        input_names, output_names: names of the input and output tensors, in order.
        opset_version: 14 or later (default 18).
        dynamic_axes: {name: {dimension: its name}} (or a list of dimensions) of inputs and outputs whose sizes may vary; dynamic_shapes does this
            for inputs, as in PyTorch. The module is then traced twice, and constants that differ between the traces must be multiples of these sizes.
        verbose: ignored.

    PyTorch's other options are accepted and ignored. The module is traced once more with other values, to detect constants that depend on the
    inputs in ways that tracing cannot see; that is an error. Returns an ONNXProgram. Raises ImportError if the package onnx is not installed,
    UnsupportedOperatorError for a function that has no ONNX form here, OnnxExporterError if sizes cannot vary, ValueError for another opset. Warns
    if other values lead to other calls.

    >>> try:
    ...     naru.onnx.export(naru.nn.ReLU(), (naru.ones(2),)).model_proto.graph.node[0].op_type
    ... except ImportError:  # without the package onnx
    ...     "Relu"
    'Relu'
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("torch.onnx.export: it needs the package onnx; install it: pip install onnx") from None
    opset = _DEFAULT_OPSET if opset_version is None else opset_version
    if not _LEAST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        raise ValueError(f"torch.onnx.export: opset_version: wanted {_LEAST_OPSET} to {onnx.defs.onnx_opset_version()}, got {opset_version}")
    args = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    if args and isinstance(args[-1], dict):
        args, named = args[:-1], {**args[-1], **named}
    inputs = _input_names(model, args, named, input_names)
    dynamic = _dynamic(inputs, dynamic_axes, dynamic_shapes)
    modes = [(m, m.training) for m in model.modules()] if hasattr(model, "modules") else []
    if modes and training in (TrainingMode.EVAL, TrainingMode.TRAINING):
        model.train(training is TrainingMode.TRAINING)
    _exporting[0] = True
    try:
        from ._graph import check_values, follow_sizes

        state = get_rng_state()
        graph, outputs = _trace(model, args, named, opset, inputs)
        after = get_rng_state()
        others_args, others_named = _other_values((args, named))
        set_rng_state(state)
        check_values(graph, _trace(model, others_args, others_named, opset, _input_names(model, others_args, others_named, input_names))[0])
        if any(dynamic.get(name) for name, _ in inputs):
            more, more_named = _grown((args, named), inputs, dynamic)
            others = _input_names(model, more, more_named, input_names)
            set_rng_state(state)
            second, _ = _trace(model, more, more_named, opset, others)
            symbols = [(n, axis, x.shape[axis], y.shape[axis]) for (n, x), (_, y) in zip(inputs, others) for axis in dynamic.get(n, {})]
            follow_sizes(graph, second, symbols)
        set_rng_state(after)
    finally:
        _exporting[0] = False
        for module, mode in modes:
            module.training = mode
    program = ONNXProgram(_model_proto(graph, inputs, outputs, output_names, dynamic, opset))
    if f is not None:
        program.save(f)
    return program


__getattr__ = _missing.module_getattr(__name__)
