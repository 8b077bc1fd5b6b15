"""Compares two packed tensors with the tolerances of torch.testing.assert_close for their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from .plain import MEMORY

TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def array_of(p: Any) -> np.ndarray:
    """The elements of a packed tensor; floating-point ones as float64, complex ones as complex128."""
    _, name, shape, stride, data, _, offset = p
    flat = np.frombuffer(data, MEMORY[name])[offset:]
    if name == "bfloat16":
        flat = (flat.view("u2").astype("u4") << 16).view("f4")
    elif name == "complex32":
        flat = flat.view("f2").astype("f4").view("c8")
    a = np.zeros(shape, flat.dtype)
    if a.size:
        a = np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in stride], writeable=False)
    return a.astype("c16" if a.dtype.kind == "c" else "f8") if a.dtype.kind in "fc" else a


def parts(a: np.ndarray) -> np.ndarray:
    """Views complex numbers as real pairs in an additional dimension."""
    return np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a[..., None]


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The absolute error of each element; 0 for equal infinities and for two NaNs, infinite if only one is finite."""
    with np.errstate(all="ignore"):
        g, w = parts(got), parts(want)
        distance = np.abs(g - w)
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
        return np.sqrt((distance**2).sum(-1)) if got.dtype.kind == "c" else distance[..., 0]


def allowed(want: np.ndarray, name: str) -> np.ndarray:
    relative, absolute = TOLERANCES[name]
    with np.errstate(all="ignore"):
        size = np.abs(want)
        return absolute + relative * np.where(np.isfinite(size), size, 0.0)


def beyond(narrow: Any, wide: Any, share: float) -> bool:
    """Whether a packed tensor's error against the exact value exceeds this fraction of the tolerance."""
    if narrow[1] not in TOLERANCES:
        return False
    a, b = array_of(narrow), array_of(wide)
    return bool((errors(a, b) > share * allowed(b, narrow[1])).any())


def differs(got: Any, want: Any, truth: Any) -> str:
    """Describes the difference between a packed tensor and the expected one; "" if there is none.

    If the exact value is available (`truth`: the result in the wider dtype), an element is also right if it is within the tolerance of that, or if
    its error is at most twice PyTorch's largest error.
    """
    if got[1] != want[1]:
        return f"dtype {got[1]} for {want[1]}"
    if tuple(got[2]) != tuple(want[2]):
        return f"shape {tuple(got[2])} for {tuple(want[2])}"
    a, b = array_of(got), array_of(want)
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        wrong = errors(a, b) > allowed(b, got[1])
        if truth is not None and wrong.any():
            exact = array_of(truth).reshape(b.shape)
            with np.errstate(all="ignore"):
                own = errors(b, exact)
            own = own[np.isfinite(own)]
            wrong &= errors(a, exact) > np.maximum(allowed(exact, got[1]), 2 * own.max(initial=0.0))
    if not wrong.any():
        return ""
    where = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} elements differ: at {list(where)} {a[where]!s} for {b[where]!s}"
