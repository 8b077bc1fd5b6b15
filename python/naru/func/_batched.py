"""Batching rules in Python, for functions that have none in C++, and the levels of nested vmaps.

The tensors that `vmap` passes to its function are C++'s (src/ops/batch/batch.h). Calls come here if the function has a rule in Python, by its name,
or if C++ refuses them: then the function is called once for each entry, with a warning that names it.
"""

from __future__ import annotations

import functools
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _stand_in
from .._stand_in import OPERATORS, is_in_place, leaves, mapped

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class Level(NamedTuple):
    """One active vmap."""

    number: int
    size: int
    randomness: str


WrittenWithoutBatchError = _C._WrittenWithoutBatchError  # a tensor without the batch would be written in place from one with the batch


class _Local(threading.local):
    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.drawing = False  # within a rule that draws the random numbers of all entries


here = _Local()
RULES: dict[str, Callable[..., Any]] = {}
# In-place methods without a rule that write to the elements of each entry, where it lies.
WRITE_ELEMENTS = ("apply_", "fill_diagonal_", "map_", "map2_")
RESIZE = ("resize_", "resize_as_", "set_")  # not supported
# Prefixes of the errors that rules raise themselves.
SAID = ("vmap:", "vmap over", "Batching rule not", "Batch norm got")


def rule(*names: str) -> Callable[[Any], Any]:
    """Registers a batching rule f(level, func, args, kwargs) for functions with these names."""

    def register(f: Any) -> Any:
        for name in names:
            RULES[name] = f
        return f

    return register


level_of = _C._batch_level  # the number of the vmap that a tensor is of, 0 for others
value_of = _C._batch_value  # the value of a batched tensor, whose first dimension is the batch


def is_batched(x: Any) -> bool:
    """Whether `x` is a batched tensor of any level."""
    return level_of(x) > 0


def has_batch(x: Any, level: Level) -> bool:
    """Whether `x` has the batch of this level."""
    return level_of(x) == level.number


def opened(x: Any, level: Level) -> Any:
    """`x` with the batch as its first dimension; unchanged if it has no batch."""
    return value_of(x) if has_batch(x, level) else x


def wrapped(value: Any, level: Level) -> Any:
    """The tensors in a result, batch first, as the batched tensors that the function sees."""
    return _stand_in.wrapped(lambda t: _C._make_batched(t, level.number), value)


def rank(x: Any, level: Level) -> int:
    """The number of dimensions that the function sees."""
    return x.dim()


def with_batch(x: Any, level: Level) -> Any:
    """`x` with the batch as its first dimension; expanded if it has no batch."""
    return value_of(x) if has_batch(x, level) else x.unsqueeze(0).expand((level.size, *x.shape))


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
        one = functools.partial(mapped, lambda x, i=i: value_of(x).select(0, i) if has_batch(x, level) else x)
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


def _written(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Does what an in-place method does that has no rule of its own, by the function that computes the new value."""
    name, target = func.__name__, args[0]
    require_batch(target, level, name)
    function = getattr(Tensor, name[:-1], None) or getattr(_C, name[:-1], None)
    if function is None or name in WRITE_ELEMENTS or name in RESIZE:
        return by_loop(level, func, args, kwargs)
    before = target.clone() if target.requires_grad else target  # the function may save what is overwritten
    result = function(before, *args[1:], **kwargs)
    return target.copy_(result)


def _innermost(args: tuple, kwargs: dict[str, Any]) -> Level:
    number = max((_C._batch_level(x) for x in leaves((*args, *kwargs.values()))), default=0)
    level = next((known for known in here.levels if known.number == number), None)
    if level is None:
        raise RuntimeError("vmap: a tensor of a vmap that is over is used; return what is needed from the function")
    return level


def _has_rule(name: str) -> bool:
    """Whether calls of a function of this name come to `_dispatch`, and not to C++'s rule."""
    return name in RULES or name.strip("_") in RULES


def _dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls `func` for all entries of the innermost batch among its arguments at once, by Python's rule."""
    level, name = _innermost(args, kwargs), func.__name__
    func = OPERATORS.get(name, func) if name.startswith("__") else func
    if is_in_place(name) and name not in RULES:
        return _written(level, func, args, kwargs)
    try:
        result = RULES.get(name, RULES.get(name.strip("_")))(level, func, args, kwargs)
    except Exception as error:
        # The operator's error is about the whole batch, not about an entry, or the rule does not cover these arguments: try entry by entry.
        if level.size == 0 or str(error).startswith(SAID) or name.endswith("_") or name == "__setitem__":
            raise
        result = NotImplemented
    return by_loop(level, func, args, kwargs) if result is NotImplemented else result


def _missed(func: Any, args: tuple, kwargs: dict[str, Any], error: BaseException) -> Any:
    """The result of a call that C++ refused, entry by entry; or the error of an entry, as C++'s may be about the whole batch."""
    level, name = _innermost(args, kwargs), func.__name__
    if isinstance(error, _C._NoBatchingRule):
        return _written(level, func, args, kwargs) if is_in_place(name) else by_loop(level, func, args, kwargs)
    said = str(error).startswith(SAID) and not isinstance(error, WrittenWithoutBatchError)
    if level.size == 0 or said or is_in_place(name) or not isinstance(error, Exception):
        raise error
    return by_loop(level, func, args, kwargs)


_C._set_batching(_has_rule, _dispatch, _missed)
