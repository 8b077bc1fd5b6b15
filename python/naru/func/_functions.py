"""`autograd.Function` within vmap."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C
from ..autograd.function import Function
from ..utils._pytree import tree_leaves, tree_map
from ._batched import by_loop, has_batch, here, is_batched, level_of, opened, wrapped

Tensor = _C.Tensor


class VmapInfo(NamedTuple):
    """The information about the batch that a Function's `vmap` method receives."""

    batch_size: int
    randomness: str


def apply(cls: type[Function], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls the Function's own batching rule, or the Function once for each entry, with a warning, if it has generate_vmap_rule=True."""
    number = max(level_of(x) for x in tree_leaves(args) if is_batched(x))
    level = next(known for known in here.levels if known.number == number)
    if any(isinstance(x, Tensor) for x in kwargs.values()):
        raise NotImplementedError(f"You tried to vmap over {cls.__name__} with kwarg-only Tensor args, which is not supported; pass them by position")
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            f"In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
            f"staticmethod ({cls.__name__}: split forward(ctx, ...) into forward(...) and setup_context(ctx, inputs, output))"
        )
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please set "
            "generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if own:
        dims = tree_map(lambda x: 0 if has_batch(x, level) else None, args)
        found = cls.vmap(VmapInfo(level.size, level.randomness), dims, *tree_map(lambda x: opened(x, level), args), **kwargs)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(f"Expected the vmap staticmethod of {cls.__name__} to have two returns (output, out_dims), got {type(found)}")
        output, out_dims = found
        several = isinstance(output, (tuple, list))
        if isinstance(out_dims, tuple) and (not several or len(out_dims) != len(output)):
            raise RuntimeError(
                f"The vmap staticmethod of {cls.__name__} returned an incompatible (output, out_dims) tuple: wanted one of out_dims={out_dims} "
                f"for each output, got {f'{len(output)} outputs' if several else 'a single output'}"
            )
        if not several:
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
