"""Embedding layers."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

Tensor = _C.Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table of `num_embeddings` vectors of size `embedding_dim`, looked up by index.

    Args:
        padding_idx: the index of a row that is initialised to zeros and gets no gradient.
        max_norm: rows whose norm (of order norm_type) exceeds it are renormalised to it when they are looked up.
        scale_grad_by_freq: whether to divide gradients by how many times a row is read.
        sparse: whether the table's gradient is a sparse tensor.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: integers (...) to (..., embedding_dim). weight is initialised standard normal. An index outside the table raises
    IndexError.

    >>> table = naru.nn.Embedding(4, 2)
    >>> naru.equal(table(naru.tensor([1, 3])), table.weight[[1, 3]])
    True
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = Parameter(
                _C.empty((num_embeddings, embedding_dim), device=device, dtype=dtype), requires_grad=not _freeze
            )
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Reinitialises the table."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with _C.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding with the given table, (rows, size), that is not trained if `freeze`.

        Args:
            embeddings: the table.
            padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as in `Embedding`.

        >>> table = naru.nn.Embedding.from_pretrained(naru.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(naru.tensor([1, 0])), table.weight.requires_grad
        (tensor([[3., 4.],
                [1., 2.]]), False)
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, size = embeddings.shape
        return cls(rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table, over bags of integers: see `functional.embedding_bag`.

    Args:
        mode: "sum", "mean" or "max".
        padding_idx: an index that is skipped in bags; its row is initialised to zeros and gets no gradient.
        num_embeddings: the number of rows of the table.
        max_norm: rows with a greater norm are renormalised to it when they are looked up.
        norm_type: the order p of that norm.
        scale_grad_by_freq: whether to divide gradients by how many times a row is read.
        sparse: whether the table's gradient is a sparse tensor.
        include_last_offset: whether the last offset is the number of indices.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: integers (N, L), or a vector with offsets, to (N, embedding_dim). weight is initialised standard normal.

    >>> bags = naru.nn.EmbeddingBag(5, 3, mode="sum")
    >>> naru.allclose(bags(naru.tensor([[0, 1]]))[0], bags.weight[0] + bags.weight[1])
    True
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        if _weight is None:
            self.weight = Parameter(_C.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Reinitialises the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with _C.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else text + f", padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """An EmbeddingBag with the given table, (rows, size), that is not trained if `freeze`; options are those of the constructor.

        Args:
            embeddings: the table.

        >>> bags = naru.nn.EmbeddingBag.from_pretrained(naru.tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
        >>> bags(naru.tensor([[0, 1]]))
        tensor([[4., 6.]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        bag = cls(*embeddings.shape, _weight=embeddings, **options)
        bag.weight.requires_grad = not freeze
        return bag
