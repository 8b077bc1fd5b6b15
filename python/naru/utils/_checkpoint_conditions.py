"""The state that `torch.utils.checkpoint` records in order to recompute a region under the same conditions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .. import _C, random
from ..amp.autocast_mode import autocast

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Conditions:
    """The inputs of a run other than its arguments: the random state, and autocast."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.rng = random.get_rng_state() if preserve_rng_state else None
        self.casts = [
            (kind, _C.get_autocast_dtype(kind), _C.is_autocast_enabled(kind)) for kind in ("cpu", "cuda") if hasattr(_C, "get_autocast_dtype")
        ]
        self.cache = _C.is_autocast_cache_enabled() if hasattr(_C, "is_autocast_cache_enabled") else True

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.rng is not None:
                stack.enter_context(random.fork_rng())
                random.set_rng_state(self.rng)
            for kind, dtype, enabled in self.casts:
                stack.enter_context(autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=self.cache))
            yield
