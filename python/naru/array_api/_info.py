"""The standard's inspection API."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._types import KINDS

# The dtypes that operators support. Operators reject uint16, uint32 and uint64, as in PyTorch.
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class __array_namespace_info__:
    """The standard's inspection: capabilities, devices, dtypes.

    >>> from naru import array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["indexing"]
    torch.int64
    """

    def capabilities(self) -> dict[str, Any]:
        """Whether boolean indexing and data-dependent shapes are supported, and the maximum number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device that arrays are created on by default."""
        return _C.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes by kind; the same on every device."""
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": _C.complex128 if real == _C.float64 else _C.complex64,
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes by name; `kind` selects those of one kind or of several."""
        kinds = (kind,) if isinstance(kind, str) else kind
        if kinds is not None and (unknown := [k for k in kinds if k not in KINDS]):
            raise ValueError(f"dtypes: wanted kinds among {', '.join(KINDS)}, got {unknown[0]!r}")
        every = {name: getattr(_C, name) for name in _DTYPES}
        return {name: t for name, t in every.items() if kinds is None or any(t in KINDS[k] for k in kinds)}

    def devices(self) -> tuple[Any, ...]:
        """The available devices."""
        return tuple(_C.device(d["kind"], d["index"]) if d["kind"] != "cpu" else _C.device("cpu") for d in _C.devices())
