"""Gradient clipping."""

from __future__ import annotations

from typing import Any

from ... import _C, _loaded

Tensor = _C.Tensor


def _as_list(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _are_distributed(tensors: list[Tensor]) -> bool:
    """Whether there is a DTensor among the tensors."""
    module = _loaded.distributed_tensors()
    return module is not None and any(isinstance(t, module.DTensor) for t in tensors)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector, as a 0-d tensor on the first one's device.

    Args:
        norm_type: the order p of the norm; inf for the maximum of absolute values.
        error_if_nonfinite: whether to raise RuntimeError if the norm is not finite.
        foreach: ignored.

    >>> naru.nn.utils.get_total_norm([naru.tensor([3.0]), naru.tensor([4.0])])
    tensor(5.)
    """
    if _are_distributed(tensors := _as_list(tensors)):
        return _loaded.distributed_tensors()._norms.total_norm(tensors, float(norm_type), error_if_nonfinite)
    return _C._get_total_norm(tensors, float(norm_type), error_if_nonfinite)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients, in place, by max_norm / total_norm if that is below 1.

    Args:
        parameters: a tensor or several, whose gradients are changed.
        max_norm: the maximum norm.
        total_norm: a 0-d tensor, as `get_total_norm` returns it.
        foreach: ignored.

    >>> p = naru.nn.Parameter(naru.zeros(2)); p.grad = naru.tensor([3.0, 4.0])
    >>> naru.nn.utils.clip_grads_with_norm_([p], 1.0, naru.tensor(5.0))
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    # No branch on the value: the host would have to wait for the device.
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    if _are_distributed([total_norm]):
        factor = factor.full_tensor()
    _C._multiply_each(grads, factor)  # each element alone, so that DTensors are multiplied as they lie


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients, in place, so that their norm as one vector is at most `max_norm`; returns the norm before scaling.

    Args:
        parameters: a tensor, or several; those without a gradient are skipped.
        norm_type: the order p of the norm; inf for the maximum of absolute values.
        error_if_nonfinite: whether to raise RuntimeError if the norm is not finite.
        foreach: ignored.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.zeros(2)); p.grad = naru.tensor([3.0, 4.0])
    >>> naru.nn.utils.clip_grad_norm_([p], 1.0)
    tensor(5.)
    """
    parameters = _as_list(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The deprecated name of `clip_grad_norm_`.

    Accepts the same arguments, and warns (FutureWarning).

    >>> p = naru.nn.Parameter(naru.zeros(2)); p.grad = naru.tensor([3.0, 4.0])
    >>> naru.nn.utils.clip_grad_norm([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    import warnings

    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every element of the gradients, in place, to [-clip_value, clip_value].

    Args:
        parameters: a tensor, or several; those without a gradient are skipped.
        foreach: ignored.

    >>> p = naru.nn.Parameter(naru.ones(2)); p.grad = naru.tensor([5.0, -5.0])
    >>> naru.nn.utils.clip_grad_value_([p], 1.0)
    >>> p.grad
    tensor([ 1., -1.])
    """
    clip_value = float(clip_value)
    with _C.no_grad():
        for param in _as_list(parameters):
            if param.grad is not None:
                param.grad.clamp_(min=-clip_value, max=clip_value)
