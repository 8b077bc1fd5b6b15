"""Rarely used functions of PyTorch's top-level namespace: control flow, older names of sparse products, some settings."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C, _sparse_tensors, sparse
from .._functions.arguments import takes_tensors
from ..nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Returns `true_fn`(*`operands`), or `false_fn`(*`operands`) if `pred` is false. This is Python's `if`: a tensor predicate is read on the host.

    >>> import naru
    >>> cond(naru.tensor(True), lambda x: x + 1, lambda x: x - 1, (naru.tensor(1),))
    tensor(2)
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Repeats `carried_inputs` = `body_fn`(*`carried_inputs`) while `cond_fn`(*`carried_inputs`) is true, then returns `carried_inputs`.

    >>> import naru
    >>> while_loop(lambda x: x < 5, lambda x: (x + 2,), (naru.tensor(0),))
    (tensor(6),)
    """
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(f"body_fn should return the same number of elements as carried_inputs, but got {len(made)} and {len(carried)}")
        carried = made
    return carried


_INTEROP = [0]


def get_num_interop_threads() -> int:
    """The value passed to set_num_interop_threads, else the number of threads: naru has one thread pool for all cpu work.

    >>> get_num_interop_threads() > 0
    True
    """
    return _INTEROP[0] or _C.get_num_threads()


def set_num_interop_threads(n: int) -> None:
    """Stores `n`, without other effect: naru has one thread pool (`set_num_threads`). RuntimeError if `n` is not positive.

    >>> set_num_interop_threads(0)
    Traceback (most recent call last):
    RuntimeError: Expected positive number of threads
    """
    if n <= 0:
        raise RuntimeError("Expected positive number of threads")
    _INTEROP[0] = int(n)


_WARN_ALWAYS = [False]
_WARNED: set[str] = set()


def warn_once(text: str) -> None:
    """Emits a UserWarning once per process, or each time after `set_warn_always(True)`."""
    if text not in _WARNED or _WARN_ALWAYS[0]:
        _WARNED.add(text)
        warnings.warn(text, stacklevel=3)


def set_warn_always(b: bool) -> None:
    """If `b`, some warnings that are emitted once per process are emitted each time; Python's warning filters still apply.

    >>> set_warn_always(False)
    """
    _WARN_ALWAYS[0] = bool(b)


def is_warn_always_enabled() -> bool:
    """Returns the value passed to set_warn_always.

    >>> is_warn_always_enabled()
    False
    """
    return _WARN_ALWAYS[0]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turns anomaly mode on or off (`enabled`), with or without a check for NaN (`check_nan`), for all threads; see autograd.set_detect_anomaly.

    >>> import naru
    >>> set_anomaly_enabled(False)
    >>> naru.is_anomaly_enabled()
    False
    """
    _C._set_anomaly_mode(enabled, check_nan)


def compiled_with_cxx11_abi() -> bool:
    """True: naru is C++20.

    >>> compiled_with_cxx11_abi()
    True
    """
    return True


def is_vulkan_available() -> bool:
    """False.

    >>> is_vulkan_available()
    False
    """
    return False


@takes_tensors
def is_distributed(input: Tensor) -> bool:
    """Returns False: no tensor `input` is distributed.

    >>> import naru
    >>> is_distributed(naru.ones(1))
    False
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"is_distributed(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return False


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of the numbers `args`.

    >>> sym_sum([1, 2])
    3
    """
    return sum(args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b` else `f`.

    >>> sym_ite(True, 1, 2)
    1
    """
    return t if b else f


def sym_sqrt(a: float) -> float:
    """The square root of the number `a`.

    >>> sym_sqrt(4)
    2.0
    """
    return math.sqrt(a)


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor of `size` elements over a memory-mapped file of raw memory: of `dtype` (the default dtype), on the cpu (`device` and
    `pin_memory` are ignored), with `requires_grad`.

    Args:
        filename: the file.
        shared: writes to the tensor go to the file, which is created or extended if necessary. Otherwise they stay in memory.

    Raises:
        RuntimeError: the file is too short for the elements, and not shared.

    >>> import tempfile, naru
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     from_file(file.name, shared=True, size=2).fill_(3)
    tensor([3., 3.])
    """
    import os

    import numpy as np

    kind = dtype or _C.get_default_dtype()
    wanted = size * kind.itemsize
    held = os.path.getsize(filename) if os.path.exists(filename) else 0
    if held < wanted and not shared:
        if not os.path.exists(filename):
            raise RuntimeError(f"unable to open file <{filename}> in read-only mode: No such file or directory (2)")
        raise RuntimeError(f"file <{filename}> size <{held}> is smaller than the required mapping size <{wanted}>")
    if held < wanted:
        with open(filename, "ab") as file:
            file.truncate(wanted)
    memory = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(wanted,)) if wanted else np.zeros(0, np.uint8)
    made = _C.from_numpy(memory).view(kind)
    return made.requires_grad_() if requires_grad else made


@takes_tensors
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0, zero_infinity: bool = False) -> Tensor:
    """nn.functional.ctc_loss of `log_probs`, `targets`, `input_lengths`, `target_lengths`, `blank` and `zero_infinity`, with a numeric code for
    the `reduction`: 0 none (the default), 1 mean, 2 sum.

    >>> import naru
    >>> ctc_loss(naru.zeros(2, 1, 2).log_softmax(2), naru.tensor([[1]]), naru.tensor([2]), naru.tensor([1]))
    tensor([0.2877])
    """
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, {1: "mean", 2: "sum"}.get(reduction, "none"), zero_infinity)


@takes_tensors
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(`input` with elements dropped with probability `p`, the mask of kept elements); nothing is dropped if `train` is false.

    >>> import naru
    >>> native_dropout(naru.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if not train and train is not None:
        return input.clone(), _C.ones_like(input, dtype=_C.bool)
    kept = _C.empty_like(input, dtype=_C.bool).bernoulli_(1 - p)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


@takes_tensors
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows of `weight` selected by `indices` whose norm (of order `norm_type`) exceeds `max_norm`, in place; returns `weight`.

    >>> import naru
    >>> embedding_renorm_(naru.tensor([[3.0, 4.0], [6.0, 8.0]]), naru.tensor([1]), 5.0, 2.0)
    tensor([[3., 4.],
            [3., 4.]])
    """
    F.embedding(indices, weight.detach(), max_norm=max_norm, norm_type=norm_type)
    return weight


