"""`vmap`: vectorises a function of one entry over a batch."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from .. import _C
from ..overrides import TorchFunctionMode
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from . import _composed, _layers, _numbers, _rules, _samples  # noqa: F401
from .._stand_in import sizes_of
from ._batched import Level, has_batch, here, is_batched, level_of, refuse_draws, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

_FACTORIES = frozenset(("rand", "randn", "randint", "randperm", "normal"))
_DROPS = frozenset(("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu"))


class _Randomness(TorchFunctionMode):
    """Different random numbers for the entries from functions that see no batched tensor: those that are given a shape, and those of tensors
    that are the same for all entries."""

    _sees_all, _sees_operators = True, False  # also intercept the functions that dropout2d calls

    def __init__(self, level: Level) -> None:
        self.level = level

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if here.drawing:
            return func(*args, **kwargs)
        name = func.__name__.removeprefix("_")
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        if not (name in _DROPS or name in _rules.RANDOM or (name in _FACTORIES and not tensors)):
            return func(*args, **kwargs)
        if tensors:
            return self._of_tensors(func, tensors, args, kwargs)
        return _C._make_batched(self._drawn(func, args, kwargs), self.level.number)

    def _drawn(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        """Draws the numbers of all entries: as one call with a larger shape, if the arguments give a shape."""
        size = self.level.size
        if "size" in kwargs:
            return func(*args, **{**kwargs, "size": (size, *kwargs["size"])})
        if func.__name__ in ("rand", "randn"):
            return func((size, *sizes_of(args)), **kwargs)
        if func.__name__ in ("randint", "normal") and isinstance(args[-1], (tuple, list)):
            return func(*args[:-1], (size, *args[-1]), **kwargs)
        return _C.stack([func(*args, **kwargs) for _ in range(size)])

    def _of_tensors(self, func: Any, tensors: list[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        level, name = self.level, func.__name__.removeprefix("_")
        training = kwargs.get("training", args[2 if name != "rrelu" else 3] if len(args) > (2 if name != "rrelu" else 3) else name != "rrelu")
        if any(has_batch(t, level) for t in tensors) or (name in _DROPS and not training):
            return func(*args, **kwargs)
        if name.endswith("_"):
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this is "
                f"necessary for your usage, take {name.rstrip('_')} of a tensor that has the batch."
            )
        first = next(i for i, a in enumerate(args) if isinstance(a, Tensor)) if any(isinstance(a, Tensor) for a in args) else None
        if first is None:
            return func(*args, **kwargs)
        each = _C._make_batched(args[first].unsqueeze(0).expand((level.size, *args[first].shape)).clone(), level.number)
        return func(*args[:first], each, *args[first + 1 :], **kwargs)


def _flat_inputs(in_dims: Any, args: tuple, name: str) -> tuple[int, list[Any], list[Any], Any]:
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
            f"of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. "
            "The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec, is_leaf=lambda d: d is None or isinstance(d, int))
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (x, dim) in enumerate(zip(flat, dims)):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if isinstance(dim, int) and not isinstance(x, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -x.dim() <= dim < x.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{x.dim()} so expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
        if dim is not None and dim < 0:
            dims[i] = dim % x.dim()
    sizes = [x.shape[dim] for x, dim in zip(flat, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0], flat, dims, spec


def _unwrapped(outputs: Any, out_dims: Any, level: Level, name: str) -> Any:
    flat, spec = tree_flatten(outputs)
    if isinstance(outputs, Tensor) and isinstance(out_dims, int):
        dims = [out_dims]
    elif isinstance(outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = [out_dims[0]]
    elif out_dims is None:
        dims = [None] * len(flat)
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None or isinstance(d, int))
        if dims is None:
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
                f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
            )
    if not all(dim is None or isinstance(dim, int) for dim in dims):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in the outputs "
            "the vmapped dimension should appear."
        )
    results = []
    for o, dim in zip(flat, dims):
        if not isinstance(o, Tensor) and dim is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(o)}. Did you mean to set out_dims= to None for output?")
        mine = is_batched(o) and level_of(o) == level.number
        if dim is None:
            if mine:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
                )
            results.append(o)
            continue
        value = value_of(o) if mine else o.unsqueeze(0).expand((level.size, *o.shape))
        results.append(value if dim == 0 else value.movedim(0, dim))
    return tree_unflatten(results, spec)


def _chunks(func: Any, flat: list, dims: list, spec: Any, size: int, chunk: int, out_dims: Any, randomness: str, kwargs: dict) -> Any:
    found = []
    state = _C.default_generator.get_state() if randomness == "same" else None
    for start in range(0, size, chunk):
        if state is not None:
            _C.default_generator.set_state(state)  # every chunk draws the same numbers as the first
        part = [x if d is None else x.narrow(d, start, min(chunk, size - start)) for x, d in zip(flat, dims)]
        found.append(_run(func, part, dims, spec, min(chunk, size - start), out_dims, randomness, kwargs))
    leaves = [tree_flatten(f) for f in found]
    out_spec = leaves[0][1]
    at = _broadcast_to_and_flatten(out_dims, out_spec, is_leaf=lambda d: d is None or isinstance(d, int)) or [0]
    joined = [column[0] if d is None else _C.cat(list(column), dim=d) for d, column in zip(at, zip(*(values for values, _ in leaves)))]
    return tree_unflatten(joined, out_spec)


def _run(func: Any, flat: list, dims: list, spec: Any, size: int, out_dims: Any, randomness: str, kwargs: dict) -> Any:
    level = Level(_C._enter_vmap(), size, randomness)
    here.levels.append(level)
    try:
        refuse_draws()
        entries = [x if d is None else _C._make_batched(x if d == 0 else x.movedim(d, 0), level.number) for x, d in zip(flat, dims)]
        with _Randomness(level) if randomness == "different" else contextlib.nullcontext():
            outputs = func(*tree_unflatten(entries, spec), **kwargs)
            return _unwrapped(outputs, out_dims, level, getattr(func, "__name__", repr(func)))
    finally:
        here.levels.pop()
        _C._leave_vmap()
        refuse_draws()


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that calls `func` once for all entries of a batch: each operator processes the whole batch, by its batching rule.

    Args:
        in_dims: the batch dimension of each input; None for inputs that are the same for all entries. Nested like the inputs.
        out_dims: the position of the batch dimension in each output.
        randomness: "error" (random operators raise RuntimeError), "same" numbers for all entries, or "different" ones.
        chunk_size: the number of entries to process at a time.

    An operator without a rule is called once for each entry, with a warning that names it. ValueError if in_dims or out_dims do not fit;
    RuntimeError for operations that depend on the values of an entry (`item`, `if x:`).

    >>> import naru
    >>> vmap(naru.dot)(naru.ones(2, 3), naru.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        name = getattr(func, "__name__", repr(func))
        size, flat, dims, spec = _flat_inputs(in_dims, args, name)
        if chunk_size is not None:
            return _chunks(func, flat, dims, spec, size, chunk_size, out_dims, randomness, kwargs)
        return _run(func, flat, dims, spec, size, out_dims, randomness, kwargs)

    return wrapper
