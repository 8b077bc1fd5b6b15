"""ONNX forms of functions: elementwise, shape, reduction and product functions. `HANDLERS` maps a name to a function (graph, result, *arguments)
that returns the name of the result's value, or a list of names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _C
from ._graph import Graph, element_of
from .errors import UnsupportedOperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
HANDLERS: dict[str, Callable[..., Any]] = {}


def handler(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function in the table."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return add


_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos",
    "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "hardswish": "HardSwish", "isnan": "IsNaN", "log": "Log", "logical_not": "Not",
    "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "__neg__": "Neg",
}  # fmt: skip
_SAME = ("clone", "contiguous", "detach", "requires_grad")
_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "true_divide": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "bitwise_and": "And", "bitwise_or": "Or", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}  # fmt: skip
_COMPARE = {"eq": "Equal", "gt": "Greater", "lt": "Less", "ge": "GreaterOrEqual", "le": "LessOrEqual"}


def _unary(kind: str) -> Callable[..., Any]:
    return lambda g, result, x, *rest, **options: g.node(kind, g.value(x, result.dtype if result.dtype != _C.bool else None))


def binary(g: Graph, kind: str, result: Tensor, a: Any, b: Any) -> str:
    """Adds a node with two operands, cast to the result's dtype."""
    return g.node(kind, g.value(a, result.dtype), g.value(b, result.dtype))


def _two(kind: str) -> Callable[..., Any]:
    def make(g: Graph, result: Tensor, a: Any, b: Any, alpha: Any = 1, rounding_mode: Any = None) -> str:
        if rounding_mode is not None:
            raise UnsupportedOperatorError(f"torch.onnx.export: div with rounding_mode={rounding_mode!r}")
        if kind in ("And", "Or", "Xor") and result.dtype != _C.bool:
            return binary(g, "Bitwise" + kind, result, a, b)
        if alpha != 1:
            b = g.node("Mul", g.value(b, result.dtype), g.constant(alpha, result.dtype))
            return g.node(kind, g.value(a, result.dtype), b)
        return binary(g, kind, result, a, b)

    return make


def _compared(kind: str, negated: bool = False) -> Callable[..., Any]:
    def make(g: Graph, result: Tensor, a: Any, b: Any) -> str:
        dtype = _C.result_type(a, b)
        found = g.node(kind, g.value(a, dtype), g.value(b, dtype))
        return g.node("Not", found) if negated else found

    return make


for _name, _kind in _UNARY.items():
    HANDLERS[_name] = _unary(_kind)
for _name, _kind in _BINARY.items():
    HANDLERS[_name] = _two(_kind)
    HANDLERS[f"__r{_name}__"] = lambda g, result, a, b, _kind=_kind: binary(g, _kind, result, b, a)
HANDLERS["rsub"] = HANDLERS["__rsub__"]
HANDLERS["__rtruediv__"] = HANDLERS["__rdiv__"]
for _name, _kind in _COMPARE.items():
    HANDLERS[_name] = _compared(_kind)
for _name, _kind in {"__and__": "And", "__or__": "Or", "__xor__": "Xor"}.items():
    HANDLERS[_name] = _two(_kind)
HANDLERS["__invert__"] = HANDLERS["bitwise_not"] = _unary("Not")
HANDLERS["ne"] = _compared("Equal", negated=True)
for _name in _SAME:
    HANDLERS[_name] = lambda g, result, x, *rest, **options: g.node("Identity", g.value(x))


