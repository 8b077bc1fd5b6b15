"""pyro: stochastic variational inference, MCMC, and distributions."""
import pyro
import pyro.distributions as dist
import pytest
import torch
from facts import recorded
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDiagonalNormal, AutoLowRankMultivariateNormal

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield


def regression(x, y=None):
    slope = pyro.sample("slope", dist.Normal(torch.zeros((), device=x.device), 1.0))
    bias = pyro.sample("bias", dist.Normal(torch.zeros((), device=x.device), 1.0))
    noise = pyro.sample("noise", dist.Gamma(torch.full((), 2.0, device=x.device), 3.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + bias, noise), obs=y)


def data(device="cpu"):
    x = torch.linspace(-1, 1, 12, device=device)
    return x, 0.7 * x - 0.2 + 0.1 * (9 * x).sin()


@recorded
@pytest.mark.parametrize("guide", ["AutoDiagonalNormal", "AutoLowRankMultivariateNormal"])
def test_variational_inference_has_pytorchs_losses(guide):
    x, y = data()
    guide = {"AutoDiagonalNormal": AutoDiagonalNormal, "AutoLowRankMultivariateNormal": AutoLowRankMultivariateNormal}[guide](regression)
    svi = SVI(regression, guide, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
    losses = [svi.step(x, y) for _ in range(6)]
    drawn = Predictive(regression, guide=guide, num_samples=3)(x)
    return {"losses": losses, "median": guide.median(x, y), "y": drawn["y"][:, :4]}


@recorded
def test_a_guide_of_ones_own_learns():
    x, y = data()

    def guide(x, y=None):
        for name, start in (("slope", 0.0), ("bias", 0.0)):
            pyro.sample(name, dist.Normal(pyro.param(f"{name}_at", torch.tensor(start)), pyro.param(f"{name}_by", torch.tensor(0.3), constraint=dist.constraints.positive)))
        pyro.sample("noise", dist.Delta(pyro.param("noise_at", torch.tensor(0.5), constraint=dist.constraints.positive)))

    svi = SVI(regression, guide, pyro.optim.Adam({"lr": 0.03}), Trace_ELBO())
    return [svi.step(x, y) for _ in range(6)] + [pyro.param("slope_at").item()]


@recorded
def test_mixtures_are_summed_over():
    points = torch.tensor([-1.2, -0.9, 0.8, 1.1, 1.3])

    @config_enumerate
    def model():
        weights = pyro.param("weights", torch.ones(2) / 2, constraint=dist.constraints.simplex)
        places = pyro.param("places", torch.tensor([-0.5, 0.5]))
        with pyro.plate("points", 5):
            which = pyro.sample("which", dist.Categorical(weights))
            pyro.sample("at", dist.Normal(places[which], 0.5), obs=points)

    svi = SVI(model, lambda: None, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    return [svi.step() for _ in range(5)] + pyro.param("weights").tolist()


@recorded
def test_nuts_draws_pytorchs_chain():
    x, y = data()
    chain = MCMC(NUTS(regression, max_tree_depth=3), num_samples=8, warmup_steps=8, disable_progbar=True)
    chain.run(x, y)
    return {name: value[:4] for name, value in chain.get_samples().items()}
