"""PyTorch 2.15's results for its distributions: `python tests/python/support/distribution_cases.py`, run with PyTorch's interpreter, writes
distribution_facts.json.

The same code computes naru's results, which test_distribution_facts.py compares.
"""
import json
import math
import sys
import warnings
from pathlib import Path

FACTS = Path(__file__).with_name("distribution_facts.json")

# Expressions over D (the distributions) and T (float64 tensor from a list), and values to evaluate at.
CASES = {
    "D.Normal(T([0., 1.]), T([1., 2.]))": "T([0.5, -1.])", "D.Uniform(T([0., -1.]), T([1., 3.]))": "T([0.25, 2.5])",
    "D.Bernoulli(T([0.2, 0.9]))": "T([1., 0.])", "D.Bernoulli(logits=T([0.2, -3.]))": "T([1., 0.])", "D.Beta(T([2., 0.5]), T([3., 1.5]))": "T([0.3, 0.7])",
    "D.Binomial(5, T([0.2, 0.9]))": "T([1., 4.])", "D.Categorical(T([[1., 2., 3.], [3., 1., 1.]]))": "T([2., 0.])", "D.Categorical(logits=T([0.1, 2., -1.]))": "T([1.])",
    "D.Cauchy(T([0., 1.]), T([1., 2.]))": "T([0.5, -1.])", "D.Chi2(T([3., 5.]))": "T([0.5, 4.])", "D.ContinuousBernoulli(T([0.2, 0.5, 0.9]))": "T([0.3, 0.4, 0.5])",
    "D.Dirichlet(T([[2., 3., 4.], [0.5, 0.5, 0.5]]))": "T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])", "D.Exponential(T([0.5, 2.]))": "T([0.5, 4.])",
    "D.FisherSnedecor(T([3., 5.]), T([6., 9.]))": "T([0.5, 4.])", "D.Gamma(T([0.5, 3.]), T([1., 2.]))": "T([0.5, 4.])",
    "D.GeneralizedPareto(T([0., 1.]), T([1., 2.]), T([0.1, 0.3]))": "T([0.5, 4.])", "D.Geometric(T([0.2, 0.9]))": "T([3., 0.])",
    "D.Gumbel(T([0., 1.]), T([1., 2.]))": "T([0.5, 4.])", "D.HalfCauchy(T([1., 2.]))": "T([0.5, 4.])", "D.HalfNormal(T([1., 2.]))": "T([0.5, 4.])",
    "D.Independent(D.Normal(T([0., 1.]), T([1., 2.])), 1)": "T([0.5, 4.])", "D.InverseGamma(T([3., 4.]), T([1., 2.]))": "T([0.5, 4.])",
    "D.Kumaraswamy(T([2., 3.]), T([1.5, 2.]))": "T([0.3, 0.7])", "D.LKJCholesky(3, T(0.7))": "torch.linalg.cholesky(T([[1., .2, .1], [.2, 1., .3], [.1, .3, 1.]]))",
    "D.Laplace(T([0., 1.]), T([1., 2.]))": "T([0.5, -1.])", "D.LogNormal(T([0., 1.]), T([1., 0.5]))": "T([0.5, 4.])",
    "D.LogisticNormal(T([0., 1.]), T([1., 0.5]))": "T([0.2, 0.3, 0.5])",
    "D.LowRankMultivariateNormal(T([0., 1., 2.]), T([[1.], [0.5], [2.]]), T([1., 2., 3.]))": "T([0.5, -1., 2.])",
    "D.MixtureSameFamily(D.Categorical(T([1., 3.])), D.Normal(T([0., 4.]), T([1., 2.])))": "T(0.7)",
    "D.MixtureSameFamily(D.Categorical(T([1., 3.])), D.Independent(D.Normal(T([[0., 4.], [1., 2.]]), T(1.)), 1))": "T([0.7, 1.])",
    "D.Multinomial(4, T([1., 3.]))": "T([1., 3.])", "D.MultivariateNormal(T([0., 1.]), T([[2., 0.5], [0.5, 1.]]))": "T([0.5, -1.])",
    "D.MultivariateNormal(T([0., 1.]), precision_matrix=T([[2., 0.5], [0.5, 1.]]))": "T([0.5, -1.])",
    "D.MultivariateNormal(T([0., 1.]), scale_tril=T([[2., 0.], [0.5, 1.]]))": "T([0.5, -1.])", "D.NegativeBinomial(T([3., 5.]), T([0.2, 0.7]))": "T([1., 4.])",
    "D.OneHotCategorical(T([1., 2., 3.]))": "T([0., 1., 0.])", "D.Pareto(T([1., 2.]), T([3., 4.]))": "T([1.5, 4.])", "D.Poisson(T([0.5, 3.]))": "T([1., 4.])",
    "D.RelaxedBernoulli(T(2.), T([0.2, 0.9]))": "T([0.3, 0.7])", "D.RelaxedOneHotCategorical(T(2.), T([1., 2., 3.]))": "T([0.2, 0.3, 0.5])",
    "D.StudentT(T([3., 5.]), T([0., 1.]), T([1., 2.]))": "T([0.5, -1.])", "D.VonMises(T([0., 1.]), T([1., 4.]))": "T([0.5, -1.])",
    "D.Weibull(T([1., 2.]), T([1.5, 3.]))": "T([0.5, 4.])", "D.Wishart(T(4.), T([[2., 0.5], [0.5, 1.]]))": "T([[1., 0.2], [0.2, 1.5]])",
    "D.TransformedDistribution(D.Normal(T([0., 1.]), T([1., 2.])), [D.TanhTransform(), D.AffineTransform(T(1.), T(-2.))])": "T([0.5, 1.5])",
}
ASKED = ("mean", "variance", "mode", "stddev", "batch_shape", "event_shape", "has_rsample", "has_enumerate_support")
CALLED = ("entropy", "perplexity", "enumerate_support")

