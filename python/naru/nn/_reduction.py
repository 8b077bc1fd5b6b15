"""The `reduction` argument of the losses, with the older `size_average` and `reduce`."""

from __future__ import annotations

from .. import _C

Tensor = _C.Tensor


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the arguments mean; the older two win, with a warning, where they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        reduction = "none"
    elif size_average is False:
        reduction = "sum"
    else:
        reduction = "mean"
    import warnings

    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3)
    return reduction


def reduce_loss(values: Tensor, reduction: str) -> Tensor:
    """`values` as they are ("none"), their mean or their sum."""
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values
    raise ValueError(f"{reduction} is not a valid value for reduction")
