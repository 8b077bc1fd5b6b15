"""`torch.nested`: batches of tensors with different lengths in one dimension, without padding.

A nested tensor stores its components concatenated in one tensor (values), with the start of each component (offsets). Operators work on the values:
by element, by row, or by component. The ragged dimension shows as `j1`, `j2`, ... in shapes. Nested tensors can be combined if they have the
same offsets: compute one from the other, or pass `nested_tensor_from_jagged` the offsets of the other. For operators that need equal lengths,
use `to_padded_tensor(padding)`, or process each tensor of `unbind()`.

>>> import naru
>>> a, b = naru.ones(2, 3), naru.zeros(4, 3)
>>> x = naru.nested.nested_tensor([a, b], layout=naru.jagged, requires_grad=True)
>>> x.sum(1)
tensor([[2., 2., 2.],
        [0., 0., 0.]], grad_fn=<IndexAddBackward0>)
>>> x.to_padded_tensor(0.0).shape, [c.shape for c in x.unbind()]
(torch.Size([2, 4, 3]), [torch.Size([2, 3]), torch.Size([4, 3])])

`layout=torch.strided`, the default, allows components that differ in several dimensions, and supports fewer operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from .._functions.arguments import takes_tensors
from . import _components, _dims, _elementwise, _padding, _products, _shapes  # noqa: F401: these register rules
from ._ragged import Ragged, ragged_of, ragged_of_counts
from ._tensor import NestedTensor, from_components, is_nested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor, device as Device, dtype as DType, layout as Layout

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _refuse_layout(layout: Any, what: str = "tensors") -> RuntimeError:
    return RuntimeError(f"Specified layout is unsupported for nested {what}: {layout}; wanted torch.jagged or torch.strided")


def _jagged_from(tensors: list[Tensor], dtype: Any, device: Any) -> NestedTensor:
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for name in ("dtype", "device"):
        if len({getattr(t, name) for t in tensors}) > 1:
            where = "on the same device" if name == "device" else "have the same dtype"
            verb = "be " if name == "device" else ""
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {verb}{where}")
    if len({t.dim() for t in tensors}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    sizes = [tuple(t.shape) for t in tensors]
    if sum(len(set(column)) > 1 for column in zip(*sizes)) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows for a single "
            f"ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim. Got components of sizes {sizes[:4]}"
        )
    return _moved(from_components(tensors, _C.jagged), dtype, device)


def _moved(x: NestedTensor, dtype: Any, device: Any) -> NestedTensor:
    wanted = {key: value for key, value in (("dtype", dtype), ("device", device)) if value is not None}
    return x.to(**wanted) if wanted else x


def _strided_from(tensors: list[Tensor], dtype: Any, device: Any) -> NestedTensor:
    dims = [t.dim() for t in tensors]
    for i, ndim in enumerate(dims):
        if ndim != dims[0]:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {ndim} for Tensor at index {i} and dimension {dims[0]} for Tensor at index 0."
            )
    if tensors:
        dtype, device = dtype or tensors[0].dtype, device or tensors[0].device
        tensors = [t.to(device=device, dtype=dtype) for t in tensors]
    elif dtype is not None or device is not None:
        return _moved(from_components([]), dtype, device)
    return from_components(tensors)


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor with copies of the components, without their history: a leaf.

    Args:
        tensor_list: tensors, or data that torch.tensor accepts, all with the same number of dimensions.
        dtype: the dtype of all elements; that of the first component if None.
        layout: torch.jagged, for components that differ in one dimension, or torch.strided (the default).
        device: the device; that of the first component if None.
        requires_grad: whether backward computes its gradient, which is nested as well.
        pin_memory: whether to use page-locked memory.

    TypeError for anything but a list; TypeError for anything but a list; RuntimeError for components that can't be nested.

    >>> import naru
    >>> naru.nested.nested_tensor([naru.tensor([1.0]), naru.tensor([2.0, 3.0])])
    nested_tensor([
      tensor([1.]),
      tensor([2., 3.])
    ])
    >>> x = naru.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=naru.jagged, requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.values()
    tensor([2., 4., 6.])
    """
    if layout is not None and layout not in (_C.strided, _C.jagged):
        raise _refuse_layout(layout)
    if not isinstance(tensor_list, (list, tuple)) and layout is not _C.jagged:
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [t.detach() if isinstance(t, _C.Tensor) else _C.as_tensor(t) for t in tensor_list]
    made = _jagged_from(parts, dtype, device) if layout is _C.jagged else _strided_from(parts, dtype, device)
    if pin_memory:
        made = made.pin_memory()
    if made._values.requires_grad:
        made = made.detach()
    return made.requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Tensor | Sequence[Tensor],
    dtype: DType | None = None,
    device: Device | str | None = None,
    layout: Layout | None = None,
) -> Tensor:
    """A nested tensor with the history of its components.

    Args:
        ts: a list or tuple of tensors, which are copied; a dense tensor, whose first dimension is the batch; or a nested tensor.
        dtype: the dtype of all elements; that of the first component if None.
        device: the device; that of the first component if None.
        layout: torch.jagged or torch.strided (the default).

    TypeError for anything else, RuntimeError for a tensor of fewer than two dimensions or a nested one of another layout.

    >>> import naru
    >>> a, b = naru.ones(1, requires_grad=True), naru.ones(2, requires_grad=True)
    >>> x = naru.nested.as_nested_tensor([a, b], layout=naru.jagged)
    >>> (3 * x).sum().backward(); b.grad
    tensor([3., 3.])
    """
    if isinstance(ts, (list, tuple)) and all(isinstance(t, _C.Tensor) for t in ts):
        if layout is _C.jagged:
            return _jagged_from(list(ts), dtype, device)
        if layout in (None, _C.strided):
            return _strided_from(list(ts), dtype, device)
        raise _refuse_layout(layout)
    if not isinstance(ts, _C.Tensor):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if is_nested(ts):
        if layout is not ts.layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return _moved(ts, dtype, device)
    if layout not in (None, _C.strided, _C.jagged):
        raise _refuse_layout(layout)
    values = ts.contiguous().flatten(0, 1)
    ragged = ragged_of_counts([ts.shape[1]] * ts.shape[0], values.device)
    return _moved(NestedTensor(values, ragged, 1, layout or _C.strided), dtype, device)


