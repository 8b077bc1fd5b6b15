"""Batching rules by decomposition: each operator is written for one entry, in operators that have batching rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._stand_in import broadcast_shape, leaves, sizes_of
from . import _rules  # noqa: F401: these rules override those of _rules
from ._batched import Level, has_batch, rank, rule, with_batch, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def composed(*names: str) -> Callable[[Any], Any]:
    """Registers f(*args, **kwargs), written for tensors as the function of a vmap sees them, for functions with these names. f raises TypeError for
    arguments that it does not cover."""

    def register(f: Any) -> Any:
        def call(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
            return f(*args, **kwargs)

        rule(*names)(call)
        return f

    return register


def _unless_given(value: Any, usual: Any) -> Any:
    return usual if value is None else value


composed("msort")(lambda x: x.sort(0, stable=True)[0])
composed("fliplr")(lambda x: x.flip(1))
composed("flipud")(lambda x: x.flip(0))
composed("linalg_vecdot")(lambda x, y, *, dim=-1: (x.conj() * y).sum(dim))
composed("linalg_multi_dot")(lambda tensors: _chain(list(tensors)))
composed("diagflat")(lambda x, offset=0: x.reshape(-1).diag_embed(offset))
composed("dist")(lambda x, y, p=2: _C.linalg_vector_norm((x - y).reshape(-1), p))
composed("vstack", "row_stack")(lambda tensors: _C.cat([_of_rank(t, 2) for t in tensors], 0))
composed("dstack")(lambda tensors: _C.cat([_of_rank(t, 3) for t in tensors], 2))
composed("column_stack")(lambda tensors: _C.cat([t if t.dim() > 1 else t.reshape(-1, 1) for t in tensors], 1))
composed("take")(lambda x, index: x.reshape(-1)[index])
composed("hsplit")(lambda x, parts: x.tensor_split(parts, 0 if x.dim() == 1 else 1))
composed("vsplit")(lambda x, parts: x.tensor_split(parts, 0))
composed("dsplit")(lambda x, parts: x.tensor_split(parts, 2))
composed("narrow_copy")(lambda x, dim, start, length: x.narrow(dim, start, length).clone())
composed("unfold_copy")(lambda x, dim, size, step: x.unfold(dim, size, step).clone())


def _times(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


@composed("addr")
def _addr(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _C.outer(a, b)
    scaled = _times(product, alpha)
    out = _times(x, beta) + scaled if beta else scaled
    return out.to(_C.bool) if x.dtype is product.dtype is _C.bool else out


def _chain(tensors: list[Any]) -> Any:
    out = tensors[0]
    for t in tensors[1:]:
        out = _C.matmul(out, t)
    return out


def _of_rank(t: Any, n: int) -> Any:
    """Adds dimensions as atleast_2d and atleast_3d do."""
    if t.dim() == 0:
        return t.reshape((1,) * n)
    if t.dim() == 1:
        return t.reshape((1, -1, 1)[:n])
    return t.unsqueeze(-1) if t.dim() < n else t


@composed("hstack")
def _hstack(tensors: Any) -> Any:
    parts = [t if t.dim() else t.reshape(1) for t in tensors]
    return _C.cat(parts, 0 if parts[0].dim() == 1 else 1)


@composed("pairwise_distance")
def _pairwise_distance(x: Any, y: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return _C.linalg_vector_norm(x - y + eps, p, -1, keepdim)


@composed("rot90")
def _rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    first, second = dims
    turns = k % 4
    if turns == 0:
        return x.clone()
    if turns == 2:
        return x.flip((first, second))
    return x.flip(second).transpose(first, second) if turns == 1 else x.flip(first).transpose(first, second)


@composed("kron")
def _kron(a: Any, b: Any) -> Any:
    n = max(a.dim(), b.dim())
    left, right = ((1,) * (n - t.dim()) + tuple(t.shape) for t in (a, b))
    x = a.reshape([m for size in left for m in (size, 1)])
    y = b.reshape([m for size in right for m in (1, size)])
    return (x * y).reshape([i * j for i, j in zip(left, right)])


@composed("trapezoid", "trapz")
def _trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Any:
    return _strips(y, x, dx, dim).sum(dim)


@composed("cumulative_trapezoid")
def _cumulative_trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Any:
    return _strips(y, x, dx, dim).cumsum(dim)


def _strips(y: Any, x: Any, dx: float | None, dim: int) -> Any:
    """The areas between adjacent points along a dimension."""
    n = y.shape[dim]
    if n == 0 or (isinstance(x, Tensor) and x.shape[-1 if x.dim() == 1 else dim] != n):
        raise TypeError("for the loop")
    both = y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)
    if x is None:
        return both * (_unless_given(dx, 1) / 2)
    steps = x.narrow(-1 if x.dim() == 1 else dim, 1, n - 1) - x.narrow(-1 if x.dim() == 1 else dim, 0, n - 1)
    if x.dim() == 1:
        steps = steps.reshape((-1,) + (1,) * (y.dim() - 1 - dim % y.dim()))
    return both * steps / 2


@composed("take_along_dim")
def _take_along_dim(x: Any, index: Any, dim: int | None = None) -> Any:
    if dim is None:
        return x.reshape(-1).gather(0, index.reshape(-1))
    at = dim % x.dim()
    sizes = list(_shape_of_both(x, index, at))
    return x.expand([*sizes[:at], x.shape[at], *sizes[at + 1 :]]).gather(at, index.expand([*sizes[:at], index.shape[at], *sizes[at + 1 :]]))


def _shape_of_both(x: Any, y: Any, but: int) -> tuple[int, ...]:
    a, b = list(x.shape), list(y.shape)
    a[but] = b[but] = 1
    return tuple(broadcast_shape(a, b))


@composed("meshgrid")
def _meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    given = sizes_of(tensors)
    flat = [t.reshape(-1) for t in given]
    turned = indexing == "xy" and len(flat) > 1
    if turned:
        flat[:2] = flat[1], flat[0]
    sizes = [t.shape[0] for t in flat]
    grids = [t.reshape([-1 if j == i else 1 for j in range(len(flat))]).expand(sizes) for i, t in enumerate(flat)]
    if turned:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@composed("cross")
def _cross(x: Any, y: Any, dim: int | None = None) -> Any:
    if dim is None:
        dim = next(d for d in range(x.dim()) if x.shape[d] == 3)
    return _C.linalg_cross(x, y, dim=dim)


@composed("fft_fftshift")
def _fftshift(x: Any, dim: Any = None) -> Any:
    dims = [dim] if isinstance(dim, int) else list(range(x.dim())) if dim is None else list(dim)
    return x.roll([x.shape[d] // 2 for d in dims], dims)


@composed("fft_ifftshift")
def _ifftshift(x: Any, dim: Any = None) -> Any:
    dims = [dim] if isinstance(dim, int) else list(range(x.dim())) if dim is None else list(dim)
    return x.roll([(x.shape[d] + 1) // 2 for d in dims], dims)


@composed("block_diag")
def _block_diag(*tensors: Any) -> Any:
    blocks = [t.reshape(1, -1) if t.dim() < 2 else t for t in (tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors)]
    columns = sum(b.shape[1] for b in blocks)
    rows, before = [], 0
    for b in blocks:
        rows.append(_C.cat([b.new_zeros((b.shape[0], before)), b, b.new_zeros((b.shape[0], columns - before - b.shape[1]))], 1))
        before += b.shape[1]
    return _C.cat(rows, 0)


# --- writes into a copy of the input, which gets the batch


def _copy_of(level: Level, x: Any) -> Any:
    return wrapped(with_batch(x, level).clone(), level)


@rule("select_scatter", "slice_scatter", "diagonal_scatter")
def _view_scatter(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, src = _copy_of(level, args[0]), args[1] if len(args) > 1 else kwargs["src"]
    more = dict(kwargs)
    more.pop("src", None)
    names = {"select_scatter": ("dim", "index"), "slice_scatter": ("dim", "start", "end", "step"), "diagonal_scatter": ("offset", "dim1", "dim2")}[func.__name__]
    given = {**dict(zip(names, args[2:])), **more}
    if func.__name__ == "select_scatter":
        view = x.select(given["dim"], given["index"])
    elif func.__name__ == "diagonal_scatter":
        view = x.diagonal(given.get("offset", 0), given.get("dim1", 0), given.get("dim2", 1))
    else:
        dim = given.get("dim", 0) % x.dim()
        view = x[(*[slice(None)] * dim, slice(given.get("start"), given.get("end"), given.get("step", 1)))]
    if src.shape != view.shape:
        return NotImplemented
    view.copy_(src)
    return x


@rule("index_add", "index_copy", "index_fill")
def _at_index(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An index vector along a dimension, expanded to all other dimensions: a scatter."""
    x, dim, index = args[:3]
    if len(args) == 4 and rank(x, level) == 0:  # treat as a vector of one element
        source = args[3].reshape(1) if isinstance(args[3], Tensor) else args[3]
        return _at_index(level, func, (x.reshape(1), dim, index.reshape(1), source), kwargs).reshape(())
    if len(args) != 4 or rank(index, level) != 1:
        return NotImplemented
    at, source, alpha = dim % x.dim(), args[3], kwargs.get("alpha", 1)
    x = _copy_of(level, x)
    shape = [index.shape[0] if d == at else n for d, n in enumerate(x.shape)]
    places = index.to(_C.int64).reshape([-1 if d == at else 1 for d in range(x.dim())]).expand(shape)
    if func.__name__ == "index_fill":
        places = _C.where(places < 0, places + x.shape[at], places)
        return x.scatter(at, places, source.to(x.dtype).expand(shape)) if isinstance(source, Tensor) else x.scatter(at, places, source)
    if tuple(source.shape) != tuple(shape):
        return NotImplemented
    return x.scatter_add(at, places, source * alpha if alpha != 1 else source) if func.__name__ == "index_add" else x.scatter(at, places, source)


