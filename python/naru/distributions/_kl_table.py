"""The formulas for Kullback-Leibler divergences, by the classes of p and q."""

from __future__ import annotations

import math
from typing import Any

from .. import _C, linalg
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

Tensor = _C.Tensor

# A parameter of p that has the batch shape; used to shape infinite results.
FIRST = {
    Bernoulli: "probs", Beta: "concentration1", ContinuousBernoulli: "probs", Exponential: "rate", Gamma: "concentration", Gumbel: "loc",
    Laplace: "loc", Normal: "loc", Pareto: "scale", Poisson: "rate",
}  # fmt: skip

# The divergence is infinite where p has events outside of q's support.
INFINITE = [
    (p, q)
    for p, others in {
        Beta: [Pareto],
        ContinuousBernoulli: [Pareto],
        Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
        Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
        Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
        Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
        Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
        Pareto: [Beta, ContinuousBernoulli, Uniform],
        Poisson: [Bernoulli, Binomial],
    }.items()
    for q in others
]
# Divergences that are invariant under a transform.
BY_BASE = [HalfNormal]
ONE_HOT = (OneHotCategorical, OneHotCategorical)


def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    t2 = (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))
    impossible = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return (t1 + t2).masked_fill(impossible, math.inf)


def _softplus(x: Tensor) -> Tensor:
    return x.clamp(min=0) + _C.log1p(_C.exp(-x.abs()))


