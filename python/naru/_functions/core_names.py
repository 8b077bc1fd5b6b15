"""Names that packages look for in `torch._C`: settings of compilers that are not there, which can be set to no effect, and a few that say something."""

from __future__ import annotations

from typing import Any

from .. import _C

# Switches of TorchScript's and cuBLAS's: taken, and nothing follows.
_SWITCHES = frozenset(
    "_jit_set_profiling_executor _jit_set_profiling_mode _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_set_texpr_fuser_enabled "
    "_jit_set_nvfuser_enabled _jit_set_nvfuser_guard_mode _jit_set_nvfuser_single_node_mode _jit_set_bailout_depth _cuda_clearCublasWorkspaces "
    "_log_api_usage_once _log_api_usage_metadata _set_worker_signal_handlers".split()
)
_QUESTIONS = {"_jit_can_fuse_on_cpu": False, "_jit_can_fuse_on_gpu": False, "_jit_nvfuser_enabled": False, "_jit_texpr_fuser_enabled": False}


class _nn:
    """`torch._C._nn`: what `Module.to` reads its arguments by."""

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


def __getattr__(name: str) -> Any:
    if name in _SWITCHES:
        return lambda *args, **kwargs: None
    if name in _QUESTIONS:
        return lambda *args: _QUESTIONS[name]
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        from .. import overrides

        return getattr(overrides, name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")
