"""`torch.nn.common_types`: type aliases for annotations of arguments."""

from __future__ import annotations

from typing import Any

from .. import _C


def _of(kind: Any, count: int | None) -> Any:
    """One value of a type, or a tuple of `count` values (None: of any length)."""
    return kind | (tuple[kind, ...] if count is None else tuple[(kind,) * count])


_size_any_t = _of(int, None)
_size_1_t, _size_2_t, _size_3_t, _size_4_t, _size_5_t, _size_6_t = (_of(int, n) for n in range(1, 7))
_size_any_opt_t, _size_2_opt_t, _size_3_opt_t = (_of(int | None, n) for n in (None, 2, 3))
_ratio_any_t, _ratio_2_t, _ratio_3_t = (_of(float, n) for n in (None, 2, 3))
_tensor_list_t, _maybe_indices_t = (_of(_C.Tensor, n) for n in (None, 2))
