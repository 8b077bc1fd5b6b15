"""`torch.backends.cuda`: accepted for PyTorch's sake."""

from __future__ import annotations

from typing import Any


class _MatmulSwitches:
    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True
    fp32_precision: str = "ieee"


matmul = _MatmulSwitches()


def is_built() -> bool:
    """Whether cuda devices can be used where they are present; the driver is looked for at run time."""
    return True


class sdp_kernel:
    """A context manager that once chose an attention kernel; does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
