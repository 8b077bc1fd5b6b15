"""Functions with a derivative of the user's own, within vmap."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C
from ..autograd.function import Function
from ._batched import by_loop, has_batch, here, is_batched, opened, wrapped

Tensor = _C.Tensor


class VmapInfo(NamedTuple):
    """What a function's `vmap` is told of the batch."""

    batch_size: int
    randomness: str


def apply(cls: type[Function], args: tuple, kwargs: dict[str, Any]) -> Any:
    """A call by the function's own rule; one call for each entry, with a warning, where it asks for a rule to be made."""
    number = max(x.level for x in args if is_batched(x))
    level = next(known for known in here.levels if known.number == number)
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please set "
            "generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if own:
        dims = tuple(0 if has_batch(x, level) else None for x in args)
        output, out_dims = cls.vmap(VmapInfo(level.size, level.randomness), dims, *(opened(x, level) for x in args))
        if not isinstance(output, tuple):
            return output if out_dims is None else wrapped(output.movedim(out_dims, 0), level)
        each = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(output)
        return tuple(o if d is None else wrapped(o.movedim(d, 0), level) for o, d in zip(output, each))
    if cls.generate_vmap_rule:

        def one(*entry: Any) -> Any:
            return cls.apply(*entry, **kwargs)

        one.__name__ = cls.__name__
        return by_loop(level, one, args, {})
    raise RuntimeError(
        f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap staticmethod or set "
        "generate_vmap_rule=True. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
    )
