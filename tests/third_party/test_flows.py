"""nflows, normflows, zuko, FrEIA and sbi: normalizing flows: likelihoods, training, samples."""
import normflows
import numpy
import pytest
import torch
import zuko
from facts import recorded
from FrEIA import framework, modules
from nflows.distributions import StandardNormal
from nflows.flows import Flow
from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, MaskedPiecewiseRationalQuadraticAutoregressiveTransform, ReversePermutation
from sbi.inference import NPE
from sbi.utils import BoxUniform

pytestmark = pytest.mark.filterwarnings("ignore")


def trained(flow, loss_of, steps=4):
    optimizer = torch.optim.SGD(flow.parameters(), lr=0.05)  # Adam would make steps of gradients that are but roundings
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def points(device="cpu"):
    return torch.randn(16, 2).to(device) * torch.tensor([1.0, 0.5], device=device) + 1


@recorded
def test_nflows(device):
    layers = [ReversePermutation(features=2), MaskedAffineAutoregressiveTransform(features=2, hidden_features=8),
              MaskedPiecewiseRationalQuadraticAutoregressiveTransform(features=2, hidden_features=8, num_bins=4, tails="linear", tail_bound=3.0)]  # fmt: skip
    flow, x = Flow(CompositeTransform(layers), StandardNormal([2])).to(device), points(device)
    return {"losses": trained(flow, lambda: -flow.log_prob(x).mean()), "noise": flow.transform_to_noise(x)}


@recorded
def test_normflows():
    flows = []
    for _ in range(3):
        flows += [normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 8, 2], init_zeros=True)), normflows.flows.Permute(2, mode="swap"), normflows.flows.ActNorm(2)]
    model, x = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), flows), points()
    losses = trained(model, lambda: model.forward_kld(x))
    with torch.no_grad():
        return {"losses": losses, "sample": model.sample(5)}


@recorded
@pytest.mark.parametrize("kind", ["MAF", "NSF", "NICE"])
def test_zuko(device, kind):
    flow = getattr(zuko.flows, kind)(features=2, transforms=2, hidden_features=(8, 8)).to(device)
    x = points(device)
    losses = trained(flow, lambda: -flow().log_prob(x).mean())
    with torch.no_grad():
        return {"losses": losses, "back": flow().transform.inv(torch.ones(3, 2, device=device))}


@recorded
def test_freia():
    def part(c_in, c_out):
        return torch.nn.Sequential(torch.nn.Linear(c_in, 8), torch.nn.ReLU(), torch.nn.Linear(8, c_out))

    numpy.random.seed(0)  # draws the permutations
    net = framework.SequenceINN(2)
    for _ in range(3):
        net.append(modules.AllInOneBlock, subnet_constructor=part, permute_soft=False)
    x = points()

    def loss():
        z, log_jacobian = net(x)
        return (0.5 * z.square().sum(1) - log_jacobian).mean()

    losses = trained(net, loss)
    with torch.no_grad():
        z, _ = net(x)
        back, _ = net(z, rev=True)
    assert torch.allclose(back, x, atol=1e-4)
    return {"losses": losses, "z": z}


@recorded
def test_sbi():
    prior = BoxUniform(-torch.ones(2), torch.ones(2))
    theta = prior.sample((64,))
    inference = NPE(prior=prior, density_estimator="maf", show_progress_bars=False)
    density = inference.append_simulations(theta, theta + 0.1 * torch.randn(64, 2)).train(max_num_epochs=3, training_batch_size=16)
    drawn = inference.build_posterior(density).sample((3,), x=torch.zeros(1, 2), show_progress_bars=False)
    return {"losses": list(map(float, inference._summary["training_loss"])), "drawn": drawn}
