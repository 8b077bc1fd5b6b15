"""Creation functions."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import empty_like, full_like, ones_like, zeros_like  # noqa: F401
from ..utils.dlpack import from_dlpack as _from_dlpack

Tensor = _C.Tensor


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Creates an array from `obj`: a number, nested sequences, a naru array, or a foreign array (buffer protocol, `__dlpack__`).

    `dtype`, `device`: None keeps those of an array. `copy`: True always copies, False raises ValueError if a copy would be needed, None copies only
    if needed.

    >>> naru.array_api.asarray([[1, 2], [3, 4]], dtype=naru.float32)
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(obj, Tensor):
        same = (dtype is None or dtype == obj.dtype) and (device is None or _C.device(device) == obj.device)
        if copy is False and not same:
            raise ValueError(f"asarray: {obj.dtype} on {obj.device} as {dtype or obj.dtype} on {device or obj.device} needs a copy, which copy=False forbids")
        return obj.to(device=obj.device if device is None else device, dtype=obj.dtype if dtype is None else dtype, copy=bool(copy))
    if copy is False and isinstance(obj, (bool, int, float, complex, list, tuple)):
        raise ValueError(f"asarray: an array of a {type(obj).__name__} is always a copy, which copy=False forbids")
    if any([step < 0 for step in getattr(obj, "strides", None) or ()]):  # memory with negative strides can't be shared
        if copy is False:
            raise ValueError("asarray: an array with negative strides is always copied, which copy=False forbids")
        obj, copy = obj.copy(), None
    return _C.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Wraps the memory of `x`, any object with `__dlpack__`, as an array, or copies it to `device`. Raises ValueError or BufferError if a copy is
    needed but `copy`=False.

    >>> x = naru.arange(3)
    >>> y = naru.array_api.from_dlpack(x); y[0] = 7; x
    tensor([7, 1, 2])
    """
    return asarray(x, device=device, copy=copy) if isinstance(x, Tensor) else _from_dlpack(x, device=device, copy=copy)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An uninitialized array of `shape` (an integer or a tuple). `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.empty((2, 3)).shape
    torch.Size([2, 3])
    """
    return _C.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros. `shape`: an integer or a tuple; `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.zeros(3)
    tensor([0., 0., 0.])
    """
    return _C.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones. `shape`: an integer or a tuple; `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.ones((2, 2), dtype=naru.int64)
    tensor([[1, 1],
            [1, 1]])
    """
    return _C.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of `shape` (an integer or a tuple) on `device`, filled with `fill_value`; `dtype` defaults to the default dtype for the value's
    kind.

    >>> naru.array_api.full(2, 1.5), naru.array_api.full(2, True)
    (tensor([1.5000, 1.5000]), tensor([True, True]))
    """
    return _C.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers `start`, start + `step` ... before `stop` (from 0 to start if no stop is given). Empty if the step leads away from stop, which
    PyTorch rejects. `dtype`, `device`: None selects the defaults, int64 for integer arguments.

    >>> naru.array_api.arange(2, 8, 3), naru.array_api.arange(2, 8, -3)
    (tensor([2, 5]), tensor([], dtype=torch.int64))
    """
    if stop is None:
        start, stop = 0, start
    if step != 0 and (stop - start) / step <= 0:
        whole = all([isinstance(x, int) for x in (start, stop, step)])
        return _C.empty((0,), dtype=dtype or (_C.int64 if whole else _C.get_default_dtype()), device=device)
    return _C.arange(start, stop, step, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the `k`-th diagonal, zeros elsewhere: `n_rows` by `n_cols` (default: square). `dtype`, `device`: None selects the defaults.

    >>> naru.array_api.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _C.eye(n_rows, columns, dtype=dtype, device=device)
    made = _C.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers, real or complex, from `start` to `stop`, which is included if `endpoint`. `dtype`, `device`: None selects the
    defaults.

    >>> naru.array_api.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    made = _C.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return made if endpoint else made[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate arrays of a grid, one for each of `arrays` (1-d); `indexing` "xy" swaps the first two dimensions, "ij" keeps them in order.

    >>> naru.array_api.meshgrid(naru.tensor([1, 2]), naru.tensor([3, 4, 5]))[0]
    tensor([[1, 2],
            [1, 2],
            [1, 2]])
    """
    return tuple(_C.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of `x` on and below the `k`-th diagonal of each matrix, zeros elsewhere.

    >>> naru.array_api.tril(naru.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _C.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of `x` on and above the `k`-th diagonal of each matrix, zeros elsewhere.

    >>> naru.array_api.triu(naru.ones(2, 2), k=1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _C.triu(x, k)
