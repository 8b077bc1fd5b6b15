"""Activation functions along a dimension: the softmax family and GLU."""

from __future__ import annotations

from .. import _C
from .._functions.arguments import takes_tensors

Tensor = _C.Tensor


@takes_tensors
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """first half · sigmoid(second half), the halves along `dim`

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.glu(naru.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    return _C._glu(input, dim)


def _default_dim(name: str, input: Tensor) -> int:
    import warnings

    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; computed in `dtype` if given

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.softmax(naru.tensor([1.0, 2.0]), dim=0)
    tensor([0.2689, 0.7311])
    """
    if dim is None:
        dim = _default_dim("softmax", input)
    return _C.softmax(input, dim) if dtype is None else _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None) -> Tensor:
    """log(softmax(x)) along `dim`; computed in `dtype` if given

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.log_softmax(naru.tensor([1.0, 2.0]), dim=0)
    tensor([-1.3133, -0.3133])
    """
    if dim is None:
        dim = _default_dim("log_softmax", input)
    return _C.log_softmax(input, dim) if dtype is None else _C.log_softmax(input, dim, dtype=dtype)


@takes_tensors
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None) -> Tensor:
    """softmax(-x) along `dim`

    Args:
        input: any shape, floating point.
        dtype: the dtype of the computation; the input's if None.

    >>> naru.nn.functional.softmin(naru.tensor([1.0, 2.0]), dim=0)
    tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = _default_dim("softmin", input)
    return softmax(-input, dim, dtype=dtype)


@takes_tensors
def gumbel_softmax(logits: Tensor, tau: float | Tensor = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; `hard` returns one-hot values with the gradient of the soft ones

    Args:
        logits: unnormalized log probabilities, any shape.
        tau: the temperature; a tensor gets a gradient.
        eps: ignored with a warning.
        dim: the dimension of categories.

    >>> naru.nn.functional.gumbel_softmax(naru.zeros(4), hard=True).sum()
    tensor(1.)
    """
    if eps != 1e-10:
        import warnings

        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    if not isinstance(tau, _C.Tensor):
        return _C._gumbel_softmax(logits, tau, hard, dim)
    soft = ((logits - _C.empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_().log()) / tau).softmax(dim)
    if not hard:
        return soft
    return _C.zeros_like(soft).scatter(dim, soft.detach().argmax(dim, keepdim=True), 1.0) - soft.detach() + soft
