"""Activation functions of `torch.nn.functional`.

Each takes a tensor of any shape and returns one of the same shape. `inplace=True` writes into the argument.
Most are functions of the core; the others are expressions over its operations.
"""

from __future__ import annotations

from .. import _C
from .._functions.arguments import require_floating, takes_tensors
from .._functions.dtype_limits import finfo

Tensor = _C.Tensor

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _finish(input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    return input.copy_(out) if inplace else out


def _apart(input: Tensor, inplace: bool) -> Tensor:
    """What a function in place computes from: where history is recorded a copy, which the write does not touch."""
    return input.clone() if inplace and input.requires_grad and _C.is_grad_enabled() else input


def _negative_part(x: Tensor) -> Tensor:
    """x where it is not positive, else 0: keeps the branch of a `where` that is not taken, and its gradient, finite."""
    return _C.where(x > 0, _C.zeros_like(x), x)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)"""
    return _C.relu_(input) if inplace else _C.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(x, 0), in place"""
    return _C.relu_(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))"""
    return _C.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(x)"""
    return _C.tanh(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)"""
    x = _apart(input, inplace)
    return _finish(input, _C.relu6(x), inplace)


@takes_tensors
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x held between min_val and max_val; no gradient at or beyond the limits"""
    x = _apart(input, inplace)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not input.is_floating_point():
        if input.dtype == _C.bool:
            raise NotImplementedError("Bool inputs not supported for hardtanh")
        min_val, max_val = int(min_val), int(max_val)
    return _finish(input, x.clamp(min=min_val, max=max_val), inplace)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, in place"""
    return hardtanh(input, min_val, max_val, True)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""
    x = _apart(input, inplace)
    return _finish(input, _C.hardsigmoid(x), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · hardsigmoid(x)"""
    x = _apart(input, inplace)
    return _finish(input, _C.hardswish(x), inplace)


@takes_tensors
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0"""
    require_floating(input, "hardshrink_cpu")
    return _C.where(input.abs() <= lambd, _C.zeros_like(input), input)


@takes_tensors
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, 0 within lambd of it"""
    require_floating(input, "softshrink_check")
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _C.where(input.abs() <= lambd, _C.zeros_like(input), input - input.clamp(min=-lambd, max=lambd))


@takes_tensors
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)"""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)"""
    return _C.softsign(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value"""
    x = _apart(input, inplace)
    return _finish(input, _C.threshold(x, threshold, value), inplace)


@takes_tensors
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """The function `threshold`, in place"""
    return _finish(input, _C.threshold(_apart(input, True), threshold, value), True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x"""
    x = _apart(input, inplace)
    return _finish(input, _C.leaky_relu(x, negative_slope), inplace)


@takes_tensors
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, in place"""
    return leaky_relu(input, negative_slope, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x) - 1)"""
    x = _apart(input, inplace)
    return _finish(input, _C.elu(x, alpha), inplace)


@takes_tensors
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, in place"""
    return elu(input, alpha, True)


@takes_tensors
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x / alpha) - 1)"""
    x = _apart(input, inplace)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if not input.is_floating_point():
        return _C.elu(input, alpha)  # which tells what it is not for
    out = _C.where(x > 0, x, alpha * _C.expm1(_negative_part(x) / alpha))
    return _finish(input, out, inplace)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, in place"""
    return celu(input, alpha, True)


@takes_tensors
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · elu(x, alpha) with the constants that keep mean 0 and variance 1"""
    x = _apart(input, inplace)
    return _finish(input, _SELU_SCALE * _C.elu(x, _SELU_ALPHA), inplace)


def selu_(input: Tensor) -> Tensor:
    """`selu`, in place"""
    return selu(input, True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x · Φ(x), Φ the normal distribution's; approximate="tanh" takes the usual approximation of it"""
    if approximate == "none":
        return _C.gelu(input)
    if approximate == "tanh":
        return _C.gelu_tanh(input)
    raise RuntimeError("approximate argument must be either none or tanh.")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)"""
    x = _apart(input, inplace)
    return _finish(input, _C.silu(x), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))"""
    x = _apart(input, inplace)
    return _finish(input, _C.mish(x), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold"""
    return _C.softplus(input, beta, threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow"""
    return _C.logsigmoid(input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight · x; weight has one element, or one for each channel (dimension 1)"""
    return _C.prelu(input, weight)


@takes_tensors
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """first half · sigmoid(second half), the halves along `dim`"""
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}")
    require_floating(input, "glu_cpu")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


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
    """exp(x) / sum(exp(x)) along `dim`; computed in `dtype` if given"""
    if dim is None:
        dim = _default_dim("softmax", input)
    return _C.softmax(input, dim) if dtype is None else _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None) -> Tensor:
    """log(softmax(x)) along `dim`; computed in `dtype` if given"""
    if dim is None:
        dim = _default_dim("log_softmax", input)
    return _C.log_softmax(input, dim) if dtype is None else _C.log_softmax(input, dim, dtype=dtype)


@takes_tensors
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None) -> Tensor:
    """softmax(-x) along `dim`"""
    if dim is None:
        dim = _default_dim("softmin", input)
    return softmax(-input, dim, dtype=dtype)


@takes_tensors
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; `hard` gives one-hot values with the soft ones' gradient"""
    uniform = _C.rand_like(logits.detach()).clamp(min=finfo(logits.dtype).tiny)
    soft = softmax((logits - (-uniform.log()).log()) / tau, dim)
    if not hard:
        return soft
    top = soft.argmax(dim, True)
    positions = _C.arange(soft.shape[dim] if soft.dim() else 1, device=soft.device)
    shape = [1] * soft.dim()
    if shape:
        shape[dim] = -1
    one_hot = (positions.reshape(shape) == top).to(soft.dtype)
    return one_hot - soft.detach() + soft
