"""Batching rules for convolutions, layers and losses."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import mapped
from ._batched import Level, drawn, has_batch, random_error, rank, rule, value_of, with_batch, wrapped
from ._rules import _natural

Tensor = _C.Tensor


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
        value = value_of(x)
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
    return _folded(level, func, value_of(args[0]), spatial, args[1:], kwargs)


rule(*_SPATIAL, *(n + "_with_indices" for n in _SPATIAL), "interpolate", "local_response_norm")(_in_samples)  # fmt: skip


@rule("_unfold")
def _patches(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return _folded(level, func, value_of(args[0]), 2, args[1:], kwargs)


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
    return wrapped(func(value_of(args[0]), args[1], *more, **given), level)


@rule("embedding")
def _embedding(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    first, second = args[:2]
    index, weight = (first, second) if not first.is_floating_point() else (second, first)
    if not has_batch(weight, level):
        parts = (value_of(index), weight) if first is index else (weight, value_of(index))
        return wrapped(func(*parts, *args[2:], **kwargs), level)
    table = value_of(weight)
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
    value = value_of(args[0])
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


@rule("one_hot")
def _one_hot(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes == -1:
        raise RuntimeError("vmap: Currently the operation torch.nn.functional.one_hot needs num_classes: with -1 its shape depends on the values")
    return wrapped(func(value_of(args[0]), classes), level)
