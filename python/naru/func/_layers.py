"""Batching rules for products, convolutions, layers, losses and indexing."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import broadcast_shape, mapped
from ._batched import Level, WrittenWithoutBatchError, drawn, has_batch, opened, random_error, rank, rule, with_batch, wrapped
from ._rules import _moved, _natural

Tensor = _C.Tensor


# --- products


def _matrices(x: Any, level: Level, column: bool, batch_rank: int) -> Any:
    """`x` with the vmap batch, then `batch_rank` batch dimensions, then two matrix dimensions; a vector becomes a row or a column."""
    of_rank = rank(x, level)
    value = opened(x, level)
    if of_rank == 1:
        value = value.unsqueeze(-1 if column else -2)
        of_rank = 2
    if has_batch(x, level):
        missing = batch_rank - (of_rank - 2)
        value = value.reshape((value.shape[0],) + (1,) * missing + tuple(value.shape)[1:]) if missing else value
    return value


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}


@rule("matmul", "mm", "bmm", "mv", "dot", "inner", "vdot", "__matmul__", "__rmatmul__", "linalg_matmul")
def _matmul(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    a, b = args[:2]
    if func.__name__ == "__rmatmul__":
        a, b = b, a
    a_rank, b_rank = rank(a, level), rank(b, level)
    if func.__name__ == "inner":
        return a * b if 0 in (a_rank, b_rank) else _C.tensordot(a, b, ([-1], [-1])) if max(a_rank, b_rank) > 2 else _C.matmul(a, b.transpose(-2, -1) if b_rank > 1 else b)
    wanted = _RANKS.get(func.__name__)
    if wanted is not None and (a_rank, b_rank) != wanted:
        raise RuntimeError(f"{func.__name__}(): expected tensors of {wanted[0]} and {wanted[1]} dimensions beside the batch, but got {a_rank} and {b_rank}")
    if a_rank == 0 or b_rank == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a_rank}D and {b_rank}D")
    if a_rank == 1 and b_rank == 1:
        return (a.conj() * b if func.__name__ == "vdot" else a * b).sum(-1)
    batch_rank = max(a_rank - 2, b_rank - 2, 0)
    product = _C.matmul(_matrices(a, level, False, batch_rank), _matrices(b, level, True, batch_rank))
    if a_rank == 1:
        product = product.squeeze(-2)
    elif b_rank == 1:
        product = product.squeeze(-1)
    return wrapped(product, level)


@rule("linear")
def _linear(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, weight = args[:2]
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    if not has_batch(weight, level) and not has_batch(bias, level):
        return wrapped(func(x.value, weight, bias), level)
    out = _C.matmul(x, weight.transpose(-2, -1)) if rank(weight, level) == 2 else _C.matmul(x, weight)
    return out if bias is None else out + bias


@rule("addmm", "addmv", "addbmm", "baddbmm")
def _addmm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    base, a, b = args[:3]
    product = _C.matmul(a, b)
    if func.__name__ == "addbmm":
        product = product.sum(0)
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    if not (product.is_floating_point() or product.is_complex()):
        alpha, beta = int(alpha), int(beta)
    scaled = product if alpha == 1 else product * alpha
    if not isinstance(beta, Tensor) and beta == 0:  # base is ignored, even if it is NaN
        return scaled.expand(broadcast_shape(base.shape, scaled.shape))
    return (base if beta == 1 else base * beta) + scaled


@rule("outer", "ger")
def _outer(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return args[0].unsqueeze(-1) * args[1].unsqueeze(-2)


@rule("einsum", "tensordot")
def _einsum(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if func.__name__ != "_einsum":
        return NotImplemented
    operands = args[1]
    free = next(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in args[0])
    text = args[0].replace(" ", "")
    left, arrow, right = text.partition("->")
    if not arrow:
        letters = [c for c in left if c.isalpha()]
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = [free + term if has_batch(x, level) else term for term, x in zip(left.split(","), operands)]
    return wrapped(func(f"{','.join(terms)}->{free}{right}", [opened(x, level) for x in operands]), level)


# --- convolutions: the batch of the input is merged into its samples, that of the weight into its groups


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _convolution(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, weight = args[:2]
    rest, named = list(args[3:]), dict(kwargs)
    bias = args[2] if len(args) > 2 else named.pop("bias", None)
    spatial = int(func.__name__[-2])
    single = rank(x, level) == spatial + 1
    if single:
        x = x.unsqueeze(0)
    if not has_batch(weight, level) and not has_batch(bias, level):
        value = x.value
        out = func(value.flatten(0, 1), weight, bias, *rest, **named)
        out = wrapped(out.reshape(tuple(value.shape)[:2] + tuple(out.shape)[1:]), level)
    else:
        at = 4 if "transpose" in func.__name__ else 3
        groups = rest.pop(at) if len(rest) > at else named.pop("groups", 1)
        rest_named = {"groups": groups * level.size, **named}
        more = rest[at:]
        if more:
            return NotImplemented
        value, w = with_batch(x, level).transpose(0, 1).flatten(1, 2), with_batch(weight, level).flatten(0, 1)
        out = func(value, w, None, *rest, **rest_named)
        out = wrapped(out.reshape((out.shape[0], level.size, -1) + tuple(out.shape)[2:]).transpose(0, 1), level)
        if bias is not None:
            out = out + bias.reshape((-1,) + (1,) * spatial)
    return out.squeeze(0) if single else out


# --- functions of samples: the batch is merged into the dimension of samples

_SPATIAL = {
    f"{name}{n}d": n
    for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool")
    for n in (1, 2, 3)
}


def _folded(level: Level, func: Any, value: Any, spatial: int, rest: tuple, kwargs: dict[str, Any]) -> Any:
    if value.dim() == spatial + 2:
        return wrapped(func(value, *rest, **kwargs), level)
    shape = tuple(value.shape)[:2]
    out = func(value.flatten(0, 1), *rest, **kwargs)
    return wrapped(mapped(lambda o: o.reshape(shape + tuple(o.shape)[1:]), out), level)


def _in_samples(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if any(has_batch(a, level) for a in (*args[1:], *kwargs.values())):
        return NotImplemented
    name = func.__name__.strip("_").removesuffix("_with_indices")
    spatial = _SPATIAL.get(name, args[0].dim() - 2)
    return _folded(level, func, args[0].value, spatial, args[1:], kwargs)


rule(*_SPATIAL, *(n + "_with_indices" for n in _SPATIAL), "pixel_shuffle", "pixel_unshuffle", "interpolate", "channel_shuffle", "local_response_norm")(_in_samples)  # fmt: skip


@rule("_unfold")
def _patches(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return _folded(level, func, args[0].value, 2, args[1:], kwargs)


@rule("pad", "constant_pad_nd")
def _pad(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return _natural(level, func, args, kwargs) if len(args) < 3 or args[2] == "constant" else _in_samples(level, func, args, kwargs)


@rule("layer_norm", "rms_norm")
def _layer_norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    names = ("weight", "bias", "eps") if "layer" in func.__name__ else ("weight", "eps")
    given = {**dict(zip(names, args[2:])), **{k: v for k, v in kwargs.items() if k in names}}
    weight, bias = given.pop("weight", None), given.pop("bias", None)
    if has_batch(weight, level) or has_batch(bias, level):
        out = wrapped(func(with_batch(args[0], level), args[1], *[None] * (len(names) - 1), given.get("eps", 1e-5 if "layer" in func.__name__ else None)), level)
        out = out if weight is None else out * weight
        return out if bias is None else out + bias
    more = (weight, bias) if "layer" in func.__name__ else (weight,)
    return wrapped(func(args[0].value, args[1], *more, **given), level)


@rule("embedding")
def _embedding(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    first, second = args[:2]
    index, weight = (first, second) if not first.is_floating_point() else (second, first)
    if not has_batch(weight, level):
        parts = (index.value, weight) if first is index else (weight, index.value)
        return wrapped(func(*parts, *args[2:], **kwargs), level)
    table = weight.value
    start = (_C.arange(level.size, device=table.device) * table.shape[1]).reshape((-1,) + (1,) * rank(index, level))
    rows = with_batch(index, level) + start
    parts = (rows, table.flatten(0, 1)) if first is index else (table.flatten(0, 1), rows)
    if any(isinstance(a, int) and a != -1 and a is not False for a in (*args[2:], *kwargs.values())):
        return NotImplemented  # padding_idx or scale_grad_by_freq
    return wrapped(func(*parts, *args[2:], **kwargs), level)


@rule("scaled_dot_product_attention")
def _attention(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    def joined(x: Any) -> Any:
        return with_batch(x, level) if isinstance(x, Tensor) else x

    if level.randomness == "error" and (kwargs.get("dropout_p", 0) or (len(args) > 4 and args[4])):
        raise random_error()
    most = max(rank(x, level) for x in args[:3])
    if any(rank(x, level) != most for x in args[:3]):
        return NotImplemented
    mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
    if isinstance(mask, Tensor):
        value = with_batch(mask, level)
        mask = value.reshape((value.shape[0],) + (1,) * (most + 1 - value.dim()) + tuple(value.shape)[1:])
        args, kwargs = (*args[:3], mask, *args[4:]), {k: v for k, v in kwargs.items() if k != "attn_mask"}
    return wrapped(func(*(joined(a) for a in args[:3]), *args[3:], **kwargs), level)


@rule("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu", "dropout_")
def _dropout(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    name = func.__name__.strip("_")
    p = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    training = args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
    if name != "rrelu" and (not training or p == 0):
        return args[0]
    if level.randomness == "error":
        raise random_error()
    value = args[0].value
    if level.randomness == "different":
        if not name.startswith("feature"):
            return wrapped(drawn(func, value, *args[1:], **kwargs), level)
        made = drawn(func, value.flatten(0, 1), *args[1:], **kwargs)  # an entry's channels are its second dimension
        return wrapped(made.reshape(value.shape), level)
    if name not in ("dropout", "feature_dropout"):
        state, rows = _C.default_generator.get_state(), []
        for i in range(level.size):
            _C.default_generator.set_state(state)
            rows.append(drawn(func, value.select(0, i), *args[1:], **kwargs))
        return wrapped(_C.stack(rows), level)
    return wrapped(value * drawn(func, _C.ones_like(value.select(0, 0).detach()), *args[1:], **kwargs), level)


# --- losses: one for each entry

_ELEMENT_LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div soft_margin_loss poisson_nll_loss hinge_embedding_loss"


@rule(*_ELEMENT_LOSSES.split())
def _element_loss(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    more, named = list(args[2:]), dict(kwargs)
    at = next((i for i, a in enumerate(more) if isinstance(a, str)), None)
    reduction = named.pop("reduction", "mean") if at is None else more[at]
    if reduction not in ("none", "mean", "sum") or any(isinstance(v, Tensor) for v in (*more, *named.values())):
        return NotImplemented
    if at is None:
        named["reduction"] = "none"
    else:
        more[at] = "none"
    most = max(rank(x, level) for x in args[:2])
    values = [with_batch(x, level) for x in args[:2]]
    values = [v.reshape((v.shape[0],) + (1,) * (most + 1 - v.dim()) + tuple(v.shape)[1:]) for v in values]
    out = wrapped(func(*values, *more, **named), level)
    return out if reduction == "none" else out.mean() if reduction == "mean" else out.sum()


@rule("cross_entropy", "nll_loss")
def _class_loss(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if len(args) > 2:
        return NotImplemented
    named = dict(kwargs)
    if has_batch(named.get("weight"), level) and func.__name__ == "nll_loss":
        return _nll_of_weights(*args, **named)
    reduction, weight, ignored = named.pop("reduction", "mean"), named.get("weight"), named.get("ignore_index", -100)
    target = args[1]
    if weight is not None and (has_batch(weight, level) or target.is_floating_point()) or not isinstance(reduction, str):
        return NotImplemented
    values, targets = with_batch(args[0], level), with_batch(target, level)
    shape = None
    if rank(args[0], level) > 1:
        shape = tuple(values.shape)[:2]
        values, targets = values.flatten(0, 1), targets.flatten(0, 1)
    out = func(values, targets, reduction="none", **named)
    out = wrapped(out if shape is None else out.reshape(shape + tuple(out.shape)[1:]), level)
    if reduction == "none":
        return out
    if reduction == "sum":
        return out.sum()
    if target.is_floating_point():
        return out.sum() / max(1, out.numel())
    counted = target != ignored
    weights = counted.to(out.dtype) if weight is None else weight[target.clamp(min=0)] * counted
    return out.sum() / weights.sum()


def _nll_of_weights(x: Any, target: Any, weight: Any, reduction: str = "mean", ignore_index: int = -100) -> Any:
    """nll_loss where each entry has its own weights."""
    at, counted = 1 if x.dim() > 1 else 0, target != ignore_index
    safe = _C.where(counted, target, 0)
    weights = weight.detach()[safe] * counted.to(x.dtype)
    out = -x.gather(at, safe.unsqueeze(at)).squeeze(at) * weights
    return out if reduction == "none" else out.sum() if reduction == "sum" else out.sum() / weights.sum()


@rule("cosine_similarity")
def _similarity(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    most = max(rank(x, level) for x in args[:2])
    values = [with_batch(x, level) for x in args[:2]]
    values = [v.reshape((v.shape[0],) + (1,) * (most + 1 - v.dim()) + tuple(v.shape)[1:]) for v in values]
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 1)
    more = {k: v for k, v in kwargs.items() if k != "dim"}
    return wrapped(func(*values, _moved(dim, most), *args[3:], **more), level)


@rule("batch_norm")
def _batch_norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Merges the batch into the channels, as each entry has its own statistics."""
    if kwargs or len(args) != 8:
        return NotImplemented
    x, weight, bias, mean, var, training, momentum, eps = args
    if training and any(s is not None and not has_batch(s, level) for s in (mean, var)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not batched.\n"
            "If you are using a module and do not need eval mode, please set `track_running_stats` to be False."
        )
    value = with_batch(x, level).transpose(0, 1)
    shape = tuple(value.shape)

    def channels(s: Any) -> Any:
        return None if s is None else with_batch(s, level).reshape(-1)

    out = func(value.flatten(1, 2), channels(weight), channels(bias), channels(mean), channels(var), training, momentum, eps)
    return wrapped(out.reshape(shape).transpose(0, 1), level)


