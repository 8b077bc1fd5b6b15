"""`torch.distributions.utils`: helpers shared by distributions."""

from __future__ import annotations

from functools import update_wrapper
from numbers import Number
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from .._functions.dtype_limits import finfo
from ..nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcasts the values, tensors or numbers, to tensors of one shape. Numbers get the dtype of the first tensor.

    Raises ValueError for anything else.

    >>> naru.distributions.utils.broadcast_all(naru.tensor([1.0, 2.0]), 3)
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    if not all(isinstance(v, Tensor) or isinstance(v, Number) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options = {"dtype": _C.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return tuple(_C.broadcast_tensors(*(v if isinstance(v, Tensor) else _C.tensor(v, **options) for v in values)))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return _C.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sums over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def _size(value: Any) -> _C.Size:
    return value if isinstance(value, _C.Size) else _C.Size(value)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Converts logits to probabilities: sigmoid if binary (log odds), else softmax over the last dimension.

    Args:
        logits: a floating-point tensor of any shape.
        is_binary: whether each number is a log odds.

    >>> naru.distributions.utils.logits_to_probs(naru.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    >>> naru.distributions.utils.logits_to_probs(naru.tensor([0.0, 2.0]), is_binary=True)
    tensor([0.5000, 0.8808])
    """
    return _C.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities away from 0 and 1 by the dtype's eps.

    Args:
        probs: a floating-point tensor of any shape.

    >>> naru.distributions.utils.clamp_probs(naru.tensor([0.0, 0.5])) > 0
    tensor([True, True])
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Converts probabilities to logits: log odds if binary, else logarithms.

    Args:
        probs: a floating-point tensor of any shape.
        is_binary: whether each number is the probability of 1.

    >>> naru.distributions.utils.probs_to_logits(naru.tensor([0.5, 0.25]))
    tensor([-0.6931, -1.3863])
    >>> naru.distributions.utils.probs_to_logits(naru.tensor([0.5, 0.25]), is_binary=True)
    tensor([ 0.0000, -1.0986])
    """
    clamped = clamp_probs(probs)
    return _C.log(clamped) - _C.log1p(-clamped) if is_binary else _C.log(clamped)


class lazy_property:
    """A property that is computed once and then stored as an attribute.

    Args:
        wrapped: the getter.

    >>> class Square:
    ...     @naru.distributions.utils.lazy_property
    ...     def area(self):
    ...         print("computed")
    ...         return 4
    >>> square = Square()
    >>> square.area + square.area
    computed
    8
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _LazyAndProperty(self.wrapped)
        with _grad_on():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyAndProperty(lazy_property, property):
    """The lazy property when read from the class, for documentation tools."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _grad_on() -> Any:
    from ..autograd.grad_mode import enable_grad

    return enable_grad()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal of square matrices, in row-major order.

    Args:
        mat: shape (..., n, n). diag: the last diagonal included; 0 is the main one.

    >>> naru.distributions.utils.tril_matrix_to_vec(naru.tensor([[1, 0], [2, 3]]))
    tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _C.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`: square matrices with the given elements, 0 elsewhere.

    Args:
        vec: shape (..., number of elements). diag: as in `tril_matrix_to_vec`. ValueError if the number of elements fits no square matrix.

    >>> naru.distributions.utils.vec_to_tril_matrix(naru.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = finfo(vec.dtype).eps
    if not round(n) - eps <= n <= round(n) + eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    mat = _C.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    rows, columns = _C.tril_indices(n, n, diag)
    mat[..., rows, columns] = vec
    return mat


__getattr__ = _missing.module_getattr(__name__)