@rule("bucketize")
def _bucketize(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if any(has_batch(a, level) for a in leaves(args[1:])):
        return _C.searchsorted(args[1], args[0], *args[2:], **kwargs)
    return wrapped(func(args[0].value, *args[1:], **kwargs), level)


@rule("searchsorted")
def _searchsorted(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """One sorted vector for all entries, or one for each row of the values."""
    table, values = args[:2]
    if isinstance(kwargs.get("sorter"), Tensor):
        table, kwargs = table.gather(-1, kwargs["sorter"]), {k: v for k, v in kwargs.items() if k != "sorter"}
    if not isinstance(values, Tensor):
        return NotImplemented
    if rank(table, level) == 1 and not has_batch(table, level):
        return wrapped(func(table, values.value, *args[2:], **kwargs), level)
    if rank(table, level) == 1:
        flat = with_batch(values, level)
        return wrapped(func(table.value, flat.flatten(1) if flat.dim() > 1 else flat.unsqueeze(1), *args[2:], **kwargs).reshape(flat.shape), level)
    return wrapped(func(with_batch(table, level), with_batch(values, level), *args[2:], **kwargs), level)


@rule("grid_sample")
def _with_samples(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Two tensors whose first dimension is the samples: merges the batch into that dimension."""
    first, second = (with_batch(x, level) for x in args[:2])
    if any(has_batch(a, level) for a in leaves((*args[2:], *kwargs.values()))) or first.dim() != second.dim():
        return NotImplemented
    out = func(first.flatten(0, 1), second.flatten(0, 1), *args[2:], **kwargs)
    return wrapped(out.reshape((level.size, -1, *tuple(out.shape)[1:])), level)
