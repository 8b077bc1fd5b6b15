"""`torch.mps`: Apple's devices, and virtual ones of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._device.kind import to_device
from .._device.namespace import absent as _absent
from .._documentation import show as _show
from ..streams import of_kind as _of_kind, set_stream as set_stream, stream as stream
from . import profiler as profiler
from ._shaders import ShaderLibrary

_KIND = "mps"

if TYPE_CHECKING:
    from ..streams import Event as Event, Stream as Stream

    def current_stream(device: Any = None) -> Stream: ...

    def default_stream(device: Any = None) -> Stream: ...

else:
    Stream, Event, current_stream, default_stream = _of_kind(_KIND)


def is_available() -> bool:
    """Whether a working device is available."""
    return _C.is_available(_KIND)


def why_unavailable() -> str:
    """The reason why no device is available and how to fix it, as shown by `naru doctor`; "" if one is available."""
    return _C.why_unavailable(_KIND)


def device_count() -> int:
    """The number of devices."""
    return _C.device_count(_KIND)


def _need() -> _C.device:
    if not is_available():
        raise RuntimeError(f"mps is not available: {_C.why_unavailable(_KIND)}")
    return to_device(_KIND)


def synchronize() -> None:
    """Waits for all work on the device."""
    _C.synchronize(_need())


def empty_cache() -> None:
    """Returns cached free memory to the device.

    >>> with naru.virtual("mps"):
    ...     x = naru.ones(1 << 20, device="mps"); del x
    ...     naru.mps.empty_cache()
    ...     naru.mps.driver_allocated_memory()
    0
    """
    if is_available():
        _C.empty_cache(to_device(_KIND))


def current_allocated_memory() -> int:
    """Bytes used by tensors on the device.

    >>> with naru.virtual("mps"):
    ...     x = naru.ones(256, device="mps")
    ...     naru.mps.current_allocated_memory()
    1024
    """
    return _C.memory_allocated(_need())


def driver_allocated_memory() -> int:
    """Bytes reserved from the device: used by tensors, or cached.

    >>> with naru.virtual("mps"):
    ...     x = naru.ones(256, device="mps")
    ...     naru.mps.driver_allocated_memory() >= x.nbytes
    True
    """
    return _C.memory_reserved(_need())


def recommended_max_memory() -> int:
    """The device's memory in bytes.

    >>> with naru.virtual("mps", memory="64MiB"):
    ...     naru.mps.recommended_max_memory()
    67108864
    """
    return _C.total_memory(_need())


def manual_seed(seed: int) -> None:
    """Sets the `seed`; one generator serves all devices."""
    from ..random import manual_seed as set_seed

    set_seed(seed)


def seed() -> None:
    """Sets a random seed from the operating system."""
    from ..random import seed as draw_seed

    draw_seed()


def get_rng_state(device: Any = "mps") -> Any:
    """The generator's state; one generator serves all devices; `device` is ignored."""
    to_device(_KIND, device)
    return _C.default_generator.get_state()


def set_rng_state(new_state: Any, device: Any = "mps") -> None:
    """Restores `new_state`, as returned by `get_rng_state`; one generator serves all devices; `device` is ignored."""
    to_device(_KIND, device)
    _C.default_generator.set_state(new_state)


def compile_shader(source: str) -> ShaderLibrary:
    """The kernels of a `source` in Metal's language, as attributes of a library: `library.name(*tensors_and_numbers, threads=n, group_size=g)`, by default for as
    many items as the first tensor has elements. They are translated to naru's dialect, and so run on every device; NotImplementedError for what that lacks
    (vectors, templates, textures, SIMD groups).

    >>> library = naru.mps.compile_shader('''
    ... kernel void full(device float* out, constant float& value, uint i [[thread_position_in_grid]]) { out[i] = value; }''')
    >>> with naru.virtual("mps"):
    ...     x = naru.zeros(3, device="mps")
    ...     library.full(x, 2.5)
    ...     x.tolist()
    [2.5, 2.5, 2.5]
    """
    return ShaderLibrary(source)


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limits this process to `fraction` of the device's memory; ValueError outside [0, 2] (above 1: no limit), TypeError if it is not
    a float.

    >>> with naru.virtual("mps", memory="64MiB"):
    ...     naru.mps.set_per_process_memory_fraction(0.25)
    ...     naru.accelerator.memory_stats("mps")["limit_bytes"]
    16777216
    """
    from .._device.memory import set_fraction

    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    set_fraction(min(fraction, 1.0), _need())


_show(globals(), "devices", MODULE="mps", KIND="mps")


def __getattr__(name: str) -> Any:
    _absent("torch." + _KIND, name)
