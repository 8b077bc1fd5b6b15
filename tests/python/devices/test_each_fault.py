"""Every allocation, copy and launch of a device fails once, at each point of a step: memory is released, and running the step again gives the same
bits.

The C++ tests (tests/faults) do this for more steps, host allocations and driver calls.
"""

import gc

import naru as torch
import naru.nn.functional as F
import pytest
from naru.utils.data import DataLoader, TensorDataset

DEVICE = "mps"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(36, 12)
        self.norm = torch.nn.LayerNorm(12)
        self.out = torch.nn.Linear(12, 4)

    def forward(self, x):
        return self.out(F.dropout(F.relu(self.norm(self.first(x.flatten(1)))), 0.25, self.training))


def training():
    torch.manual_seed(1)
    net = Net().to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = TensorDataset(torch.rand(4, 1, 6, 6), torch.tensor([0, 1, 2, 3]))
    for x, y in DataLoader(data, batch_size=2, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(net(x.to(DEVICE)), y.to(DEVICE)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    return [p.detach().cpu().numpy().tobytes() for p in net.parameters()]


def autocast_and_hooks():
    torch.manual_seed(2)
    x = torch.rand(3, 5, device=DEVICE, requires_grad=True)
    w = torch.rand(5, 4, device=DEVICE, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        y = (x @ w).float().softmax(1)
    (y * torch.arange(4.0, device=DEVICE)).sum().backward()
    values, order = torch.sort(x.grad, dim=1, descending=True)
    picked = w[torch.tensor([0, 2], device=DEVICE)].clone()
    picked[0] = 1
    return [t.detach().cpu().numpy().tobytes() for t in (y, x.grad, w.grad, values, order, picked, torch.randn(7, device=DEVICE))]


@pytest.mark.parametrize("option", ["fail_allocation", "fail_driver_allocation", "fail_copy", "fail_launch"])
@pytest.mark.parametrize("step", [training, autocast_and_hooks])
def test_whatever_fails_memory_comes_back_and_the_same_step_gives_the_same_bits(step, option):
    with torch.virtual(DEVICE):
        right = step()
    failures = 0
    for n in range(1, 1000):
        with torch.virtual(DEVICE, **{option: n}):
            failed = False
            try:
                result = step()
            except (torch.OutOfMemoryError, RuntimeError) as error:
                failed = True
                assert f"{option}={n}" in str(error)
            gc.collect()
            if not failed:
                assert result == right
                if option != "fail_driver_allocation" or n > 4:  # the allocator retries, and the program continues
                    break
            else:
                failures += 1
            assert torch.mps.current_allocated_memory() == 0
            assert step() == right
    assert failures > 20 or option in ("fail_driver_allocation", "fail_copy")
