"""higher: gradients through an optimizer's steps."""
import higher
import torch
from facts import recorded


@recorded
def test_gradients_through_steps_are_pytorchs(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    model, x, y = model.to(device), x.to(device), y.to(device)
    found = {}
    for kind in (torch.optim.SGD, torch.optim.Adam):
        model.zero_grad()
        optimizer = kind(model.parameters(), lr=0.1)
        with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
            for _ in range(3):
                steps.step((inner(x) - y).square().mean())
            loss = (inner(x) - y).square().mean()
            loss.backward()
        found[kind.__name__] = {"loss": loss, "gradients": [p.grad for p in model.parameters()]}
    return found
