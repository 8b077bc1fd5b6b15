"""Batching rules for losses and layers of samples: the batch is merged into the samples, and reductions are done for each entry."""

from __future__ import annotations

import inspect
from typing import Any

from .. import _C
from .._stand_in import mapped
from ._batched import Level, has_batch, random_error, rank, rule, value_of, with_batch, wrapped
from ._composed import composed
from ._layers import _batch_norm
from ._rules import _aligned

Tensor = _C.Tensor


def _reduced(out: Any, reduction: str) -> Any:
    return out if reduction == "none" else out.mean() if reduction == "mean" else out.sum()


def _unreduced(given: tuple, at: int) -> tuple[str, list[Any]]:
    """The reduction, which is argument `at`, and the arguments with reduction "none"."""
    rest = list(given)
    if len(rest) <= at or rest[at] not in ("none", "mean", "sum", "batchmean"):
        raise TypeError("for the loop")
    reduction, rest[at] = rest[at], "none"
    return reduction, rest


@rule("_gaussian_nll_loss")
def _gaussian(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    reduction, given = _unreduced(args, 5)
    most = max(x.dim() for x in given if isinstance(x, Tensor))
    values = (_aligned(wrapped(with_batch(x, level), level), level, most) if isinstance(x, Tensor) else x for x in given)
    return _reduced(wrapped(func(*values, **kwargs), level), reduction)


# --- losses of samples: the index of the reduction
_SAMPLES = {"multi_margin_loss": 5, "multilabel_margin_loss": 2}


@rule(*_SAMPLES)
def _of_samples(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    reduction, given = _unreduced(args, _SAMPLES[func.__name__])
    if kwargs or any(has_batch(a, level) for a in given[2:]) or rank(args[0], level) == 0:
        return NotImplemented
    values = [with_batch(x, level) for x in given[:2]]
    if rank(args[0], level) == 1:
        return _reduced(wrapped(func(*values, *given[2:]), level), reduction)
    out = func(*(v.flatten(0, 1) for v in values), *given[2:])
    return _reduced(wrapped(out.reshape((level.size, -1, *tuple(out.shape)[1:])), level), reduction)


@rule("_ctc_loss")
def _ctc(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Merges the batch into the samples, which are the second dimension of the input."""
    reduction, given = _unreduced(args, 5)
    x, targets, steps, lengths = given[:4]
    if rank(x, level) != 3 or rank(targets, level) != 2 or rank(steps, level) != 1 or rank(lengths, level) != 1:
        return NotImplemented
    values = with_batch(x, level).transpose(0, 1).flatten(1, 2)
    out = func(values, *(with_batch(t, level).flatten(0, 1) for t in (targets, steps, lengths)), *given[4:])
    out = wrapped(out.reshape(level.size, -1), level)
    return (out / lengths.clamp(min=1).to(out.dtype)).mean() if reduction == "mean" else _reduced(out, reduction)


@composed("_linear_cross_entropy")
def _linear_cross_entropy(x: Any, matrix: Any, target: Any, bias: Any, weight: Any, reduction: str, ignored: int | None, smoothing: float) -> Any:
    if matrix.dim() != 2 or smoothing:
        raise TypeError("for the loop")
    logits = _C.matmul(x, matrix.transpose(0, 1))
    more = {} if ignored is None else {"ignore_index": ignored}
    return _C.cross_entropy(logits if bias is None else logits + bias, target, weight=weight, reduction=reduction, **more)


# --- layers


@rule("_max_unpool", "_fractional_max_pool")
def _pools(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """(spatial dimensions, a tensor of samples, ...): the other tensors have samples, too."""
    n, x = args[:2]
    single = rank(x, level) == n + 1

    def joined(t: Any, alone: bool) -> Any:
        return with_batch(t, level) if alone else with_batch(t, level).flatten(0, 1)

    rest = [joined(a, single and rank(a, level) == n + 1) if isinstance(a, Tensor) else a for a in args[2:]]
    out = func(n, joined(x, single), *rest, **kwargs)
    if single:
        return wrapped(out, level)
    return wrapped(mapped(lambda o: o.reshape((level.size, -1, *tuple(o.shape)[1:])), tuple(out) if isinstance(out, tuple) else out), level)


_NORM = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in ("x", "groups", "weight", "bias", "eps", "cudnn")])


@rule("group_norm")
def _group_norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    given = _NORM.bind(*args, **kwargs).arguments
    x, eps = given["x"], given.get("eps")
    value, channels = with_batch(x, level), (-1,) + (1,) * (rank(x, level) - 2)
    out = func(value.flatten(0, 1), given["groups"], None, None, 1e-5 if eps is None else eps)
    out = wrapped(out.reshape(value.shape), level)
    weight, bias = given.get("weight"), given.get("bias")
    out = out if weight is None else out * weight.reshape(channels)
    return out if bias is None else out + bias.reshape(channels)


@rule("instance_norm")
def _instance_norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Merges the batch into the channels, as in batch_norm."""
    return _batch_norm(level, func, args[:8], kwargs)


@rule("_embedding_bag")
def _bags(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Concatenates the tables, the rows and the bags of all entries."""
    index, table, offsets, most, power, by_frequency, mode, weights, last, padding, sparse = args
    if most is not None or by_frequency or last or padding is not None or sparse:
        return NotImplemented
    rows = with_batch(index, level)
    steps = _C.arange(level.size, device=rows.device)
    if has_batch(table, level):
        rows = rows + (steps * table.shape[0]).reshape((-1,) + (1,) * rank(index, level))
        table = value_of(table).flatten(0, 1)
    if offsets is not None:
        offsets = (with_batch(offsets, level) + (steps * index.shape[0]).unsqueeze(1)).flatten()
    given = None if weights is None else with_batch(weights, level).flatten(0, 1)
    out = func(rows.flatten(0, 1), table, offsets, None, power, False, mode, given, False, None, False)
    return wrapped(out.reshape(level.size, -1, out.shape[-1]), level)


@rule("_sparse_mm")
def _sparse_mm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The columns of all entries are columns of one matrix."""
    matrix, x = args[:2]
    if has_batch(matrix, level) or x.layout is not _C.strided:
        return NotImplemented
    out = func(matrix, value_of(x).transpose(0, 1).flatten(1), *args[2:], **kwargs)
    return wrapped(out.reshape(out.shape[0], level.size, -1).transpose(0, 1), level)


# --- attention


def _below_zero(mask: Any, dtype: Any) -> Any:
    """A mask as the values to add to the scores."""
    if mask is None or mask.dtype is not _C.bool:
        return mask
    return _C.where(mask, float("-inf"), _C.zeros((), dtype=dtype, device=mask.device))


@rule("_multi_head_attention")
def _heads(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    query, key, value, tensors, embed, heads, zeros, p, training, wanted, separate, average, causal = args
    weight, bias, bias_k, bias_v, out_weight, out_bias, padding, mask, wq, wk, wv, static_k, static_v = tensors
    if bias_k is not None or zeros or static_k is not None or static_v is not None or query.dim() not in (2, 3):
        return NotImplemented
    if p and training and level.randomness == "error":
        raise random_error()
    if query.dim() == 2:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        padding = None if padding is None else padding.unsqueeze(0)
    length, samples, width = query.shape[0], query.shape[1], embed // heads
    parts = []
    for i, (x, own) in enumerate(((query, wq), (key, wk), (value, wv))):
        made = _C.matmul(x, (own if separate else weight[i * embed : (i + 1) * embed]).transpose(0, 1))
        made = made if bias is None else made + bias[i * embed : (i + 1) * embed]
        parts.append(made.reshape(x.shape[0], samples, heads, width).permute(1, 2, 0, 3))
    scores = _C.matmul(parts[0], parts[1].transpose(-2, -1)) / width**0.5
    if mask is not None:
        scores = scores + _below_zero(mask.reshape(samples, heads, length, -1) if mask.dim() == 3 else mask, scores.dtype)
    if padding is not None:
        scores = scores + _below_zero(padding.reshape(samples, 1, 1, -1), scores.dtype)
    weights = _C.softmax(scores, -1)
    weights = _C.dropout(weights, p, True) if p and training else weights
    out = _C.matmul(weights, parts[2]).permute(2, 0, 1, 3).reshape(length, samples, embed)
    out = _C.matmul(out, out_weight.transpose(0, 1))
    out = out if out_bias is None else out + out_bias
    shown = (weights.mean(1) if average else weights) if wanted else None
    if args[0].dim() == 2:
        out, shown = out.squeeze(1), None if shown is None else shown.squeeze(0)
    return out, shown
