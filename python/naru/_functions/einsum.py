"""`einsum`: sums of products, written as an equation of subscripts."""

from __future__ import annotations

import operator
from typing import Any

from .. import _C

Tensor = _C.Tensor

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _term(subscripts: Any) -> str:
    """The letters for a subscript list such as [0, 1, ...]."""
    text = ""
    for s in subscripts:
        number = 0 if s is Ellipsis else operator.index(s)
        if not 0 <= number < len(_LETTERS):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        text += "..." if s is Ellipsis else _LETTERS[number]
    return text


def einsum(*args: Any) -> Tensor:
    """Products of the operands, summed over the subscripts that are not in the result.

    Args:
        equation: e.g. "bij,bjk->bik"; "..." represents additional dimensions, which broadcast. Without "->" the result has
            the subscripts that occur once, in alphabetical order.
        operands: the tensors, one for each term; or, without an equation, each followed by its list of subscripts from 0 to 51
            (`...` for additional ones), and optionally the list of the result last.

    Raises:
        RuntimeError: the equation does not fit the operands.

    >>> import naru
    >>> x = naru.arange(4.0).reshape(2, 2)
    >>> einsum("ij,jk->ik", x, x)
    tensor([[ 2.,  3.],
            [ 6., 11.]])
    >>> einsum("ii", x), einsum(x, [0, 1], [1, 0])
    (tensor(3.), tensor([[0., 2.],
            [1., 3.]]))
    """
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], str):
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        return _C._einsum(args[0], list(operands))
    pairs = len(args) - len(args) % 2
    equation = ",".join(_term(s) for s in args[1:pairs:2])
    return _C._einsum(equation + ("->" + _term(args[-1]) if len(args) % 2 else ""), list(args[:pairs:2]))
