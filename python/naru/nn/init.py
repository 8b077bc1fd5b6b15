"""`torch.nn.init`: functions that initialise a tensor in place. They do not record gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from .._functions.arguments import takes_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

def _seeded(generator: Any) -> dict[str, Any]:
    return {} if generator is None else {"generator": generator}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended scale of weights before `nonlinearity`; `param` is leaky_relu's negative slope.

    >>> round(naru.nn.init.calculate_gain('relu'), 4)
    1.4142
    """
    if param is not None and (not isinstance(param, (int, float)) or isinstance(param, bool)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return _C._calculate_gain(nonlinearity, param)


@takes_tensors
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with values from the uniform distribution on [a, b).

    Args:
        generator: the random number generator; the default one if None.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.uniform_(w, 2.0, 2.0)
    tensor([[2., 2.],
            [2., 2.]])
    """
    with _C.no_grad():
        return tensor.uniform_(a, b, **_seeded(generator))


@takes_tensors
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with values from the normal distribution.

    Args:
        mean: the mean.
        std: the standard deviation.
        generator: the random number generator; the default one if None.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.normal_(w, 2.0, 0.0)
    tensor([[2., 2.],
            [2., 2.]])
    """
    with _C.no_grad():
        return tensor.normal_(mean, std, **_seeded(generator))


@takes_tensors
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fills with values from the normal distribution, truncated to [a, b]: values outside are redrawn.

    Args:
        mean: the mean.
        std: the standard deviation.
        generator: the random number generator; the default one if None.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.trunc_normal_(w).abs().max() <= 2
    tensor(True)
    """
    return _C._trunc_normal_(tensor, mean, std, a, b, **_seeded(generator))


def _no_grad_trunc_normal_(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None) -> Tensor:
    """`trunc_normal_` under a private name of PyTorch's that programs import."""
    return trunc_normal_(tensor, mean, std, a, b, generator)


@takes_tensors
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with `val`.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.constant_(w, 3.0)
    tensor([[3., 3.],
            [3., 3.]])
    """
    with _C.no_grad():
        return tensor.fill_(val)


@takes_tensors
def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.ones_(w)
    tensor([[1., 1.],
            [1., 1.]])
    """
    return constant_(tensor, 1.0)


@takes_tensors
def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.zeros_(w)
    tensor([[0., 0.],
            [0., 0.]])
    """
    with _C.no_grad():
        return tensor.zero_()


@takes_tensors
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.eye_(w)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _C._eye_(tensor)


@takes_tensors
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution so that the convolution preserves its channels.

    Args:
        groups: the number of groups of channels; each is preserved separately.

    >>> naru.nn.init.dirac_(naru.empty(1, 1, 3)).flatten()
    tensor([0., 1., 0.])
    """
    return _C._dirac_(tensor, groups)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight: the numbers of inputs per output, and of outputs per input."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


@takes_tensors
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with values uniform in ± gain · sqrt(6 / (fan_in + fan_out)).

    Args:
        tensor: at least two dimensions (ValueError).
        generator: the random number generator; the default one if None.

    >>> naru.nn.init.xavier_uniform_(naru.empty(3, 3)).abs().max() <= 1
    tensor(True)
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@takes_tensors
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with normal values with standard deviation gain · sqrt(2 / (fan_in + fan_out)).

    Args:
        tensor: at least two dimensions (ValueError).
        generator: the random number generator; the default one if None.

    >>> naru.nn.init.xavier_normal_(naru.empty(200, 200)).std().round(decimals=2)
    tensor(0.0700)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _warn_empty() -> None:
    import warnings

    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)


