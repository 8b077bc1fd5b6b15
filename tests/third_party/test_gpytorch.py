"""gpytorch and botorch: a Gaussian process, exact and variational, and an acquisition function optimized over one."""
import gpytorch
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qUpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@recorded
def test_an_exact_process_is_fitted_as_in_pytorch(device):
    x = torch.linspace(0, 1, 12, device=device)
    y = (6 * x).sin()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Exact(x, y, likelihood).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = -marginal(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.tensor([0.1, 0.55, 1.2], device=device)))
    return {"losses": losses, "mean": found.mean, "variance": found.variance}


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@recorded
def test_a_variational_process_is_fitted_as_in_pytorch():
    x = torch.linspace(0, 1, 20)
    y = (6 * x).cos()
    model, likelihood = Variational(x[::5].clone()), gpytorch.likelihoods.GaussianLikelihood()
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=20)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = -bound(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@recorded
def test_botorchs_acquisition_functions_have_pytorchs_values_and_gradients():
    x = torch.linspace(0, 1, 10, dtype=torch.float64).reshape(5, 2)
    model = SingleTaskGP(x, (x.sum(1, keepdim=True) * 3).sin())
    at = torch.tensor([[[0.2, 0.7]], [[0.9, 0.1]]], dtype=torch.float64, requires_grad=True)
    improvement = LogExpectedImprovement(model, best_f=0.5)(at)
    improvement.sum().backward()
    upper = qUpperConfidenceBound(model, beta=0.2, sampler=SobolQMCNormalSampler(torch.Size([16]), seed=1))(at.detach())
    return {"improvement": improvement, "gradient": at.grad, "upper": upper}
