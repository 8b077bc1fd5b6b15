"""pytorch-optimizer: its optimizers' steps, its schedules and losses."""
import pytest
import pytorch_optimizer as po
import torch
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = [
    "adabelief", "adabound", "adadelta", "adafactor", "adagc", "adai", "adalite", "adamax", "adamod", "adamp", "adams", "adamw", "adan", "adanorm", "adapnm",
    "adashift", "adasmooth", "adatam", "ademamix", "adopt", "aggmo", "aida", "amos", "apollo", "avagrad", "came", "diffgrad", "fadam", "focus", "fromage", "ftrl",
    "grams", "gravity", "kron", "lamb", "laprop", "lars", "lion", "madgrad", "mars", "msvag", "nadam", "nero", "novograd", "padam", "pid", "pnm", "prodigy",
    "qhadam", "qhm", "racs", "radam", "ranger", "ranger21", "rmsprop", "scalableshampoo", "sgdp", "sgdw", "signsgd", "sophiah", "srmm", "swats",
    "tiger", "vsgd", "yogi",
]  # fmt: skip


@recorded
@pytest.mark.parametrize("name", NAMES)
def test_optimizers_take_pytorchs_steps(device, name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).to(device)
    options = {"num_iterations": 10} if name == "ranger21" else {}
    optimizer = po.load_optimizer(name)(model.parameters(), lr=1e-2, **options)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4, device=device)).square().sum().backward(create_graph=name in ("sophiah",))
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def test_soap_trains(device):
    """Its eigenvectors of matrices of low rank are what the linear algebra's library makes of them, so that its steps are compared with nothing."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).to(device)
    optimizer = po.load_optimizer("soap")(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4, device=device)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@recorded
def test_losses_and_schedules(device):
    x = torch.linspace(-2, 2, 12, device=device).reshape(4, 3)
    y = torch.tensor([0, 1, 2, 1], device=device)
    one_hot = torch.nn.functional.one_hot(y, 3).float()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = po.CosineAnnealingWarmupRestarts(optimizer, first_cycle_steps=10, max_lr=1e-2, min_lr=1e-4, warmup_steps=3)
    rates = []
    for _ in range(6):
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return {"bce": po.BCEFocalLoss()(x.sigmoid(), one_hot), "focal": po.FocalLoss()(x, one_hot), "dice": po.SoftF1Loss()(x.sigmoid(), one_hot), "rates": rates}
