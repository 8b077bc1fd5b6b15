"""cauchy_, log_normal_, geometric_, poisson, binomial: means and variances, equal numbers on every device, PyTorch's errors."""
import math

import naru as torch
import numpy as np
import pytest

N = 20000


def same_on(device, draw):
    """What draw(device) gives, which is the same on cpu."""
    torch.manual_seed(5)
    here = draw("cpu")
    torch.manual_seed(5)
    assert torch.equal(draw(device).cpu(), here)
    return here.double().numpy()


def test_cauchy_has_its_quartiles(device):
    x = same_on(device, lambda d: torch.empty(N, device=d).cauchy_(2, 3))
    np.testing.assert_allclose(np.quantile(x, [0.25, 0.5, 0.75]), [-1, 2, 5], atol=0.2)


def test_log_normal_is_exp_of_normal_numbers(device):
    x = np.log(same_on(device, lambda d: torch.empty(N, device=d, dtype=torch.float64).log_normal_(0.5, 0.25)))
    assert abs(x.mean() - 0.5) < 0.01 and abs(x.std() - 0.25) < 0.01


def test_geometric_counts_tries_from_one_on(device):
    for dtype in (torch.float32, torch.int64, torch.uint8):
        x = same_on(device, lambda d, dtype=dtype: torch.empty(N, device=d, dtype=dtype).geometric_(0.25))
        assert x.min() == 1 and abs(x.mean() - 4) < 0.1 and abs((x == 1).mean() - 0.25) < 0.02


def test_poisson_has_its_mean_and_variance_for_small_and_large_rates(device):
    for rate in (0.3, 4.0, 9.9, 10.0, 50.0, 1e4):
        x = same_on(device, lambda d, rate=rate: torch.poisson(torch.full((N,), rate, device=d)))
        assert abs(x.mean() - rate) < 5 * math.sqrt(rate / N) and abs(x.var() / rate - 1) < 0.06, rate
        assert (x == np.floor(x)).all()
    assert torch.poisson(torch.zeros(3)).tolist() == [0, 0, 0]
    rates = torch.ones(3, requires_grad=True)
    torch.poisson(rates).sum().backward()
    assert rates.grad.tolist() == [0, 0, 0]


def test_binomial_has_its_mean_and_variance(device):
    for n, p in ((1.0, 0.5), (20.0, 0.1), (20.0, 0.9), (100.0, 0.3), (100.0, 0.7), (1e5, 0.5)):
        x = same_on(device, lambda d, n=n, p=p: torch.binomial(torch.full((N,), n, device=d), torch.full((1,), p, device=d)))
        variance = n * p * (1 - p)
        assert abs(x.mean() - n * p) < 5 * math.sqrt(variance / N) and abs(x.var() / variance - 1) < 0.06, (n, p)
        assert x.min() >= 0 and x.max() <= n
    assert torch.binomial(torch.tensor([0.0, 5.0, 5.0]), torch.tensor([0.5, 0.0, 1.0])).tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: torch.ones(2).cauchy_(0, -1), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1"),
        (lambda: torch.ones(2, dtype=torch.int64).cauchy_(), RuntimeError, "Cauchy distribution is a continuous probability distribution. dtype must be a floating point"),
        (lambda: torch.ones(2).geometric_(1.5), RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=1.5"),
        (lambda: torch.ones(2, dtype=torch.bool).geometric_(0.5), NotImplementedError, "\"geometric_cpu\" not implemented for 'Bool'"),
        (lambda: torch.ones(2).log_normal_(1, -1), RuntimeError, "log_normal_ expects std > 0.0, but found std=-1"),
        (lambda: torch.ones(2, dtype=torch.uint8).log_normal_(), NotImplementedError, "\"log_normal_cpu\" not implemented for 'Byte'"),
        (lambda: torch.poisson(torch.tensor([-1.0])), RuntimeError, "invalid Poisson rate, expected rate to be non-negative"),
        (lambda: torch.poisson(torch.tensor([1])), NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'"),
        (lambda: torch.binomial(torch.tensor([1]), torch.tensor([0.5])), ValueError, "binomial only supports floating-point dtypes for count, got: Long"),
        (lambda: torch.binomial(torch.ones(1), torch.ones(1, dtype=torch.float64)), RuntimeError, "Found dtype Double but expected Float"),
    ],
)
def test_what_no_distribution_has_is_pytorchs_error(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_draws_of_small_concentrations_are_neither_0_nor_1_nor_nan():
    small = torch.tensor(0.01, requires_grad=True)
    drawn = torch.distributions.Beta(small, small).rsample((1000,))
    assert ((drawn > 0) & (drawn < 1)).all() and 0.4 < (drawn < 0.1).float().mean() < 0.6
    drawn.sum().backward()
    assert small.grad.isfinite()


def test_a_binomials_density_has_the_mean_of_both_slopes_at_logit_0():
    logits = torch.zeros(2, requires_grad=True)
    torch.distributions.Binomial(1.0, logits=logits).log_prob(torch.tensor([0.0, 1.0])).sum().backward()
    assert logits.grad.tolist() == [-0.5, 0.5]


def test_a_bernoulli_that_rules_out_what_may_be_is_infinitely_far():
    far = [[torch.distributions.kl_divergence(*map(torch.distributions.Bernoulli, (p, q))).item() for q in (0.0, 1.0)] for p in (0.0, 0.5, 1.0)]
    assert far == [[0, math.inf], [math.inf, math.inf], [math.inf, 0]]
