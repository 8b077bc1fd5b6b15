"""Rules of operators on distributed tensors: which dimensions of operands and results belong together, and along which of them shards stay apart.

A rule takes an operator's arguments, and returns a `Plan` or the result. Operators that are not here are done where all operands are replicated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ...functional import broadcast_shapes
from ...overrides import DisableTorchFunctionSubclass
from ._dispatch import INPLACE, Plan, _chosen, _each, carry_out, rule, substituted
from ._dtensor import DTensor, local_of, wrapped
from ._loss import is_loss_parallel, sharded_cross_entropy
from ._layout import Spec, _averaged, dual, local_part, move
from .placement_types import Partial, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor


def _calls(func: Any, args: tuple, kwargs: dict[str, Any]) -> Callable[[list[Tensor], list[Spec]], Any]:
    """Calls the operator with its tensors replaced by local ones, in their order."""

    def run(locals_: list[Tensor], specs: list[Spec]) -> Any:
        left = iter(locals_)
        return func(*substituted(args, lambda t: next(left)), **substituted(kwargs, lambda t: next(left)))

    return run


def _dims(dim: Any, n: int, name: str = "dim") -> list[int]:
    """The dimensions, counted from 0; None: all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(n))
    made = []
    for d in dim if isinstance(dim, (tuple, list)) else [dim]:
        if not -max(n, 1) <= d < max(n, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-max(n, 1)}, {max(n, 1) - 1}], but got {d})")
        made.append(d % max(n, 1))
    return made


# --- element by element

_LINEAR = frozenset("neg negative positive clone contiguous detach to float half bfloat16 double cpu cuda alias zero".split())


@rule(
    """abs absolute acos acosh angle asin asinh atan atanh atan2 bitwise_and bitwise_or bitwise_xor bitwise_not ceil celu clamp clamp_min clamp_max clip cos
    cosh digamma elu eq erf erfc erfinv exp exp2 expm1 fill floor floor_divide fmod frac ge gelu glu_ gt hardshrink hardsigmoid hardswish hardtanh heaviside
    hypot isclose isfinite isinf isnan ldexp le leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit logsigmoid lt masked_fill maximum minimum fmax fmin mish mul multiply nan_to_num ne neg negative positive pow prelu_ reciprocal relu
    relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus softsign softshrink sqrt square sub subtract tan tanh
    tanhshrink threshold true_divide trunc where xlogy add div divide addcmul addcdiv copy zero clone contiguous detach to float half bfloat16 double cpu
    cuda int long bool short byte char type_as alias __radd__ __rsub__ __rmul__ __rtruediv__ __rpow__ __rmod__ __rfloordiv__ __floordiv__ __and__ __or__
    __xor__ __rand__ __ror__ __rxor__ __invert__ _gelu _silu _softplus _leaky_relu _elu _hardtanh isreal isposinf isneginf deg2rad rad2deg real conj conj_physical
    log_sigmoid _log_sigmoid i0 erfcx special_expit nextafter copysign gcd lcm float_power"""
)
def _pointwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    tensors = list(_each((args, kwargs)))
    name = getattr(func, "__name__", "").rstrip("_") if not getattr(func, "__name__", "").endswith("__") else func.__name__
    name = INPLACE.get(func.__name__, name)
    if name == "where" and len(tensors) == 1 and len(args) == 1:
        raise NotImplementedError("where: with a condition alone is not there for DTensors; use x.full_tensor()")
    spec = tensors[0]._spec
    if all(t._spec == spec for t in tensors) and not any(isinstance(p, Partial) for p in spec.placements):
        return wrapped(func(*substituted(args, local_of), **substituted(kwargs, local_of)), spec)  # what the plan would come to
    shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
    n = len(shape)
    labels = [tuple(None if s != shape[n - t.dim() + i] else n - t.dim() + i for i, s in enumerate(t.shape)) for t in tensors]
    linear: tuple[int, ...] = ()
    if name in _LINEAR:
        linear = (0,)
        wanted = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, _C.dtype)]
        if name in ("to", "cuda", "cpu") and any(not d.is_floating_point for d in wanted):
            linear = ()
    elif name in ("mul", "multiply", "__rmul__"):
        linear = tuple(range(len(tensors)))
    elif name in ("div", "divide", "true_divide") and not kwargs.get("rounding_mode") and isinstance(args[0], Tensor):
        linear = (0,)
    jointly = name in ("add", "sub", "subtract", "copy") and len(tensors) == 2
    return Plan(tensors, labels, [tuple(range(n))], _calls(func, args, kwargs), linear=linear, jointly=jointly, sizes=dict(enumerate(shape)))


