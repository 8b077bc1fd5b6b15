"""`torch.utils._foreach_utils`: the grouping of tensors that third-party optimizers use."""

from __future__ import annotations

from typing import Any

from .. import _C

Tensor = _C.Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", "mps", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "hpu", "xpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Groups lists of equal length, of tensors or None, by device and dtype of the first list's tensors: {(device, dtype): (lists, positions)}."""
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        key = (None, None) if first is None else (first.device, first.dtype)
        lists, positions = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for mine, theirs in zip(lists, tensorlistlist):
            mine.append(theirs[i])
        if with_indices:
            positions.append(i)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) in (Tensor,) or isinstance(t, Tensor) for t in tensors)