# Both arguments of a divergence, as expressions.
P = {"Bernoulli": "T([0.2, 0.7])", "Beta": "T([2., 0.5]), T([3., 1.5])", "Binomial": "5, T([0.2, 0.9])", "Categorical": "T([1., 2., 3.])", "Cauchy": "T([0., 1.]), T([1., 2.])",
     "ContinuousBernoulli": "T([0.2, 0.9])", "Dirichlet": "T([2., 3., 4.])", "Exponential": "T([0.5, 2.])", "Gamma": "T([0.5, 3.]), T([1., 2.])", "Geometric": "T([0.2, 0.9])",
     "Gumbel": "T([0., 1.]), T([1., 2.])", "HalfNormal": "T([1., 2.])", "Laplace": "T([0., 1.]), T([1., 2.])", "LogNormal": "T([0., 1.]), T([1., 2.])",
     "LowRankMultivariateNormal": "T([0., 1.]), T([[1.], [0.5]]), T([1., 2.])", "MultivariateNormal": "T([0., 1.]), T([[2., 0.5], [0.5, 1.]])", "Normal": "T([0., 1.]), T([1., 2.])",
     "OneHotCategorical": "T([1., 2., 3.])", "Pareto": "T([1., 2.]), T([3., 4.])", "Poisson": "T([0.5, 3.])", "Uniform": "T([0.1, 0.2]), T([0.6, 0.9])"}
Q = {**P, "Bernoulli": "T([0.5, 0.1])", "Beta": "T([1.2, 2.]), T([0.3, 1.])", "Binomial": "5, T([0.3, 0.4])", "Categorical": "T([2., 1., 1.])", "Cauchy": "T([1., 2.]), T([2., 3.])",
     "Dirichlet": "T([1., 0.3, 2.])", "Exponential": "T([1.5, 0.3])", "Gamma": "T([1.5, 2.]), T([0.7, 3.])", "Gumbel": "T([0.5, 2.]), T([2., 3.])", "Normal": "T([0.5, -1.]), T([2., 1.])",
     "MultivariateNormal": "T([0.5, 0.]), T([[1., 0.2], [0.2, 3.]])", "Pareto": "T([0.5, 0.1]), T([2., 3.])", "Uniform": "T([0., 0.1]), T([1., 2.])", "Laplace": "T([1., 2.]), T([0.5, 3.])"}

ERRORS = """D.Normal(0., -1.)|D.Normal(0., 1.).log_prob(1.)|D.Normal(0., 1.).log_prob(torch.tensor(float('nan')))|D.Normal(torch.zeros(2), torch.ones(2)).log_prob(torch.zeros(3))
D.Normal('a', 1.)|D.Bernoulli(0.5, logits=1.)|D.Bernoulli()|D.Bernoulli(probs=1.5)|D.Bernoulli(.5).log_prob(torch.tensor(.5))|D.Categorical(torch.tensor(1.))|D.Categorical(torch.tensor([[-1., 2.]]))
D.Categorical(torch.tensor([1., 2.])).log_prob(torch.tensor(2))|D.MultivariateNormal(torch.zeros(2), -torch.eye(2))|D.MultivariateNormal(torch.zeros(2))
D.MultivariateNormal(torch.tensor(0.), torch.eye(2))|D.Uniform(1., 0.)|D.Uniform(0., 1.).log_prob(torch.tensor(2.))|D.Independent(D.Normal(0., 1.), 1)|D.kl_divergence(D.Normal(0., 1.), D.Cauchy(1., 1.))
D.Multinomial(torch.tensor(5), torch.ones(2))|D.TransformedDistribution(D.Normal(0., 1.), 3)|D.MixtureSameFamily(D.Normal(0., 1.), D.Normal(torch.zeros(2), 1.))
D.MixtureSameFamily(D.Categorical(torch.ones(3)), D.Normal(torch.zeros(2), 1.))|D.LKJCholesky(1)|D.Wishart(torch.tensor(.5), torch.eye(2))|D.Geometric(0.)|D.Dirichlet(torch.tensor(1.))
D.Normal(0., 1.).enumerate_support()|D.Normal(0., 1.).expand((2,)).log_prob(torch.zeros(3))|D.Distribution.set_default_validate_args(3)|D.AffineTransform(1., 2., cache_size=3)|D.transform_to(3)
D.AbsTransform().log_abs_det_jacobian(1, 1)|D.constraints.dependent.check(1)|D.Binomial(torch.tensor([5, 3]), torch.tensor([.5, .5])).enumerate_support()|D.transform_to(D.constraints.dependent)
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2))|D.Cauchy(0., 1.).mode.item() and D.VonMises(torch.tensor(0.), torch.tensor(-1.))""".replace("\n", "|").split("|")