@takes_tensors
def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A nested tensor over the elements of `values`, which stores the components: a view, with the history of values.

    Args:
        values: (sum of the lengths, D_1, ..., D_N); with `jagged_dim`, the packed dimension is another one.
        offsets: (B + 1), the start of each component, and the end; on the device of values.
        lengths: (B), the length of each component; with offsets, there may be gaps after the components.
        jagged_dim: the index of the ragged dimension, where the batch is 0; 1 if None.
        min_seqlen: the smallest length, which avoids a wait for the device to compute it.
        max_seqlen: the greatest length, likewise.

    RuntimeError if there are neither offsets nor lengths, or they do not fit values; ValueError for a jagged_dim below 1. Nested tensors
    made from the same offsets tensor have the same ragged dimension.

    >>> import naru
    >>> offsets = naru.tensor([0, 1, 4])
    >>> x = naru.nested.nested_tensor_from_jagged(naru.arange(4.0), offsets)
    >>> y = naru.nested.nested_tensor_from_jagged(naru.ones(4), offsets)
    >>> (x + y).unbind()
    (tensor([1.]), tensor([2., 3., 4.]))
    """
    for name, part in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if is_nested(part) or not isinstance(part, (_C.Tensor, type(None))):
            raise TypeError(f"nested_tensor_from_jagged(): wanted a dense tensor as {name}, got {type(part).__name__}")
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = _C.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    if jagged_dim is None:
        jagged_dim = 1
    elif jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    if offsets.dim() != 1 or offsets.shape[0] == 0:
        raise RuntimeError(f"nested_tensor_from_jagged(): offsets must be 1D with B + 1 elements, but got shape {tuple(offsets.shape)}")
    if values.device != offsets.device:
        raise RuntimeError(
            "nested_tensor_from_jagged(): values and offsets must be on the same device, but got "
            f"values.device={values.device} and offsets.device={offsets.device}"
        )
    if lengths is not None and lengths.shape[0] != offsets.shape[0] - 1:
        raise RuntimeError(
            f"nested_tensor_from_jagged(): offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {offsets.shape[0] - 1}, "
            f"lengths.shape[0] = {lengths.shape[0]}"
        )
    if values.dim() < jagged_dim:
        raise RuntimeError(f"nested_tensor_from_jagged(): wanted values with a dimension {jagged_dim - 1} to split, got shape {tuple(values.shape)}")
    ragged = ragged_of(offsets, lengths)
    ragged.least = ragged.least if min_seqlen is None else min_seqlen
    ragged.most = ragged.most if max_seqlen is None else max_seqlen
    return NestedTensor(values, ragged, jagged_dim)


@takes_tensors
def to_padded_tensor(input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None) -> Tensor:
    """The components of `input`, nested, as one dense tensor: shorter components are followed by `padding`.

    Args:
        output_size: the sizes of the result, at least those of the largest components (RuntimeError; with layout torch.jagged longer components
            are truncated); the smallest possible sizes if None.
        out: the output tensor.

    >>> import naru
    >>> x = naru.nested.nested_tensor([naru.tensor([1, 2]), naru.tensor([3])])
    >>> naru.nested.to_padded_tensor(x, -1)
    tensor([[ 1,  2],
            [ 3, -1]])
    """
    return input.to_padded_tensor(padding, output_size, out)


@takes_tensors
def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Layout = _C.strided) -> Tensor:
    """`length` elements from `start` along a dimension of each entry of `tensor`; both may differ from entry to entry.

    Args:
        tensor: a dense tensor; its first dimension is the batch.
        dim: the dimension; must be 1 for layout torch.jagged.
        start: the start: a number, or a tensor with one for each entry.
        length: the number of elements, likewise.
        layout: torch.jagged, a view with gaps, or torch.strided, a copy, for which start and length must be numbers.

    RuntimeError for other layouts, dimensions and tensors that do not broadcast to the batch.

    >>> import naru
    >>> x = naru.nested.narrow(naru.arange(6).reshape(2, 3), 1, naru.tensor([0, 1]), naru.tensor([1, 2]), layout=naru.jagged)
    >>> x.unbind()
    (tensor([0]), tensor([4, 5]))
    """
    for name, given in (("start", start), ("length", length)):
        if not isinstance(given, (int, _C.Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is _C.strided:
        if isinstance(start, _C.Tensor) or isinstance(length, _C.Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        if dim == 0:
            return as_nested_tensor(list(tensor.narrow(0, start, length).unbind()))
        return as_nested_tensor(list(tensor.narrow(dim, start, length).unbind()))
    if layout is not _C.jagged:
        raise _refuse_layout(layout, "narrow")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, most = tensor.shape[:2]
    parts = [_C.as_tensor(p, device=tensor.device).to(_C.int64).reshape(-1) for p in (start, length)]
    if any(p.shape[0] not in (1, batch) for p in parts):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to input.shape[0]"
        )
    starts, lengths = (p.expand(batch).contiguous() for p in parts)
    begins = starts + most * _C.arange(batch, device=tensor.device)
    offsets = _C.cat([begins, (begins[-1:] + lengths[-1:])])
    return NestedTensor(tensor.reshape((-1, *tensor.shape[2:])), Ragged(offsets, lengths))


@takes_tensors
def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row of a dense tensor that a mask selects, as a nested tensor of layout torch.jagged.

    Args:
        tensor: a dense tensor.
        mask: a bool tensor that broadcasts to its shape.

    RuntimeError for sparse tensors.

    >>> import naru
    >>> x = naru.nested.masked_select(naru.tensor([[1, 2], [3, 4]]), naru.tensor([[True, False], [True, True]]))
    >>> x.unbind()
    (tensor([1]), tensor([3, 4]))
    """
    for name, given in (("tensor", tensor), ("mask", mask)):
        if given.layout != _C.strided:
            raise RuntimeError(f"torch.nested.masked_select requires a strided {name}, given {given.layout}")
    lengths = mask.expand(tensor.shape).sum(tensor.dim() - 1).reshape(-1)
    offsets = _C.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return NestedTensor(tensor.masked_select(mask), ragged_of(offsets))


__getattr__ = _missing.module_getattr(__name__)
