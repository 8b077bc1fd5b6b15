"""Names that packages expect in `torch._C`: settings of absent compilers, which have no effect, and a few functions that do something."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import Any

from .. import _C, _missing

# Switches for TorchScript and cuBLAS: accepted without effect.
_SWITCHES = frozenset(
    "_jit_set_profiling_executor _jit_set_profiling_mode _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_set_texpr_fuser_enabled "
    "_jit_set_nvfuser_enabled _jit_set_nvfuser_guard_mode _jit_set_nvfuser_single_node_mode _jit_set_bailout_depth _cuda_clearCublasWorkspaces "
    "_log_api_usage_once _log_api_usage_metadata _set_worker_signal_handlers".split()
)
_QUESTIONS = {"_jit_can_fuse_on_cpu": False, "_jit_can_fuse_on_gpu": False, "_jit_nvfuser_enabled": False, "_jit_texpr_fuser_enabled": False}


# `torch._C._nn` functions by their names in torch.nn.functional. Losses have a numeric reduction code and a positional order of their own.
_SAME = (
    "adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d elu elu_ gelu glu hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ "
    "linear max_pool2d_with_indices max_pool3d_with_indices mish one_hot pad relu6 scaled_dot_product_attention silu softplus softshrink"
).split()
_RENAMED = {
    "log_sigmoid": "logsigmoid", "im2col": "unfold", "col2im": "fold", "adaptive_max_pool2d": "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d": "adaptive_max_pool3d_with_indices", "slow_conv3d": "conv3d",
}  # fmt: skip
_LOSSES = {
    "l1_loss": "reduction", "mse_loss": "reduction", "soft_margin_loss": "reduction", "multilabel_margin_loss": "reduction",
    "smooth_l1_loss": "reduction beta", "huber_loss": "reduction delta", "binary_cross_entropy": "weight reduction",
    "nll_loss": "weight reduction ignore_index", "cross_entropy_loss": "weight reduction ignore_index label_smoothing",
    "multi_margin_loss": "p margin weight reduction",
}  # fmt: skip
_PADS = {f"{word}_pad{d}d": mode for word, mode in (("reflection", "reflect"), ("replication", "replicate")) for d in (1, 2, 3)}
_UPSAMPLES = {
    f"upsample_{mode}{d}d": mode
    for d, modes in ((1, "linear nearest"), (2, "bilinear bicubic nearest"), (3, "trilinear nearest"))
    for mode in modes.split()
}


def _loss(name: str) -> Any:
    from ..nn import functional as F

    function, order = getattr(F, name.removesuffix("_loss") if name.startswith("cross") else name), _LOSSES[name].split()

    def by_number(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args)), **kwargs}
        return function(input, target, **{**given, "reduction": ("none", "mean", "sum")[given.get("reduction", 1)]})

    return by_number


def _upsample(name: str) -> Any:
    from ..nn import functional as F

    mode = _UPSAMPLES[name]

    def resized(input: Any, output_size: Any = None, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and out.device != input.device:
            raise RuntimeError(f"Attempting to copy from device {input.device} to device {out.device}, but cross-device copies are not allowed!")
        if out is not None and out.dtype != input.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {input.dtype} but got {out.dtype} instead")
        if "nearest" not in mode:
            kwargs["align_corners"], args = (args[0], args[1:]) if args else (kwargs["align_corners"], ())
        scales = kwargs.pop("scale_factors", args[0] if args else None) if output_size is None else None
        result = F.interpolate(input, output_size, scales, mode, kwargs.get("align_corners"))
        if out is not None and not out.numel() and result.is_contiguous(memory_format=_C.channels_last):
            out.resize_(result.shape, memory_format=_C.channels_last)
        return result if out is None else _C._write_out(name, out, result)

    return resized


class _Functions(type):
    def __getattr__(cls, name: str) -> Any:
        from ..nn import functional as F

        if name in _SAME or name in _RENAMED:
            return getattr(F, _RENAMED.get(name, name))
        if name in _LOSSES:
            return _loss(name)
        if name in _PADS:
            return lambda input, padding: F.pad(input, padding, _PADS[name])
        if name in _UPSAMPLES:
            return _upsample(name)
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")


class _nn(metaclass=_Functions):
    """`torch._C._nn`: the argument parser of `Module.to`, and the low-level functions under `torch.nn.functional`."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        from ..nn.modules._module_convert import _parse_to

        return (*_parse_to(args, kwargs), kwargs.get("memory_format"))


def _get_accelerator(check: Any = None) -> Any:
    kind = next((k for k in _C._ACCELERATORS if _C.device_count(k)), "cpu")
    return _C.device(kind)


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _cuda_isInBadFork() -> bool:
    return False


_TensorMeta = type(_C.Tensor)
StorageBase = _C.UntypedStorage
DeviceObjType = type(_C.device)
# What the author of an operator says of it to compilers.
Tag = IntEnum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides "
    "needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
)


def _get_tracing_state() -> None:
    """None: nothing traces."""


def _is_torch_function_mode_enabled() -> bool:
    """Whether this is called within a torch.overrides.TorchFunctionMode."""
    from ..overrides import _here

    return bool(_here.modes)


def _are_functorch_transforms_active() -> bool:
    """Whether this is called within torch.func.vmap."""
    from ..func._batched import here

    return bool(here.levels)


def __getattr__(name: str) -> Any:
    if name in _SWITCHES:
        return lambda *args, **kwargs: None
    if name in _QUESTIONS:
        return lambda *args: _QUESTIONS[name]
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        from .. import overrides

        return getattr(overrides, name)
    if name == "_disabled_torch_function_impl":
        from ..overrides import PLAIN_RESULTS

        return PLAIN_RESULTS
    if name == "Future":
        from ..futures import Future

        return Future
    if _missing.covers(f"_C.{name}"):
        return import_module(f"naru._C.{name}")
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")
