"""Weights divided by their largest singular value: the older implementation, by a forward pre-hook. `parametrizations.spectral_norm` is the newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ... import _C, _missing
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..parameter import Parameter, UninitializedParameter
from ._pre_hooks import take_off

if TYPE_CHECKING:
    from ..modules.module import Module

Tensor = _C.Tensor
M = TypeVar("M", bound="Module")

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def matrix_of(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix with a row for each slice along `dim`."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.shape[0], -1)


def default_dim(module: Any) -> int:
    """The dimension of a weight's outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class SpectralNorm:
    """The hook that computes a module's weight. `name_u` and `name_v` approximate the first singular vectors; each training step refines them.

    Args:
        name: the name of a parameter.
        n_power_iterations: the number of power iterations at each call in training, which refine the singular vectors; ValueError if less than 1.
        dim: the dimension of outputs.
        eps: the lower bound of the norms they are divided by.

    >>> layer = naru.nn.utils.spectral_norm(naru.nn.Linear(2, 1))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['SpectralNorm']
    """

    _version: int = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix."""
        return matrix_of(weight, self.dim)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight divided by u · matrix · v. do_power_iteration: whether to refine u and v first, in place, so that replicas share the update."""
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with _C.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(_C.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(_C.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # so that backward through several calls works
        return weight / _C.dot(u, _C.mv(matrix, v))

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        with _C.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Adds the hook to a module. RuntimeError if there is one for that name."""
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying spectral normalization"
            )
        with _C.no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # not a parameter: the value until the first forward
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormStateDictHook:
    """The state_dict hook that stores the version of `fn`, a SpectralNorm."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: dict, prefix: str, local_metadata: dict) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """The load_state_dict pre-hook that converts states of older versions for `fn`, a SpectralNorm."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        """States from before PyTorch 1.0 have the weight but no v, which is computed from the others."""
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        key = prefix + self.fn.name
        if (version or 0) >= 1 or (version is None and key not in state_dict and all(key + end in state_dict for end in ("_orig", "_u", "_v"))):
            return
        missing = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with _C.no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            v = matrix.t().mm(matrix).pinverse().mm(matrix.t()).mv(u)
            state_dict[key + "_v"] = v.mul_(sigma / _C.dot(u, _C.mv(matrix, v)))


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> M:
    """Divides module.name by its largest singular value before each forward (Miyato et al., 2018). Returns the module.

    Args:
        name: the name of a parameter.
        n_power_iterations: the number of power iterations at each call in training, which refine the singular vectors.
        eps: the lower bound of the norms they are divided by.
        dim: the dimension of outputs; if None, 1 for transposed convolutions, else 0.

    >>> layer = naru.nn.Linear(2, 2)
    >>> layer.weight.data = naru.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> layer = naru.nn.utils.spectral_norm(layer, n_power_iterations=20)
    >>> _ = layer(naru.ones(2))
    >>> layer.weight.data
    tensor([[1.0000, 0.0000],
            [0.0000, 0.2500]])
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undoes `spectral_norm`; the weight keeps its current value. ValueError if there is none.

    Args:
        module: the module.
        name: the parameter's name.

    >>> layer = naru.nn.utils.spectral_norm(naru.nn.Linear(2, 1))
    >>> [name for name, _ in naru.nn.utils.remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    if not take_off(module, lambda hook: isinstance(hook, SpectralNorm) and hook.name == name):
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, hook in list(hooks.items()):
            owner = getattr(getattr(hook, "hook", hook), "fn", None)
            if isinstance(owner, SpectralNorm) and owner.name == name:
                del hooks[key]
    return module


__getattr__ = _missing.module_getattr(__name__)