@rule("zeros_like ones_like empty_like full_like rand_like randn_like randint_like")
def _like(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    spec = x._spec._replace(placements=dual(x.placements))
    if name.startswith("rand") and any(isinstance(p, Shard) for p in spec.placements):
        whole = func(_C.empty(x.shape, dtype=x.dtype, device=x.device), *args, **kwargs)
        return wrapped(move(whole, Spec(spec.mesh, (Replicate(),) * spec.mesh.ndim, spec.shape), spec.placements), spec)
    return wrapped(func(local_of(x).detach(), *args, **kwargs), spec)


@rule("new_zeros new_ones new_empty new_full new_tensor")
def _new(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    made = func(local_of(x).detach(), *args, **kwargs)
    return wrapped(made, Spec(x.device_mesh, (Replicate(),) * x.device_mesh.ndim, tuple(made.shape)))


@rule("uniform_ normal_ _trunc_normal_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_ random_")
def _drawn(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    """Each rank draws the whole tensor's numbers and takes its part, so that they do not depend on the layout."""
    whole = func(_C.empty(x.shape, dtype=x.dtype, device=x.device), *args, **kwargs)
    spec = Spec(x.device_mesh, (Replicate(),) * x.device_mesh.ndim, tuple(x.shape))
    local_of(x).copy_(move(whole, spec, x.placements))
    return x


@rule("dropout _dropout native_dropout alpha_dropout bernoulli")
def _dropped(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    if all(isinstance(p, Replicate) for p in x.placements):
        return wrapped(func(local_of(x), *args, **kwargs), x._spec)
    if func.__name__ not in ("dropout", "_dropout"):
        raise NotImplementedError(f"{func.__name__}: of shards is not there; redistribute to Replicate, or use dropout")
    # The whole tensor's factors are drawn on each rank, so that they do not depend on the layout.
    factors = func(_C.ones(x.shape, dtype=x.dtype, device=x.device), *args, **kwargs)
    spec = Spec(x.device_mesh, (Replicate(),) * x.device_mesh.ndim, tuple(x.shape))
    return x * wrapped(move(factors, spec, dual(x.placements)), x._spec._replace(placements=dual(x.placements)))


# --- along some dimensions


def _along(func: Any, args: tuple, kwargs: dict[str, Any], x: DTensor, dims: Sequence[int], outs: Sequence[tuple] | None = None, **more: Any) -> Plan:
    """An operator that needs whole lines along `dims`, and treats all others apart."""
    free = {i for i in range(x.dim()) if i not in dims}
    made = [tuple(range(x.dim()))] if outs is None else outs
    return Plan([x], [tuple(range(x.dim()))], made, _calls(func, (x, *args), kwargs), free=free, **more)


@rule("softmax log_softmax softmin _softmax _log_softmax cumsum cumprod logcumsumexp flip roll normalize _normalize renorm")
def _lines(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    dim = kwargs.get("dim", kwargs.get("dims"))
    if func.__name__ == "roll":
        dim = kwargs.get("dims", args[1] if len(args) > 1 else None)
    elif func.__name__ in ("_normalize", "normalize", "renorm"):
        dim = None
    elif dim is None and args:
        dim = args if func.__name__ == "flip" and isinstance(args[0], int) else args[0]
    return _along(func, args, kwargs, x, _dims(dim, x.dim()))


@rule("tril triu")
def _triangle(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    return _along(func, args, kwargs, x, [x.dim() - 2, x.dim() - 1])


@rule("sort argsort topk cummax cummin")
def _ordered(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    rest = args[1:] if name == "topk" else args
    dim = _dims(kwargs.get("dim", rest[0] if rest and type(rest[0]) is int else -1), x.dim())
    out: tuple = tuple(range(x.dim()))
    sizes = {}
    if name == "topk":
        sizes["k"] = kwargs.get("k", args[0] if args else 1)
        out = tuple("k" if i in dim else i for i in out)
    return _along(func, args, kwargs, x, dim, [out] if name == "argsort" else [out, out], sizes=sizes)


_SUMS = {"sum": "sum", "mean": "avg", "amax": "max", "amin": "min", "max": "max", "min": "min"}


@rule("sum mean amax amin max min prod any all argmax argmin var std logsumexp nansum nanmean count_nonzero median std_mean var_mean")
def _reduced(func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    if any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
        return _pointwise(func, x, *args, **kwargs)
    given = kwargs.get("dim", kwargs.get("axis", args[0] if args and isinstance(args[0], (int, tuple, list)) and type(args[0]) is not bool else None))
    dims = _dims(given, x.dim())
    place = 2 if name in ("var", "std", "var_mean", "std_mean") else 1
    keep = kwargs.get("keepdim", args[place] if len(args) > place and type(args[place]) is bool else False)
    out = tuple(None if i in dims else i for i in range(x.dim()) if keep or i not in dims)
    two = name in ("std_mean", "var_mean") or (name in ("max", "min", "median") and given is not None)
    sums = {}
    if name in _SUMS and not two and (name in ("sum", "mean") or not (x.requires_grad and _C.is_grad_enabled())):
        sums = {i: _SUMS[name] for i in dims}
    linear = (0,) if name in ("sum", "mean") and x.dtype.is_floating_point else ()
    return _along(func, args, kwargs, x, dims, [out, out] if two else [out], sums=sums, linear=linear)


@rule("norm linalg_vector_norm _vector_norm")
def _norm(func: Any, x: DTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, **kwargs: Any) -> Any:
    p = kwargs.pop("ord", p)
    order = 2.0 if p in (None, "fro") else p
    dims = _dims(dim, x.dim())
    if isinstance(order, str) or not any(isinstance(q, Partial) or (isinstance(q, Shard) and q.dim in dims) for q in x.placements):
        return _along(func, (p, dim, keepdim), {} if dtype is None else {"dtype": dtype}, x, dims,
                      [tuple(None if i in dims else i for i in range(x.dim()) if keepdim or i not in dims)])  # fmt: skip
    if any(isinstance(q, Partial) for q in x.placements):
        x = x.redistribute(placements=dual(x.placements))
    x = x if dtype is None else x.to(dtype)
    if order in (float("inf"), float("-inf")):
        made = (x.abs().amax if order > 0 else x.abs().amin)(dims, keepdim)
        return made.redistribute(placements=dual(made.placements))
    if order == 0:
        return (x != 0).to(x.dtype).sum(dims, keepdim)
    powers = x.square() if order == 2 else x.abs() if order == 1 else x.abs().pow(order)
    made = powers.sum(dims, keepdim)
    made = made.redistribute(placements=dual(made.placements))
    return made if order == 1 else made.sqrt() if order == 2 else made.pow(1.0 / order)


@rule("equal allclose")
def _compared(func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> bool:
    return func(x.full_tensor(), y.full_tensor(), *args, **kwargs)


# --- products


def _labelled(func: Any, args: tuple, kwargs: dict[str, Any], labels: Sequence[tuple], out: tuple) -> Plan:
    """A product: sums over the labels that the result lacks."""
    tensors = list(_each((args, kwargs)))
    sums = {label: "sum" for given in labels for label in given if label not in out and label is not None}
    return Plan(tensors, labels, [out], _calls(func, args, kwargs), sums=sums, linear=tuple(range(len(tensors))))


@rule("mm matmul bmm mv dot inner_ __matmul__ __rmatmul__")
def _matmul(func: Any, x: DTensor, y: DTensor) -> Any:
    if func.__name__ == "__rmatmul__":
        return y.matmul(x)
    n, m = x.dim(), y.dim()
    batch = max(n, m) - 2
    a: list[Any] = ["k"] if n == 1 else [batch - (n - 2) + i for i in range(n - 2)] + ["i", "k"]
    b: list[Any] = ["k"] if m == 1 else [batch - (m - 2) + i for i in range(m - 2)] + ["k", "j"]
    for mine, t, other, labels in ((a, x, y, b), (b, y, x, a)):
        for d, label in enumerate(mine):
            if isinstance(label, int) and t.shape[d] == 1 and label in labels and other.shape[labels.index(label)] != 1:
                mine[d] = None
    out = [*range(batch), *(["i"] if n > 1 else []), *(["j"] if m > 1 else [])]
    return _labelled(func, (x, y), {}, [tuple(a), tuple(b)], tuple(out))


@rule("outer ger")
def _outer(func: Any, x: DTensor, y: DTensor) -> Any:
    return _labelled(func, (x, y), {}, [("i",), ("j",)], ("i", "j"))


@rule("linear")
def _linear(func: Any, x: DTensor, weight: DTensor, bias: DTensor | None = None) -> Any:
    lead = tuple(range(x.dim() - 1))
    plan = _labelled(func, (x, weight), {}, [(*lead, "k"), ("o", "k")], (*lead, "o"))
    if bias is None:
        return plan
    if bias.dim() != 1:
        func(*(_meta_of(t) for t in (x, weight, bias)))  # raises
    ways = _chosen(plan, x.device_mesh, None)
    if any(way[0] == "partial" or way[:2] == ("shard", "k") for way in ways):
        return func(x, weight) + bias
    return Plan([x, weight, bias], [(*lead, "k"), ("o", "k"), ("o",)], [(*lead, "o")], _calls(func, (x, weight, bias), {}))


@rule("addmm baddbmm addmv addmm_ baddbmm_ addmv_")
def _added(func: Any, x: DTensor, a: DTensor, b: DTensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    func(*(_meta_of(t) for t in (x, a, b)))  # raises where the shapes do not fit
    product = a.matmul(b)
    product = product if alpha == 1 else product * alpha
    made = product + (x if beta == 1 else x * beta) if beta != 0 else product
    if func.__name__.endswith("_"):
        return x.copy_(made)
    return made


@rule("_einsum")
def _einsum(func: Any, equation: str, *operands: Any) -> Any:
    given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    terms, arrow, out = equation.replace(" ", "").partition("->")
    labels = [tuple(term) for term in terms.split(",")]
    if not arrow:
        letters = [c for term in labels for c in term]
        out = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if "." in equation or any(len(set(term)) != len(term) for term in labels) or any(len(term) != t.dim() for term, t in zip(labels, given)):
        raise NotImplementedError(f"einsum: {equation!r} is not there for DTensors: name each dimension of an operand by a letter of its own")
    return _labelled(func, (equation, given), {}, labels, tuple(out))


# --- networks


@rule("layer_norm _layer_norm rms_norm _rms_norm")
def _normed(func: Any, x: DTensor, shape: Any, *args: Any, **kwargs: Any) -> Any:
    n = x.dim()
    lines = tuple(range(n - (1 if isinstance(shape, int) else len(shape)), n))
    tensors = list(_each((x, args, kwargs)))
    labels = [tuple(range(n)), *(lines for _ in tensors[1:])]
    return Plan(tensors, labels, [tuple(range(n))], _calls(func, (x, shape, *args), kwargs), free=set(range(n)) - set(lines))


@rule("group_norm conv1d conv2d conv3d max_pool2d _max_pool2d avg_pool2d adaptive_avg_pool2d")
def _samples(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    """Operators of images: samples are treated apart, and all else is whole."""
    tensors = list(_each((x, args, kwargs)))
    labels = [("n", *(("x", i) for i in range(1, x.dim()))), *(tuple((j, i) for i in range(t.dim())) for j, t in enumerate(tensors[1:]))]
    meta = func(*substituted((x, *args), _meta_of), **substituted(kwargs, _meta_of))
    out = ("n", *(("y", i) for i in range(1, meta.dim())))
    return Plan(tensors, labels, [out], _calls(func, (x, *args), kwargs), free={"n"}, sizes=dict(zip(out[1:], meta.shape[1:])))


def _meta_of(t: DTensor) -> Tensor:
    return _C.empty(t.shape, dtype=t.dtype, device="meta")


@rule("scaled_dot_product_attention _scaled_dot_product_attention")
def _attention(func: Any, q: DTensor, k: DTensor, v: DTensor, attn_mask: Any = None, dropout_p: float = 0.0, *args: Any, **kwargs: Any) -> Any:
    if dropout_p and any(isinstance(p, Shard) for p in q.placements):
        raise NotImplementedError("scaled_dot_product_attention: dropout of shards is not there; dropout_p=0, or compute with to_local()")
    lead = tuple(range(q.dim() - 2))
    labels = [(*lead, "l", "e"), (*lead, "s", "e"), (*lead, "s", "v")]
    tensors = [q, k, v]
    if attn_mask is not None:
        tensors.append(attn_mask)
        whole = (*lead, "l", "s")[-attn_mask.dim() :]
        labels.append(tuple(None if n == 1 else label for n, label in zip(attn_mask.shape, whole)))
    free = set(lead)
    heads = lead[-1] if lead else None
    count = q.device_mesh.size()
    if lead and k.shape[-3] != q.shape[-3] and (k.shape[-3] % count or q.shape[-3] % count):
        free.discard(heads)  # groups of heads would not be with their keys
    sizes = {} if heads is None else {heads: q.shape[-3]}
    return Plan(tensors, labels, [(*lead, "l", "v")], _calls(func, (q, k, v, attn_mask, dropout_p, *args), kwargs), free=free, sizes=sizes)


@rule("_embedding")
def _embedded(func: Any, ids: DTensor, weight: DTensor, padding_idx: Any, max_norm: Any, *rest: Any) -> Any:
    mesh = weight.device_mesh
    split = [m for m, p in enumerate(weight.placements) if p == Shard(0)]
    if max_norm is not None:
        raise NotImplementedError("embedding: max_norm is not there for DTensors; embed with to_local()")
    lead = tuple(range(ids.dim()))
    args = (ids, weight, padding_idx, None, *rest)
    if not split or any(not isinstance(ids.placements[m], Replicate) for m in split):
        return Plan([ids, weight], [lead, ("v", "d")], [(*lead, "d")], _calls(func, args, {}))
    # Each rank looks up the rows that it has, and the others are zero.
    first, rows = local_part(weight._spec)[1][0], local_part(weight._spec)[0][0]

    def run(locals_: list[Tensor], specs: list[Spec]) -> Any:
        mine = (locals_[0] >= first) & (locals_[0] < first + rows)
        local = (locals_[0] - first) * mine
        pad = padding_idx - first if padding_idx is not None and first <= padding_idx < first + rows else None
        if rows == 0:
            return (locals_[1].sum() * 0).expand(specs[0].shape)
        return func(local, locals_[1], pad, None, *rest) * mine.unsqueeze(-1).to(locals_[1].dtype)

    return Plan([ids, weight], [lead, ("v", "d")], [(*lead, "d")], run, free={*lead, "d"}, sums={"v": "sum"})


def _loss_of(made: DTensor, reduction: str) -> DTensor:
    return made if reduction == "none" else made.sum() if reduction == "sum" else made.mean()


@rule("cross_entropy nll_loss")
def _classes(
    func: Any, x: DTensor, target: DTensor, weight: Any = None, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float | None = None
) -> Any:
    if weight is not None:
        raise NotImplementedError(f"{func.__name__}: weight is not there for DTensors; compute with full_tensor()")
    more = {} if label_smoothing is None else {"label_smoothing": label_smoothing}
    if x.dim() == 1 or x.dim() == target.dim():
        return _classes_of_probabilities(func, x, target, reduction, more)
    out = (0, *range(2, x.dim()))
    labels = [tuple(range(x.dim())), out]

    def plan(result: tuple, how: str) -> Plan:
        def run(locals_: list[Tensor], specs: list[Spec]) -> Any:
            return func(*locals_, reduction=how, ignore_index=ignore_index, **more)

        return Plan([x, target], labels, [result], run, free=set(result))

    each = plan(out, "none")
    if func.__name__ == "cross_entropy" and is_loss_parallel() and not label_smoothing and x.dim() == 2:
        made = sharded_cross_entropy(x, target, ignore_index)
    elif all(way == ("whole",) for way in _chosen(each, x.device_mesh, None)):
        return plan(out if reduction == "none" else (), reduction)
    else:
        made = carry_out(each)
    if reduction == "none":
        return made
    total = made.sum()
    total = total.redistribute(placements=dual(total.placements))
    if reduction == "sum":
        return total
    count = (target != ignore_index).sum()
    return total / count.redistribute(placements=dual(count.placements)).to(made.dtype)


def _classes_of_probabilities(func: Any, x: DTensor, target: DTensor, reduction: str, more: dict[str, Any]) -> Any:
    labels = tuple(range(x.dim()))
    out = labels if x.dim() == 1 else (0, *labels[2:])

    def run(locals_: list[Tensor], specs: list[Spec]) -> Any:
        return func(*locals_, reduction="none", **more)

    if x.dim() == 1:
        labels, out = ("c",), ()
    each = carry_out(Plan([x, target], [labels, labels if target.dim() == x.dim() else out], [out], run, free=set(out)))
    return _loss_of(each, reduction)


@rule("mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss kl_div poisson_nll_loss")
def _compared_loss(func: Any, *args: Any, **kwargs: Any) -> Any:
    found = [i for i, a in enumerate(args) if isinstance(a, str)]
    reduction = kwargs.get("reduction", args[found[0]] if found else "mean")
    if reduction not in ("none", "sum", "mean"):
        raise NotImplementedError(f"{func.__name__}: reduction={reduction!r} is not there for DTensors; use 'none', and sum")
    if found:
        args = (*args[: found[0]], "none", *args[found[0] + 1 :])
    else:
        kwargs = {**kwargs, "reduction": "none"}
    made = _pointwise(func, *args, **kwargs)
    return _loss_of(carry_out(made) if isinstance(made, Plan) else made, reduction)


@rule("_grad")
def _gradients(func: Any, outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    given = list(grad_outputs) if grad_outputs else [None] * len(outputs)
    for i, (made, grad) in enumerate(zip(outputs, given)):
        if isinstance(made, DTensor):
            local = _C.ones_like(local_of(made).detach()) if grad is None else grad
            if isinstance(local, DTensor):
                local = local_of(local.redistribute(placements=dual(made.placements)))
            given[i] = local / _averaged(made.placements, made.device_mesh)
    with DisableTorchFunctionSubclass():
        found = func(outputs, inputs, tuple(given), *args, **kwargs)
    return tuple(
        wrapped(g, t._spec._replace(placements=dual(t.placements))) if isinstance(t, DTensor) and g is not None else g for g, t in zip(found, inputs)
    )


@rule("_muon_step _adafactor_step _lbfgs_direction _strong_wolfe _sparse_adam_step")
def _step(func: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(
        f"{func.__name__.strip('_').removesuffix('_step')}: this optimizer needs whole matrices, not shards; use one that updates each element alone (AdamW, SGD ...)"
    )
