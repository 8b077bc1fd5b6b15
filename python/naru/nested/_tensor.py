"""The class of nested tensors, and the dispatch of naru's functions to their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._stand_in import OPERATORS, RESHAPING_IN_PLACE, StandIn, is_in_place, leaves, out_of_place, wrapped
from ._ragged import NestedInt, Ragged, ragged_of, ragged_of_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor

RULES: dict[str, Callable[..., Any]] = {}
BY_COMPONENT = "by component"  # the rule for tensors whose components differ in several dimensions


def rule(*names: str) -> Callable[[Any], Any]:
    """Registers a rule f(func, *args, **kwargs) for functions with these names. If the first argument is annotated as NestedTensor, the rule is
    called only with a nested one."""

    def register(f: Any) -> Any:
        f.wants_nested = f.__annotations__.get("input") == "NestedTensor"
        for name in names:
            RULES[name] = f
        return f

    return register


def is_nested(x: Any) -> bool:
    """Whether `x` is a nested tensor. (isinstance with Tensor would be true, too.)"""
    return type(x) is NestedTensor


def first_nested(args: Any, kwargs: dict[str, Any]) -> NestedTensor:
    """The first nested tensor among the arguments."""
    return next(x for x in leaves((*args, *kwargs.values())) if is_nested(x))


def unsupported(name: str, x: NestedTensor, why: str = "") -> NotImplementedError:
    """The error for a function that has no rule for a nested tensor."""
    return NotImplementedError(
        f"{name}(): not supported for NestedTensor of size {x.text_of_size()}{why}; to_padded_tensor(padding) makes a dense tensor of it, unbind() "
        "gives its components"
    )


def require_nested(name: str, x: Any) -> None:
    """TypeError if the first argument is not nested."""
    if not is_nested(x):
        raise TypeError(f"{name}(): wanted a nested tensor as the first argument where another is nested, got {type(x).__name__}")


def _written(target: NestedTensor, name: str, result: NestedTensor) -> NestedTensor:
    """`target`, to which the in-place method `name` has written the result of the function of that name."""
    if name in RESHAPING_IN_PLACE:
        target._values, target._ragged, target._ragged_idx = result._values, result._ragged, result._ragged_idx
    else:
        target._values.copy_(result._values)
    return target


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls the rule registered for the function's name; for an in-place method without one, that of the function, whose result is written."""
    name = func.__name__
    if is_in_place(name) and name not in RULES and name[:-1] in RULES:
        require_nested(name, args[0])
        return _written(args[0], name, dispatch(out_of_place(name), args, kwargs))
    if name.startswith("__"):
        func = OPERATORS.get(name, func)
    found = RULES.get(name) or RULES.get(name.strip("_"))
    nest = first_nested(args, kwargs)
    if found is None and args and args[0] is nest and name in _OWN:
        return getattr(nest, name)(*args[1:], **kwargs)
    if found is None:
        raise unsupported(name.strip("_"), nest)
    first = args[0] if args else kwargs.get("input")
    if found.wants_nested:
        require_nested(name, first)
    try:
        if any(is_nested(x) and x.irregular for x in leaves((*args, *kwargs.values()))) and not getattr(found, "takes_irregular", False):
            return RULES[BY_COMPONENT](func, name.strip("_"), args, kwargs)
        return found(func, *args, **kwargs)
    except (AttributeError, KeyError, ZeroDivisionError) as error:
        kinds = ", ".join(type(x).__name__ for x in (*args, *kwargs.values()))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})") from error


def takes_irregular(f: Any) -> Any:
    """Marks a rule that needs no dimensions, and so also accepts components that differ in several of them."""
    f.takes_irregular = True
    return f


