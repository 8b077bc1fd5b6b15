"""`torch.nn.utils.parametrizations`: orthogonal weights, weight norm, and spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ... import _C, _missing, linalg
from ..._functions.dtype_limits import finfo
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import default_dim, matrix_of
from .weight_norm import norm_except_dim, weight_of

Tensor = _C.Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    eps = 10.0 * n * finfo(q.dtype).eps
    return _C.allclose(q.mT @ q, _C.eye(k, dtype=q.dtype, device=q.device).expand(*q.shape[:-2], k, k), atol=eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The Q factor of a tall matrix, with signs such that R has a positive diagonal."""
    x, tau = _C.geqrf(a)
    return linalg.householder_product(x, tau) * x.diagonal(0, -2, -1).sign().unsqueeze(-2)


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex():
            raise NotImplementedError("orthogonal: complex weights are not supported")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _by_skew(self, x: Tensor, n: int, k: int) -> Tensor:
        """The first columns of an orthogonal matrix, made from the skew-symmetric matrix whose lower triangle is x."""
        x = x.tril()
        if n != k:
            x = _C.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], -1)
        a = x - x.mT
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            q = _C.matrix_exp(a)
        else:
            one = _C.eye(n, dtype=a.dtype, device=a.device)
            q = linalg.solve(one - 0.5 * a, one + 0.5 * a)
        return q[..., :k] if n != k else q

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        x = X.mT if wide else X
        n, k = x.shape[-2:]
        if self.orthogonal_map == _OrthMaps.householder:
            a = x.tril(diagonal=-1)
            q = linalg.householder_product(a, 2.0 / (1.0 + (a * a).sum(dim=-2)))
            q = q * x.diagonal(0, -2, -1).detach().int().unsqueeze(-2)
        else:
            q = self._by_skew(x, n, k)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        with _C.no_grad():
            wide = Q.size(-2) < Q.size(-1)
            q = Q.mT if wide else Q
            n, k = q.shape[-2:]
            if hasattr(self, "base"):
                if n != k:  # complete to a square matrix
                    q = _C.cat([q, _C.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)], -1)
                self.base = q.clone() if n == k and _is_orthogonal(q) else _make_orthogonal(q)
                start = _C.zeros_like(Q)  # negative identity: the sign of the diagonal in Householder's form
                start.diagonal(0, -2, -1).fill_(-1.0)
                return start
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
                )
            a, tau = _C.geqrf(q)
            diagonal = a.diagonal(0, -2, -1)
            diagonal.copy_(_C.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
            return a.mT if wide else a


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Parametrizes module.name to be orthogonal: rows or columns, whichever are fewer, are orthonormal. Returns the module.

    Args:
        name: the name of a parameter or buffer of at least 2 dimensions, of which the last two are those of matrices (ValueError).
        orthogonal_map: "matrix_exp", "cayley" or "householder" (ValueError for others); "matrix_exp" for square matrices, else "householder", if None.
        use_trivialization: whether the map is relative to the current weight, which makes assignment possible.

    >>> import naru
    >>> layer = naru.nn.utils.parametrizations.orthogonal(naru.nn.Linear(20, 40))
    >>> naru.allclose(layer.weight.mT @ layer.weight, naru.eye(20), atol=1e-5)
    True
    """
    weight = _tensor_of(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes module.name as a direction (original1) times a norm (original0), Salimans and Kingma, 2016. Returns the module.

    Args:
        name: the name of a parameter.
        dim: the dimension whose slices have one norm each; None: one norm for the whole weight.

    State dicts of `torch.nn.utils.weight_norm` (name_g, name_v) can be loaded, too.

    >>> layer = naru.nn.utils.parametrizations.weight_norm(naru.nn.Linear(3, 2))
    >>> naru.allclose(layer.weight.norm(dim=1, keepdim=True), layer.parametrizations.weight.original0)
    True
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_older(state_dict: dict, prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(read_older)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim % rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = matrix_of(weight, self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps).detach())
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        """Refines the singular vectors in place, so that replicas share the update."""
        with _C.no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(_C.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(_C.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = matrix_of(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # so that backward through several calls works
        return weight / _C.vdot(u, _C.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Parametrizes module.name as the weight divided by its largest singular value (Miyato et al., 2018). Returns the module.

    Args:
        name: the name of a parameter or buffer (ValueError if there is none).
        n_power_iterations: the number of power iterations at each use in training, which refine the singular vectors.
        eps: the lower bound of the norms they are divided by.
        dim: the dimension of outputs; if None, 1 for transposed convolutions, else 0.

    >>> layer = naru.nn.Linear(2, 2)
    >>> layer.weight.data = naru.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> naru.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=20).weight.data
    tensor([[1.0000, 0.0000],
            [0.0000, 0.2500]])
    """
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


__getattr__ = _missing.module_getattr(__name__)
