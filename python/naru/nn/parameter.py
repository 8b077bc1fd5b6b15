"""`Parameter` and `Buffer`: tensors that a `Module` recognises when they are assigned to it."""

from __future__ import annotations

from .. import _C

Tensor = _C.Tensor

__all__ = ["Parameter", "Buffer"]


class Parameter(Tensor):
    """A tensor that is a module's parameter: assigned to a `Module`, it joins its `parameters()`.

    Args:
        data: the values (any shape); an empty tensor if None. The parameter shares its storage.
        requires_grad: whether gradients are computed for it.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.ones(2))
    >>> p.requires_grad, p.is_leaf
    (True, True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _C.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor, got {type(data).__name__}; make one with torch.tensor(data)")
        return Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        # __new__ has made the tensor; the base's __init__ would make another.
        pass

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: int) -> tuple:
        return Parameter, (self.data, self.requires_grad)


class Buffer(Tensor):
    """A tensor that a `Module` registers as a buffer when it is assigned to it.

    Args:
        data: the values; an empty tensor if None.
        persistent: whether the buffer is part of the module's state_dict.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = _C.empty(0)
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass
