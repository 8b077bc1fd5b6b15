"""Rarely used methods of tensors; `_tensor` installs them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .. import _C

Tensor = _C.Tensor


def _package() -> Any:
    """The package itself, whose functions and types are made when they are asked for."""
    return sys.modules[__package__.rpartition(".")[0]]


def _dim_order(self: Tensor, *, ambiguity_check: bool | list[_C.memory_format] = False) -> tuple[int, ...]:
    """The dimensions, in order of decreasing stride. With `ambiguity_check` True, or a list of memory formats of which exactly one must match,
    RuntimeError if more than one order describes the memory.

    >>> import naru
    >>> naru.ones(2, 3).t().dim_order()
    (1, 0)
    """
    if self.is_sparse:
        raise AttributeError(f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense tensor first.")
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(each, _C.memory_format) for each in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    if ambiguity_check is not False and (1 in self.shape or any(a == b for a, b in zip(strides, strides[1:]))):
        if sum(self.is_contiguous(memory_format=each) for each in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    return tuple(sorted(range(self.dim()), key=lambda d: (-strides[d], d)))


def _module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The tensor with which `Module.load_state_dict` replaces this one to load `other`, if `torch.__future__` enables swapping: this tensor with the
    data of other, or with `assign` other itself. Subclasses override it with `__torch_function__`.

    >>> x = naru.zeros(2)
    >>> x.module_load(naru.ones(2))
    tensor([1., 1.])
    """
    from ..overrides import handle_torch_function, has_torch_function

    if has_torch_function((self, other)):
        return handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
    return other.detach() if assign else self.copy_(other).detach()


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    """The elements reshaped to other `sizes`; deprecated in PyTorch in favor of `resize_`.

    >>> import naru, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     naru.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return self.contiguous().view(*sizes)


def _resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The elements reshaped to the sizes of `tensor`; deprecated in PyTorch in favor of `resize_as_`.

    >>> import naru, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     naru.arange(4).resize_as(naru.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return _resize(self, tensor.shape)


def _const_data_ptr(self: Tensor) -> int:
    """data_ptr(), for memory that is only read.

    >>> import naru
    >>> x = naru.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


# Functions that are also methods, with an example of each; removed ones raise an error that names the replacement.
_AS_FUNCTIONS = {
    "smm": ">>> naru.eye(2).to_sparse().smm(naru.ones(2, 1)).to_dense()\ntensor([[1.],\n        [1.]])",
    "sspaddmm": ">>> s = naru.eye(2).to_sparse()\n>>> s.sspaddmm(s, naru.ones(2, 2)).to_dense()\ntensor([[2., 1.],\n        [1., 2.]])",
    "is_distributed": ">>> naru.ones(1).is_distributed()\nFalse",
    **{
        name: f">>> try:\n...     naru.eye(2).{name}()\n... except RuntimeError as error:\n...     print(str(error)[:65])\nThis function was deprecated since version 1.9 and is now removed"
        for name in ("cholesky", "eig", "lstsq", "qr", "solve", "symeig")
    },
}


def _of_name(name: str) -> Any:
    """The function of that name as a method; imported on first call."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(_package(), name)(self, *args, **kwargs)

    call.__doc__ = f"torch.{name}(self, ...), as a method.\n\n{_AS_FUNCTIONS[name]}"
    return call


def _to_padded_tensor(self: Tensor, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
    """For a nested tensor: torch.nested.to_padded_tensor(self, `padding`, `output_size`, `out`). NotImplementedError for other tensors.

    >>> import naru
    >>> naru.nested.nested_tensor([[1, 2], [3]]).to_padded_tensor(0)
    tensor([[1, 2],
            [3, 0]])
    """
    raise NotImplementedError(
        "to_padded_tensor: wanted a nested tensor, got a dense one of shape " + str(tuple(self.shape)) + "; torch.nested.as_nested_tensor makes one of a list"
    )


def _storage_type(self: Tensor) -> Any:
    """The typed storage class for the tensor's dtype, torch.FloatStorage and so on.

    >>> import naru
    >>> naru.ones(3).storage_type().__name__
    'FloatStorage'
    """
    from .._storage_methods import storage_type_names

    module = _package()
    return getattr(module if self.device.type == "cpu" else getattr(module, self.device.type), storage_type_names()[self.dtype])


METHODS = {
    "module_load": _module_load,
    "storage_type": _storage_type,
    "to_padded_tensor": _to_padded_tensor,
    "dim_order": _dim_order,
    "resize": _resize,
    "resize_as": _resize_as,
    "const_data_ptr": _const_data_ptr,
    **{name: _of_name(name) for name in _AS_FUNCTIONS},
}
