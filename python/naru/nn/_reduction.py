"""The `reduction` argument of the losses, with the older `size_average` and `reduce`."""

from __future__ import annotations

from .. import _C

Tensor = _C.Tensor


REDUCTIONS = ("mean", "sum", "none")


def check_reduction(reduction: str) -> None:
    """ValueError for an unknown reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def get_enum(reduction: str) -> int:
    """PyTorch's number for a reduction: none 0, mean 1, sum 2."""
    check_reduction(reduction)
    return {"none": 0, "mean": 1, "sum": 2}[reduction]


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str, stacklevel: int = 3) -> str:
    """The reduction that the arguments specify; `size_average` and `reduce`, if given, take precedence and warn."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        reduction = "none"
    elif size_average is False:
        reduction = "sum"
    else:
        reduction = "mean"
    import warnings

    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=stacklevel)
    return reduction


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """`legacy_reduction` for a public function, with the reduction checked."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)
    check_reduction(reduction)
    return reduction


def reduce_loss(values: Tensor, reduction: str) -> Tensor:
    """`values` unchanged ("none"), their mean or their sum."""
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values
    raise ValueError(f"{reduction} is not a valid value for reduction")
