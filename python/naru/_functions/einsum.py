"""`einsum`: sums of products, written as an equation of subscripts."""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import _C

Tensor = _C.Tensor


def _parse_lists(args: tuple) -> tuple[str, list[Tensor]]:
    """The equation and operands of einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def term(subscripts: Any) -> str:
        return "".join("..." if s is Ellipsis else letters[s] for s in subscripts)

    operands = list(args[0 : len(args) - len(args) % 2 : 2])
    equation = ",".join(term(s) for s in args[1 : len(args) - len(args) % 2 + 1 : 2])
    return equation + ("->" + term(args[-1]) if len(args) % 2 else ""), operands


class _Labelled:
    """A tensor whose dimensions have names."""

    def __init__(self, tensor: Tensor, labels: list[str]) -> None:
        self.tensor = tensor
        self.labels = labels

    def without_repeats(self) -> _Labelled:
        """Dimensions of one name become their diagonal."""
        tensor, labels = self.tensor, list(self.labels)
        for name in set(labels):
            while labels.count(name) > 1:
                i = labels.index(name)
                j = labels.index(name, i + 1)
                tensor = tensor.diagonal(0, i, j)
                labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + [name]
        return _Labelled(tensor, labels)

    def sum_over(self, names: set[str]) -> _Labelled:
        """Summed over the dimensions with these names."""
        dims = [i for i, name in enumerate(self.labels) if name in names]
        if not dims:
            return self
        return _Labelled(self.tensor.sum(dims), [name for name in self.labels if name not in names])

    def ordered(self, names: list[str]) -> Tensor:
        """The tensor with these dimensions in this order; those it lacks have size 1."""
        have = [name for name in names if name in self.labels]
        tensor = self.tensor.permute([self.labels.index(name) for name in have])
        for i, name in enumerate(names):
            if name not in self.labels:
                tensor = tensor.unsqueeze(i)
        return tensor


def _contract(a: _Labelled, b: _Labelled, keep: set[str]) -> _Labelled:
    """The product of two operands, summed over what is not in `keep`: one batched matrix product."""
    shared = [name for name in a.labels if name in b.labels]
    a = a.sum_over({name for name in a.labels if name not in keep and name not in b.labels})
    b = b.sum_over({name for name in b.labels if name not in keep and name not in a.labels})
    batch = [name for name in shared if name in keep]
    inner = [name for name in shared if name not in keep]
    rows = [name for name in a.labels if name not in shared]
    columns = [name for name in b.labels if name not in shared]
    left, right = a.ordered(batch + rows + inner), b.ordered(batch + inner + columns)
    sizes: dict[str, int] = {}
    for tensor, names in ((left, batch + rows + inner), (right, batch + inner + columns)):
        for name, size in zip(names, tensor.shape):
            sizes[name] = max(sizes.get(name, 1), size) if sizes.get(name) != 0 and size != 0 else 0

    def count(names: list[str]) -> int:
        total = 1
        for name in names:
            total *= sizes[name]
        return total

    left = left.expand([sizes[n] for n in batch + rows + inner]).reshape(count(batch), count(rows), count(inner))
    right = right.expand([sizes[n] for n in batch + inner + columns]).reshape(count(batch), count(inner), count(columns))
    if left.dtype != right.dtype:  # sums of small integers are int64
        left, right = (t.to(_C.promote_types(left.dtype, right.dtype)) for t in (left, right))
    out = left.bmm(right).reshape([sizes[n] for n in batch + rows + columns])
    return _Labelled(out, batch + rows + columns)


class _Product:
    """What a contraction of two operands without sums or repeats is: orders of dimensions (None: as they stand) and shapes around one product."""

    def __init__(self, terms: tuple[str, str], wanted: str, sizes: dict[str, int]) -> None:
        a, b = terms
        shared = [name for name in a if name in b]
        batch, inner = [n for n in shared if n in wanted], [n for n in shared if n not in wanted]
        rows, columns = [n for n in a if n not in shared], [n for n in b if n not in shared]
        self.left = self._side(a, batch, rows, inner, sizes)
        self.right = self._side(b, batch, inner, columns, sizes)
        made = batch + rows + columns
        self.shape = [sizes[n] for n in made]
        self.order = None if made == list(wanted) else [made.index(n) for n in wanted]
        self.as_it_is = len(batch) == len(rows) == len(columns) == 1

    @staticmethod
    def _side(term: str, first: list[str], second: list[str], third: list[str], sizes: dict[str, int]) -> tuple[list[int] | None, list[int] | None]:
        names = first + second + third
        shape = [math.prod(sizes[n] for n in part) for part in (first, second, third)]
        same = len(first) == len(second) == len(third) == 1
        return (None if names == list(term) else [term.index(n) for n in names]), (None if same else shape)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        factors = []
        for tensor, (order, shape) in ((a, self.left), (b, self.right)):
            tensor = tensor if order is None else tensor.permute(order)
            factors.append(tensor if shape is None else tensor.reshape(shape))
        out = factors[0].bmm(factors[1])
        if not self.as_it_is:
            out = out.reshape(self.shape)
        return out if self.order is None else out.permute(self.order)


@functools.lru_cache(maxsize=256)
def _product_of(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> _Product | None:
    """None where there is more to do than one product, or something to refuse."""
    inputs, arrow, wanted = equation.replace(" ", "").partition("->")
    terms = tuple(inputs.split(","))
    if not arrow or len(terms) != 2 or not (inputs.replace(",", "") + wanted).isalpha() or not equation.isascii():
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, (a, b)):
        if len(term) != len(shape) or len(set(term)) != len(term):
            return None
        for name, size in zip(term, shape):
            if sizes.setdefault(name, size) != size:
                return None
    alone = set(terms[0]) ^ set(terms[1])
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set(sizes) or not alone <= set(wanted):
        return None
    return _Product(terms, wanted, sizes)


def _general(args: tuple) -> Tensor:
    """Of any number of operands, two after another."""
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    else:
        equation, operands = _parse_lists(args)
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    equation = equation.replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): {'more' if len(operands) > len(terms) else 'fewer'} operands were provided than specified in the equation"
        )
    labelled, widest = [], 0
    for number, (term, operand) in enumerate(zip(terms, operands)):
        head, dots, tail = term.partition("...")
        for letter in head + tail:
            if not (letter.isascii() and letter.isalpha()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.index(letter)} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
        extra = operand.dim() - len(head) - len(tail)
        if extra < 0 or (extra and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(head) + len(tail)}) does not match the number of "
                f"dimensions ({operand.dim()}) for operand {number}{'' if dots else ' and no ellipsis was given'}"
            )
        widest = max(widest, extra)
        labelled.append(_Labelled(operand, [*head, *(f".{i}" for i in range(extra, 0, -1)), *tail]))
    ellipsis = [f".{i}" for i in range(widest, 0, -1)]
    letters = [letter for term in terms for letter in term.replace("...", "")]
    if arrow:
        head, dots, tail = output.partition("...")
        wanted = [*head, *(ellipsis if dots else []), *tail]
        for letter in head + tail:
            if letter not in letters:
                raise RuntimeError(
                    f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
                )
            if wanted.count(letter) > 1:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
    else:
        wanted = ellipsis + sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    sizes: dict[str, int] = {}
    for item in labelled:
        for name, size in zip(item.labels, item.tensor.shape):
            if size != 1 and sizes.get(name, 1) not in (1, size):
                raise RuntimeError(
                    f"einsum(): operands do not broadcast with remapped shapes: subscript {name} has size {sizes[name]} and {size}"
                )
            sizes[name] = size if sizes.get(name, 1) == 1 else sizes[name]
    result = labelled[0].without_repeats()
    for number, item in enumerate(labelled[1:], 1):
        later = {name for rest in labelled[number + 1 :] for name in rest.labels}
        result = _contract(result, item.without_repeats(), set(wanted) | later)
    result = result.sum_over(set(result.labels) - set(wanted))
    return result.ordered(wanted)


def einsum(*args: Any) -> Tensor:
    """Products of the operands, summed over the subscripts that the result does not have.

    Args:
        equation: e.g. "bij,bjk->bik"; "..." stands for further dimensions, which broadcast. Without "->" the result has
            the subscripts that occur once, in alphabetical order.
        operands: the tensors, one for each term.

    >>> import naru
    >>> x = naru.arange(4.0).reshape(2, 2)
    >>> einsum("ij,jk->ik", x, x)
    tensor([[ 2.,  3.],
            [ 6., 11.]])
    >>> einsum("ii", x)
    tensor(3.)
    """
    if len(args) == 3 and isinstance(args[0], str) and isinstance(args[1], Tensor) and isinstance(args[2], Tensor):
        product = _product_of(args[0], args[1].shape, args[2].shape)
        if product is not None:
            return product(args[1], args[2])
    return _general(args)
