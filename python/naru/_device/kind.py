"""What the namespaces of the kinds of device (`torch.cuda`, `torch.mps`, ...) share: thin wrappers around the core."""

from __future__ import annotations

from typing import Any

from .. import _C

# The order in which kinds are probed.
KINDS = _C._ACCELERATORS


def current_kind() -> str | None:
    """The current kind of accelerator: the first that is available; None if there is none.

    >>> with naru.virtual("cuda"):
    ...     naru.streams.current_kind()
    'cuda'
    """
    return next((kind for kind in KINDS if _C.is_available(kind)), None)


def to_device(kind: str, device: Any = None) -> _C.device:
    """`device` (None: the current one; an index; a name; a device) as a device of that `kind`; ValueError for another kind.

    >>> naru.streams.to_device("cuda", 1)
    device(type='cuda', index=1)
    """
    if device is None:
        return _C.device(kind, _C.current_device(kind))
    if isinstance(device, int):
        return _C.device(kind, _C.current_device(kind) if device < 0 else device)
    if isinstance(device, str):
        device = _C.device(device)
    if device.type != kind:
        raise ValueError(f"Expected a {kind} device, but got: {device}")
    return device if device.index is not None else _C.device(kind, _C.current_device(kind))


class DeviceGuard:
    """A context manager that makes a `device` of its kind the current one; -1 and None change nothing. Base of `torch.cuda.device` and
    the like.

    >>> with naru.virtual("cuda", count=2), naru.cuda.device("cuda:1"):
    ...     naru.cuda.current_device()
    1
    """

    _kind = "cuda"

    def __init__(self, device: Any) -> None:
        if device is None or device == -1:
            self.idx = -1
        else:
            self.idx = to_device(self._kind, device).index

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C.current_device(self._kind)
            _C.set_device(_C.device(self._kind, self.idx))

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            _C.set_device(_C.device(self._kind, self.prev_idx))


class Uuid(str):
    """The UUID of a device, as text without the prefix "GPU-"; `bytes` has its 16 bytes."""

    @property
    def bytes(self) -> list[int]:
        return list(bytes.fromhex(self.replace("-", "")))


class DeviceProperties:
    """The properties of a `device`; unknown ones are 0 or "".

    >>> with naru.virtual("cuda", memory="64MiB"):
    ...     naru.cuda.get_device_properties(0).total_memory
    67108864
    """

    def __init__(self, device: _C.device) -> None:
        found = _C._describe_device(device)
        self._kind: str = found["kind"]
        self.name: str = found["name"]
        self.total_memory: int = found["memory"]
        self.major: int = found["major"]
        self.minor: int = found["minor"]
        self.multi_processor_count: int = found["multi_processor_count"]
        self.uuid = Uuid(found["uuid"].removeprefix("GPU-").removeprefix("MIG-"))
        domain, bus, place = (found["pci"].split(":") + ["", "", ""])[:3] if found["pci"] else ("0", "0", "0")
        self.pci_domain_id, self.pci_bus_id, self.pci_device_id = int(domain, 16), int(bus, 16), int(place.split(".")[0], 16)
        self.is_integrated = int(found["integrated"])
        self.is_multi_gpu_board = 0
        self.L2_cache_size: int = found["l2_cache_size"]
        self.warp_size: int = found["warp_size"]
        self.max_threads_per_block: int = found["max_threads_per_block"]
        self.max_threads_per_multi_processor: int = found["max_threads_per_multi_processor"]
        self.regs_per_multiprocessor: int = found["regs_per_multiprocessor"]
        self.shared_memory_per_block: int = found["shared_memory_per_block"]
        self.has_fp16, self.has_fp64 = found["fp16"], found["fp64"]
        self.driver_version: str = found["driver"]
        self.gcnArchName: str = found["architecture"] or self.name

    def __repr__(self) -> str:
        return (
            f"_{self._kind.capitalize()}DeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, pci_domain_id={self.pci_domain_id}, "
            f"L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )
