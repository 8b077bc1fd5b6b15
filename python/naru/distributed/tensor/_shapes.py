"""Rules of operators that change shapes: views, joins, parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import _C
from ._dispatch import Plan, _all_whole, _each, rule, substituted
from ._dtensor import DTensor, local_of, wrapped
from ._layout import Spec, local_part, moved
from ._rules import _along, _calls, _dims, _meta_of
from .placement_types import Placement, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def _checked(func: Any, *args: Any) -> None:
    """Raises the operator's own error where its arguments are of a wrong kind."""
    func(*substituted(args, _meta_of))


# --- dimensions in another order


@rule("permute transpose swapaxes swapdims t movedim moveaxis adjoint")
def _permuted(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    names = tuple(range(x.dim()))
    # The operator itself says the order, of a tensor whose sizes are the dimensions' numbers.
    order = func(_C.empty([i + 1 for i in names], device="meta"), *args, **kwargs).shape
    return Plan([x], [names], [tuple(n - 1 for n in order)], _calls(func, (x, *args), kwargs), linear=(0,))


# --- views


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions before and after that have the same elements, group by group."""
    found, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        a, b = [], []
        na = nb = 1
        if i < len(before):
            a.append(i)
            na, i = before[i], i + 1
        if j < len(after) and not (na == 1 and a and after[j] != 1):
            b.append(j)
            nb, j = after[j], j + 1
        while na != nb:
            if na < nb and i < len(before):
                a.append(i)
                na, i = na * before[i], i + 1
            elif nb < na and j < len(after):
                b.append(j)
                nb, j = nb * after[j], j + 1
            else:
                break
        found.append((a, b))
    return found


def _after_view(x: DTensor, shape: Sequence[int]) -> tuple[tuple[Placement, ...], tuple[Placement, ...]]:
    """How the operand must lie for a view of this shape, and how the view lies."""
    leads: dict[int, tuple[int, int]] = {}  # dimension: (that of the view, into how many equal parts both can be split; 0: any)
    if x.numel():
        for a, b in _groups(x.shape, shape):
            if len(a) == len(b) == 1:
                leads[a[0]] = (b[0], 0)
            real_a, real_b = [d for d in a if x.shape[d] != 1], [d for d in b if shape[d] != 1]
            if real_a and real_b and (len(a), len(b)) != (1, 1):
                same = len(real_a) == len(real_b) == 1
                leads[real_a[0]] = (real_b[0], 0 if same else math.gcd(x.shape[real_a[0]], shape[real_b[0]]))
    need, made = list(x.placements), list(x.placements)
    counts: dict[int, int] = {}
    for m, p in enumerate(x.placements):
        if isinstance(p, Shard):
            counts[p.dim] = counts.get(p.dim, 1) * x.device_mesh.shape[m]
    for m, p in enumerate(x.placements):
        if isinstance(p, Shard):
            to, parts = leads.get(p.dim, (-1, 1))
            if to < 0 or (parts and parts % counts[p.dim]) or type(p) is not Shard:
                need[m] = made[m] = Replicate()
            else:
                made[m] = Shard(to)
    return tuple(need), tuple(made)


def _viewed(func: Any, x: DTensor, shape: Sequence[int]) -> DTensor:
    sizes = list(shape)
    if -1 in sizes:
        rest = math.prod(n for n in sizes if n != -1)
        if sizes.count(-1) > 1 or rest == 0 or x.numel() % rest:
            raise RuntimeError(f"shape '{sizes}' is invalid for input of size {x.numel()}")
        sizes[sizes.index(-1)] = x.numel() // rest
    elif math.prod(sizes) != x.numel():
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {x.numel()}")
    need, made = _after_view(x, sizes)
    spec = Spec(x.device_mesh, made, tuple(sizes))
    local = moved(local_of(x), x._spec, need)
    size = list(local_part(spec)[0]) if x.device_mesh._coordinate is not None else [0]
    return wrapped(local.view(size) if func.__name__ == "view" and need == x.placements else local.reshape(size), spec)


@rule("view reshape view_as reshape_as")
def _view(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    given = kwargs.get("shape", kwargs.get("size", args[0] if len(args) == 1 else args))
    if isinstance(given, Tensor):
        _checked(func, x, given)
        given = tuple(given.shape)
    if isinstance(given, _C.dtype):
        if given.itemsize != x.dtype.itemsize:
            raise NotImplementedError("view: to a dtype of another size is not there for DTensors; use to_local()")
        return wrapped(local_of(x).view(given), x._spec)
    return _viewed(func, x, [given] if isinstance(given, int) else list(given))


@rule("flatten ravel unflatten squeeze unsqueeze")
def _flattened(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    return _viewed(func, x, func(_C.empty(x.shape, device="meta"), *args, **kwargs).shape)


@rule("expand expand_as broadcast_to")
def _expanded(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    given = kwargs.get("size", kwargs.get("shape", args[0] if len(args) == 1 else args))
    if isinstance(given, Tensor):
        _checked(func, x, given)
    sizes = list(given.shape) if isinstance(given, Tensor) else [given] if isinstance(given, int) else list(given)
    lead = len(sizes) - x.dim()
    if lead < 0:
        raise RuntimeError(f"{func.__name__}: the number of sizes {len(sizes)} must be at least that of the tensor's dimensions {x.dim()}")
    for i, n in enumerate(x.shape):
        sizes[lead + i] = n if sizes[lead + i] == -1 else sizes[lead + i]
    labels = tuple(lead + i if n == sizes[lead + i] else None for i, n in enumerate(x.shape))

    def run(locals_: list[Tensor], specs: list[Spec]) -> Any:
        return locals_[0].expand(local_part(specs[0])[0])

    return Plan([x], [labels], [tuple(range(len(sizes)))], run, linear=(0,), sizes=dict(enumerate(sizes)), free={i for i in labels if i is not None})


# --- parts


@rule("__getitem__")
def _indexed(func: Any, x: DTensor, index: Any) -> Any:
    entries = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(e, (Tensor, list)) or (not isinstance(e, (int, slice)) and e is not None and e is not Ellipsis) or isinstance(e, bool) for e in entries):
        return _all_whole(func, "__getitem__", (x, index), {})
    taken = sum(e is not None and e is not Ellipsis for e in entries)
    if Ellipsis in entries:
        at = entries.index(Ellipsis)
        entries[at : at + 1] = [slice(None)] * (x.dim() - taken)
    entries += [slice(None)] * (x.dim() - sum(e is not None for e in entries))
    out: list[Any] = []
    sizes: dict[Any, int] = {}
    local: list[Any] = []
    free, dim = set(), 0
    for e in entries:
        if e is None:
            out.append(None)
        elif isinstance(e, slice):
            length = len(range(*e.indices(x.shape[dim])))
            whole = e.indices(x.shape[dim]) == (0, x.shape[dim], 1)
            e = slice(None) if whole else e
            out.append(dim if whole else ("part", dim))
            sizes[out[-1]] = length
            free |= {dim} if whole else set()
            dim += 1
        else:
            dim += 1
        local.append(e)
    return Plan([x], [tuple(range(x.dim()))], [tuple(out)], lambda locals_, specs: locals_[0][tuple(local)], free=free, linear=(0,), sizes=sizes)


@rule("__setitem__")
def _assigned(func: Any, x: DTensor, index: Any, value: Any) -> None:
    part = x.redistribute(placements=[Replicate()] * x.device_mesh.ndim)
    part = part.clone() if part is x else part
    local = local_of(part)
    func(local, index, local_of(value.redistribute(placements=[Replicate()] * x.device_mesh.ndim)) if isinstance(value, DTensor) else value)
    x.copy_(part)


@rule("repeat tile")
def _repeated(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    sizes = func(_C.empty(x.shape, device="meta"), *args, **kwargs).shape
    lead = len(sizes) - x.dim()
    kept = {lead + i for i, n in enumerate(x.shape) if sizes[lead + i] == n}
    labels = tuple(lead + i if lead + i in kept else ("part", i) for i in range(x.dim()))
    return Plan([x], [labels], [tuple(range(len(sizes)))], _calls(func, (x, *args), kwargs), free=kept, sizes=dict(enumerate(sizes)), linear=(0,))


@rule("select narrow index_select")
def _part(func: Any, x: DTensor, dim: int, *args: Any, **kwargs: Any) -> Any:
    at = _dims(dim, x.dim())[0]
    meta = func(*(_C.empty(t.shape, dtype=t.dtype, device="meta") if isinstance(t, Tensor) else t for t in (x, dim, *args)), **kwargs)
    out = [i for i in range(x.dim()) if i != at]
    sizes = {}
    if func.__name__ != "select":
        out.insert(at, "part")
        sizes["part"] = meta.shape[at]
    tensors = list(_each((x, args)))
    labels = [tuple(range(x.dim())), *(("part",) for _ in tensors[1:])]
    linear = (0,)
    return Plan(tensors, labels, [tuple(out)], _calls(func, (x, dim, *args), kwargs), free=set(out) - {"part"}, linear=linear, sizes=sizes)


@rule("split chunk unbind tensor_split split_with_sizes unsafe_chunk unsafe_split")
def _parts(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    meta = func(_C.empty(x.shape, dtype=x.dtype, device="meta"), *args, **kwargs)
    dim = kwargs.get("dim", (args[0] if args else 0) if func.__name__ == "unbind" else (args[1] if len(args) > 1 else 0))
    at = _dims(dim, x.dim())[0]
    outs, sizes = [], {}
    for i, part in enumerate(meta):
        out: list[Any] = [d for d in range(x.dim()) if d != at]
        if func.__name__ != "unbind":
            out.insert(at, ("part", i))
            sizes["part", i] = part.shape[at]
        outs.append(tuple(out))
    return _along(func, args, kwargs, x, [at], outs, linear=(0,), sizes=sizes)


@rule("cat concat concatenate stack")
def _joined(func: Any, tensors: Sequence[DTensor], dim: int = 0, **kwargs: Any) -> Any:
    dim = kwargs.pop("axis", dim)
    if not isinstance(tensors, (list, tuple)):
        _checked(func, tensors, dim)
    n = tensors[0].dim()
    stacked = func.__name__ == "stack"
    at = _dims(dim, n + stacked)[0]
    labels = [tuple(range(n)) if stacked else tuple(("part", j) if i == at else i for i in range(n)) for j in range(len(tensors))]
    out: list[Any] = list(range(n)) if stacked else [i for i in range(n) if i != at]
    out.insert(at, "joined")
    sizes = {"joined": len(tensors) if stacked else sum(t.shape[at] for t in tensors)}
    return Plan(tensors, labels, [tuple(out)], _calls(func, (list(tensors), dim), kwargs), free=set(out) - {"joined"}, jointly=True, sizes=sizes)


@rule("gather take_along_dim")
def _gathered(func: Any, x: DTensor, *args: Any, **kwargs: Any) -> Any:
    index = next(t for t in _each((args, kwargs)))
    dim = kwargs.get("dim", next((a for a in args if isinstance(a, int)), None))
    at = _dims(dim, x.dim())[0] if dim is not None else -1
    fits = at >= 0 and index.dim() == x.dim() and all(i == at or a == b for i, (a, b) in enumerate(zip(x.shape, index.shape)))
    if not fits:
        return _all_whole(func, func.__name__, (x, *args), kwargs)
    labels = [tuple(range(x.dim())), tuple("index" if i == at else i for i in range(x.dim()))]
    return Plan([x, index], labels, [labels[1]], _calls(func, (x, *args), kwargs), free=set(range(x.dim())) - {at})
