"""A name that packages import from PyTorch's private module of this name: within vmap, `x[i]` with a tensor i is indexing here in any case."""

from __future__ import annotations

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext):
    """A block in which nothing is different."""