def _beta(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * _C.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * _C.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * _C.digamma(sum_p)


def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    found = found.clone()
    more = p.total_count > q.total_count
    found[more] = math.inf
    return found


def _categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = _C.where((q.probs == 0).expand_as(t), math.inf, t)
    t = _C.where((p.probs == 0).expand_as(t), 0.0, t)
    return t.sum(-1)


def _cauchy(p: Any, q: Any) -> Tensor:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return p.mean * (p.logits - q.logits) + p._log_norm() + _C.log1p(-p.probs) - q._log_norm() - _C.log1p(-q.probs)


def _dirichlet(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration.sum(-1)
    t1 = sum_p.lgamma() - q.concentration.sum(-1).lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    change = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return t1 - t2 + ((p.concentration - q.concentration) * change).sum(-1)


def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


def _gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = _C.lgamma(q.concentration) - _C.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * _C.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, shift = p.scale / q.scale, q.loc / q.scale
    t1 = ratio.log().neg() + p.loc / q.scale - shift
    t2 = ratio * euler_constant
    t3 = _C.exp(shift + (1 + ratio).lgamma() - p.loc / q.scale)
    return t1 + t2 + t3 - (1 + euler_constant)


def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - _C.log1p(-q.probs) / p.probs - q.logits


def _laplace(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * _C.exp(-distance / p.scale) - 1


def _trace_xxt(m: Tensor) -> Tensor:
    """trace(m m^T), batched."""
    return m.pow(2).flatten(-2).sum(-1)


def _low_rank(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Low Rank Multivariate Normals with                          different event shapes cannot be computed")
    log_det = q._log_det() - p._log_det()
    diff = q.loc - p.loc
    weighted = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    m_swap = (diff.pow(2) / q._unbroadcasted_cov_diag).sum(-1)
    through = _C.matmul(weighted, diff.unsqueeze(-1)).squeeze(-1)
    distance = m_swap - _batch_mahalanobis(q._capacitance_tril, through)
    a = linalg.solve_triangular(q._capacitance_tril, weighted, upper=False)
    term1 = (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
    term2 = _trace_xxt(p._unbroadcasted_cov_factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    term3 = _trace_xxt(a * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
    term4 = _trace_xxt(a.matmul(p._unbroadcasted_cov_factor))
    return 0.5 * (log_det + (term1 + term2 - term3 - term4) + distance - p.event_shape[0])


def _by_cholesky(p: Any, q: Any) -> Tensor:
    """KL between multivariate normals, one or both low-rank, from their Cholesky factors."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with                          different event shapes cannot be computed"
            if type(p) is not type(q)
            else "KL-divergence between two Multivariate Normals with                          different event shapes cannot be computed"
        )
    p_tril = p.scale_tril if isinstance(p, LowRankMultivariateNormal) else p._unbroadcasted_scale_tril
    q_tril = q.scale_tril if isinstance(q, LowRankMultivariateNormal) else q._unbroadcasted_scale_tril

    def log_det(tril: Tensor) -> Tensor:
        return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    n = p.event_shape[0]
    batch = _C.broadcast_tensors(p_tril[..., 0, 0], q_tril[..., 0, 0])[0].shape
    solved = linalg.solve_triangular(q_tril.expand(batch + (n, n)), p_tril.expand(batch + (n, n)), upper=False)
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    return log_det(q_tril) - log_det(p_tril) + 0.5 * (_trace_xxt(solved) + distance - n)


def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


def _pareto(p: Any, q: Any) -> Tensor:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * scale.log() - alpha.log() + alpha - 1
    return _C.where(p.support.lower_bound < q.support.lower_bound, math.inf, found)


def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return _C.where((q.low > p.low) | (q.high < p.high), math.inf, found)


# --- different classes: minus the entropy of p, minus the expectation of log q under p.


def _to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_normal(p: Any, q: Any) -> Tensor:
    var = q.scale.pow(2)
    return -p.entropy() + 0.5 * (var * 2 * math.pi).log() + 0.5 * (p.variance + (p.mean - q.loc).pow(2)) / var


def _beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - _C.log1p(-q.probs) - q._log_norm()


def _beta_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() - (q.concentration * q.rate.log() - q.concentration.lgamma() + (q.concentration - 1) * log_mean - q.rate * p.mean)


def _in_uniform(p: Any, q: Any) -> Tensor:
    found = -p.entropy() + (q.high - q.low).log()
    return _C.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf, found)


def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    t1 = -q.concentration * _C.log(ratio)
    return t1 + ratio + q.concentration.lgamma() + q.concentration * euler_constant - (1 + euler_constant)


def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    product = p.rate * q.scale
    shift = q.loc / q.scale
    return product.log() - 1 + product.reciprocal() - shift + _C.exp(shift) * product / (product + 1)


def _exponential_normal(p: Any, q: Any) -> Tensor:
    var = q.scale.pow(2)
    rate_sqr = p.rate.pow(2)
    t1 = 0.5 * _C.log(rate_sqr * var * 2 * math.pi)
    return t1 - 1 + (rate_sqr.reciprocal() - q.loc / p.rate + q.loc.pow(2) / 2) / var


def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    beta = p.rate * q.scale
    shift = q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    return t1 + beta.log() + p.concentration / beta + _C.exp(shift) * (1 + beta.reciprocal()).pow(-p.concentration) - shift


def _gamma_normal(p: Any, q: Any) -> Tensor:
    var = q.scale.pow(2)
    beta_sqr = p.rate.pow(2)
    t1 = 0.5 * _C.log(beta_sqr * var * 2 * math.pi) - p.concentration - p.concentration.lgamma()
    t2 = 0.5 * (p.concentration.pow(2) + p.concentration) / beta_sqr
    t3 = q.loc * p.concentration / p.rate
    return t1 + (p.concentration - 1) * p.concentration.digamma() + (t2 - t3 + 0.5 * q.loc.pow(2)) / var


def _gumbel_normal(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (euler_constant + 1)


def _laplace_normal(p: Any, q: Any) -> Tensor:
    var = q.scale.pow(2)
    ratio = p.scale.pow(2) / var
    return -0.5 * _C.log(2 * ratio / math.pi) + 0.5 * p.loc.pow(2) / var - p.loc * q.loc / var + 0.5 * q.loc.pow(2) / var + ratio - 1


def _normal_gumbel(p: Any, q: Any) -> Tensor:
    mean, var, shift = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    return mean - shift + _C.exp(-mean + 0.5 * var + shift) - 0.5 * (1 + math.log(2 * math.pi)) - (p.scale / q.scale).log()


def _normal_laplace(p: Any, q: Any) -> Tensor:
    diff = p.loc - q.loc
    scaled = diff / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * _C.exp(-0.5 * scaled.pow(2))
    t3 = diff * _C.erf(math.sqrt(0.5) * scaled)
    return -_C.log(p.scale / q.scale) + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


def _pareto_exponential(p: Any, q: Any) -> Tensor:
    product = p.scale * q.rate
    found = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _C.where(p.alpha <= 1, math.inf, found)


def _pareto_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.scale.log() + p.alpha.reciprocal()
    t1 = p.alpha.log() - log_mean
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    found = t1 + t2 + (1 - q.concentration) * log_mean + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return _C.where(p.alpha <= 1, math.inf, found)


def _pareto_normal(p: Any, q: Any) -> Tensor:
    var = 2 * q.scale.pow(2)
    mean = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    t2 = p.alpha * mean.pow(2) / (p.alpha - 2)
    found = t1 + (t2 + (p.alpha * mean - q.loc).pow(2)) / var - 1
    return _C.where(p.alpha <= 2, math.inf, found)


def _log_means(p: Any) -> tuple[Tensor, Tensor]:
    """The expectations of log x and log(1 - x) under a uniform p."""

    def between(low: Tensor, high: Tensor) -> Tensor:
        return (_C.xlogy(high, high) - _C.xlogy(low, low)) / (high - low) - 1

    return between(p.low, p.high), between(1 - p.high, 1 - p.low)


def _uniform_beta(p: Any, q: Any) -> Tensor:
    log_x, log_rest = _log_means(p)
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    found = -_C.log(p.high - p.low) + norm - (q.concentration1 - 1) * log_x - (q.concentration0 - 1) * log_rest
    return _C.where((p.high > 1) | (p.low < 0), math.inf, found)


def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    found = -p.entropy() - p.mean * q.logits - _C.log1p(-q.probs) - q._log_norm()
    return _C.where((p.high > 1) | (p.low < 0), math.inf, found)


def _uniform_exponential(p: Any, q: Any) -> Tensor:
    found = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return _C.where(p.low < 0, math.inf, found)


def _uniform_gamma(p: Any, q: Any) -> Tensor:
    log_x, _ = _log_means(p)
    found = -_C.log(p.high - p.low) + q.concentration.lgamma() - q.concentration * q.rate.log() + (1 - q.concentration) * log_x + q.rate * p.mean
    return _C.where(p.low < 0, math.inf, found)


def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    scale = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return scale.log() + 0.5 * (high + low) - scale * (_C.exp(-high) - _C.exp(-low))


def _uniform_normal(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return t1 + 0.5 * (width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / q.scale.pow(2)


def _uniform_pareto(p: Any, q: Any) -> Tensor:
    log_x, _ = _log_means(p)
    found = -_C.log(p.high - p.low) - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * log_x
    return _C.where(p.low < q.support.lower_bound, math.inf, found)


FORMULAS = {
    (Bernoulli, Bernoulli): _bernoulli, (Bernoulli, Poisson): _bernoulli_poisson,
    (Beta, Beta): _beta, (Beta, ContinuousBernoulli): _beta_continuous_bernoulli, (Beta, Exponential): _to_exponential,
    (Beta, Gamma): _beta_gamma, (Beta, Normal): _to_normal, (Beta, Uniform): _in_uniform,
    (Binomial, Binomial): _binomial, (Categorical, Categorical): _categorical, (Cauchy, Cauchy): _cauchy,
    (ContinuousBernoulli, ContinuousBernoulli): _continuous_bernoulli, (ContinuousBernoulli, Exponential): _to_exponential,
    (ContinuousBernoulli, Normal): _to_normal, (ContinuousBernoulli, Uniform): _in_uniform,
    (Dirichlet, Dirichlet): _dirichlet,
    (Exponential, Exponential): _exponential, (Exponential, Gamma): _exponential_gamma, (Exponential, Gumbel): _exponential_gumbel,
    (Exponential, Normal): _exponential_normal,
    (Gamma, Gamma): _gamma, (Gamma, Exponential): _gamma_exponential, (Gamma, Gumbel): _gamma_gumbel, (Gamma, Normal): _gamma_normal,
    (Geometric, Geometric): _geometric, (Gumbel, Gumbel): _gumbel, (Gumbel, Normal): _gumbel_normal,
    (Laplace, Laplace): _laplace, (Laplace, Normal): _laplace_normal,
    (LowRankMultivariateNormal, LowRankMultivariateNormal): _low_rank, (LowRankMultivariateNormal, MultivariateNormal): _by_cholesky,
    (MultivariateNormal, LowRankMultivariateNormal): _by_cholesky, (MultivariateNormal, MultivariateNormal): _by_cholesky,
    (Normal, Normal): _normal, (Normal, Gumbel): _normal_gumbel, (Normal, Laplace): _normal_laplace,
    (Pareto, Pareto): _pareto, (Pareto, Exponential): _pareto_exponential, (Pareto, Gamma): _pareto_gamma, (Pareto, Normal): _pareto_normal,
    (Poisson, Poisson): _poisson,
    (Uniform, Uniform): _uniform, (Uniform, Beta): _uniform_beta, (Uniform, ContinuousBernoulli): _uniform_continuous_bernoulli,
    (Uniform, Exponential): _uniform_exponential, (Uniform, Gamma): _uniform_gamma, (Uniform, Gumbel): _uniform_gumbel,
    (Uniform, Normal): _uniform_normal, (Uniform, Pareto): _uniform_pareto,
}  # fmt: skip
