"""neuraloperator: Fourier neural operators, trained on a field."""
import pytest
import torch
from facts import recorded
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO

pytestmark = pytest.mark.filterwarnings("ignore")


@recorded
@pytest.mark.parametrize("kind", ["dense", "factorized"])
def test_operators_learn_with_pytorchs_losses(device, kind):
    torch.manual_seed(0)
    options = {"factorization": "tucker", "rank": 0.5, "implementation": "factorized"} if kind == "factorized" else {}
    model = FNO(n_modes=(3, 3), hidden_channels=4, in_channels=1, out_channels=1, n_layers=2, **options)
    x = torch.linspace(0, 6, 2 * 64).sin().reshape(2, 1, 8, 8)
    model, x = model.to(device), x.to(device)
    y = x.roll(1, -1)
    loss_of = H1Loss(d=2) if kind == "dense" else LpLoss(d=2, p=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
