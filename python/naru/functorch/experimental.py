"""`functorch.experimental`: names that have moved to `torch.func`, and `chunk_vmap`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import _missing
from ..func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from ..func._vmap import _flat_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2) -> Callable[..., Any]:
    """`vmap` of `func` that processes the batch in `chunks` parts, one after another, to save memory.

    `in_dims`, `out_dims`, `randomness`: as in `torch.vmap`, which accepts chunk_size instead.

    >>> chunk_vmap(naru.sum, chunks=2)(naru.ones(4, 3))
    tensor([3., 3., 3., 3.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = _flat_inputs(in_dims, args, getattr(func, "__name__", repr(func)))[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(1, -(-size // chunks)))(*args, **kwargs)

    return wrapper


__getattr__ = _missing.module_getattr(__name__)
