"""Precision of float32 products on cuda. PyTorch has four switches for it; in naru they are four views of one state, and the last one
set wins."""

from __future__ import annotations

from .. import _C

_everywhere = "none"
_matmul = "none"
_medium = False


def _apply() -> None:
    _C._allow_tf32(matmul() == "tf32")


def matmul() -> str:
    """`torch.backends.cuda.matmul.fp32_precision`: "tf32", "ieee", or "none", which computes as "ieee"."""
    return _matmul if _matmul != "none" else _everywhere


def set_matmul(precision: str) -> None:
    """Sets it; "none" defers to `torch.backends.fp32_precision`."""
    global _matmul, _medium
    if precision not in ("ieee", "tf32", "none"):
        words = "backend 'cuda' does not support precision 'bf16'" if precision == "bf16" else f"Unknown precision: {precision}"
        raise RuntimeError(f"{words} (torch.backends.cuda.matmul.fp32_precision: wanted 'ieee', 'tf32' or 'none')")
    _matmul, _medium = precision, False
    _apply()


def everywhere() -> str:
    """`torch.backends.fp32_precision`"""
    return _everywhere


def set_everywhere(precision: str) -> None:
    """Sets the precision that applies unless a more specific switch is set."""
    global _everywhere
    if precision not in ("ieee", "tf32", "bf16", "none"):
        raise RuntimeError(f"Unknown precision: {precision} (torch.backends.fp32_precision: wanted 'ieee', 'tf32', 'bf16' or 'none')")
    _everywhere = precision
    _apply()


def set_float32_matmul_precision(precision: str) -> None:
    """Precision of float32 products on cuda: `precision` "highest" computes in float32; "high" and "medium" round the factors to TF32 (10 bits of
    mantissa), several times as fast on devices of capability 8.0 and newer. Other strings emit a warning and change nothing; RuntimeError
    for anything but a str.

    >>> naru.set_float32_matmul_precision("high")
    >>> naru.backends.cuda.matmul.allow_tf32
    True
    >>> naru.set_float32_matmul_precision("highest")
    """
    global _medium
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        import warnings

        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.", stacklevel=2)
        return
    set_matmul("ieee" if precision == "highest" else "tf32")
    _medium = precision == "medium"


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium", whichever switch set it.

    >>> naru.get_float32_matmul_precision()
    'highest'
    """
    return "highest" if not _C._tf32_allowed() else "medium" if _medium else "high"
