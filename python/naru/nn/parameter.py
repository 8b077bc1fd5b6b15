"""`Parameter` and `Buffer`: tensors that a `Module` recognises when they are assigned to it."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _C
from .._storage_copies import storage_copy
from ..overrides import PLAIN_RESULTS

Tensor = _C.Tensor

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """The type of `Parameter`: a tensor of another class is a parameter, too, if its `_is_param` is set. Packages derive from it, by PyTorch's name."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: when it is assigned to a `Module`, it is added to its `parameters()`.

    Args:
        data: the values (any shape); an empty tensor if None. The parameter shares its storage. It has the class of data, if that is a subclass
            of Tensor, and `isinstance(parameter, Parameter)` is true all the same.
        requires_grad: whether gradients are computed for it.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.ones(2))
    >>> p.requires_grad, p.is_leaf
    (True, True)
    """

    __torch_function__ = PLAIN_RESULTS

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _C.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor, got {type(data).__name__}; make one with torch.tensor(data)")
        bare = None if type(data) is Tensor or issubclass(type(data), Parameter) else data.detach()
        if bare is not None and type(bare) is type(data):
            made = bare.requires_grad_(requires_grad)
            made._is_param = True
        else:
            made = Tensor._make_subclass(cls, data, requires_grad)
        _C._mark_memory(made, "parameter")  # its category in memory histories
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # __new__ has created the tensor; the base's __init__ would create another. A subclass's __new__ may take what it likes.
        pass

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            # Tensors that share its memory (a buffer, a view of several parameters) share the copy's memory, too.
            flat = storage_copy(self.detach(), memo)
            data = self.detach().clone() if flat is None else flat.as_strided(self.shape, self.stride(), self.storage_offset()).detach()
            memo[id(self)] = type(self)(data, self.requires_grad)
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

    >>> m = naru.nn.Module()
    >>> m.scale = naru.nn.Buffer(naru.ones(2))
    >>> list(m.state_dict())
    ['scale']
    """

    persistent: bool
    __torch_function__ = PLAIN_RESULTS

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = _C.empty(0)
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass


class UninitializedTensorMixin:
    """Base of tensors whose shape is not known yet: `materialize(shape)` turns one into a plain parameter or buffer, in place."""

    becomes: ClassVar[type]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Allocates memory with undefined contents; device and dtype default to those given to the constructor."""
        of = self.data
        device, dtype = of.device if device is None else device, of.dtype if dtype is None else dtype
        self.data = _C.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.becomes

    def share_memory_(self) -> Any:
        """Raises RuntimeError, as there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to "
            "load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: int) -> tuple:
        return type(self), (self.requires_grad,)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A `Parameter` whose shape is not known yet. See `torch.nn.LazyLinear`.

    Args:
        requires_grad: whether gradients will be computed for it.
        device, dtype: the device and dtype that `materialize(shape)` uses by default.

    >>> p = naru.nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> p.shape, type(p).__name__
    (torch.Size([2, 3]), 'Parameter')
    """

    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass

    def __deepcopy__(self, memo: dict) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A `Buffer` whose shape is not known yet.

    Args:
        requires_grad: whether gradients will be computed for it.
        device, dtype: the device and dtype that `materialize(shape)` uses by default.
        persistent: whether the buffer is part of the module's state_dict.

    >>> b = naru.nn.UninitializedBuffer()
    >>> b.materialize((2,))
    >>> b.shape
    torch.Size([2])
    """

    becomes = Buffer

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> UninitializedBuffer:
        buffer = Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        return buffer

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> None:
        pass


def is_lazy(param: Any) -> bool:
    """Whether `param` is a parameter or buffer whose shape is not known yet.

    Args:
        param: any object.

    >>> layer = naru.nn.LazyLinear(2)
    >>> before = naru.nn.parameter.is_lazy(layer.weight)
    >>> _ = layer(naru.ones(1, 3))
    >>> before, naru.nn.parameter.is_lazy(layer.weight)
    (True, False)
    """
    return isinstance(param, UninitializedTensorMixin)
