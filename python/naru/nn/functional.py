"""`torch.nn.functional`: layers and losses as functions.

Functions that the core implements are called directly; the others are compositions of tensor operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from .._functions.arguments import takes_tensors
from . import grad as grad  # noqa: F401
from ._activation import (  # noqa: F401
    celu as celu,
    celu_ as celu_,
    elu as elu,
    elu_ as elu_,
    gelu as gelu,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    hardtanh_ as hardtanh_,
    leaky_relu as leaky_relu,
    leaky_relu_ as leaky_relu_,
    logsigmoid as logsigmoid,
    mish as mish,
    prelu as prelu,
    relu as relu,
    relu6 as relu6,
    relu_ as relu_,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    selu as selu,
    selu_ as selu_,
    sigmoid as sigmoid,
    silu as silu,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    tanh as tanh,
    tanhshrink as tanhshrink,
    threshold as threshold,
    threshold_ as threshold_,
)
from ._attention import (  # noqa: F401
    _in_projection_packed as _in_projection_packed,
    multi_head_attention_forward as multi_head_attention_forward,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from ._class_loss import (  # noqa: F401
    ctc_loss as ctc_loss,
    linear_cross_entropy as linear_cross_entropy,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from ._dropout import (  # noqa: F401
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
    feature_dropout as feature_dropout,
)
from ._image import (  # noqa: F401
    affine_grid as affine_grid,
    batch_norm as batch_norm,
    channel_shuffle as channel_shuffle,
    fold as fold,
    grid_sample as grid_sample,
    group_norm as group_norm,
    instance_norm as instance_norm,
    interpolate as interpolate,
    local_response_norm as local_response_norm,
    native_channel_shuffle as native_channel_shuffle,
    pad as pad,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    unfold as unfold,
    upsample as upsample,
    upsample_bilinear as upsample_bilinear,
    upsample_nearest as upsample_nearest,
)
from ._loss import (  # noqa: F401
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    gaussian_nll_loss as gaussian_nll_loss,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    poisson_nll_loss as poisson_nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from ._pair_loss import (  # noqa: F401
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
)
from ._pooling import (  # noqa: F401
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d,
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from ._softmax import (  # noqa: F401
    glu as glu,
    gumbel_softmax as gumbel_softmax,
    log_softmax as log_softmax,
    softmax as softmax,
    softmin as softmin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor


linear = _C.linear
conv1d, conv2d, conv3d = _C.conv1d, _C.conv2d, _C.conv3d
conv_tbc, pdist = _C.conv_tbc, _C.pdist
conv_transpose1d, conv_transpose2d, conv_transpose3d = _C.conv_transpose1d, _C.conv_transpose2d, _C.conv_transpose3d


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`out[..., k] = input1 · weight[k] · input2 + bias[k]`.

    Args:
        input1: shape (..., I). input2: shape (..., J), with the same leading dimensions.
        weight: shape (K, I, J). bias: shape (K,).

    >>> x, y = naru.tensor([1.0, 2.0]), naru.tensor([3.0, 4.0])
    >>> naru.nn.functional.bilinear(x, y, naru.eye(2).reshape(1, 2, 2))
    tensor([11.])
    """
    return _C.bilinear(input1, input2, weight, bias)


