"""Samples of torch.distributions are in the support, have the right moments, and have gradients that keep their quantiles."""
import distribution_cases as cases
import naru as torch
import pytest
from naru import distributions as D

DRAWS = 4000


def made(text):
    return eval(text, {"torch": torch, "D": D, "T": lambda v: torch.tensor(v, dtype=torch.float64)})


def moments_are_known(d):
    try:
        return bool((d.mean.isfinite() & d.variance.isfinite()).all()) and d.mean.is_floating_point()
    except NotImplementedError:
        return False


@pytest.mark.parametrize("text", [t for t in cases.CASES if "LKJ" not in t])
def test_samples_are_in_the_support_and_have_the_moments(text):
    torch.manual_seed(5)
    d = made(text)
    x = d.sample((DRAWS,))
    assert x.shape == (DRAWS, *d.batch_shape, *d.event_shape) and not x.requires_grad
    if "Wishart" not in text and "ultivariateNormal" not in text:
        assert d.support.check(x).all()
    assert d.log_prob(x[:5]).isfinite().all()
    if not moments_are_known(d) or "VonMises" in text:
        return
    # Six standard errors; that of the variance is estimated from the samples' fourth moment.
    x, n = x.double(), DRAWS
    centered = x - x.mean(0)
    variance = centered.pow(2).mean(0)
    assert ((x.mean(0) - d.mean).abs() <= 6 * (variance / n).sqrt() + 1e-12).all()
    spread = ((centered.pow(4).mean(0) - variance.pow(2)).clamp(min=0) / n).sqrt()
    if not any(heavy in text for heavy in ("StudentT", "Pareto", "FisherSnedecor", "InverseGamma")):  # their fourth moment is infinite
        assert ((variance - d.variance).abs() <= 6 * spread + 1e-12).all()


def test_correlations_of_cholesky_factors():
    torch.manual_seed(1)
    d = D.LKJCholesky(3, torch.tensor(0.7, dtype=torch.float64))
    x = d.sample((200,))
    assert d.support.check(x).all() and d.log_prob(x).isfinite().all()


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 4.0, 50.0, 800.0])
def test_gamma_numbers_move_with_their_shape_as_their_rank_stays(a):
    torch.manual_seed(2)
    shape = torch.full((50,), a, dtype=torch.float64, requires_grad=True)
    x = torch._C._standard_gamma(shape)
    (moved,) = torch.autograd.grad(x.sum(), shape)
    # The implicit gradient: minus the derivative of the cdf by the shape (by central differences), over the density.
    z, h = x.detach(), 1e-4 * max(a, 1.0) ** 0.5
    alpha = torch.full_like(z, a)
    slope = (torch.special.gammainc(alpha + h, z) - torch.special.gammainc(alpha - h, z)) / (2 * h)
    density = ((alpha - 1) * z.log() - z - torch.lgamma(alpha)).exp()
    wanted = -slope / density
    known = density > 1e-6 * density.max()
    torch.testing.assert_close(moved[known], wanted[known], rtol=2e-5, atol=1e-9)


def test_gradients_come_through_what_is_made_of_gamma_numbers():
    for d in (lambda p: D.Beta(p, p + 1), lambda p: D.Dirichlet(torch.stack([p, p * 2])), lambda p: D.StudentT(p), lambda p: D.Chi2(p), lambda p: D.Gamma(p, 2.0), lambda p: D.InverseGamma(p, 2.0)):
        p = torch.tensor(3.0, requires_grad=True)
        d(p).rsample((10,)).sum().backward()
        assert p.grad.isfinite() and p.grad != 0


def test_samples_on_devices_are_those_of_the_cpu(device):
    for f in (lambda k: D.Gamma(torch.ones(3, device=k) * 2, 1.0), lambda k: D.Normal(torch.zeros(3, device=k), 1.0), lambda k: D.Categorical(torch.ones(2, 3, device=k))):
        found = []
        for kind in ("cpu", device):
            torch.manual_seed(4)
            found.append(f(kind).sample((5,)).cpu().tolist())
        assert found[0] == found[1]