# --- indexing


@rule("gather", "scatter", "scatter_add", "scatter_reduce", "scatter_", "scatter_add_", "scatter_reduce_")
def _gather(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, dim, rest = args[0], args[1] if len(args) > 1 else kwargs["dim"], list(args[2:])
    named = {k: v for k, v in kwargs.items() if k != "dim"}
    if func.__name__.endswith("_") and not has_batch(x, level):
        raise WrittenWithoutBatchError(f"vmap: {func.__name__} writes to a tensor that is not vmapped over; use the out-of-place form")
    like = rest[0] if func.__name__ == "gather" and rest else named.get("index", x) if func.__name__ == "gather" else x

    def prepared(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        value = with_batch(t, level)
        return value.unsqueeze(1) if rank(t, level) == 0 else value

    out = wrapped(func(prepared(x), _moved(dim, rank(x, level)), *map(prepared, rest), **{k: prepared(v) for k, v in named.items()}), level)
    return x if func.__name__.endswith("_") else out.squeeze(0) if rank(like, level) == 0 and out.shape == (1,) else out


@rule("index_select")
def _index_select(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, dim, index = (*args, *(kwargs[k] for k in ("dim", "index")[len(args) - 1 :]))
    at = _moved(dim, rank(x, level))
    if not has_batch(index, level):
        return wrapped(func(x.value, at, index), level)
    value, of = with_batch(x, level), index.value
    shape = list(value.shape)
    shape[at] = of.shape[1]
    spread = of.reshape([of.shape[0]] + [of.shape[1] if i == at else 1 for i in range(1, value.dim())]).expand(shape)
    return wrapped(value.gather(at, spread), level)


def _is_position(part: Any) -> bool:
    return isinstance(part, Tensor) or isinstance(part, (list, range)) or type(part).__name__ == "ndarray"


def _arranged(level: Level, x: Any, key: tuple) -> tuple[tuple, int, int]:
    """The key with a batch index in front. If index tensors have the batch, also their number of dimensions and where these are in the result."""
    parts = list(key)
    where = [i for i, part in enumerate(parts) if _is_position(part)]
    if not where:
        return (slice(None), *parts), 0, 0
    for i in where:
        if not isinstance(parts[i], Tensor):
            parts[i] = _C.tensor(list(parts[i]), device=x.device)
        if parts[i].dtype is _C.bool:
            if has_batch(parts[i], level):
                raise RuntimeError(
                    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow (a mask as an index). We don't "
                    "support that yet; torch.where keeps the shape."
                )
            return (slice(None), *parts), 0, 0
    together = where == list(range(where[0], where[-1] + 1)) and all(not isinstance(p, int) for p in parts)
    if together and not any(has_batch(parts[i], level) for i in where):
        return (slice(None), *parts), 0, 0
    most = max(rank(parts[i], level) for i in where)
    before = 0
    if Ellipsis in [p for p in parts if not isinstance(p, Tensor)]:
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        covered = sum(p is not None and p is not Ellipsis for p in parts)
        parts[at : at + 1] = [slice(None)] * (rank(x, level) - covered)
        where = [i for i, part in enumerate(parts) if isinstance(part, Tensor)]
    advanced = [i for i, p in enumerate(parts) if isinstance(p, (Tensor, int)) and not isinstance(p, bool)]
    if advanced == list(range(advanced[0], advanced[-1] + 1)):
        before = sum(not isinstance(p, (int, Tensor)) for p in parts[: advanced[0]])
    for i in where:
        value = opened(parts[i], level)
        if has_batch(parts[i], level):
            value = value.reshape((value.shape[0],) + (1,) * (most + 1 - value.dim()) + tuple(value.shape)[1:])
        parts[i] = value
    batch = _C.arange(level.size, device=x.device).reshape((-1,) + (1,) * most)
    return (batch, *parts), most, before


@rule("__getitem__")
def _getitem(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, key = args
    parts, most, before = _arranged(level, x, key if isinstance(key, tuple) else (key,))
    found = with_batch(x, level)[parts]
    if before and most:
        found = found.movedim(tuple(range(1, 1 + most)), tuple(range(1 + before, 1 + before + most)))
    return wrapped(found, level)


@rule("__setitem__")
def _setitem(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    x, key, value = args
    if not has_batch(x, level):
        raise WrittenWithoutBatchError("vmap: an entry that is vmapped over is written to a tensor that is not; make the tensor of one that is, e.g. by new_zeros")
    if isinstance(key, Tensor) and key.dtype is _C.bool and has_batch(key, level):
        mask = key.value.reshape(tuple(key.value.shape) + (1,) * (x.value.dim() - key.value.dim()))
        x.value.copy_(_C.where(mask, opened(value, level) if isinstance(value, Tensor) else value, x.value))
        return
    parts, most, before = _arranged(level, x, key if isinstance(key, tuple) else (key,))
    if isinstance(value, Tensor):
        target = rank(wrapped(x.value[parts], level), level)
        put = with_batch(value, level)
        put = put.reshape((put.shape[0],) + (1,) * (target + 1 - put.dim()) + tuple(put.shape)[1:])
        if before and most:
            put = put.movedim(tuple(range(1 + before, 1 + before + most)), tuple(range(1, 1 + most)))
        value = put
    x.value[parts] = value


@rule("one_hot")
def _one_hot(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes == -1:
        raise RuntimeError("vmap: Currently the operation torch.nn.functional.one_hot needs num_classes: with -1 its shape depends on the values")
    return wrapped(func(args[0].value, classes), level)


