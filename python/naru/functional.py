"""Functions of the top-level namespace that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C
from ._documentation import show
from ._functions.arguments import takes_tensors
from ._functions.naming import named as _named

if TYPE_CHECKING:
    from collections.abc import Callable

    # Names resolved by __getattr__.
    from . import (
        broadcast_tensors as broadcast_tensors,
        cdist as cdist,
        chain_matmul as chain_matmul,
        einsum as einsum,
        istft as istft,
        lu as lu,
        meshgrid as meshgrid,
        norm as norm,
        split as split,
        stft as stft,
        unique as unique,
        unique_consecutive as unique_consecutive,
        unravel_index as unravel_index,
    )

Tensor = _C.Tensor


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor (including subclasses).

    >>> naru.is_tensor(naru.ones(1)), naru.is_tensor(3)
    (True, False)
    """
    return isinstance(obj, Tensor)


def cartesian_prod(*tensors: Any) -> Tensor:
    """The Cartesian product of `tensors`, which have one dimension, as the rows of a matrix (a single tensor is returned as it is).

    >>> naru.cartesian_prod(naru.tensor([1, 2]), naru.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    return _C._cartesian_prod(list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors))


def _in_place(name: str) -> Callable[..., Tensor]:
    """Makes a function of an in-place method of Tensor."""

    @takes_tensors
    @_named(name, f"`input.{name}(...)`, the method, with what follows as its arguments; writes to `input` and returns it.")
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input, name)(*args, **kwargs)

    return call


as_strided_ = _in_place("as_strided_")
detach_ = _in_place("detach_")
index_put_ = _in_place("index_put_")
resize_as_ = _in_place("resize_as_")
round_ = _in_place("round_")
xlogy_ = _in_place("xlogy_")


def _copied(name: str, view: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Makes a function that copies the result of a view: the method of that name, unless a view function is given."""

    @takes_tensors
    @_named(name + "_copy", f"A copy of what `input.{name}(...)`, the method, gives for the arguments that follow; written to `out` where that is given.")
    def call(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = view(input) if view else getattr(input, name)(*args, **kwargs)
        many = isinstance(result, (tuple, list))
        copies = [t.clone(memory_format=_C.contiguous_format) for t in (result if many else (result,))]
        if out is not None:
            copies = [_C._write_out(name + "_copy", target, t) for target, t in zip(out if many else (out,), copies)]
        return tuple(copies) if many else copies[0]

    return call


alias_copy = _copied("alias", lambda t: t)
as_strided_copy = _copied("as_strided")
detach_copy = _copied("detach")
diagonal_copy = _copied("diagonal")
expand_copy = _copied("expand")
permute_copy = _copied("permute")
select_copy = _copied("select")
split_copy = _copied("split")
split_with_sizes_copy = _copied("split_with_sizes")
squeeze_copy = _copied("squeeze")
t_copy = _copied("t")
transpose_copy = _copied("transpose")
unbind_copy = _copied("unbind")
unfold_copy = _copied("unfold")
unsqueeze_copy = _copied("unsqueeze")
indices_copy = _copied("indices")
values_copy = _copied("values")
crow_indices_copy = _copied("crow_indices")
col_indices_copy = _copied("col_indices")
ccol_indices_copy = _copied("ccol_indices")
row_indices_copy = _copied("row_indices")
view_copy = _copied("view")
view_as_complex_copy = _copied("view_as_complex", _C.view_as_complex)
view_as_real_copy = _copied("view_as_real", _C.view_as_real)


@takes_tensors
def get_device(input: Tensor) -> int:
    """The index of the device of `input`; -1 for cpu.

    >>> naru.get_device(naru.zeros(1))
    -1
    """
    return input.get_device()


def block_diag(*tensors: Any) -> Tensor:
    """A matrix with `tensors` (of at most two dimensions, or a list of them) along its diagonal, and zeros elsewhere.

    >>> naru.block_diag(naru.tensor([[1]]), naru.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    return _C._block_diag(list(tensors))


@takes_tensors
def histogramdd(input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False) -> Any:
    """(hist, bin_edges): an n-dimensional histogram of points.

    `input`: (..., n) floating point. `bins`: how many per dimension, one number for all dimensions, or a list of n vectors of edges. `range`: 2n
    numbers, the lower and upper bound of each dimension; the points' extremes by default. `weight`: one per point, in the shape of `input`
    without its last dimension. `density`: hist is divided by its sum and the bins' volumes. RuntimeError for fewer than two dimensions.

    >>> naru.histogramdd(naru.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), bins=2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    from collections import namedtuple

    if input.dim() < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}")
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    return namedtuple("histogramdd", "hist bin_edges")(*_C._histogramdd(input, list(bins), range, weight, density))


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage.

    >>> naru.is_storage(naru.ones(1).untyped_storage())
    True
    """
    return isinstance(obj, (_C.UntypedStorage, _C.TypedStorage))


def typename(obj: Any) -> str:
    """The name of the type of `obj`; for a tensor, e.g. "torch.FloatTensor".

    >>> naru.typename(naru.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    if module.split(".")[0] == "naru":
        module = "torch" + module[4:]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Returns `model`, a function or module, unchanged: naru compiles at run time. Without it, a decorator; PyTorch's options are ignored.

    >>> @naru.compile(mode="max-autotune")
    ... def double(x):
    ...     return x * 2
    >>> double(naru.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    if model is None:
        return lambda fn: fn
    return model


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype, and the default device if the type names one. `t`: an old tensor type or its name. TypeError or ValueError for
    anything else. Warns once: PyTorch has deprecated it.

    >>> naru.set_default_tensor_type("torch.DoubleTensor")
    >>> naru.ones(1).dtype
    torch.float64
    >>> naru.set_default_tensor_type(naru.FloatTensor); naru.set_default_device(None)
    """
    from ._compat.functions import warn_once
    from ._compat.tensor_types import parse_type

    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as "
        "alternatives."
    )
    dtype, kind = parse_type(t)
    _C.set_default_dtype(dtype)
    if kind is not None:
        _C.set_default_device(kind)


def set_flush_denormal(mode: bool) -> bool:
    """Returns False, whatever `mode` is: denormal numbers are always kept.

    >>> naru.set_flush_denormal(True)
    False
    >>> naru.tensor([1e-40]) * 2
    tensor([2.0000e-40])
    """
    return False


def get_autocast_gpu_dtype() -> Any:
    """The dtype that autocast casts to on cuda.

    >>> naru.get_autocast_gpu_dtype()
    torch.float16
    """
    return _C.get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """The dtype that autocast casts to on the cpu.

    >>> naru.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    return _C.get_autocast_dtype("cpu")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast casts to on cuda to `dtype`, for blocks that do not name one.

    >>> naru.set_autocast_gpu_dtype(naru.bfloat16); naru.get_autocast_gpu_dtype()
    torch.bfloat16
    >>> naru.set_autocast_gpu_dtype(naru.float16)
    """
    _C.set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast casts to on the cpu to `dtype`, for blocks that do not name one.

    >>> naru.set_autocast_cpu_dtype(naru.float16); naru.get_autocast_cpu_dtype()
    torch.float16
    >>> naru.set_autocast_cpu_dtype(naru.bfloat16)
    """
    _C.set_autocast_dtype("cpu", dtype)


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that tensors of the given `shapes` (sequences of sizes, or single ones) broadcast to. RuntimeError if they do not broadcast.

    >>> naru.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    result: list[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        if len(sizes) > len(result):
            result = [1] * (len(sizes) - len(result)) + result
        for i in range(1, len(sizes) + 1):
            if sizes[-i] == 1 or sizes[-i] == result[-i]:
                continue
            if result[-i] != 1:
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: " + ", ".join(str(s) for s in shapes)
                )
            result[-i] = sizes[-i]
    return _C.Size(result)


def _atleast(tensors: tuple, grow: Callable[[Tensor], Tensor]) -> Any:
    if len(tensors) == 1:
        single = tensors[0]
        return grow(single) if isinstance(single, Tensor) else tuple(grow(t) for t in single)
    return tuple(grow(t) for t in tensors)


@takes_tensors
def atleast_1d(*tensors: Any) -> Any:
    """The `tensors` (one, several, or a list) with at least one dimension.

    >>> naru.atleast_1d(naru.tensor(5.0))
    tensor([5.])
    """
    return _atleast(tensors, lambda t: t.reshape(1) if t.dim() == 0 else t)


@takes_tensors
def atleast_2d(*tensors: Any) -> Any:
    """The `tensors` (one, several, or a list) with at least two dimensions; new ones are prepended.

    >>> naru.atleast_2d(naru.tensor(5.0))
    tensor([[5.]])
    """
    return _atleast(tensors, lambda t: t.reshape(1, -1) if t.dim() < 2 else t)


@takes_tensors
def atleast_3d(*tensors: Any) -> Any:
    """The `tensors` (one, several, or a list) with at least three dimensions; a matrix gets a new last dimension.

    >>> naru.atleast_3d(naru.tensor(5.0))
    tensor([[[5.]]])
    """

    def grow(t: Tensor) -> Tensor:
        if t.dim() < 2:
            return t.reshape(1, -1, 1)
        return t.unsqueeze(-1) if t.dim() == 2 else t

    return _atleast(tensors, grow)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums the products of `a` and `b` over dimensions: the last `dims` of a and first of b, or two lists of dimensions. The result, also written
    to `out` if given, has the remaining dimensions of a, then those of b.

    >>> naru.tensordot(naru.tensor([[1.0, 2.0], [3.0, 4.0]]), naru.tensor([10.0, 1.0]), 1)
    tensor([12., 34.])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        result = _C._tensordot(a, b, dims)
    else:
        result = _C._tensordot(a, b, *([d] if isinstance(d, int) else list(d) for d in dims))
    return result if out is None else _C._write_out("tensordot", out, result)


def _layers(name: str) -> Callable[..., Any]:
    """Makes `torch.lstm` and the like, which accept padded sequences, or packed ones followed by their batch sizes."""
    run = getattr(_C, "_" + name)

    def layers(input: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        if len(arguments) != 8:
            raise TypeError(f"{name}() takes 9 positional arguments ({len(arguments) + 1} given); for their names see help(torch.{name})")
        packed = isinstance(arguments[1], Tensor) if name != "lstm" else isinstance(arguments[0], Tensor)
        sizes, (hx, params, biases, count, dropout, training, both, *first) = (
            (arguments[0], arguments[1:]) if packed else (None, arguments)
        )
        for role, value in (("hx", hx), ("params", params)) if name == "lstm" else (("params", params),):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"{name}(): argument '{role}' must be tuple of Tensors, not {type(value).__name__}")
        return tuple(run(input, sizes, hx, params, biases, count, dropout, training, both, *(first or [False])))

    layers.__name__ = layers.__qualname__ = name
    layers.__doc__ = f"""Layers of a recurrent network over sequences, as `torch.nn.{name.partition("_")[0].upper()}` runs them.

    {name}(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or, packed,
    {name}(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional). Returns the outputs and the last states.
    """
    return layers


lstm, gru, rnn_tanh, rnn_relu = (_layers(name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
show(globals(), "functions")


# Names that PyTorch has in its module `torch.functional`, too.
_ELSEWHERE = frozenset(
    "broadcast_tensors cdist chain_matmul einsum istft lu meshgrid norm split stft unique unique_consecutive unravel_index".split()
)


def __getattr__(name: str) -> Any:
    if name == "F":
        from .nn import functional

        return functional
    if name in _ELSEWHERE:
        import sys

        return getattr(sys.modules["naru"], name)
    from ._missing import fail

    fail("functional", name)
    raise AttributeError(f"module 'naru.functional' has no attribute {name!r}")
