"""`torch.func`: function transforms (gradients, Jacobians, vmap), and modules as functions of their parameters."""

from __future__ import annotations

from .. import _missing
from ._functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._jacobians import hessian, jacfwd, jacrev
from ._transforms import functionalize, grad, grad_and_value, jvp, linearize, vjp
from ._vmap import vmap

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
