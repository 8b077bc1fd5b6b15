"""`torch.autocast`: a block in which matrix products and convolutions run in 16 bits, and operators that need the precision in float32."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_HALF = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast is available for `device_type`: True for each kind of device that naru knows.

    >>> naru.amp.is_autocast_available("cpu")
    True
    """
    return device_type in _C._KINDS


class autocast:
    """A context manager and decorator: within it, floating-point arguments of operators are cast according to PyTorch's lists.

    device_type: the kind of device whose tensors are cast ("cuda", "cpu", ...). dtype: the lower-precision dtype (default float16; on cpu bfloat16).
    enabled: False disables autocast within an enclosing block. cache_enabled: whether a weight is cast only once in the outermost block.
    float64 is never cast. The state belongs to the thread. Errors: RuntimeError for an unknown kind of device.

    >>> with naru.autocast('cpu'):
    ...     print((naru.ones(2, 2) @ naru.ones(2, 2)).dtype)
    torch.bfloat16
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            _C.device(device_type)  # raises its own error for an unknown kind
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = cache_enabled
        if enabled and device_type == "cuda" and not _C.is_available("cuda"):
            warnings.warn("CUDA is not available. Disabling autocast. " + _C.why_unavailable("cuda"), stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in _HALF:
            kind = device_type.upper()
            warnings.warn(
                f"In {kind} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{kind} Autocast only supports dtypes of {', '.join(map(str, _HALF))} currently, not {self.fast_dtype}.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._outside: list[tuple[bool, Any, bool]] = []

    def __enter__(self) -> autocast:
        kind = self.device
        self._outside.append((_C.is_autocast_enabled(kind), _C.get_autocast_dtype(kind), _C.is_autocast_cache_enabled()))
        _C.autocast_increment_nesting()
        _C.set_autocast_enabled(kind, self._enabled)
        _C.set_autocast_dtype(kind, self.fast_dtype)
        if self._cache_enabled is not None:
            _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exc: object) -> None:
        enabled, dtype, cached = self._outside.pop()
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cached)

    def __call__(self, func: F) -> F:
        if not callable(func):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(func).__name__}; a block is `with autocast(...):`")

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return func(*args, **kwargs)

        return inside  # type: ignore[return-value]


def _cast(value: Any, kind: str, dtype: Any) -> Any:
    """`value` with the floating-point tensors of one kind of device cast; float64 and everything else is unchanged."""
    if isinstance(value, _C.Tensor):
        takes = value.is_floating_point() and value.device.type == kind and value.dtype != _C.float64
        return value.to(dtype) if takes else value
    if isinstance(value, dict):
        return {_cast(k, kind, dtype): _cast(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, kind, dtype) for v in value)
    return value


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorates `forward` of an `autograd.Function`, `fwd`: records the autocast state of `device_type` for `custom_bwd`.

    With `cast_inputs`, within an autocast block, tensors are cast to that dtype and `forward` runs with autocast off. ValueError if device_type is
    not a str.

    >>> class Product(naru.autograd.Function):
    ...     @staticmethod
    ...     @naru.amp.custom_fwd(device_type="cpu", cast_inputs=naru.float32)
    ...     def forward(ctx, a, b):
    ...         return a @ b
    >>> with naru.autocast("cpu"):
    ...     Product.apply(naru.ones(1, 1), naru.ones(1, 1)).dtype
    torch.float32
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        inside = _C.is_autocast_enabled(device_type)
        ctx._dtype = _C.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = inside and cast_inputs is None
        if not inside or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates `backward` of an `autograd.Function`, `bwd`: it runs in the autocast state of `device_type` that `forward` ran in.

    >>> class Double(naru.autograd.Function):
    ...     @staticmethod
    ...     @naru.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @naru.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         print(naru.is_autocast_enabled("cpu"))
    ...         return 2 * grad
    >>> with naru.autocast("cpu"):
    ...     y = Double.apply(naru.ones(1, requires_grad=True))
    >>> y.backward()
    True
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
