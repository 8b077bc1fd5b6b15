"""Layers that only change the shape."""

from __future__ import annotations

from typing import Any

from ... import _C
from .module import Module

Tensor = _C.Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Flattens the dimensions start_dim to end_dim into one.

    >>> naru.nn.Flatten()(naru.tensor([[[1, 2], [3, 4]]]))
    tensor([[1, 2, 3, 4]])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`, a tuple of sizes of which one may be -1.

    >>> naru.nn.Unflatten(1, (2, 2))(naru.tensor([[1, 2, 3, 4]]))
    tensor([[[1, 2],
             [3, 4]]])
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"unflattened dimension must be int, but found type {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} "
                    f"at pos {position}"
                )
        self.dim = dim
        self.unflattened_size: Any = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim % input.dim()
        sizes = list(self.unflattened_size)
        known = 1
        for size in sizes:
            known *= size if size != -1 else 1
        have = input.shape[dim]
        if (have % known if -1 in sizes and known else have != known):
            raise RuntimeError(
                f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {dim} ({have}) in the input tensor"
            )
        return input.reshape([*input.shape[:dim], *sizes, *input.shape[dim + 1 :]])

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
