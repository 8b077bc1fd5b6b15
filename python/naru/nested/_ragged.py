"""The structure of a nested tensor: offsets and lengths on its device, their copies on the host, and the symbolic length of its ragged dimension
in shapes."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .. import _C

Tensor = _C.Tensor

_numbers = itertools.count(1)


class NestedInt:
    """The symbolic length of a ragged dimension, `j1` or a multiple of it: equal only to itself, and at least 2 by convention.

    >>> import naru
    >>> j = naru.nested.nested_tensor([naru.ones(2), naru.ones(3)], layout=naru.jagged).size(1)
    >>> j == j, j == 3, (2 * j) == (j * 2)
    (True, False, True)
    """

    __slots__ = ("coeff", "number")

    def __init__(self, number: int, coeff: int = 1) -> None:
        self.number, self.coeff = number, coeff

    def __repr__(self) -> str:
        return f"j{self.number}" if self.coeff == 1 else f"{self.coeff}*j{self.number}"

    def __eq__(self, other: object) -> bool:
        return type(other) is NestedInt and (self.number, self.coeff) == (other.number, other.coeff)

    def __hash__(self) -> int:
        return hash((self.number, self.coeff))

    def __mul__(self, other: Any) -> NestedInt:
        return NestedInt(self.number, self.coeff * other) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def _at_least(self, other: Any) -> bool:
        if type(other) is NestedInt and other.number == self.number:
            return self.coeff >= other.coeff
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def _below(self, other: Any) -> bool:
        """other >= self."""
        if type(other) is NestedInt:
            return other._at_least(self)
        if isinstance(other, int) and other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def __ge__(self, other: Any) -> bool:
        return self._at_least(other)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least(other)

    def __le__(self, other: Any) -> bool:
        return self._below(other)

    def __gt__(self, other: Any) -> bool:
        return not self._below(other)

    def __int__(self) -> int:
        raise TypeError(f"the length {self!r} of a ragged dimension is no number: offsets().diff() has the length of each component")

    __index__ = __int__


class Name:
    """Identifies a structure and its copies on other devices. Gets its number when a shape first shows it."""

    number: int | None = None

    def length(self) -> NestedInt:
        """The ragged dimension's symbolic length."""
        if self.number is None:
            self.number = next(_numbers)
        return NestedInt(self.number)


class Ragged:
    """The structure: the starts `offsets` (batch + 1) of components in a packed dimension, and their `lengths` if there are gaps between them. Nested
    tensors computed from each other share one. `sizes`: the component sizes if they differ in more than one dimension; all elements are packed then."""

    def __init__(self, offsets: Tensor, lengths: Tensor | None = None, sizes: Any = None, name: Name | None = None) -> None:
        self.offsets, self.lengths, self.sizes = offsets, lengths, sizes
        self.name = Name() if name is None else name
        self.least: int | None = None
        self.most: int | None = None
        self._host: tuple[list[int], list[int]] | None = None
        self._rows: Tensor | None = None
        self._places: dict[int, Tensor] = {}
        _known[id(self._source())] = self

    def _source(self) -> Tensor:
        return self.offsets if self.lengths is None else self.lengths

    @property
    def batch(self) -> int:
        """The number of components."""
        return self.offsets.shape[0] - 1

    def host(self) -> tuple[list[int], list[int]]:
        """The start and the length of each component, as Python numbers; the first call waits for the device."""
        if self._host is None:
            starts = [int(n) for n in self.offsets.tolist()]
            if self.lengths is None:
                self._host = starts[:-1], [b - a for a, b in itertools.pairwise(starts)]
            else:
                self._host = starts[:-1], [int(n) for n in self.lengths.tolist()]
            if min(self._host[1], default=0) < 0:
                raise RuntimeError(f"nested tensor: wanted offsets that do not fall and lengths of at least 0, got the lengths {self._host[1]}")
        return self._host

    @property
    def counts(self) -> list[int]:
        """The length of each component."""
        return self.host()[1]

    def longest(self) -> int:
        """The greatest length, which is the size of the padded dimension."""
        if self.most is None:
            self.most = max(self.counts, default=0)
        return self.most

    def shortest(self) -> int:
        """The smallest length."""
        if self.least is None:
            self.least = min(self.counts, default=0)
        return self.least

    def same(self, other: Ragged, by_length: bool = False) -> bool:
        """Whether the other is the same structure: made from the same offsets; or, if `by_length`, has the same lengths."""
        if self is other or (self.name is other.name and self.sizes == other.sizes):
            return True
        return by_length and self.sizes == other.sizes and self.counts == other.counts

    def rows(self, total: int) -> Tensor:
        """The index of the component of each packed element."""
        if self._rows is None or self._rows.shape[0] != total:
            counts = self.offsets.diff().to(_C.int64)
            try:
                self._rows = _C.arange(self.batch, device=self.offsets.device).repeat_interleave(counts, output_size=total)
            except RuntimeError as error:
                raise RuntimeError(
                    f"nested tensor: wanted offsets from 0 to {total}, as many rows as the values have; values[offsets[0]:offsets[-1]] with "
                    "offsets - offsets[0] has no others"
                ) from error
        return self._rows

    def places(self, total: int, length: int) -> Tensor:
        """The index of each packed element in a padded tensor of (batch * length) rows."""
        found = self._places.get(length)
        if found is None or found.shape[0] != total:
            rows = self.rows(total)
            within = _C.arange(total, device=self.offsets.device) - self.offsets.to(_C.int64)[rows]
            found = self._places[length] = rows * length + within
        return found

    def on(self, device: Any) -> Ragged:
        """The same structure on another device."""
        if self.offsets.device == device:
            return self
        lengths = None if self.lengths is None else self.lengths.to(device)
        moved = Ragged(self.offsets.to(device), lengths, self.sizes, self.name)
        moved._host, moved.least, moved.most = self._host, self.least, self.most
        return moved


_known: weakref.WeakValueDictionary[int, Ragged] = weakref.WeakValueDictionary()


def ragged_of(offsets: Tensor, lengths: Tensor | None = None) -> Ragged:
    """The existing structure made from these tensor objects, or a new one."""
    known = _known.get(id(offsets if lengths is None else lengths))
    if known is None or known._source() is not (offsets if lengths is None else lengths) or known.sizes is not None:
        return Ragged(offsets, lengths)
    return known if known.offsets is offsets else Ragged(offsets, lengths, name=known.name)


def ragged_of_counts(counts: list[int], device: Any, sizes: Any = None) -> Ragged:
    """A new structure for components with the given numbers of elements, packed without gaps."""
    starts = [0, *itertools.accumulate(counts)]
    made = Ragged(_C.tensor(starts, dtype=_C.int64, device="cpu").to(device), sizes=sizes)
    made._host = starts[:-1], list(counts)
    return made
