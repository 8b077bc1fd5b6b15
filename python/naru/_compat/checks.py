"""`torch._check` and its variants, which raise if a condition is false, and small functions that packages expect in `torch`."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import _C, _missing

Tensor = _C.Tensor

_UNSAID = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"
)


def _raise(error_type: type[BaseException], message: Any) -> NoReturn:
    if message is None:
        raise error_type(_UNSAID)
    raise error_type(str(message() if callable(message) else message))


def _check_with(error_type: type[BaseException], cond: Any, message: Any = None) -> None:
    """Raises `error_type` with the message (a string, or a function returning it) if `cond`, a bool, is False."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _raise(error_type, message)


def _check(cond: Any, message: Any = None) -> None:
    """RuntimeError if the condition is False."""
    _check_with(RuntimeError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """ValueError if the condition is False."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """TypeError if the condition is False."""
    _check_with(TypeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """IndexError if the condition is False."""
    _check_with(IndexError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """NotImplementedError if the condition is False."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """RuntimeError if `i` is negative, or above `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[BaseException], cond: Tensor, message: Any = None) -> None:
    """Raises `error_type` if an element of a bool tensor is False."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """RuntimeError if an element of a bool tensor is False."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: object, message: object) -> Any:
    """AssertionError if the condition is false."""
    if type(condition) not in (bool, Tensor) and hasattr(type(condition), "__torch_function__"):
        from ..overrides import handle_torch_function, has_torch_function_unary

        if has_torch_function_unary(condition):
            return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """RuntimeError if the single element is zero; waits for the device."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax with respect to its input."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def get_device_module(device: Any = None) -> Any:
    """The module for the kind of `device` (`torch.cuda`, `torch.cpu` ...); without a device, that of the current accelerator, else `torch.cpu`.

    >>> naru.get_device_module("cpu") is naru.cpu
    True
    """
    from importlib import import_module

    if device is None:
        kind = next((k for k in _C._ACCELERATORS if _C.device_count(k)), "cpu")
    else:
        kind = _C.device(device).type
    try:
        return import_module("." + kind, _C.__name__.partition(".")[0])
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device string: '{device}', make sure it has a corresponding module registered under 'torch'.") from None


def sym_float(a: Any) -> float:
    """`float(a)`: sizes are plain numbers, never symbolic.

    >>> naru.sym_float(3)
    3.0
    """
    return float(a)


def sym_int(a: Any) -> int:
    """`int(a)`: sizes are plain numbers, never symbolic.

    >>> naru.sym_int(3.7)
    3
    """
    return int(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger of the numbers `a` and `b`, a float if either is.

    >>> naru.sym_max(3, 2.0)
    3.0
    """
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of the numbers `a` and `b`, a float if either is.

    >>> naru.sym_min(3, 5.0)
    3.0
    """
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> bool:
    """`not a`.

    >>> naru.sym_not(False)
    True
    """
    return not a


SymInt, SymFloat, SymBool, PyTorchFileReader = (
    _missing.absent_class(name) for name in ("SymInt", "SymFloat", "SymBool", "PyTorchFileReader")
)


def _has_compatible_shallow_copy_type(input: Any, other: Any) -> bool:
    """Whether `other`'s elements can take the place of `input`'s: both are dense, or of one layout."""
    return input.layout is other.layout
