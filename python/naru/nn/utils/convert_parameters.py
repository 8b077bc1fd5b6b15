"""Conversion of parameters to one vector and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Iterable

Tensor = _C.Tensor


def _check_devices(parameters: list[Tensor]) -> None:
    if len({str(p.device) for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, flattened and concatenated.

    >>> naru.nn.utils.parameters_to_vector([naru.tensor([[1.0, 2.0]]), naru.tensor([3.0])])
    tensor([1., 2., 3.])
    """
    return _C._parameters_to_vector(list(parameters))


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies consecutive parts of `vec` into the parameters, in order.

    Args:
        parameters: tensors that are written to.

    >>> p = naru.nn.Parameter(naru.zeros(2))
    >>> naru.nn.utils.vector_to_parameters(naru.tensor([1.0, 2.0]), [p])
    >>> p.data
    tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for param in parameters:
        size = param.numel()
        param.data = vec[start : start + size].view_as(param).data
        start += size