@takes_tensors
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` (V, D) at the indices `input` (...), as a tensor (..., D).

    An index outside [0, V) raises IndexError. `padding_idx` is the index of a row that gets no gradient. With `sparse`, the gradient is a sparse
    tensor of the rows that were read.

    Args:
        max_norm: rows with a greater norm are renormalised to it, in place, before they are read.
        norm_type: the order p of that norm.
        scale_grad_by_freq: whether to divide gradients by how many times a row is read.

    >>> naru.nn.functional.embedding(naru.tensor([1, 0]), naru.tensor([[0.0, 1.0], [2.0, 3.0]]))
    tensor([[2., 3.],
            [0., 1.]])
    """
    if padding_idx is not None and not -weight.size(0) <= padding_idx < weight.size(0):
        raise AssertionError("Padding_idx must be within num_embeddings")
    return _C._embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)


@takes_tensors
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` (V, D) in each bag of the integers `input`: (bags, D).

    Args:
        input: (N, L), one bag per row; or a vector.
        offsets: the start of each bag of a vector, and with `include_last_offset` the end of the last one.
        per_sample_weights: a factor for each index, with mode "sum" only.
        padding_idx: an index that is skipped in bags; its row gets no gradient.
        sparse: whether the gradient is a sparse tensor of the rows that were read; not with mode "max".
        max_norm: rows with a greater norm are renormalised to it, in place, before they are read.
        norm_type: the order p of that norm.
        scale_grad_by_freq: whether to divide gradients by how many times a row is read.

    >>> import naru
    >>> naru.nn.functional.embedding_bag(naru.tensor([[0, 2]]), naru.tensor([[1.0], [2.0], [4.0]]), mode="sum")
    tensor([[5.]])
    """
    if weight.dtype == _C.int64 and input.is_floating_point():
        import warnings

        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    return _C._embedding_bag(
        input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx,
        sparse,
    )


@takes_tensors
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: _C.dtype | None = None,
) -> Tensor:
    """Products of groups of matrices.

    Args:
        mat_a, mat_b: (G, M, K) and (G, K, N); or one or both with 2 dimensions, where `offs` divides the dimension into groups.
        offs: int32, the end of each group.
        bias: not supported (RuntimeError), as in PyTorch.
        out_dtype: the result's dtype; that of mat_a if None.

    >>> a = naru.ones(2, 1, 8, dtype=naru.bfloat16)
    >>> naru.nn.functional.grouped_mm(a, naru.ones(2, 8, 8, dtype=naru.bfloat16))[:, 0, 0]
    tensor([8., 8.], dtype=torch.bfloat16)
    """
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    return _C._grouped_mm(mat_a, mat_b, offs)


@takes_tensors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Encodes integers (...) as int64 rows (..., num_classes) with a single 1.

    >>> import naru
    >>> naru.nn.functional.one_hot(naru.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if type(tensor) is not Tensor:
        from ..overrides import handle_torch_function, has_torch_function_unary

        if has_torch_function_unary(tensor):
            return handle_torch_function(one_hot, (tensor,), tensor, num_classes)
    return _C.one_hot(tensor, num_classes)


_layer_norm = _C.layer_norm


def _check_normalized_shape(input: Tensor, normalized_shape: Sequence[int]) -> None:
    want = list(_C.Size(normalized_shape))
    # size(d) instead of shape: a nested tensor may have no shape.
    if not want or len(want) > input.dim() or any(input.size(d - len(want)) != n for d, n in enumerate(want)):
        raise RuntimeError(
            f"Given normalized_shape={want}, expected input with shape [*, {', '.join(map(str, want))}], "
            f"but got input of size{list(input.shape)}"
        )


@takes_tensors
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, which must equal `normalized_shape`.

    Args:
        input: (..., *normalized_shape), floating point.

    >>> naru.nn.functional.layer_norm(naru.arange(4.0), (4,))
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    _check_normalized_shape(input, normalized_shape)
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@takes_tensors
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x²) + eps) * weight over the last dimensions, which must equal `normalized_shape`.

    Args:
        input: (..., *normalized_shape), floating point.

    >>> naru.nn.functional.rms_norm(naru.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    return _C._rms_norm(input, normalized_shape, weight, eps)


@takes_tensors
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] | None = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """`input` divided by its p-norm along `dim`, where the norm is clamped to at least `eps`.

    Args:
        dim: the dimension, several of them, or None for all.
        out: the output tensor.

    >>> naru.nn.functional.normalize(naru.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if dim is None or isinstance(dim, (list, tuple)):
        result = input / _C.linalg_vector_norm(input, p, dim, True).clamp_min(eps)
    else:
        result = _C._normalize(input, p, dim, eps)
    return result if out is None else out.copy_(result)


@takes_tensors
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    Args:
        keepdim: whether to keep the last dimension, with size 1.

    >>> naru.nn.functional.pairwise_distance(naru.tensor([[0.0, 0.0]]), naru.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    return _C._pairwise_distance(x1, x2, p, eps, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`; norms are clamped to at least `eps`.

    >>> naru.nn.functional.cosine_similarity(naru.tensor([[1.0, 0.0]]), naru.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    return _C.cosine_similarity(x1, x2, dim, eps)


_missing_name = _missing.module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name in ("ScalingType", "SwizzleType", "scaled_mm", "scaled_grouped_mm"):
        from .._compat import quantization

        return getattr(quantization, name)
    return _missing_name(name)
