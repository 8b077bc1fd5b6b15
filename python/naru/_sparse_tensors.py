"""Building sparse tensors from their parts and back: `torch.sparse_coo_tensor`, `torch.sparse_csr_tensor` and related functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor
order_checked = False  # torch.sparse.check_sparse_tensor_invariants


def _like(data: Any, dtype: Any, device: Any) -> Tensor:
    """As `torch.as_tensor`, but a tensor keeps its autograd history."""
    if isinstance(data, Tensor):
        return data.to(device=device or data.device, dtype=dtype or data.dtype)
    return _C.as_tensor(data, dtype=dtype, device=device)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor in coordinate (COO) format.

    Args:
        indices: integers (dimensions, stored), one column per value. Indices outside `size` raise RuntimeError.
        values: (stored, ...); values with equal coordinates are summed.
        size: inferred from the indices if not given. `sparse_coo_tensor(size)` is a tensor of zeros.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory, check_invariants: accepted as in PyTorch; indices are always checked.
        is_coalesced: asserts that coordinates are unique and in row-major order; RuntimeError if they are not.

    >>> naru.sparse_coo_tensor(naru.tensor([[0, 1], [1, 0]]), naru.tensor([5, 7])).to_dense()
    tensor([[0, 5],
            [7, 0]])
    """
    if values is None:
        size = tuple(size if size is not None else indices)
        none = _C.empty((len(size), 0), dtype=_C.int64, device=device)
        made = _C._sparse_coo_tensor(none, _C.empty(0, dtype=dtype, device=device), size, False)
    else:
        held = _like(values, dtype, device)
        made = _C._sparse_coo_tensor(
            _like(indices, _C.int64, held.device), held, None if size is None else tuple(size), bool(is_coalesced)
        )
    return made.detach().requires_grad_() if requires_grad else made


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Compressed sparse tensors: by rows, by columns, or by rows or columns of blocks.

    Args:
        compressed_indices: (batches ..., n + 1): where each of the n rows or columns begins, and the end of the last one.
        plain_indices: (batches ..., stored): the column or row of each stored value or block.
        values: (batches ..., stored, dense dimensions ...); for blocks (batches ..., stored, block rows, block columns, dense dimensions ...).
        layout: torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr or torch.sparse_bsc.
        size: inferred from the indices if not given.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory: accepted as in PyTorch.
        check_invariants: whether to check also that indices increase within each row or column; the rest is always checked (RuntimeError).

    >>> naru.sparse_compressed_tensor([0, 1, 2], [1, 0], [5, 7], layout=naru.sparse_csc).to_dense()
    tensor([[0, 7],
            [5, 0]])
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    held = _like(values, dtype, device)
    lines, plain = (i if isinstance(i, Tensor) else _C.as_tensor(i, dtype=_C.int64, device=held.device) for i in (compressed_indices, plain_indices))
    ordered = order_checked if check_invariants is None else check_invariants
    made = _C._sparse_compressed_tensor(lines, plain, held, None if size is None else tuple(size), layout, ordered)
    return made.detach().requires_grad_() if requires_grad else made


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Sparse matrices compressed by rows (CSR). All parts may have leading batch dimensions.

    Args:
        crow_indices: where each row begins, and the end of the last one: integers (rows + 1).
        col_indices: the column of each value: integers (stored).
        values: (stored, dense dimensions ...).
        size: inferred from the indices if not given.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory: accepted as in PyTorch.
        check_invariants: whether to check also that indices increase within each row or column; the rest is always checked (RuntimeError).

    >>> naru.sparse_csr_tensor(naru.tensor([0, 1, 2]), naru.tensor([1, 0]), naru.tensor([5, 7])).to_dense()
    tensor([[0, 5],
            [7, 0]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=_C.sparse_csr, device=device, requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Sparse matrices compressed by columns (CSC). All parts may have leading batch dimensions.

    Args:
        ccol_indices: where each column begins, and the end of the last one: integers (columns + 1).
        row_indices: the row of each value: integers (stored).
        values: (stored, dense dimensions ...).
        size: inferred from the indices if not given.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory: accepted as in PyTorch.
        check_invariants: whether to check also that indices increase within each row or column; the rest is always checked (RuntimeError).

    >>> naru.sparse_csc_tensor(naru.tensor([0, 1, 2]), naru.tensor([1, 0]), naru.tensor([5, 7])).to_dense()
    tensor([[0, 7],
            [5, 0]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=_C.sparse_csc, device=device, requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Sparse matrices compressed by rows of blocks (BSR). All parts may have leading batch dimensions.

    Args:
        crow_indices: where each row of blocks begins, and the end of the last one: integers (rows of blocks + 1).
        col_indices: the block column of each block: integers (stored).
        values: the blocks (stored, block rows, block columns, dense dimensions ...).
        size: inferred from the indices if not given.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory: accepted as in PyTorch.
        check_invariants: whether to check also that indices increase within each row or column; the rest is always checked (RuntimeError).

    >>> naru.sparse_bsr_tensor([0, 1], [1], naru.ones(1, 2, 1), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 1.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=_C.sparse_bsr, device=device, requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Sparse matrices compressed by columns of blocks (BSC). All parts may have leading batch dimensions.

    Args:
        ccol_indices: where each column of blocks begins, and the end of the last one: integers (columns of blocks + 1).
        row_indices: the block row of each block: integers (stored).
        values: the blocks (stored, block rows, block columns, dense dimensions ...).
        size: inferred from the indices if not given.
        dtype, device, requires_grad: of the result; dtype and device default to those of `values`.
        pin_memory: accepted as in PyTorch.
        check_invariants: whether to check also that indices increase within each row or column; the rest is always checked (RuntimeError).

    >>> naru.sparse_bsc_tensor([0, 1], [1], naru.ones(1, 1, 2), (2, 2)).to_dense()
    tensor([[0., 0.],
            [1., 1.]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=_C.sparse_bsc, device=device, requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def _validate_sparse_coo_tensor_args(indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None = None, **_: Any) -> None:
    """RuntimeError if the parts do not make a valid sparse tensor."""
    _C._sparse_coo_tensor(indices, values, tuple(size), bool(is_coalesced))


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Sequence[int], layout: Any, **_: Any
) -> None:
    """RuntimeError if the parts do not make a valid compressed tensor, including the order within rows."""
    _C._sparse_compressed_tensor(compressed_indices, plain_indices, values, tuple(size), layout, True)


_validate_sparse_csr_tensor_args = functools.partial(_validate_sparse_compressed_tensor_args, layout=_C.sparse_csr)
_validate_sparse_csc_tensor_args = functools.partial(_validate_sparse_compressed_tensor_args, layout=_C.sparse_csc)
_validate_sparse_bsr_tensor_args = functools.partial(_validate_sparse_compressed_tensor_args, layout=_C.sparse_bsr)
_validate_sparse_bsc_tensor_args = functools.partial(_validate_sparse_compressed_tensor_args, layout=_C.sparse_bsc)


def reduce_sparse(t: Tensor) -> tuple[Any, ...]:
    """`__reduce_ex__` of the sparse tensor `t`: the function and arguments that rebuild it.

    >>> t = naru.ones(2, 2).to_sparse()
    >>> make, parts = reduce_sparse(t)
    >>> naru.equal(make(*parts).to_dense(), t.to_dense())
    True
    """
    parts, coalesced = parts_of(t), t.is_sparse and t.is_coalesced()
    return _rebuild_sparse, (parts, tuple(t.shape), coalesced, t.requires_grad and t.is_leaf, None if t.is_sparse else t.layout)


def parts_of(t: Tensor) -> tuple[Tensor, ...]:
    """(indices, values) of the COO tensor `t`; for other layouts (compressed indices, plain indices, values).

    >>> parts_of(naru.eye(2).to_sparse_csc())
    (tensor([0, 1, 2]), tensor([0, 1]), tensor([1., 1.]))
    """
    plain = t.detach()
    if t.is_sparse:
        return plain._indices(), plain._values()
    rows = t.layout in (_C.sparse_csr, _C.sparse_bsr)
    return *((plain.crow_indices(), plain.col_indices()) if rows else (plain.ccol_indices(), plain.row_indices())), plain.values()


def _rebuild_sparse(parts: tuple[Tensor, ...], size: tuple[int, ...], coalesced: bool, requires_grad: bool, layout: Any = None) -> Tensor:
    if len(parts) == 3:
        return sparse_compressed_tensor(*parts, size, layout=layout or _C.sparse_csr, requires_grad=requires_grad)
    return sparse_coo_tensor(*parts, size, is_coalesced=coalesced, requires_grad=requires_grad)


def with_values(t: Tensor, values: Tensor) -> Tensor:
    """The sparsity pattern of `t` with other `values`, which may have autograd history.

    >>> with_values(naru.eye(2).to_sparse(), naru.tensor([2.0, 3.0])).to_dense()
    tensor([[2., 0.],
            [0., 3.]])
    """
    parts = (*parts_of(t)[:-1], values)
    if t.is_sparse:
        return sparse_coo_tensor(*parts, t.shape, is_coalesced=t.is_coalesced())
    return sparse_compressed_tensor(*parts, t.shape, layout=t.layout)
