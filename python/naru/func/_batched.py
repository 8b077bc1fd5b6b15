"""The batched tensor that `vmap` passes to the function, the dispatcher, and the levels of nested vmaps.

A batched tensor is not a Tensor: the core passes every call with one among its arguments to `__torch_function__`, so no operator can mistake the
batch for a dimension of the entry. Batching rules (`_rules.py`, `_layers.py`) handle the batch, by the function's name. A function without a
rule is called once for each entry, with a warning that names it.
"""

from __future__ import annotations

import functools
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _stand_in
from .._stand_in import OPERATORS, RESHAPING_IN_PLACE, StandIn, is_in_place, leaves, mapped, out_of_place

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class Level(NamedTuple):
    """One active vmap."""

    number: int
    size: int
    randomness: str


class WrittenWithoutBatchError(RuntimeError):
    """A tensor without the batch would be written in place from one with the batch."""


class _Local(threading.local):
    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.drawing = False  # within a rule that draws the random numbers of all entries


here = _Local()
RULES: dict[str, Callable[..., Any]] = {}
# In-place methods without a rule that write to the elements of each entry, where it lies.
WRITE_ELEMENTS = ("apply_", "fill_diagonal_", "map_", "map2_")
# Prefixes of the errors that rules raise themselves.
SAID = ("vmap:", "vmap over", "Batching rule not", "Batch norm got")


def rule(*names: str) -> Callable[[Any], Any]:
    """Registers a batching rule f(level, func, args, kwargs) for functions with these names."""

    def register(f: Any) -> Any:
        for name in names:
            RULES[name] = f
        return f

    return register


def is_batched(x: Any) -> bool:
    """Whether `x` is a batched tensor of any level. (isinstance with Tensor would be true too.)"""
    return type(x) is BatchedTensor


def has_batch(x: Any, level: Level) -> bool:
    """Whether `x` has the batch of this level."""
    return type(x) is BatchedTensor and x.level == level.number


def opened(x: Any, level: Level) -> Any:
    """`x` with the batch as its first dimension; unchanged if it has no batch."""
    return x.value if has_batch(x, level) else x


def wrapped(value: Any, level: Level) -> Any:
    """The tensors in a result, batch first, as the batched tensors that the function sees."""
    return _stand_in.wrapped(lambda t: BatchedTensor(t, level.number), value)


def rank(x: Any, level: Level) -> int:
    """The number of dimensions that the function sees."""
    return x.value.dim() - 1 if has_batch(x, level) else x.dim()


def with_batch(x: Any, level: Level) -> Any:
    """`x` with the batch as its first dimension; expanded if it has no batch."""
    return x.value if has_batch(x, level) else x.unsqueeze(0).expand((level.size, *x.shape))


def require_batch(target: Any, level: Level, name: str) -> None:
    """WrittenWithoutBatchError if the target of an in-place write has no batch."""
    if not has_batch(target, level):
        raise WrittenWithoutBatchError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements "
            f"than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
            f"operators instead of inplace arithmetic ({name}). If said operator is being called inside the PyTorch framework, please file a bug report "
            "instead."
        )


