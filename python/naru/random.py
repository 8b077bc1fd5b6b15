"""`torch.random`: the seed and the state of the default generator.

One generator serves all devices: a program draws the same numbers wherever it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

_ALGORITHMS = {"philox": False, "pytorch": True}

default_generator = _C.default_generator


def manual_seed(seed: int) -> _C.Generator:
    """Sets the seed, which makes the numbers drawn from now on reproducible; returns the generator.

    >>> import naru
    >>> _ = naru.manual_seed(1); a = naru.rand(3)
    >>> _ = naru.manual_seed(1); b = naru.rand(3)
    >>> bool((a == b).all())
    True
    """
    value = int(seed)
    if not -(2**63) <= value < 2**64:
        raise RuntimeError(f"Overflow when unpacking long long: manual_seed expects a value from -2**63 to 2**64 - 1, got {value}")
    default_generator.manual_seed(value % 2**64)
    return default_generator


def seed() -> int:
    """Sets a random seed from the operating system, and returns it.

    >>> naru.seed() == naru.initial_seed()
    True
    """
    import os

    value = int.from_bytes(os.urandom(8), "little") >> 1
    default_generator.manual_seed(value)
    return value


def initial_seed() -> int:
    """Returns the current seed.

    >>> seed = naru.initial_seed()
    """
    return default_generator.initial_seed()


def get_rng_state() -> _C.Tensor:
    """The generator's state as a uint8 tensor.

    >>> state = naru.get_rng_state()
    >>> a = naru.rand(2); naru.set_rng_state(state)
    >>> naru.equal(a, naru.rand(2))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: _C.Tensor) -> None:
    """Restores `new_state` (uint8), as returned by `get_rng_state`. RuntimeError for another tensor.

    >>> state = naru.get_rng_state()
    >>> a = naru.rand(2); naru.set_rng_state(state)
    >>> naru.equal(a, naru.rand(2))
    True
    """
    default_generator.set_state(new_state)


def set_algorithm(name: str) -> None:
    """Selects the algorithm for random numbers, in the whole process: "philox" (the default) or "pytorch".

    With "pytorch", numbers are those of PyTorch's cpu for the same seed, on every device: the host generates them in order with MT19937.
    docs/random.md lists which are bitwise equal to PyTorch's. NARU_RANDOM=pytorch, or `naru run --random pytorch`, sets it for a program.

    >>> import naru
    >>> set_algorithm("pytorch")
    >>> _ = naru.manual_seed(0); naru.rand(2)
    tensor([0.4963, 0.7682])
    >>> set_algorithm("philox")
    """
    if name not in _ALGORITHMS:
        raise ValueError(f"set_algorithm: wanted one of {', '.join(_ALGORITHMS)}, got {name!r}")
    _C._set_random_algorithm(_ALGORITHMS[name])


def algorithm() -> str:
    """Returns the algorithm for random numbers: "philox" or "pytorch".

    >>> naru.random.algorithm()
    'philox'
    """
    return "pytorch" if _C._draws_as_pytorch() else "philox"


def _restored(device: str, seed: int, state: _C.Tensor) -> _C.Generator:
    generator = _C.Generator(device)
    generator.manual_seed(seed)
    generator.set_state(state)
    return generator


def generator_reduce(self: _C.Generator) -> tuple[Any, ...]:
    """How generators are pickled and copied: by seed and state."""
    return _restored, (str(self.device), self.initial_seed(), self.get_state())


class fork_rng:
    """A context manager that restores the generator's state at the end, if `enabled`. `devices` is accepted for compatibility with PyTorch: one
    generator serves all devices.

    >>> state = naru.get_rng_state()
    >>> with naru.fork_rng():
    ...     x = naru.rand(2)
    >>> naru.equal(state, naru.get_rng_state())
    True
    """

    def __init__(self, devices: Iterable[Any] | None = None, enabled: bool = True, *args: Any, **kwargs: Any) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        if self._enabled:
            self._state = get_rng_state()

    def __exit__(self, *exc: object) -> None:
        if self._enabled:
            set_rng_state(self._state)

__getattr__ = _missing.module_getattr(__name__)
