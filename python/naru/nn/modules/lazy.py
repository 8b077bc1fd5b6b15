"""Modules that determine their input size at the first call."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ... import _C
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _InstanceNorm,
)
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear

Tensor = _C.Tensor

_FAMILIES = ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
if not TYPE_CHECKING:
    __all__ = ["LazyLinear", *(f"Lazy{family}{n}d" for family in _FAMILIES for n in (1, 2, 3))]


class LazyModuleMixin:
    """For modules whose `initialize_parameters(input)` makes their parameters at the first call; their class then changes to `cls_to_become`."""

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters, given the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether any parameters or buffers are still uninitialised."""
        return any(is_lazy(t) for t in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module: Any, args: tuple, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, t in itertools.chain(self._parameters.items(), self._buffers.items()):
            if is_lazy(t) and prefix + name in destination:
                destination[prefix + name] = t  # stored unchanged, as it has no values yet

    def _lazy_load_hook(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing: list, unexpected: list, errors: list
    ) -> None:
        """Initialises the parameters with the shapes of those to be loaded."""
        for name, t in itertools.chain(self._parameters.items(), self._buffers.items()):
            found = state_dict.get(prefix + name)
            if is_lazy(t) and found is not None and not is_lazy(found):
                with _C.no_grad():
                    t.materialize(found.shape)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing: list, unexpected: list, errors: list
    ) -> None:
        lazy = [prefix + name for name, t in itertools.chain(self._parameters.items(), self._buffers.items()) if is_lazy(t)]
        nothing_yet = [key for key in lazy if is_lazy(state_dict.get(key))]
        known = {key: value for key, value in state_dict.items() if key not in nothing_yet}
        super()._load_from_state_dict(known, prefix, local_metadata, strict, missing, unexpected, errors)
        missing[:] = [key for key in missing if key not in nothing_yet]


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` with in_features determined at the first call.

    Args:
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> layer = naru.nn.LazyLinear(3)
    >>> layer(naru.ones(2, 5)).shape, layer
    (torch.Size([2, 3]), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            if input.dim() == 0:
                raise RuntimeError("LazyLinear: expected an input with at least one dimension, got one without")
            with _C.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()


class _LazyConv(LazyModuleMixin):
    """A convolution with in_channels determined at the first call."""

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, out_channels, kernel_size, *args, **kwargs)

    def _make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.register_parameter("bias", UninitializedParameter(device=device, dtype=dtype) if bias else None)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {self.__class__.__name__}, but got input of size: "
                f"{list(input.shape)}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        with _C.no_grad():
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyNorm(LazyModuleMixin):
    """A normalisation with num_features determined at the first call."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self._check_input_dim(input)
        self.num_features = input.shape[input.dim() - self._dims - 1 if isinstance(self, _InstanceNorm) else 1]
        with _C.no_grad():
            for t in (self.weight, self.bias, self.running_mean, self.running_var):
                if is_lazy(t):
                    t.materialize((self.num_features,))
            self.reset_parameters()


_CONV_ARGS = "out_channels, kernel_size: channels of the result, and the size of the window."
_NORM_ARGS = """eps: added to variances before their root is taken.
        momentum: how far the running statistics move towards those of a batch.
        affine: whether there are weight (starts as 1) and bias (starts as 0). bias: False for the weight alone.
        track_running_stats: whether there are running statistics, which count in evaluation.
        device, dtype: of the parameters; the defaults if None."""


def _lazy(mixin: type, become: type) -> None:
    """Defines the class Lazy<become>."""
    name = f"Lazy{become.__name__}"
    what = "in_channels" if mixin is _LazyConv else "num_features"
    arguments, ones = "2, kernel_size=1" if mixin is _LazyConv else "", ", ".join("35" + "2" * int(name[-2]))
    rows = _CONV_ARGS if mixin is _LazyConv else _NORM_ARGS
    doc = f"""`{become.__name__}` whose {what} is found out at the first call; the arguments are the others of `{become.__name__}`.

    Args:
        {rows}

    >>> layer = naru.nn.{name}({arguments})
    >>> out = layer(naru.ones({ones}))
    >>> layer.{what}
    5
    """
    globals()[name] = type(name, (mixin, become), {"cls_to_become": become, "__doc__": doc, "__module__": __name__})


for _become in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d):
    _lazy(_LazyConv, _become)
for _become in (BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d):
    _lazy(_LazyNorm, _become)

if TYPE_CHECKING:

    class LazyConv1d(_LazyConv, Conv1d): ...  # type: ignore[misc]

    class LazyConv2d(_LazyConv, Conv2d): ...  # type: ignore[misc]

    class LazyConv3d(_LazyConv, Conv3d): ...  # type: ignore[misc]

    class LazyConvTranspose1d(_LazyConv, ConvTranspose1d): ...  # type: ignore[misc]

    class LazyConvTranspose2d(_LazyConv, ConvTranspose2d): ...  # type: ignore[misc]

    class LazyConvTranspose3d(_LazyConv, ConvTranspose3d): ...  # type: ignore[misc]

    class LazyBatchNorm1d(_LazyNorm, BatchNorm1d): ...  # type: ignore[misc]

    class LazyBatchNorm2d(_LazyNorm, BatchNorm2d): ...  # type: ignore[misc]

    class LazyBatchNorm3d(_LazyNorm, BatchNorm3d): ...  # type: ignore[misc]

    class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d): ...  # type: ignore[misc]

    class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d): ...  # type: ignore[misc]

    class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d): ...  # type: ignore[misc]