class NestedTensor(StandIn):
    """A batch of tensors, of which one dimension may differ in length, in one tensor: made by `torch.nested.nested_tensor` and related functions.

    `values`: all components, concatenated along a dimension; `ragged`: where each one starts; `ragged_idx`: the index of the ragged
    dimension, where the batch is 0; `layout`: torch.jagged or torch.strided, which prints differently and allows components that differ in several
    dimensions.

    >>> import naru
    >>> nt = naru.nested.nested_tensor([naru.ones(2, 3), naru.ones(4, 3)], layout=naru.jagged)
    >>> nt.is_nested, nt.values().shape, nt.offsets()
    (True, torch.Size([6, 3]), tensor([0, 2, 6]))
    """

    is_nested = True
    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = False

    def __init__(self, values: Tensor, ragged: Ragged, ragged_idx: int = 1, layout: Any = _C.jagged) -> None:
        self._values, self._ragged, self._ragged_idx, self.layout = values, ragged, ragged_idx, layout
        if layout is _C.jagged:
            ragged.name.length()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        return dispatch(func, args, kwargs or {})

    def _held(self) -> Tensor:
        return self._values

    # --- parts

    @property
    def irregular(self) -> bool:
        """Whether components differ in several dimensions: `_values` then has the elements of all components, in one dimension."""
        return self._ragged.sizes is not None

    def like(self, value: Any, ragged_idx: int | None = None) -> Any:
        """Turns the tensors in a result into nested tensors of the same structure."""
        idx = self._ragged_idx if ragged_idx is None else ragged_idx
        return wrapped(lambda t: NestedTensor(t, self._ragged.on(t.device), idx, self.layout), value)

    def values(self) -> Tensor:
        """All components, concatenated along the ragged dimension; for layout torch.strided, all elements."""
        return self._values if self.layout is _C.jagged else _C.cat([c.reshape(-1) for c in self.unbind()]) if self.dim() > 1 else self._values

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("layout") is _C.jagged and name in ("offsets", "lengths"):
            return lambda: getattr(self._ragged, name)
        if name.startswith("_nested_tensor_") and name in _STRIDED_PARTS:
            return lambda: _STRIDED_PARTS[name](self)
        return super().__getattr__(name)

    def _get_max_seqlen(self) -> int:
        return self._ragged.longest()

    def _get_min_seqlen(self) -> int:
        return self._ragged.shortest()

    _max_seqlen = property(_get_max_seqlen)
    _min_seqlen = property(_get_min_seqlen)
    _offsets = property(lambda self: self._ragged.offsets)
    _lengths = property(lambda self: self._ragged.lengths)

    # --- sizes

    def _sizes(self) -> tuple[Any, ...]:
        inner = tuple(self._values.shape)
        at = self._ragged_idx - 1
        return (self._ragged.batch, *inner[:at], self._ragged.name.length(), *inner[at + 1 :])

    def text_of_size(self) -> str:
        """The sizes as error messages show them."""
        if self.irregular:
            return f"({self._ragged.batch}" + ", *" * (self.dim() - 1) + ")"
        sizes = self._sizes()
        return str(sizes) if self.layout is _C.jagged else "(" + ", ".join("*" if type(n) is NestedInt else str(n) for n in sizes) + ")"

    @property
    def shape(self) -> Any:
        """The sizes, with j1 or similar for the ragged one; RuntimeError for layout torch.strided, where `size(dim)` gives the other sizes."""
        if self.layout is not _C.jagged:
            raise RuntimeError(
                "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue. (size(dim) gives those that all components share)"
            )
        return _C.Size(()) + self._sizes()

    def dim(self) -> int:
        """As Tensor.dim."""
        if self.irregular:
            return 1 + len(self._ragged.sizes[0]) if self._ragged.sizes else 1
        return 1 + self._values.dim()

    def size(self, dim: int | None = None) -> Any:
        """As Tensor.size, with j1 or similar for the ragged dimension; RuntimeError for layout torch.strided where components differ."""
        if dim is None:
            return self.shape
        at = canonical(self.dim(), dim)
        if self.layout is _C.jagged:
            return self._sizes()[at]
        if at == 0:
            return self._ragged.batch
        found = {sizes[at - 1] for sizes in component_sizes(self)}
        if len(found) > 1:
            raise RuntimeError(f"Given dimension {at} is irregular and does not have a size.")
        return found.pop()

    def numel(self) -> int:
        """The number of elements of all components together."""
        if self._ragged.lengths is None:
            return self._values.numel()
        length = self._values.shape[self._ragged_idx - 1]
        return sum(self._ragged.counts) * (self._values.numel() // length if length else 0)

    nbytes = property(lambda self: self.numel() * self.itemsize)

    def stride(self, dim: int | None = None) -> Any:
        """As Tensor.stride, for layout torch.jagged only."""
        if self.layout is not _C.jagged:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")
        inner = self._values.stride()
        strides = (self._ragged.name.length() * inner[self._ragged_idx - 1], *inner)
        return strides if dim is None else strides[canonical(self.dim(), dim)]

    def is_contiguous(self, memory_format: Any = _C.contiguous_format) -> bool:
        """Whether there are no gaps, and the values are contiguous; for layout torch.strided, whether each component is."""
        if self._ragged.lengths is not None:
            return False
        if self.layout is not _C.jagged and self._ragged_idx > 1 and all(n > 1 for n in self._values.shape[: self._ragged_idx]):
            return False
        return self._values.is_contiguous(memory_format=memory_format)

    def __len__(self) -> int:
        return self._ragged.batch

    # --- gradients

    @property
    def grad(self) -> Any:
        """The gradient, nested like the tensor."""
        return None if self._values.grad is None else self.like(self._values.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values.grad = value._values if is_nested(value) else value

    @property
    def requires_grad(self) -> bool:
        """As Tensor.requires_grad."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    @property
    def data(self) -> NestedTensor:
        """The same values, without history."""
        return self.like(self._values.detach())

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """As Tensor.backward; `gradient` is nested like the tensor."""
        from ..autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Any) -> Any:
        """As Tensor.register_hook; the hook gets a nested gradient."""

        def seen(grad: Tensor) -> Any:
            result = hook(self.like(grad))
            return result._values if is_nested(result) else result

        return self._values.register_hook(seen)

    # --- text, copies

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return text(self)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if spec else repr(self)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self._values.item())

    def item(self) -> Any:
        """The only element."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._values.item()

    def tolist(self) -> Any:
        """Raises RuntimeError, as components have different lengths: convert each one instead."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor; unbind() gives tensors that have it")

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Raises RuntimeError, as an array has one length."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses. (unbind() gives tensors that have it)")

    __array__ = numpy

    def __copy__(self) -> NestedTensor:
        return self.like(self._values)

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        from copy import deepcopy

        if id(self) not in memo:
            memo[id(self)] = self.like(deepcopy(self._values, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        parts = (self._values, self._ragged.offsets, self._ragged.lengths, self._ragged.sizes, self._ragged_idx, str(self.layout))
        return _rebuild, parts


# Methods that the class defines itself; torch.numel(x) and similar functions call them.
_OWN = frozenset(name for kind in (NestedTensor, StandIn) for name, value in vars(kind).items() if callable(value) and not name.startswith("_"))


def canonical(ndim: int, dim: int) -> int:
    """The dimension's index counted from the front; IndexError if out of range."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def component_sizes(x: NestedTensor) -> list[tuple[int, ...]]:
    """The sizes of each component; waits for the device if the host does not know them yet."""
    if x.irregular:
        return list(x._ragged.sizes)
    inner, at = tuple(x._values.shape), x._ragged_idx - 1
    return [(*inner[:at], n, *inner[at + 1 :]) for n in x._ragged.counts]


def components(x: NestedTensor) -> tuple[Tensor, ...]:
    """A view of each component."""
    if x.irregular:
        parts = x._values.split(x._ragged.counts)
        return tuple(part.view(sizes) for part, sizes in zip(parts, x._ragged.sizes))
    starts, counts = x._ragged.host()
    at = x._ragged_idx - 1
    if starts and max(start + count for start, count in zip(starts, counts)) > x._values.shape[at]:
        raise RuntimeError(
            f"unbind(): nested tensor offsets and lengths do not match ragged_idx dimension: they reach beyond the {x._values.shape[at]} values"
        )
    if x._ragged.lengths is None and starts and starts[0] == 0 and sum(counts) == x._values.shape[at]:
        return tuple(x._values.split(counts, at))
    return tuple(x._values.narrow(at, start, count) for start, count in zip(starts, counts))


def from_components(tensors: Sequence[Tensor], layout: Any = _C.strided) -> NestedTensor:
    """A nested tensor with copies of these tensors, with their history; for layout torch.strided, they may differ in every dimension."""
    sizes = [tuple(t.shape) for t in tensors]
    ndim = len(sizes[0]) if sizes else 0
    ragged = [d for d in range(ndim) if any(s[d] != sizes[0][d] for s in sizes)]
    if len(ragged) > 1 or ndim == 0:
        flat = _C.cat([t.reshape(-1) for t in tensors]) if sizes else _C.empty(0)
        return NestedTensor(flat, ragged_of_counts([t.numel() for t in tensors], flat.device, tuple(sizes)), 1, layout)
    at = ragged[0] if ragged else 0
    values = _C.cat(list(tensors), at)
    return NestedTensor(values, ragged_of_counts([s[at] for s in sizes], values.device), at + 1, layout)


def _strides(x: NestedTensor) -> Tensor:
    return _C.tensor([list(c.stride()) for c in components(x)], device="cpu")


_STRIDED_PARTS = {
    "_nested_tensor_size": lambda x: _C.tensor([list(s) for s in component_sizes(x)], device="cpu"),
    "_nested_tensor_strides": _strides,
    "_nested_tensor_storage_offsets": lambda x: _C.tensor([c.storage_offset() for c in components(x)], device="cpu"),
}


def text(x: NestedTensor) -> str:
    """The text of repr: the structure; for layout torch.strided, the components."""
    if x.layout is _C.jagged:
        history = f", grad_fn={x.grad_fn}" if x.grad_fn is not None else f", requires_grad={x.requires_grad}" if x.requires_grad else ""
        return f"NestedTensor(size={x._sizes()}, offsets={x._ragged.offsets}{history}, contiguous={x.is_contiguous()})"
    rows = []
    for part in components(x):
        plain = part.detach()
        lines = str(plain.requires_grad_() if x.grad_fn is not None else plain).split("\n")
        rows.append("\n".join("  " + line for line in lines))
    history = f", grad_fn=<{x.grad_fn.name()}>" if x.grad_fn is not None else ", requires_grad=True" if x.requires_grad else ""
    where = f", device='{x.device}'" if x.device.type != "cpu" else ""
    return "nested_tensor([\n" + ",\n".join(rows) + "\n]" + where + history + ")"


def _rebuild(values: Tensor, offsets: Tensor, lengths: Tensor | None, sizes: Any, ragged_idx: int, layout: str) -> NestedTensor:
    """Rebuilds a nested tensor from a pickle."""
    ragged = ragged_of(offsets, lengths) if sizes is None else Ragged(offsets, lengths, tuple(tuple(s) for s in sizes))
    return NestedTensor(values, ragged, ragged_idx, _C.jagged if layout == "torch.jagged" else _C.strided)
