"""`torch.distributions.kl`: the Kullback-Leibler divergence between two distributions."""

from __future__ import annotations

import math
import warnings
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from .. import _C, _missing
from ..autograd import grad
from . import _kl_table
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .independent import Independent
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_found: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorator that registers a function as the divergence for these classes of p and q. Raises TypeError for other classes.

    Args:
        type_p, type_q: classes of distributions.

    >>> class Unit(naru.distributions.Normal):
    ...     def __init__(self):
    ...         super().__init__(0.0, 1.0)
    >>> @naru.distributions.register_kl(Unit, Unit)
    ... def _(p, q):
    ...     return naru.tensor(0.0)
    >>> naru.distributions.kl_divergence(Unit(), Unit())
    tensor(0.)
    """
    if not isinstance(type_p, type) and issubclass(type_p, Distribution):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type) and issubclass(type_q, Distribution):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fun
        _found.clear()
        return fun

    return decorator


@total_ordering
class _Match:
    """How specific a registered pair of classes is for the requested one."""

    __slots__ = ("types",)

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: Any) -> bool:
        return self.types == other.types

    def __le__(self, other: Any) -> bool:
        for x, y in zip(self.types, other.types):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch(type_p: type, type_q: type) -> Any:
    """Returns the function for the most specific registered classes; NotImplemented if there is none."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*m) for m in matches).types
    right_q, right_p = min(_Match(*reversed(m)) for m in matches).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the integral of p log(p / q), for each element of the batch. Raises NotImplementedError if no formula is registered.

    >>> from naru.distributions import Normal
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _found:
        _found[key] = _dispatch(*key)
    if _found[key] is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}")
    return _found[key](p, q)


def _infinite(p: Any, q: Any) -> Tensor:
    return _C.full_like(getattr(p, _kl_table.FIRST[type(p)] if type(p) in _kl_table.FIRST else "mean"), math.inf)


@register_kl(ExponentialFamily, ExponentialFamily)
def _of_families(p: Any, q: Any) -> Tensor:
    """For two distributions of one exponential family: the Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             be computed using Bregman divergences"
        )
    p_params = [t.detach().requires_grad_() for t in p._natural_params]
    q_params = q._natural_params
    normalizer = p._log_normalizer(*p_params)
    gradients = grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - normalizer
    for p_param, q_param, g in zip(p_params, q_params, gradients):
        result = result - _sum_rightmost((q_param - p_param) * g, len(q.event_shape))
    return result


@register_kl(Independent, Independent)
def _of_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _of_transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


for (_p, _q), _formula in _kl_table.FORMULAS.items():
    register_kl(_p, _q)(_formula)
for _p, _q in _kl_table.INFINITE:
    register_kl(_p, _q)(_infinite)
for _p in _kl_table.BY_BASE:
    register_kl(_p, _p)(lambda p, q: kl_divergence(p.base_dist, q.base_dist))
register_kl(*_kl_table.ONE_HOT)(lambda p, q: kl_divergence(p._categorical, q._categorical))

__getattr__ = _missing.module_getattr(__name__)
