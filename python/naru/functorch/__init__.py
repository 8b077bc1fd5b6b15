"""`functorch`, the older name of `torch.func`: its functions warn that they are deprecated, and modules become functions of their parameters.

`import functorch` imports this package wherever `import torch` imports naru.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from .. import _missing, func, version
from . import experimental
from ._modules import FunctionalModule, FunctionalModuleWithBuffers, combine_state_for_ensemble, make_functional, make_functional_with_buffers

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "experimental", "functionalize", "grad", "grad_and_value",
    "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip

__version__ = version.__version__


def _older(name: str, new: str) -> Callable[..., Any]:
    """The function of `torch.func`, with a warning at each call that names it."""
    plain = getattr(func, name)

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`functorch.{name}` is deprecated and will be deleted from PyTorch. Please use `{new}` instead.", FutureWarning, stacklevel=2)
        return plain(*args, **kwargs)

    return call


vmap = _older("vmap", "torch.vmap")
grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, functionalize = (
    _older(name, f"torch.func.{name}") for name in ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "functionalize")
)

__getattr__ = _missing.module_getattr(__name__)
