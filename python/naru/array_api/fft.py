"""The standard's Fourier transform extension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C, fft as _fft
from .._documentation import show
from .._functions.naming import named

Tensor = _C.Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _one(name: str) -> Callable[..., Tensor]:
    function = getattr(_fft, name)

    @named(name, f"{name} along `axis`, of `x` cut or filled up with zeros to `n`. `norm`: \"backward\", \"ortho\" or \"forward\".")
    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return function(x, n=n, dim=axis, norm=norm)

    return call


def _several(name: str) -> Callable[..., Tensor]:
    function = getattr(_fft, name)

    @named(name, f"{name} along `axes`, of `x` cut or filled up with zeros to sizes `s`. `norm`: \"backward\", \"ortho\" or \"forward\".")
    def call(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
        return function(x, s=s, dim=axes, norm=norm)

    return call


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several, ("fftn", "ifftn", "rfftn", "irfftn"))
show(globals(), "array_api")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The sample frequencies of a transform of length `n` with sample spacing `d`. `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The sample frequencies of a transform of `n` real samples with spacing `d`. `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Shifts the zero frequency of `x` to the center along `axes` (default: all).

    >>> naru.array_api.fft.fftshift(naru.array_api.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Inverse of fftshift: shifts the zero frequency of `x` back to the beginning along `axes` (default: all).

    >>> naru.array_api.fft.ifftshift(naru.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _fft.ifftshift(x, axes)
