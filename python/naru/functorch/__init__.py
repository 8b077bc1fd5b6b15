"""`functorch`, the older name of what is in `torch.func`: its functions warn that they are that, and modules become functions of their parameters.

`import functorch` means this package wherever `import torch` means naru.
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
    """The function of `torch.func`, which says at each call that this is its name."""
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
