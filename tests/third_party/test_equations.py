"""torchdiffeq, torchsde and torchdyn: solutions of differential equations, and gradients through them."""
import pytest
import torch
import torchdiffeq
import torchsde
from facts import recorded
from torchdyn.core import NeuralODE

pytestmark = pytest.mark.filterwarnings("ignore")


class Field(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def forward(self, t, y):
        return self.net(y) * torch.cos(t)

    f = forward

    def g(self, t, y):
        return 0.3 * torch.sigmoid(y)


@recorded
@pytest.mark.parametrize("method", ["dopri5", "bosh3", "rk4", "euler", "adaptive_heun", "implicit_adams"])
@pytest.mark.parametrize("by", ["odeint", "odeint_adjoint"])
def test_solutions_and_gradients_are_pytorchs(device, method, by):
    torch.manual_seed(0)
    field = Field().to(device)
    y = getattr(torchdiffeq, by)(field, torch.tensor([[1.0, -0.5]], device=device), torch.linspace(0, 1, 4, device=device), method=method)
    y.square().sum().backward()
    return {"y": y, "gradients": [p.grad for p in field.parameters()]}


@recorded
@pytest.mark.parametrize("method", ["euler", "milstein", "srk"])
def test_a_stochastic_equation_has_pytorchs_path_for_the_same_motion(method):
    torch.manual_seed(0)
    field = Field()
    times = torch.linspace(0, 1, 3)
    motion = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 2), entropy=7, levy_area_approximation="space-time")
    y = torchsde.sdeint(field, torch.ones(4, 2), times, bm=motion, dt=0.25, method=method)
    y.sum().backward()
    return {"y": y, "gradient": field.net[0].weight.grad}


@recorded
@pytest.mark.parametrize("sensitivity", ["autograd", "adjoint"])
def test_torchdyns_networks_have_pytorchs_paths_and_gradients(device, sensitivity):
    torch.manual_seed(0)
    field = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
    model = NeuralODE(field, sensitivity=sensitivity, solver="rk4", return_t_eval=False)
    y = model(torch.tensor([[1.0, 0.5], [-1.0, 0.2]], device=device), torch.linspace(0, 1, 5, device=device))
    y[-1].square().sum().backward()
    return {"y": y, "gradient": field[0].weight.grad}