@takes_tensors
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fills with values uniform in ± gain · sqrt(3 / fan).

    Args:
        tensor: at least two dimensions (ValueError).
        a: leaky_relu's negative slope.
        mode: "fan_in" keeps the variance of forward, "fan_out" that of backward.
        nonlinearity: the function that follows the weights, as in `calculate_gain`.
        generator: the random number generator; the default one if None.

    >>> naru.nn.init.kaiming_uniform_(naru.empty(2, 3), nonlinearity="linear").abs().max() <= 1
    tensor(True)
    """
    if 0 in tensor.shape:
        _warn_empty()
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@takes_tensors
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fills with normal values with standard deviation gain / sqrt(fan).

    Args:
        tensor: at least two dimensions (ValueError).
        a: leaky_relu's negative slope.
        mode: "fan_in" keeps the variance of forward, "fan_out" that of backward.
        nonlinearity: the function that follows the weights, as in `calculate_gain`.
        generator: the random number generator; the default one if None.

    >>> naru.nn.init.kaiming_normal_(naru.empty(200, 200), nonlinearity="relu").std().round(decimals=2)
    tensor(0.1000)
    """
    if 0 in tensor.shape:
        _warn_empty()
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@takes_tensors
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fills with a (semi-)orthogonal matrix, where the dimensions after the first are flattened.

    Args:
        gain: the scale of the matrix.
        generator: the random number generator; the default one if None.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.orthogonal_(w).det().abs().round()
    tensor(1.)
    """
    return _C._orthogonal_(tensor, gain, **_seeded(generator))


@takes_tensors
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fills a matrix with normal values, and sets the fraction `sparsity` of each column to 0.

    Args:
        std: the standard deviation of the values that are not 0.
        generator: the random number generator; the default one if None.

    >>> w = naru.empty(2, 2)
    >>> naru.nn.init.sparse_(w, sparsity=0.5).eq(0).sum(0)
    tensor([1, 1])
    """
    return _C._sparse_(tensor, sparsity, std, **_seeded(generator))


def _deprecated(new: Callable[..., Tensor], call: str, shown: str) -> Callable[..., Tensor]:
    """Makes the deprecated alias of a function; `call` of the new one prints `shown` in its doctest."""
    old_name = new.__name__[:-1]

    def old(*args: Any, **kwargs: Any) -> Tensor:
        import warnings

        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new.__name__}`.", FutureWarning, stacklevel=2
        )
        return new(*args, **kwargs)

    old.__name__ = old_name
    old.__doc__ = f"""The old name of `{new.__name__}`, whose arguments it takes; it warns (FutureWarning).

>>> naru.nn.init.{old_name}({call}
{shown}
"""
    return old


uniform = _deprecated(uniform_, "naru.empty(2), 3.0, 3.0)", "tensor([3., 3.])")
normal = _deprecated(normal_, "naru.empty(2), 3.0, 0.0)", "tensor([3., 3.])")
constant = _deprecated(constant_, "naru.empty(2), 3.0)", "tensor([3., 3.])")
eye = _deprecated(eye_, "naru.empty(2, 2))", "tensor([[1., 0.],\n        [0., 1.]])")
dirac = _deprecated(dirac_, "naru.empty(1, 1, 3))", "tensor([[[0., 1., 0.]]])")
xavier_uniform = _deprecated(xavier_uniform_, "naru.empty(3, 3)).abs().max() <= 1", "tensor(True)")
xavier_normal = _deprecated(xavier_normal_, "naru.empty(3, 3), gain=0.0).abs().max()", "tensor(0.)")
kaiming_uniform = _deprecated(kaiming_uniform_, 'naru.empty(3, 3), nonlinearity="linear").abs().max() <= 1', "tensor(True)")
kaiming_normal = _deprecated(kaiming_normal_, "naru.empty(100, 100)).std().round(decimals=1)", "tensor(0.1000)")
orthogonal = _deprecated(orthogonal_, "naru.empty(2, 2)).det().abs().round()", "tensor(1.)")
sparse = _deprecated(sparse_, "naru.empty(4, 1), sparsity=0.5).count_nonzero()", "tensor(2)")

__getattr__ = _missing.module_getattr(__name__)
