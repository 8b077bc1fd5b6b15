"""ONNX forms of layers: convolution, normalization, pooling, embedding, attention, recurrent layers, padding, resizing."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from ._functions import HANDLERS, handler
from ._graph import Graph
from .errors import UnsupportedOperatorError

Tensor = _C.Tensor


def _tuple(value: Any, count: int) -> list[int]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * count if len(values) == 1 else values


def _batched(g: Graph, x: Tensor, dims: int) -> str:
    """The name of x with a batch dimension, added if it has none."""
    return g.value(x) if x.dim() == dims + 2 else g.reshape(g.value(x), [1, *x.shape])


def _unbatched(g: Graph, name: str, result: Tensor, dims: int) -> str:
    return name if result.dim() == dims + 2 else g.reshape(name, result.shape)


def _convolution(dims: int) -> Any:
    def make(g: Graph, result: Tensor, x: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> str:
        inputs = [_batched(g, x, dims), g.value(weight), *([] if bias is None else [g.value(bias)])]
        dilations = _tuple(dilation, dims)
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:])]
            pads = [n // 2 for n in totals] + [n - n // 2 for n in totals]
        else:
            pads = _tuple(0 if padding == "valid" else padding, dims) * 2
        found = g.node("Conv", *inputs, strides=_tuple(stride, dims), pads=pads, dilations=dilations, group=groups, kernel_shape=list(weight.shape[2:]))
        return _unbatched(g, found, result, dims)

    return make


def _transposed(dims: int) -> Any:
    def make(
        g: Graph, result: Tensor, x: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
        dilation: Any = 1,
    ) -> str:  # fmt: skip
        inputs = [_batched(g, x, dims), g.value(weight), *([] if bias is None else [g.value(bias)])]
        found = g.node(
            "ConvTranspose", *inputs, strides=_tuple(stride, dims), pads=_tuple(padding, dims) * 2, output_padding=_tuple(output_padding, dims),
            dilations=_tuple(dilation, dims), group=groups, kernel_shape=list(weight.shape[2:]),
        )  # fmt: skip
        return _unbatched(g, found, result, dims)

    return make


def _max_pool(dims: int, places: bool) -> Any:
    def make(g: Graph, result: Any, x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, *rest: Any) -> Any:
        kernel = _tuple(kernel_size, dims)
        strides = kernel if stride is None or stride == [] or stride == () else _tuple(stride, dims)
        first = result[0] if places else result
        found = g.node(
            "MaxPool", _batched(g, x, dims), kernel_shape=kernel, strides=strides, pads=_tuple(padding, dims) * 2, dilations=_tuple(dilation, dims),
            ceil_mode=int(ceil_mode),
        )  # fmt: skip
        found = _unbatched(g, found, first, dims)
        return [found, None] if places else found

    return make


def _average_pool(dims: int) -> Any:
    def make(
        g: Graph, result: Tensor, x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> str:  # fmt: skip
        if divisor_override is not None:
            raise UnsupportedOperatorError("torch.onnx.export: avg_pool with divisor_override")
        kernel = _tuple(kernel_size, dims)
        found = g.node(
            "AveragePool", _batched(g, x, dims), kernel_shape=kernel, strides=kernel if stride in (None, [], ()) else _tuple(stride, dims),
            pads=_tuple(padding, dims) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )  # fmt: skip
        return _unbatched(g, found, result, dims)

    return make


def _adaptive(dims: int, kind: str) -> Any:
    def make(g: Graph, result: Any, x: Tensor, output_size: Any) -> Any:
        first = result[0] if isinstance(result, (tuple, list)) else result
        sizes, given = list(first.shape[-dims:]), list(x.shape[-dims:])
        if all(n == 1 for n in sizes):
            found = g.node("Global" + kind, _batched(g, x, dims))
        elif all(n % m == 0 for n, m in zip(given, sizes)):
            steps = [n // m for n, m in zip(given, sizes)]
            found = g.node(kind, _batched(g, x, dims), kernel_shape=steps, strides=steps)
        else:
            raise UnsupportedOperatorError(f"torch.onnx.export: adaptive pooling of {given} to {sizes}, which are no divisors")
        found = _unbatched(g, found, first, dims)
        return [found, None] if first is not result else found

    return make


for _dims in (1, 2, 3):
    HANDLERS[f"conv{_dims}d"] = _convolution(_dims)
    HANDLERS[f"conv_transpose{_dims}d"] = _transposed(_dims)
    HANDLERS[f"max_pool{_dims}d"] = _max_pool(_dims, False)
    HANDLERS[f"max_pool{_dims}d_with_indices"] = _max_pool(_dims, True)
    HANDLERS[f"avg_pool{_dims}d"] = _average_pool(_dims)
    HANDLERS[f"adaptive_avg_pool{_dims}d"] = _adaptive(_dims, "AveragePool")
    HANDLERS[f"adaptive_max_pool{_dims}d"] = _adaptive(_dims, "MaxPool")
    HANDLERS[f"adaptive_max_pool{_dims}d_with_indices"] = _adaptive(_dims, "MaxPool")


def _ones(g: Graph, like: Tensor, count: int, value: float) -> str:
    return g.constant([value] * count, like.dtype)


@handler("batch_norm")
def batch_norm(
    g: Graph, result: Tensor, x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool = False, momentum: float = 0.1, eps: float = 1e-5, *rest: Any
) -> str:
    if training or mean is None:
        raise UnsupportedOperatorError("torch.onnx.export: batch_norm of the batch's own statistics; export in evaluation mode")
    count = mean.numel()
    scale = _ones(g, x, count, 1.0) if weight is None else g.value(weight)
    shift = _ones(g, x, count, 0.0) if bias is None else g.value(bias)
    return g.node("BatchNormalization", g.value(x), scale, shift, g.value(mean), g.value(var), epsilon=float(eps))


def _normalized(g: Graph, x: Tensor, axes: list[int], eps: float, centred: bool = True) -> str:
    name = g.value(x)
    if centred:
        name = g.node("Sub", name, g.reduce("ReduceMean", name, axes, True))
    power = g.reduce("ReduceMean", g.node("Mul", name, name), axes, True)
    return g.node("Div", name, g.node("Sqrt", g.node("Add", power, g.constant(eps, x.dtype))))


@handler("layer_norm")
def layer_norm(g: Graph, result: Tensor, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> str:
    if g.opset >= 17 and weight is not None:
        return g.node("LayerNormalization", g.value(x), g.value(weight), *([] if bias is None else [g.value(bias)]), axis=-len(shape), epsilon=float(eps))
    name = _normalized(g, x, list(range(-len(shape), 0)), eps)
    for kind, factor in (("Mul", weight), ("Add", bias)):
        name = name if factor is None else g.node(kind, name, g.value(factor))
    return name


@handler("rms_norm")
def rms_norm(g: Graph, result: Tensor, x: Tensor, shape: Any, weight: Any = None, eps: Any = None) -> str:
    import naru

    name = _normalized(g, x, list(range(-len(shape), 0)), naru.finfo(x.dtype).eps if eps is None else eps, centred=False)
    return name if weight is None else g.node("Mul", name, g.value(weight))


@handler("group_norm")
def group_norm(g: Graph, result: Tensor, x: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any) -> str:
    flat = g.reshape(g.value(x), [x.shape[0], groups, -1])
    found = g.node("InstanceNormalization", flat, _ones(g, x, groups, 1.0), _ones(g, x, groups, 0.0), epsilon=float(eps))
    name = g.reshape(found, x.shape)
    for kind, factor in (("Mul", weight), ("Add", bias)):
        name = name if factor is None else g.node(kind, name, g.reshape(g.value(factor), [factor.numel()] + [1] * (x.dim() - 2)))
    return name


@handler("instance_norm")
def instance_norm(
    g: Graph, result: Tensor, x: Tensor, weight: Any = None, bias: Any = None, mean: Any = None, var: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5, *rest: Any,
) -> str:  # fmt: skip
    if not use_input_stats:
        return batch_norm(g, result, x, weight, bias, mean, var, False, momentum, eps)
    return group_norm(g, result, x, x.shape[1], weight, bias, eps)


@handler("_embedding", "embedding")
def embedding(g: Graph, result: Tensor, index: Tensor, weight: Tensor, *rest: Any, **options: Any) -> str:
    return g.node("Gather", g.value(weight), g.value(index), axis=0)


@handler("_pad")
def pad(g: Graph, result: Tensor, x: Tensor, sizes: Any, mode: str = "constant", value: Any = None) -> str:
    if mode not in ("constant", "reflect", "replicate"):
        raise UnsupportedOperatorError(f"torch.onnx.export: pad with mode={mode!r}")
    before, after = [0] * x.dim(), [0] * x.dim()
    for i in range(len(sizes) // 2):
        before[-1 - i], after[-1 - i] = sizes[2 * i], sizes[2 * i + 1]
    fill = [g.constant(value or 0, x.dtype)] if mode == "constant" else []
    return g.node("Pad", g.value(x), g.constant(before + after), *fill, mode={"replicate": "edge"}.get(mode, mode))


@handler("_interpolate")
def interpolate(g: Graph, result: Tensor, x: Tensor, sizes: Any, mode: str, corners: bool, scales: Any = None, antialias: bool = False) -> str:
    kinds = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear"}
    if mode not in kinds or antialias:
        raise UnsupportedOperatorError(f"torch.onnx.export: interpolate with mode={mode!r}" + ", antialias=True" * antialias)
    where = "asymmetric" if mode == "nearest" else "align_corners" if corners else "half_pixel"
    rounding = "floor" if mode == "nearest" else None
    if scales is not None:
        factors = g.constant([1.0, 1.0, *scales.tolist()], _C.float32)
        return g.node("Resize", g.value(x), "", factors, mode=kinds[mode], coordinate_transformation_mode=where, nearest_mode=rounding)
    return g.node("Resize", g.value(x), "", "", g.constant(list(result.shape)), mode=kinds[mode], coordinate_transformation_mode=where, nearest_mode=rounding)


@handler("pixel_shuffle")
def pixel_shuffle(g: Graph, result: Tensor, x: Tensor, factor: int) -> str:
    return g.node("DepthToSpace", g.value(x), blocksize=factor, mode="CRD")


@handler("_scaled_dot_product_attention")
def attention(
    g: Graph, result: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, dropout_p: float = 0.0, causal: bool = False, scale: Any = None, gqa: bool = False
) -> str:
    if dropout_p:
        raise UnsupportedOperatorError("torch.onnx.export: attention with dropout; export in evaluation mode")
    key, value = g.value(k), g.value(v)
    if gqa and k.shape[-3] != q.shape[-3]:
        times = q.shape[-3] // k.shape[-3]
        grown = []
        for name, x in ((key, k), (value, v)):
            repeated = g.node("Expand", g.reshape(name, [*x.shape[:-2], 1, *x.shape[-2:]]), g.constant([*x.shape[:-2], times, *x.shape[-2:]]))
            grown.append(g.reshape(repeated, [*x.shape[:-3], q.shape[-3], *x.shape[-2:]]))
        key, value = grown
    order = [*range(q.dim() - 2), q.dim() - 1, q.dim() - 2]
    factor = g.constant(1 / math.sqrt(q.shape[-1]) if scale is None else scale, q.dtype)
    scores = g.node("MatMul", g.node("Mul", g.value(q), factor), g.node("Transpose", key, perm=order))
    if causal:
        ones = g.node("ConstantOfShape", g.constant([q.shape[-2], k.shape[-2]]), value=1.0)
        lower = g.node("Cast", g.node("Trilu", ones, upper=0), to=9)
        scores = g.node("Where", lower, scores, g.constant(float("-inf"), q.dtype))
    elif mask is not None and mask.dtype == _C.bool:
        scores = g.node("Where", g.value(mask), scores, g.constant(float("-inf"), q.dtype))
    elif mask is not None:
        scores = g.node("Add", scores, g.value(mask, q.dtype))
    return g.node("MatMul", g.node("Softmax", scores, axis=-1), value)


@handler("_multi_head_attention")
def multi_head_attention(
    g: Graph, result: Any, query: Tensor, key: Tensor, value: Tensor, tensors: tuple, embed: int, heads: int, add_zero: bool, p: float, training: bool,
    need_weights: bool, separate: bool, average: bool, causal: bool,
) -> Any:  # fmt: skip
    weight, bias, bias_k, bias_v, out_weight, out_bias, padding, mask, wq, wk, wv, static_k, static_v = tensors
    if query.dim() != 3 or bias_k is not None or add_zero or static_k is not None or (p and training):
        raise UnsupportedOperatorError("torch.onnx.export: attention of several heads without a batch, with bias_k, zeros, static keys or dropout")
    parts = []
    for i, (x, w) in enumerate(((query, wq), (key, wk), (value, wv))):
        matrix = g.value(w) if separate else g.slice(g.value(weight), i * embed, (i + 1) * embed, 0)
        name = g.node("MatMul", g.value(x), g.node("Transpose", matrix, perm=[1, 0]))
        if bias is not None:
            name = g.node("Add", name, g.slice(g.value(bias), i * embed, (i + 1) * embed, 0))
        split = g.reshape(name, [x.shape[0], x.shape[1], heads, embed // heads])
        parts.append(g.node("Transpose", split, perm=[1, 2, 3, 0] if i == 1 else [1, 2, 0, 3]))  # (N, heads, L, E); the keys are transposed
    dtype = query.dtype
    scores = g.node("Mul", g.node("MatMul", parts[0], parts[1]), g.constant(1 / math.sqrt(embed // heads), dtype))
    for given, shape in ((mask, None), (padding, [key.shape[1], 1, 1, key.shape[0]])):
        if given is None:
            continue
        name = g.value(given)
        if shape is not None:
            name = g.reshape(name, shape)
        elif given.dim() == 3:
            name = g.reshape(name, [query.shape[1], heads, query.shape[0], key.shape[0]])
        if given.dtype == _C.bool:
            scores = g.node("Where", name, g.constant(float("-inf"), dtype), scores)
        else:
            scores = g.node("Add", scores, name)
    weights = g.node("Softmax", scores, axis=-1)
    joined = g.reshape(g.node("Transpose", g.node("MatMul", weights, parts[2]), perm=[2, 0, 1, 3]), [query.shape[0], query.shape[1], embed])
    out = g.node("MatMul", joined, g.node("Transpose", g.value(out_weight), perm=[1, 0]))
    out = out if out_bias is None else g.node("Add", out, g.value(out_bias))
    if result[1] is None:
        return [out, None]
    return [out, g.reduce("ReduceMean", weights, [1], False) if average else weights]


# For each of ONNX's gates, in its order, the index of PyTorch's gate.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _recurrent(kind: str, activation: str | None = None) -> Any:
    def reordered(g: Graph, tensor: Tensor, hidden: int) -> Tensor:
        return _C.cat([tensor.detach()[i * hidden : (i + 1) * hidden] for i in _GATES[kind]], 0)

    def make(
        g: Graph, result: Any, x: Tensor, sizes: Any, state: Any, params: Any, biases: bool, layers: int, dropout: float, training: bool, both: bool, first: bool
    ) -> Any:
        if sizes is not None or x.dim() != 3 or len(params) != layers * (1 + both) * (4 if biases else 2):
            raise UnsupportedOperatorError(f"torch.onnx.export: {kind} of packed sequences, without a batch, or with projections")
        ways, hidden = 1 + both, params[1].shape[1]
        name = g.node("Transpose", g.value(x), perm=[1, 0, 2]) if first else g.value(x)
        states = [s for s in (state if isinstance(state, (tuple, list)) else [state]) if s is not None]
        ends: list[list[str]] = [[] for _ in range(2 if kind == "LSTM" else 1)]
        each = 4 if biases else 2
        for layer in range(layers):
            group = [params[(layer * ways + way) * each : (layer * ways + way + 1) * each] for way in range(ways)]
            stacked = [_C.stack([reordered(g, ps[i], hidden) for ps in group]) for i in range(2)]
            inputs = [name, *(g.value(t) for t in stacked)]
            inputs.append(g.value(_C.stack([_C.cat([reordered(g, ps[2], hidden), reordered(g, ps[3], hidden)]) for ps in group])) if biases else "")
            inputs += ["", *(g.slice(g.value(s), layer * ways, (layer + 1) * ways, 0) for s in states)]
            options: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
            if kind == "GRU":
                options["linear_before_reset"] = 1
            if activation is not None:
                options["activations"] = [activation] * ways
            out, *last = g.node(kind, *inputs, outputs=1 + len(ends), **options)
            for end, value in zip(ends, last):
                end.append(value)
            # (L, directions, N, H) to (L, N, directions * H)
            batch = x.shape[0 if first else 1]
            length = x.shape[1 if first else 0]
            name = g.reshape(g.node("Transpose", out, perm=[0, 2, 1, 3]), [length, batch, ways * hidden])
        output = g.node("Transpose", name, perm=[1, 0, 2]) if first else name
        return [output, *(g.node("Concat", *end, axis=0) if len(end) > 1 else end[0] for end in ends)]

    return make


HANDLERS["_lstm"] = _recurrent("LSTM")
HANDLERS["_gru"] = _recurrent("GRU")
HANDLERS["_rnn_tanh"] = _recurrent("RNN", "Tanh")
HANDLERS["_rnn_relu"] = _recurrent("RNN", "Relu")
