"""Sequences of different lengths: padded into one tensor, and packed without padding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import _C

Tensor = _C.Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip


class _Parts(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Parts):
    """Sequences of different lengths without padding: the first elements of all sequences, then the second elements of those that have one, and so on.

    Attributes:
        data: (sum of lengths, ...).
        batch_sizes: int64 on cpu: the number of sequences that have an element at each step.
        sorted_indices, unsorted_indices: the permutation that sorted the sequences by decreasing length, and its inverse; None if they were sorted already.

    Made by `pack_padded_sequence` and `pack_sequence`.

    >>> import naru
    >>> naru.nn.utils.rnn.pack_sequence([naru.tensor([1, 2, 3]), naru.tensor([4, 5])]).data
    tensor([1, 4, 2, 5, 3])
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be instantiated "
                f"by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn (got batch_sizes on {batch_sizes.device})"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> PackedSequence:
        def follow(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.to(data.device)

        return type(self)(data, self.batch_sizes, follow(self.sorted_indices), follow(self.unsorted_indices))

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with their data on another device or of another dtype; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """`to` the current CUDA device."""
        return self._with(self.data.cuda(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """`to` host memory."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """The sequences with their data in pinned memory."""
        return self._with(self.data.pin_memory())

    def double(self) -> PackedSequence:
        """`to(torch.float64)`."""
        return self.to(_C.float64)

    def float(self) -> PackedSequence:
        """`to(torch.float32)`."""
        return self.to(_C.float32)

    def half(self) -> PackedSequence:
        """`to(torch.float16)`."""
        return self.to(_C.float16)

    def long(self) -> PackedSequence:
        """`to(torch.int64)`."""
        return self.to(_C.int64)

    def int(self) -> PackedSequence:
        """`to(torch.int32)`."""
        return self.to(_C.int32)

    def short(self) -> PackedSequence:
        """`to(torch.int16)`."""
        return self.to(_C.int16)

    def char(self) -> PackedSequence:
        """`to(torch.int8)`."""
        return self.to(_C.int8)

    def byte(self) -> PackedSequence:
        """`to(torch.uint8)`."""
        return self.to(_C.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse permutation; None for None.

    >>> import naru
    >>> naru.nn.utils.rnn.invert_permutation(naru.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else _C._invert_permutation(permutation)


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Packs the padded sequences (T, N, ...), or (N, T, ...) with batch_first.

    Args:
        input: the padded sequences.
        lengths: the N lengths: a list, or a tensor on cpu.
        batch_first: whether the batch is the first dimension.
        enforce_sorted: whether lengths must be decreasing (RuntimeError); otherwise the sequences are sorted here.

    >>> padded = naru.tensor([[1, 2], [3, 4], [5, 0]])
    >>> naru.nn.utils.rnn.pack_padded_sequence(padded, [3, 2])
    PackedSequence(data=tensor([1, 2, 3, 4, 5]), batch_sizes=tensor([2, 2, 1]), sorted_indices=None, unsorted_indices=None)
    """
    if not isinstance(lengths, Tensor):
        lengths = _C.tensor(lengths, dtype=_C.int64, device="cpu")
    lengths = lengths.to(_C.int64) if lengths.device.type == "cpu" else lengths
    order = None
    if not enforce_sorted:
        lengths, order = _C.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = _C._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded sequences (T, N, ...), or (N, T, ...) with batch_first, and their lengths (int64, on cpu).

    Args:
        sequence: the packed sequences.
        batch_first: whether the batch becomes the first dimension.
        padding_value: the value of the padding.
        total_length: T; by default the longest length. ValueError if it is shorter.

    >>> packed = naru.nn.utils.rnn.pack_sequence([naru.tensor([1, 3, 5]), naru.tensor([2, 4])])
    >>> naru.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 3, 5],
            [2, 4, 0]]), tensor([3, 2]))
    """
    padded, lengths = _C._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length)
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (L_i, ...), sorted by decreasing length unless enforce_sorted is False.

    Args:
        sequences: N tensors, with lengths L_i.
        enforce_sorted: whether another order is an error (RuntimeError); otherwise they are sorted here.

    >>> naru.nn.utils.rnn.pack_sequence([naru.tensor([1, 3, 5]), naru.tensor([2, 4])]).data
    tensor([1, 2, 3, 4, 5])
    """
    lengths = _C.tensor([s.size(0) for s in sequences], dtype=_C.int64, device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` packed.

    Args:
        packed_sequences: the packed sequences.

    >>> packed = naru.nn.utils.rnn.pack_sequence([naru.tensor([1, 3, 5]), naru.tensor([2, 4])])
    >>> naru.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 3, 5]), tensor([2, 4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(
    sequences: list[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pads tensors (L_i, ...) and stacks them as (max L, N, ...), or (N, max L, ...) with batch_first.

    Args:
        sequences: tensors (L_i, ...).
        padding_value: the value of the padding.
        padding_side: "right" or "left".

    >>> import naru
    >>> naru.nn.utils.rnn.pad_sequence([naru.ones(2), naru.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    return _C._pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The inverse of `pad_sequence`: sequences truncated to their lengths.

    Args:
        padded_sequences: shape (T, N, ...), or (N, T, ...) with batch_first.
        lengths: the N lengths, int64.

    >>> naru.nn.utils.rnn.unpad_sequence(naru.tensor([[1, 3, 5], [2, 4, 0]]), naru.tensor([3, 2]), batch_first=True)
    [tensor([1, 3, 5]), tensor([2, 4])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(padded_sequences, lengths.tolist())]


PackedSequence.__module__ = "naru.nn.utils.rnn"  # PyTorch's module of this class, which pickles name
