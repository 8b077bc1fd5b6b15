"""Batch and instance normalisation."""

from __future__ import annotations

from typing import Any

from ... import _C
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .normalization import _Affine

Tensor = _C.Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "SyncBatchNorm"]


class _NormBase(_Affine):
    """Base of normalisations per channel: weight, bias and running statistics."""

    _version = 2
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make_affine(num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", _C.zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", _C.ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Resets the running mean to 0, the running variance to 1, and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to 1, bias to 0, and resets the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Files saved before the number of batches was tracked.
            state_dict[key] = _C.tensor(0, dtype=_C.int64) if self.num_batches_tracked is None else self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Normalises each channel over the batch and all positions."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        average = self.momentum if self.momentum is not None else 0.0
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative mean of all batches
                average = 1.0 / float(self.num_batches_tracked)
        # Without running statistics, use the batch's, in evaluation too.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        running = (self.running_mean, self.running_var) if not self.training or self.track_running_stats else (None, None)
        return F.batch_norm(input, *running, self.weight, self.bias, by_batch, average, self.eps)


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(variance + eps) · weight + bias for each channel of (N, C) or (N, C, L) (Ioffe and Szegedy, 2015).

    Args:
        num_features: C, the number of channels.
        momentum: the weight of a batch's statistics in the running ones; None: the running statistics are the mean of all batches.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> naru.nn.BatchNorm1d(1, affine=False)(naru.tensor([[1.0], [3.0]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images (N, C, H, W).

    Args:
        num_features: C, the number of channels.
        eps: added to variances before the square root.
        momentum: the weight of a batch's statistics in the running ones.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.
        bias: False keeps only the weight.

    >>> naru.nn.BatchNorm2d(1)(naru.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 2, 2])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes (N, C, D, H, W).

    Args:
        num_features: C, the number of channels.
        eps: added to variances before the square root.
        momentum: the weight of a batch's statistics in the running ones.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.
        bias: False keeps only the weight.

    >>> naru.nn.BatchNorm3d(1)(naru.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 2, 2, 2])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes (torch.distributed), for (N, C, ...) with at least 2 dimensions.

    In training, the mean and variance of each channel are computed over the batches of all processes, and gradients flow through them. In a single
    process, and in evaluation, it is the same as batch norm.

    Args:
        num_features: C, the number of channels.
        eps: added to variances before the square root.
        momentum: the weight of a batch's statistics in the running ones; None: the running statistics are the mean of all batches.
        affine: whether there are a weight (initially 1) and a bias (initially 0). bias: False keeps only the weight.
        track_running_stats: whether to keep running statistics, which evaluation uses.
        process_group: the group of processes; all processes if None.
        device, dtype: those of the parameters and buffers; the defaults if None.

    >>> naru.nn.SyncBatchNorm(1, affine=False)(naru.tensor([[1.0], [3.0]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Normalises `input`, over all processes' batches in training."""
        self._check_input_dim(input)
        group = self._group() if self.training else None
        return super().forward(input) if group is None else self._over(group, input)

    def _group(self) -> Any:
        """The group of processes to normalise over; None if that is only this process."""
        import sys

        # If the module was never imported, no group exists.
        groups = sys.modules.get("naru.distributed._groups")
        if groups is None or not groups.is_initialized():
            return None
        found = groups.world() if self.process_group is None else self.process_group
        return found if found.size() > 1 else None

    def _over(self, group: Any, input: Tensor) -> Tensor:
        from ...distributed.nn.functional import all_reduce

        channels, others = input.size(1), [d for d in range(input.dim()) if d != 1]
        shape = [1, channels] + [1] * (input.dim() - 2)
        x = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
        number = _C.full((1,), float(x.numel() // channels), dtype=x.dtype, device=x.device)
        # Two reductions over the group. The second sums centred values, which reduces rounding errors.
        total = all_reduce(_C.cat([x.sum(others), number]), group=group)
        count = total[channels].detach()
        mean = total[:channels] / count
        centred = x - mean.view(shape)
        variance = all_reduce((centred * centred).sum(others), group=group) / count
        made = centred * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            made = made * self.weight.view(shape)
        if self.bias is not None:
            made = made + self.bias.view(shape)
        self._track(mean.detach(), variance.detach(), float(count))
        return made.to(input.dtype)

    def _track(self, mean: Tensor, variance: Tensor, count: float) -> None:
        if not self.track_running_stats or self.running_mean is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        unbiased = variance * (count / max(count - 1, 1))
        with no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replaces each batch norm in the module by SyncBatchNorm, with the same parameters and statistics. Returns the module.

        Args:
            process_group: as in the constructor.

        >>> model = naru.nn.SyncBatchNorm.convert_sync_batchnorm(naru.nn.Sequential(naru.nn.BatchNorm1d(2)))
        >>> type(model[0]).__name__
        'SyncBatchNorm'
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            if module.affine:
                made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """Normalises each channel of each sample over its positions."""

    _dims = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._get_no_batch_dim()
        if input.dim() not in (n, n + 1):
            raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self) -> int:
        return self._dims + 1

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.dim() - self._get_no_batch_dim()
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: {input.size(channels)}."
                )
            import warnings

            warnings.warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
                stacklevel=3,
            )
        batched = input if channels == 1 else input.unsqueeze(0)
        out = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out if channels == 1 else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(variance + eps) · weight + bias for each channel of each sample, (N, C, L) or (C, L) (Ulyanov et al., 2016).

    Args: as in `BatchNorm1d`, but by default without weight, bias and running statistics.

    Args:
        num_features: C, the number of channels.
        momentum: the weight of a batch's statistics in the running ones.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> naru.nn.InstanceNorm1d(1)(naru.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for (N, C, H, W) or (C, H, W).

    Args:
        num_features: C, the number of channels.
        eps: added to variances before the square root.
        momentum: the weight of a batch's statistics in the running ones.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.
        bias: False keeps only the weight.

    >>> naru.nn.InstanceNorm2d(1)(naru.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for (N, C, D, H, W) or (C, D, H, W).

    Args:
        num_features: C, the number of channels.
        eps: added to variances before the square root.
        momentum: the weight of a batch's statistics in the running ones.
        affine: whether there are a weight (initially 1) and a bias (initially 0).
        track_running_stats: whether to keep running statistics, which evaluation uses.
        device, dtype: the parameters' device and dtype; the defaults if None.
        bias: False keeps only the weight.

    >>> naru.nn.InstanceNorm3d(1)(naru.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[-1.0000,  1.0000]]]])
    """

    _dims = 3
