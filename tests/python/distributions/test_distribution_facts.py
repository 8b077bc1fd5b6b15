"""torch.distributions agrees with PyTorch 2.15: densities, moments, divergences, transforms, reprs and errors."""
import json
import math

import distribution_cases as cases
import naru as torch
import pytest
from naru import distributions as D

WANTED = json.loads(cases.FACTS.read_text())


# Where PyTorch's result is mathematically wrong.
DEPARTS = {
    "D.GeneralizedPareto(T([0., 1.]), T([1., 2.]), T([0.1, 0.3])).log_prob": "PyTorch compares float64 with float32, which is an error there",
    "D.GeneralizedPareto(T([0., 1.]), T([1., 2.]), T([0.1, 0.3])).cdf": "the same",
    "D.GeneralizedPareto(T([0., 1.]), T([1., 2.]), T([0.1, 0.3])).expanded": "the same",
    "ContinuousBernoulli Uniform": "the whole of [0, 1] is taken for one that does not hold p's events",
    **{f"D.VonMises(T([0., 1.]), T([1., 4.])).{name}": "Bessel functions by polynomials good to 2e-7" for name in ("variance", "stddev", "log_prob", "expanded")},
}


@pytest.fixture(scope="module")
def found():
    return cases.facts(torch, D)


def same(a, b):
    """Equal up to the rounding of float64 functions, which may be summed in another order."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, (float, int)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-11)
    return a == b


@pytest.mark.parametrize("kind", ["cases", "kl", "transforms"])
def test_the_numbers_are_pytorchs(found, kind):
    other = {}
    for key, wanted in WANTED[kind].items():
        got = found[kind][key]
        pairs = {key: (got, wanted)} if not isinstance(wanted, dict) else {f"{key}.{name}": (got[name], wanted[name]) for name in wanted}
        other.update({name: pair for name, pair in pairs.items() if not same(*pair)})
    other = {name: pair for name, pair in other.items() if name not in DEPARTS}
    assert not other, "\n".join(f"{name}: {got}, wanted {wanted}" for name, (got, wanted) in other.items())


def test_errors_and_texts_are_pytorchs(found):
    assert {k: v for k, v in found["errors"].items() if v != WANTED["errors"][k]} == {}
    assert {k: v for k, v in found["shown"].items() if v != WANTED["shown"][k]} == {}


def test_where_pytorch_departs_the_numbers_are_the_formulas(found):
    case = found["cases"]["D.VonMises(T([0., 1.]), T([1., 4.]))"]
    log_i0 = [math.log(math.fsum((k / 2) ** (2 * n) / math.factorial(n) ** 2 for n in range(40))) for k in (1.0, 4.0)]
    assert same(case["log_prob"], [math.cos(0.5) - math.log(2 * math.pi) - log_i0[0], 4 * math.cos(-2.0) - math.log(2 * math.pi) - log_i0[1]])
    # The KL divergence from the continuous Bernoulli of 0.2 to the uniform distribution on [0, 1] is minus the former's entropy.
    assert same(found["kl"]["ContinuousBernoulli Uniform"][0], -D.ContinuousBernoulli(torch.tensor(0.2, dtype=torch.float64)).entropy().item())
    x = torch.rand(1000, dtype=torch.float64) * 5
    d = D.GeneralizedPareto(torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.1, dtype=torch.float64))
    assert torch.allclose(d.icdf(d.cdf(x)), x, rtol=1e-9)