SHOWN = """D.Normal(0., 1.)|D.Normal(torch.zeros(2), 1.)|D.Categorical(torch.ones(3))|D.Independent(D.Normal(torch.zeros(3), 1.), 1)|D.TransformedDistribution(D.Normal(0., 1.), [D.ExpTransform()])
D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), 1.))|D.Normal(0., 1.).expand((2, 3))|D.LKJCholesky(3, 1.)|D.Beta(1., 2.)|D.MultivariateNormal(torch.zeros(2), torch.eye(2))
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1., 2.)])|D.AffineTransform(1., 2.).inv|D.transform_to(D.constraints.interval(0., 1.))|D.biject_to(D.constraints.simplex)|D.constraints.interval(0, 1)
D.constraints.real_vector|D.Normal(0., 1.).support|D.Uniform(0., 1.).support|D.constraints.positive|D.Poisson(1.).support|D.Gumbel(0., 1.)|D.Binomial(3, torch.tensor(.5))|D.RelaxedBernoulli(torch.tensor(1.), torch.tensor(.5))""".replace("\n", "|").split("|")

# A transform, and the input to evaluate it at.
TRANSFORMS = {
    "D.ExpTransform()": "T([0.5, -1.])", "D.PowerTransform(T(2.))": "T([0.5, 3.])", "D.SigmoidTransform()": "T([0.5, -1.])", "D.SoftplusTransform()": "T([0.5, -1.])", "D.TanhTransform()": "T([0.5, -1.])",
    "D.AffineTransform(T(1.), T(-2.))": "T([0.5, -1.])", "D.AffineTransform(1., -2., event_dim=1)": "T([0.5, -1.])", "D.StickBreakingTransform()": "T([0.5, -1.])",
    "D.CorrCholeskyTransform()": "T([0.5, -1., 0.2])", "D.ReshapeTransform((4,), (2, 2))": "T([0.5, -1., 0.2, 1.])", "D.IndependentTransform(D.ExpTransform(), 1)": "T([0.5, -1.])",
    "D.ComposeTransform([D.ExpTransform(), D.AffineTransform(T(1.), T(2.))])": "T([0.5, -1.])", "D.CatTransform([D.ExpTransform(), D.TanhTransform()], 0, [1, 2])": "T([0.5, -1., 0.3])",
    "D.StackTransform([D.ExpTransform(), D.TanhTransform()])": "T([0.5, -1.])", "D.CumulativeDistributionTransform(D.Normal(T(0.), T(1.)))": "T([0.5, -1.])",
}


def plain(value):
    """As JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def said(f):
    """What a call gives, or the class of what it raises."""
    try:
        return plain(f())
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}"


def facts(torch, D):
    """Everything, of a package."""
    def T(values):
        return torch.tensor(values, dtype=torch.float64)

    names = {"torch": torch, "D": D, "T": T}
    found = {"cases": {}, "kl": {}, "errors": {}, "shown": {}, "transforms": {}}
    warnings.simplefilter("ignore")
    for made, at in CASES.items():
        d, x = eval(made, names), eval(at, names)
        one = {name: said(lambda: getattr(d, name)) for name in ASKED}
        one.update({name: said(getattr(d, name)) for name in CALLED})
        for name in ("log_prob", "cdf"):
            one[name] = said(lambda: getattr(d, name)(x))
        one["icdf"] = said(lambda: d.icdf(torch.full(d.batch_shape, 0.3, dtype=torch.float64)))
        one["expanded"] = said(lambda: d.expand((2,) + tuple(d.batch_shape)).log_prob(x))
        found["cases"][made] = one
    for p, p_args in P.items():
        for q, q_args in Q.items():
            found["kl"][f"{p} {q}"] = said(lambda: D.kl_divergence(eval(f"D.{p}({p_args})", names), eval(f"D.{q}({q_args})", names)))
    for text in ERRORS:
        try:
            eval(text, names)
            found["errors"][text] = None
        except Exception as error:  # noqa: BLE001
            found["errors"][text] = [type(error).__name__, str(error)]
    found["shown"] = {text: repr(eval(text, names)) for text in SHOWN}
    for text, at in TRANSFORMS.items():
        t, x = eval(text, names), eval(at, names)
        y = t(x)
        found["transforms"][text] = [plain(y), plain(t.inv(y)), said(lambda: t.log_abs_det_jacobian(x, y)), said(lambda: t.sign), said(lambda: t.forward_shape(x.shape)), t.bijective]
    return found


if __name__ == "__main__":
    import torch
    import torch.distributions as D

    assert torch.__version__.startswith("2.15"), sys.version
    FACTS.write_text(json.dumps(facts(torch, D), indent=0, allow_nan=False) + "\n")
