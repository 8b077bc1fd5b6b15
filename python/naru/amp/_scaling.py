"""What `GradScaler` computes on devices. Nothing is read back to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from ..autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor


def wide(x: Tensor) -> Tensor:
    """`x` in double precision where the device supports it, so that factors that are not powers of two are rounded once."""
    return x.double() if _C._describe_device(x.device)["fp64"] else x


def times(x: Tensor, factor: Tensor) -> Tensor:
    """`x` times a one-element float32 `factor`, which is not rounded to the dtype of `x`: 2**16 and 2**-25 are outside float16's range."""
    return (x.float() * factor).to(x.dtype) if x.ndim and x.dtype in (_C.float16, _C.bfloat16) else x * factor


def _one(name: str, x: Tensor, dtype: _C.dtype, word: str) -> None:
    if x.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if x.dtype != dtype:
        raise RuntimeError(f"{name} must be {word} tensor, got {x.dtype}.")


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies each tensor by `inv_scale`, in place; sets `found_inf` to 1 if an element was not finite before. RuntimeError if `found_inf` or
    `inv_scale` is not one element of float32, or if the tensors are on several devices.

    >>> import naru as torch
    >>> found = torch.zeros(1)
    >>> torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2)], found, torch.tensor(0.5))
    >>> found
    tensor([0.])
    """
    name = "_amp_foreach_non_finite_check_and_unscale_"
    if isinstance(self, _C.Tensor):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not Tensor")
    _one("inv_scale", inv_scale, _C.float32, "a float")
    _one("found_inf", found_inf, _C.float32, "a float")
    if not self:
        return
    for x in self:
        if not x.dtype.is_floating_point:
            raise NotImplementedError(f"\"{name}cpu\" not implemented for '{x.type().rpartition('.')[2].removesuffix('Tensor')}'")
        if x.device != found_inf.device or x.device != inv_scale.device:
            raise RuntimeError(f"Expected all tensors to be on the same device: {name} got {x.device}, {found_inf.device} and {inv_scale.device}")
    with no_grad():
        # 0 * x is 0 for every finite x, and nan otherwise.
        total = sum((x * 0).sum().float() for x in self)
        found_inf.copy_(_C.where(total.isfinite(), found_inf, 1.0))
        inverse = inv_scale.reshape(())
        for x in self:
            x.copy_(times(x, inverse)) if x.itemsize < 4 else x.mul_(inverse)


def _amp_update_scale_(
    self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float, scale_backoff_factor: float, growth_interval: int
) -> Tensor:
    """Updates the scale for the next iteration, in place. It is multiplied by `scale_backoff_factor` if `found_inf` is not 0, else by
    `scale_growth_factor` after every `growth_interval` good iterations in a row, unless that overflows; `growth_tracker` (int32) counts them.
    RuntimeError for other dtypes or more than one element.

    >>> import naru as torch
    >>> torch._amp_update_scale_(torch.tensor(8.0), torch.tensor(0, dtype=torch.int32), torch.ones(()), 2.0, 0.5, 100)
    tensor(4.)
    """
    _one("growth_tracker", growth_tracker, _C.int32, "an int")
    _one("current_scale", self, _C.float32, "a float")
    _one("found_inf", found_inf, _C.float32, "a float")
    with no_grad():
        found, count, scale = found_inf.reshape(self.shape) != 0, growth_tracker.reshape(self.shape) + 1, wide(self)
        grows = ~found & (count == growth_interval)
        grown = (scale * scale_growth_factor).float()
        self.copy_(_C.where(found, (scale * scale_backoff_factor).float(), _C.where(grows & grown.isfinite(), grown, self)))
        growth_tracker.copy_(_C.where(found | grows, 0, count).reshape(growth_tracker.shape))
    return self