@takes_tensors
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of `input`[`start`:`end`:`step`] along the dimension `dim`.

    >>> import naru
    >>> slice_copy(naru.arange(5), 0, 1, None, 2)
    tensor([1, 3])
    """
    return input[(slice(None),) * (dim % max(input.dim(), 1)) + (slice(start, end, step),)].clone()


def _stored_rows(mat1: Tensor, mat2: Tensor) -> tuple[Tensor, Tensor]:
    """The rows in which a sparse matrix stores elements, and those rows of its product with a dense one."""
    rows = mat1.detach().coalesce().indices()[0].unique()
    return rows, sparse.mm(mat1, mat2).index_select(0, rows)


@takes_tensors
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of the sparse COO matrix `mat1` and the dense `mat2`, as a COO tensor with one sparse dimension: the rows in which `mat1` stores elements.

    >>> import naru
    >>> hspmm(naru.sparse_coo_tensor([[1], [0]], [2.0], (2, 2)), naru.ones(2, 2))
    tensor(indices=tensor([[1]]),
           values=tensor([[2., 2.]]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    rows, values = _stored_rows(mat1, mat2)
    return _sparse_tensors.sparse_coo_tensor(rows.unsqueeze(0), values, (mat1.shape[0], mat2.shape[1]), is_coalesced=True)


@takes_tensors
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of the sparse COO matrix `input` and the dense `mat`, as a sparse matrix that stores the full rows in which `input` stores elements.

    >>> import naru
    >>> smm(naru.eye(2).to_sparse(), naru.eye(2)).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, values = _stored_rows(input, mat)
    places = _C.stack([rows.repeat_interleave(mat.shape[1]), _C.arange(mat.shape[1], device=rows.device).repeat(rows.numel())])
    return _sparse_tensors.sparse_coo_tensor(places, values.reshape(-1), (input.shape[0], mat.shape[1]), is_coalesced=True)


@takes_tensors
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta` * `input` + `alpha` * (`mat1` @ `mat2`) for sparse matrices `input` and `mat1` and a dense `mat2`, as a sparse matrix.

    >>> import naru
    >>> s = naru.eye(2).to_sparse()
    >>> sspaddmm(s, s, naru.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    return input * beta + smm(mat1, mat2) * alpha


@takes_tensors
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of the matrices `input` and `mat2`, one of them sparse.

    >>> import naru
    >>> dsmm(naru.eye(2).to_sparse(), naru.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return sparse.mm(input, mat2)


hsmm, saddmm = hspmm, sspaddmm


@takes_tensors
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """nn.functional.embedding_bag of `weight`, `indices`, `offsets`, `per_sample_weights` and `padding_idx`, with a numeric code for the `mode`
    (0 sum, 1 mean, 2 max); `scale_grad_by_freq`, `sparse` and `include_last_offset` as in that function. Returns (result, the bag of each index, the
    number of indices in each bag, the same)

    >>> import naru
    >>> embedding_bag(naru.eye(2), naru.tensor([0, 1]), naru.tensor([0]))
    (tensor([[1., 1.]]), tensor([0, 0]), tensor([2]), tensor([2]))
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"embedding_bag: wanted mode 0 (sum), 1 (mean) or 2 (max), got {mode}")
    out = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse, per_sample_weights, include_last_offset, padding_idx
    )
    ends = offsets if include_last_offset else _C.cat([offsets, _C.tensor([indices.numel()], dtype=offsets.dtype, device=offsets.device)])
    sizes = ends.diff()
    return out, _C.repeat_interleave(_C.arange(sizes.numel(), device=sizes.device), sizes), sizes, sizes.clone()
