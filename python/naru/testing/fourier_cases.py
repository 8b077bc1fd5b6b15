"""Cases of Fourier transforms (see operator_cases). Complex operands are two real ones, complex results are (..., 2) real ones, so that gradients are
checked by finite differences for each part."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

# Transforms run on the host; other devices fall back, with the same bits.
HOST = {"host": True}


def _complex(a: Any, b: Any) -> Any:
    return naru.complex(a, b) if isinstance(a, naru.Tensor) else a + 1j * b


def _parts(z: Any) -> Any:
    if isinstance(z, naru.Tensor):
        return naru.view_as_real(z) if z.is_complex() else z
    return np.stack([z.real, z.imag], -1) if np.iscomplexobj(z) else z


def _frames(x: Any, window: Any, n: int, hop: int) -> Any:
    """(..., n / 2 + 1, frames): the short-time Fourier transform of a signal with reflection padding."""
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], mode="reflect")
    frames = np.stack([x[..., i : i + n] for i in range(0, x.shape[-1] - n + 1, hop)], -1)
    return np.fft.rfft(frames * window[:, None], axis=-2)


def _added(z: Any, window: Any, n: int, hop: int) -> Any:
    """The inverse of `_frames`: overlapping frames added up, divided by the sum of squared windows."""
    frames = np.fft.irfft(z, n, axis=-2) * window[:, None]
    total, squares = (np.zeros(z.shape[:-2] + (n + hop * (z.shape[-1] - 1),)) for _ in range(2))
    for i in range(z.shape[-1]):
        total[..., i * hop : i * hop + n] += frames[..., i]
        squares[..., i * hop : i * hop + n] += window**2
    return (total / squares)[..., n // 2 : -(n // 2)]


def fourier_cases(Case: Any) -> list:  # noqa: N803
    F, N = naru.fft, np.fft  # noqa: N806

    def C(name: str, run: Any, reference: Any, shapes: list, pairs: bool = False) -> Any:  # noqa: N802
        def of(f: Any) -> Any:
            return (lambda a, b: _parts(f(_complex(a, b)))) if pairs else lambda *values: _parts(f(*values))

        return Case(name, of(run), of(reference), shapes * 2 if pairs else shapes, -1, 1, tolerance=20, extra=HOST)

    rows, box = [(5, 12)], [(3, 4, 6)]
    return [
        *(C(f"fft.fft of {n}", lambda z: F.fft(z), lambda z: N.fft(z), [(3, n)], pairs=True) for n in (1, 8, 30, 49, 37)),
        C("fft.fft of real numbers", lambda a: F.fft(a), lambda a: N.fft(a), rows),
        C("fft.fft along a dimension", lambda z: F.fft(z, n=7, dim=0, norm="ortho"), lambda z: N.fft(z, 7, 0, "ortho"), rows, pairs=True),
        C("fft.ifft", lambda z: F.ifft(z, 20), lambda z: N.ifft(z, 20), rows, pairs=True),
        *(C(f"fft.rfft of {n}", lambda a: F.rfft(a), lambda a: N.rfft(a), [(3, n)]) for n in (1, 2, 12, 15)),
        *(C(f"fft.irfft to {n}", lambda z, n=n: F.irfft(z, n), lambda z, n=n: N.irfft(z, n), [(3, 8)], pairs=True) for n in (1, 2, 14, 15, 18)),
        C("fft.hfft", lambda z: F.hfft(z, 9, norm="forward"), lambda z: N.hfft(z, 9, norm="forward"), rows, pairs=True),
        C("fft.ihfft", lambda a: F.ihfft(a, 9), lambda a: N.ihfft(a, 9), rows),
        C("fft.fft2", lambda z: F.fft2(z, s=(5, 4)), lambda z: N.fft2(z, (5, 4)), box, pairs=True),
        C("fft.ifftn", lambda z: F.ifftn(z, norm="ortho"), lambda z: N.ifftn(z, norm="ortho"), box, pairs=True),
        C("fft.rfft2", lambda a: F.rfft2(a, dim=(0, 2)), lambda a: N.rfft2(a, axes=(0, 2)), box),
        C("fft.rfftn", lambda a: F.rfftn(a), lambda a: N.rfftn(a), box),
        C("fft.irfftn", lambda z: F.irfftn(z, s=(4, 9)), lambda z: N.irfftn(z, (4, 9), axes=(1, 2)), box, pairs=True),
        C("fft.hfftn", lambda z: F.hfftn(z), lambda z: N.irfftn(z.conj()) * 3 * 4 * 10, box, pairs=True),
        C("fft.ihfftn", lambda a: F.ihfftn(a), lambda a: N.rfftn(a).conj() / 72, box),
        Case("fft.fftshift", lambda a: F.fftshift(a), np.fft.fftshift, [(4, 5)]),
        Case("fft.ifftshift", lambda a: F.ifftshift(a, dim=1), lambda a: np.fft.ifftshift(a, 1), [(4, 5)]),
        C("stft", lambda x, w: naru.stft(x, 8, 3, window=w, return_complex=True), lambda x, w: _frames(x, w, 8, 3), [(2, 30), (8,)]),
        # The host checks whether windows overlap.
        Case("istft", lambda a, b, w: naru.istft(naru.complex(a, b), 8, 2, window=w + 2), lambda a, b, w: _added(a + 1j * b, w + 2, 8, 2), [(2, 5, 7), (2, 5, 7), (8,)],
             -1, 1, tolerance=20, extra={**HOST, "reads": True}),
    ]  # fmt: skip