@handler("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
def dropout(g: Graph, result: Tensor, x: Tensor, p: float = 0.5, training: bool = True, *rest: Any) -> str:
    if training and p:
        raise UnsupportedOperatorError("torch.onnx.export: dropout; export in evaluation mode")
    return g.node("Identity", g.value(x))


@handler("gelu", "gelu_tanh")
def gelu(g: Graph, result: Tensor, x: Tensor, approximate: str = "none") -> str:
    name, c = g.value(x), lambda v: g.constant(v, x.dtype)
    if approximate == "tanh":
        cubed = g.node("Mul", g.node("Mul", g.node("Mul", name, name), name), c(0.044715))
        inner = g.node("Tanh", g.node("Mul", g.node("Add", name, cubed), c(math.sqrt(2 / math.pi))))
    else:
        inner = g.node("Erf", g.node("Div", name, c(math.sqrt(2))))
    return g.node("Mul", g.node("Mul", name, c(0.5)), g.node("Add", inner, c(1.0)))


HANDLERS["gelu_tanh"] = lambda g, result, x: gelu(g, result, x, "tanh")


@handler("silu")
def silu(g: Graph, result: Tensor, x: Tensor) -> str:
    name = g.value(x)
    return g.node("Mul", name, g.node("Sigmoid", name))


@handler("mish")
def mish(g: Graph, result: Tensor, x: Tensor) -> str:
    name = g.value(x)
    return g.node("Mul", name, g.node("Tanh", g.node("Softplus", name)))


@handler("softplus")
def softplus(g: Graph, result: Tensor, x: Tensor, beta: float = 1, threshold: float = 20) -> str:
    scaled = g.node("Mul", g.value(x), g.constant(beta, x.dtype))
    soft = g.node("Div", g.node("Softplus", scaled), g.constant(beta, x.dtype))
    return g.node("Where", g.node("Greater", scaled, g.constant(threshold, x.dtype)), g.value(x), soft)


@handler("leaky_relu")
def leaky_relu(g: Graph, result: Tensor, x: Tensor, negative_slope: float = 0.01) -> str:
    return g.node("LeakyRelu", g.value(x), alpha=float(negative_slope))


@handler("elu")
def elu(g: Graph, result: Tensor, x: Tensor, alpha: float = 1.0) -> str:
    return g.node("Elu", g.value(x), alpha=float(alpha))


@handler("celu")
def celu(g: Graph, result: Tensor, x: Tensor, alpha: float = 1.0) -> str:
    return g.node("Celu", g.value(x), alpha=float(alpha))


@handler("selu")
def selu(g: Graph, result: Tensor, x: Tensor) -> str:
    return g.node("Selu", g.value(x), alpha=1.6732632423543772, gamma=1.0507009873554805)


@handler("hardsigmoid")
def hardsigmoid(g: Graph, result: Tensor, x: Tensor) -> str:
    return g.node("HardSigmoid", g.value(x), alpha=1 / 6, beta=0.5)


@handler("hardtanh", "clamp", "clip")
def clamp(g: Graph, result: Tensor, x: Tensor, min: Any = None, max: Any = None, **bounds: Any) -> str:
    low, high = bounds.get("min_val", min), bounds.get("max_val", max)
    return g.node("Clip", g.value(x, result.dtype), *["" if b is None else g.value(b, result.dtype) for b in (low, high)])


HANDLERS["relu6"] = lambda g, result, x: clamp(g, result, x, 0, 6)


@handler("prelu")
def prelu(g: Graph, result: Tensor, x: Tensor, weight: Tensor) -> str:
    slope = g.value(weight)
    if weight.numel() > 1 and x.dim() > 2:
        slope = g.reshape(slope, [weight.numel()] + [1] * (x.dim() - 2))
    return g.node("PRelu", g.value(x), slope)


@handler("logsigmoid", "log_sigmoid")
def logsigmoid(g: Graph, result: Tensor, x: Tensor) -> str:
    return g.node("Neg", g.node("Softplus", g.node("Neg", g.value(x))))


@handler("rsqrt")
def rsqrt(g: Graph, result: Tensor, x: Tensor) -> str:
    return g.node("Reciprocal", g.node("Sqrt", g.value(x)))


@handler("square")
def square(g: Graph, result: Tensor, x: Tensor) -> str:
    return g.node("Mul", g.value(x), g.value(x))


@handler("softmax", "log_softmax")
def softmax(g: Graph, result: Tensor, x: Tensor, dim: int, dtype: Any = None) -> str:
    return g.node("Softmax", g.value(x, result.dtype), axis=dim)


HANDLERS["log_softmax"] = lambda g, result, x, dim, dtype=None: g.node("LogSoftmax", g.value(x, result.dtype), axis=dim)


@handler("where")
def where(g: Graph, result: Tensor, condition: Tensor, a: Any, b: Any) -> str:
    return g.node("Where", g.value(condition), g.value(a, result.dtype), g.value(b, result.dtype))


@handler("masked_fill")
def masked_fill(g: Graph, result: Tensor, x: Tensor, mask: Tensor, value: Any) -> str:
    return g.node("Where", g.value(mask), g.value(value, x.dtype), g.value(x))


@handler("to", "type", "float", "double", "half", "long", "int", "bool", "type_as", "cpu", "cuda")
def to(g: Graph, result: Tensor, x: Tensor, *rest: Any, **options: Any) -> str:
    return g.node("Identity", g.value(x)) if result.dtype == x.dtype else g.node("Cast", g.value(x), to=element_of(result.dtype))


@handler("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as")
def reshape(g: Graph, result: Tensor, x: Tensor, *rest: Any, **options: Any) -> str:
    return g.reshape(g.value(x), result.shape)


@handler("expand", "expand_as", "broadcast_to")
def expand(g: Graph, result: Tensor, x: Tensor, *rest: Any, **options: Any) -> str:
    return g.node("Expand", g.value(x), g.constant(list(result.shape)))


@handler("repeat")
def repeat(g: Graph, result: Tensor, x: Tensor, *sizes: Any) -> str:
    counts = list(sizes[0]) if isinstance(sizes[0], (tuple, list)) else list(sizes)
    name = g.reshape(g.value(x), [1] * (len(counts) - x.dim()) + list(x.shape)) if len(counts) > x.dim() else g.value(x)
    return g.node("Tile", name, g.constant(counts))


def _order(x: Tensor, a: int, b: int) -> list[int]:
    order = list(range(x.dim()))
    order[a], order[b] = order[b], order[a]
    return order


@handler("transpose", "swapaxes", "swapdims")
def transpose(g: Graph, result: Tensor, x: Tensor, dim0: int, dim1: int) -> str:
    return g.node("Transpose", g.value(x), perm=_order(x, dim0, dim1)) if x.dim() else g.node("Identity", g.value(x))


@handler("t")
def t(g: Graph, result: Tensor, x: Tensor) -> str:
    return transpose(g, result, x, 0, 1) if x.dim() == 2 else g.node("Identity", g.value(x))


@handler("permute")
def permute(g: Graph, result: Tensor, x: Tensor, *dims: Any) -> str:
    order = list(dims[0]) if isinstance(dims[0], (tuple, list)) else list(dims)
    return g.node("Transpose", g.value(x), perm=[d % x.dim() for d in order])


@handler("cat", "concat", "concatenate")
def cat(g: Graph, result: Tensor, tensors: Any, dim: int = 0) -> str:
    parts = [x for x in tensors if x.dim() == result.dim()]
    return g.node("Concat", *[g.value(x, result.dtype) for x in parts], axis=dim)


@handler("stack")
def stack(g: Graph, result: Tensor, tensors: Any, dim: int = 0) -> str:
    axis = dim % result.dim()
    shape = [n if i != axis else 1 for i, n in enumerate(result.shape)]
    return g.node("Concat", *[g.reshape(g.value(x, result.dtype), shape) for x in tensors], axis=axis)


@handler("split", "chunk", "tensor_split", "split_with_sizes")
def split(g: Graph, result: Any, x: Tensor, size: Any, dim: int = 0) -> Any:
    lengths = [part.shape[dim] for part in result]
    names = g.node("Split", g.value(x), g.constant(lengths), outputs=len(lengths), axis=dim)
    return names if len(lengths) > 1 else [names]


@handler("unbind")
def unbind(g: Graph, result: Any, x: Tensor, dim: int = 0) -> Any:
    return [g.node("Gather", g.value(x), g.constant(i), axis=dim) for i in range(len(result))]


@handler("select")
def select(g: Graph, result: Tensor, x: Tensor, dim: int, index: int) -> str:
    return g.node("Gather", g.value(x), g.constant(index), axis=dim)


@handler("narrow")
def narrow(g: Graph, result: Tensor, x: Tensor, dim: int, start: int, length: int) -> str:
    return g.slice(g.value(x), start, start + length, dim)


@handler("index_select")
def index_select(g: Graph, result: Tensor, x: Tensor, dim: int, index: Tensor) -> str:
    return g.node("Gather", g.value(x), g.value(index), axis=dim)


@handler("gather")
def gather(g: Graph, result: Tensor, x: Tensor, dim: int, index: Tensor, **options: Any) -> str:
    return g.node("GatherElements", g.value(x), g.value(index), axis=dim)


@handler("__getitem__")
def getitem(g: Graph, result: Tensor, x: Tensor, index: Any) -> str:
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [p if p is Ellipsis else None for p in parts]:
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (x.dim() - sum(p is not None and p is not Ellipsis for p in parts))
    name, axis, drop = g.value(x), 0, False
    for part in parts:
        if part is None or isinstance(part, slice) and part == slice(None):
            axis += part is not None
        elif isinstance(part, slice):
            start, end, step = part.indices(x.shape[axis])
            whole = part.stop is None or part.stop >= x.shape[axis]
            name = g.slice(name, start if part.start is None or part.start >= 0 else part.start, 2**62 if whole else part.stop, axis, step)
            axis += 1
        elif isinstance(part, bool) or not isinstance(part, (int, Tensor)) or isinstance(part, Tensor) and (drop or len(parts) > 1 or part.dtype == _C.bool):
            raise UnsupportedOperatorError(f"torch.onnx.export: x[...] with {type(part).__name__} beside others, a mask or a list")
        elif isinstance(part, int):
            name = g.slice(name, part, part + 1 if part != -1 else 2**62, axis)
            axis, drop = axis + 1, True
        else:
            return g.node("Gather", name, g.value(part), axis=axis)
    return g.reshape(name, result.shape) if drop or None in parts else name


def _axes(dim: Any, x: Tensor) -> list[int] | None:
    if dim is None or dim == () or dim == []:
        return None
    return [d % x.dim() for d in (dim if isinstance(dim, (tuple, list)) else [dim])]


def _reduction(kind: str) -> Callable[..., Any]:
    def make(g: Graph, result: Any, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return g.reduce(kind, g.value(x, result.dtype), _axes(dim, x), keepdim)

    return make


for _name, _kind in {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd", "logsumexp": "ReduceLogSumExp"}.items():
    HANDLERS[_name] = _reduction(_kind)


def _extreme(kind: str, place: str, two: str) -> Callable[..., Any]:
    def make(g: Graph, result: Any, x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return binary(g, two, result, x, dim)
        if dim is None:
            return g.reduce(kind, g.value(x), None, False)
        return [g.reduce(kind, g.value(x), _axes(dim, x), keepdim), g.node(place, g.value(x), axis=dim, keepdims=int(keepdim))]

    return make


HANDLERS["max"], HANDLERS["min"] = _extreme("ReduceMax", "ArgMax", "Max"), _extreme("ReduceMin", "ArgMin", "Min")


@handler("argmax", "argmin")
def argmax(g: Graph, result: Tensor, x: Tensor, dim: Any = None, keepdim: bool = False, kind: str = "ArgMax") -> str:
    name = g.reshape(g.value(x), [-1]) if dim is None else g.value(x)
    found = g.node(kind, name, axis=0 if dim is None else dim, keepdims=int(keepdim and dim is not None))
    return found if dim is not None else g.reshape(found, result.shape)


HANDLERS["argmin"] = lambda g, result, x, dim=None, keepdim=False: argmax(g, result, x, dim, keepdim, "ArgMin")


@handler("topk")
def topk(g: Graph, result: Any, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return g.node("TopK", g.value(x), g.constant([k]), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


@handler("cumsum")
def cumsum(g: Graph, result: Tensor, x: Tensor, dim: int, dtype: Any = None) -> str:
    return g.node("CumSum", g.value(x, result.dtype), g.constant(dim))


@handler("tril", "triu")
def tril(g: Graph, result: Tensor, x: Tensor, diagonal: int = 0) -> str:
    return g.node("Trilu", g.value(x), g.constant(diagonal), upper=0)


HANDLERS["triu"] = lambda g, result, x, diagonal=0: g.node("Trilu", g.value(x), g.constant(diagonal), upper=1)


@handler("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def matmul(g: Graph, result: Tensor, a: Tensor, b: Tensor) -> str:
    return g.node("MatMul", g.value(a), g.value(b))


@handler("addmm", "baddbmm")
def addmm(g: Graph, result: Tensor, c: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> str:
    product = g.node("MatMul", g.value(a), g.value(b))
    product = product if alpha == 1 else g.node("Mul", product, g.constant(alpha, result.dtype))
    return g.node("Add", product, g.value(c) if beta == 1 else g.node("Mul", g.value(c), g.constant(beta, result.dtype)))


@handler("linear")
def linear(g: Graph, result: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> str:
    if x.dim() == 2 and bias is not None:
        return g.node("Gemm", g.value(x), g.value(weight), g.value(bias), transB=1)
    product = g.node("MatMul", g.value(x), g.node("Transpose", g.value(weight), perm=[1, 0]))
    return product if bias is None else g.node("Add", product, g.value(bias))


@handler("einsum")
def einsum(g: Graph, result: Tensor, equation: str, operands: list[Tensor]) -> str:
    return g.node("Einsum", *[g.value(x) for x in operands], equation=equation)