def drawn(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a random function that draws the numbers of all entries at once."""
    here.drawing = True
    try:
        return func(*args, **kwargs)
    finally:
        here.drawing = False


# PyTorch's error for random operators with randomness="error".
NO_RANDOMNESS = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap "
    "or perform the randomness operation out of vmap"
)


def random_error() -> RuntimeError:
    """The error for random operators with randomness="error"."""
    return RuntimeError(NO_RANDOMNESS)


def refuse_draws() -> None:
    """Refuses random operators on this thread if one of the vmaps under way does."""
    _C._refuse_draws(NO_RANDOMNESS if any(level.randomness == "error" for level in here.levels) else None)


def by_loop(level: Level, func: Any, args: tuple, kwargs: dict[str, Any], warn: bool = True) -> Any:
    """Calls `func` once for each entry, and stacks the results."""
    name = getattr(func, "__name__", str(func))
    if is_in_place(name):
        require_batch(args[0], level, name)
        if name not in WRITE_ELEMENTS:
            raise NotImplementedError(f"vmap: {name} is not supported; use a function that returns a new tensor")
    results = []
    for i in range(level.size):
        one = functools.partial(mapped, lambda x, i=i: x.value.select(0, i) if has_batch(x, level) else x)
        results.append(func(*one(args), **one(kwargs)))
    if warn:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}: it is called {level.size} times, "
            "once for each entry.",
            stacklevel=2,
        )
    if is_in_place(name):  # each call has written to its entry
        return args[0]
    if isinstance(results[0], Tensor):
        return wrapped(_C.stack(results), level)
    if isinstance(results[0], (tuple, list)):
        return wrapped(_stacked(results), level)
    if all(r == results[0] for r in results):
        return results[0]
    raise RuntimeError(f"vmap: {name} returned {type(results[0]).__name__}s that differ between the entries; vmap can return tensors only")


def _stacked(results: Any) -> Any:
    """Stacks the results of all entries: nested tuples or lists of tensors and other values."""

    def together(column: Any) -> Any:
        first = column[0]
        return _C.stack(list(column)) if isinstance(first, Tensor) else _stacked(column) if isinstance(first, (tuple, list)) else first

    made, kind = [together(column) for column in zip(*results)], type(results[0])
    try:
        return kind(made)
    except TypeError:
        return kind(*made)


def _written(level: Level, found: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Does what the in-place method `name` does, by the rule `found` of the function that computes the new value."""
    target = args[0]
    require_batch(target, level, name)
    before = target
    if target.requires_grad and name not in RESHAPING_IN_PLACE:  # the function may save what is overwritten
        before = BatchedTensor(target.value.clone(), target.level)
    result = found(level, out_of_place(name), (before, *args[1:]), kwargs)
    if result is NotImplemented:
        raise NotImplementedError(f"vmap: {name} is not supported for these arguments; use {name[:-1]}, which does not write in place")
    if name in RESHAPING_IN_PLACE:
        target.value = result.value
    else:
        target.value.copy_(result.value)
    return target


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls `func` for all entries of the innermost batch among its arguments at once."""
    number = max((x.level for x in leaves((*args, *kwargs.values())) if type(x) is BatchedTensor), default=0)
    level = next((known for known in here.levels if known.number == number), None)
    if level is None:
        raise RuntimeError("vmap: a tensor of a vmap that is over is used; return what is needed from the function")
    name = func.__name__
    if kwargs.get("out") is not None:  # a rule would give it the batch as a dimension
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops. (vmap: call {name} without "
            "out=, and use its result)"
        )
    func = OPERATORS.get(name, func) if name.startswith("__") else func
    found = RULES.get(name)
    if found is None and is_in_place(name) and name[:-1] in RULES:
        return _written(level, RULES[name[:-1]], name, args, kwargs)
    found = found or RULES.get(name.strip("_"))
    if found is None:
        return by_loop(level, func, args, kwargs)
    try:
        result = found(level, func, args, kwargs)
    except Exception as error:
        # The operator's error is about the whole batch, not about an entry, or the rule does not cover these arguments: try entry by entry.
        if level.size == 0 or str(error).startswith(SAID) or name.endswith("_") or name == "__setitem__":
            raise
        result = NotImplemented
    return by_loop(level, func, args, kwargs) if result is NotImplemented else result


class BatchedTensor(StandIn):
    """A tensor `value` whose first dimension is the batch of a vmap; the function sees the other dimensions."""

    __slots__ = ("value", "level")

    def __init__(self, value: Any, level: int) -> None:
        self.value, self.level = value, level

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        return dispatch(func, args, kwargs or {})

    def _held(self) -> Tensor:
        return self.value

    shape = property(lambda self: _C.Size(tuple(self.value.shape)[1:]))
    layout = property(lambda self: self.value.layout)
    real = property(lambda self: BatchedTensor(self.value.real, self.level))
    imag = property(lambda self: BatchedTensor(self.value.imag, self.level))
    data = property(lambda self: BatchedTensor(self.value.detach(), self.level))
    grad = None

    def size(self, dim: int | None = None) -> Any:
        """As Tensor.size."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """As Tensor.dim."""
        return self.value.dim() - 1

    def numel(self) -> int:
        """As Tensor.numel."""
        return self.shape.numel()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"BatchedTensor(lvl={self.level}, bdim=0, value={self.value!r})"

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please file "
            "an issue at https://github.com/pytorch/pytorch/issues . (torch.where chooses between two results)"
        )

    def item(self) -> Any:
        """Raises RuntimeError, as the entries differ."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
            "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report."
        )

    __float__ = __int__ = __index__ = tolist = numpy = item

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("value", "level"):
            object.__setattr__(self, name, value)
        else:
            self.__dict__[name] = value
