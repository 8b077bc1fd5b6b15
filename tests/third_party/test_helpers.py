"""Packages around training: ema-pytorch, torch-ema, schedulefree, lion-pytorch, pytorch-metric-learning, torchattacks, pytorch-msssim, deepxde, pytorch-tabnet."""
import os

import pytest

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde  # noqa: E402
import lion_pytorch  # noqa: E402
import numpy  # noqa: E402
import pytorch_msssim  # noqa: E402
import schedulefree  # noqa: E402
import torch  # noqa: E402
import torch_ema  # noqa: E402
import torchattacks  # noqa: E402
from ema_pytorch import EMA  # noqa: E402
from facts import recorded  # noqa: E402
from pytorch_metric_learning import distances, losses, miners, reducers  # noqa: E402
from pytorch_tabnet.tab_model import TabNetClassifier  # noqa: E402

torch.set_default_device(None)  # deepxde sets it where there is a cuda device
pytestmark = pytest.mark.filterwarnings("ignore")


def steps(model, optimizer, count=3, after=lambda: None):
    x = torch.linspace(-1, 1, 12, device=model.weight.device).reshape(4, 3)
    for _ in range(count):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        after()
    return model.weight.detach().clone()


@recorded
def test_averages_of_parameters_are_pytorchs(device):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2).to(device)
    slow = EMA(model, beta=0.8, update_after_step=0, update_every=1)
    other = torch_ema.ExponentialMovingAverage(model.parameters(), decay=0.9)
    weight = steps(model, torch.optim.SGD(model.parameters(), lr=0.5), 4, lambda: (slow.update(), other.update()))
    with other.average_parameters():
        averaged = model.weight.detach().clone()
    assert torch.equal(model.weight, weight)
    return {"weight": weight, "ema": slow.ema_model.weight, "other": averaged}


@recorded
@pytest.mark.parametrize("name", ["AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree", "Lion"])
def test_optimizers_take_pytorchs_steps(device, name):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2).to(device)
    optimizer = lion_pytorch.Lion(model.parameters(), lr=0.01) if name == "Lion" else getattr(schedulefree, name)(model.parameters(), lr=0.05)
    if name != "Lion":
        optimizer.train()
    found = [steps(model, optimizer)]
    if name != "Lion":
        optimizer.eval()
        found.append(model.weight.detach().clone())
    return found


LOSSES = {
    "triplet": lambda: losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)), "contrastive": losses.ContrastiveLoss,
    "ntxent": losses.NTXentLoss, "circle": losses.CircleLoss, "arcface": lambda: losses.ArcFaceLoss(3, 4), "multi": losses.MultiSimilarityLoss,
    "proxy": lambda: losses.ProxyAnchorLoss(3, 4), "supcon": losses.SupConLoss,
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", LOSSES)
def test_metric_losses_are_pytorchs(device, name):
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 32, device=device).sin().reshape(8, 4).requires_grad_()
    y = torch.arange(8, device=device) % 3
    loss_of = LOSSES[name]().to(device)
    loss = loss_of(x, y, miners.MultiSimilarityMiner()(x, y)) if name in ("triplet", "multi") else loss_of(x, y)
    loss.backward()
    return {"loss": loss, "gradient": x.grad}


@recorded
@pytest.mark.parametrize("name", ["FGSM", "PGD", "CW", "MIFGSM", "DeepFool"])
def test_attacks_make_pytorchs_pictures(device, name):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(64, 3)).to(device).eval()
    x = torch.linspace(0, 9, 72, device=device).sin().abs().reshape(2, 1, 6, 6)
    options = {"PGD": {"steps": 3, "random_start": False}, "CW": {"steps": 3}, "MIFGSM": {"steps": 3}, "DeepFool": {"steps": 3}}.get(name, {})
    return getattr(torchattacks, name)(net, **options)(x, torch.tensor([0, 1], device=device))


@recorded
def test_similarities_of_pictures_and_gradients_are_pytorchs(device):
    x = torch.linspace(0, 30, 3 * 180**2, device=device, dtype=torch.float64).sin().abs().reshape(1, 3, 180, 180).requires_grad_()
    y = x.detach().roll(1, -1)
    found = [pytorch_msssim.ssim(x, y, data_range=1.0), pytorch_msssim.ms_ssim(x, y, data_range=1.0)]
    sum(found).backward()
    return {"found": found, "gradient": x.grad.reshape(-1)[::9999]}


@recorded
def test_a_differential_equation_is_learned():
    deepxde.config.set_random_seed(0)

    def equation(x, y):
        return deepxde.grad.hessian(y, x) + numpy.pi**2 * torch.sin(numpy.pi * x)

    domain = deepxde.geometry.Interval(-1, 1)
    edge = deepxde.icbc.DirichletBC(domain, lambda x: 0, lambda x, on: on)
    data = deepxde.data.PDE(domain, equation, edge, 8, 2, solution=lambda x: numpy.sin(numpy.pi * x), num_test=10, train_distribution="uniform")
    model = deepxde.Model(data, deepxde.nn.FNN([1, 8, 8, 1], "tanh", "Glorot uniform"))
    model.compile("sgd", lr=0.001, metrics=["l2 relative error"])
    history, _ = model.train(iterations=5, display_every=1, verbose=0)
    return {"train": [list(map(float, row)) for row in history.loss_train], "metric": [list(map(float, row)) for row in history.metrics_test]}


@recorded
def test_tables_are_learned():
    x = numpy.sin(numpy.arange(160, dtype=numpy.float32)).reshape(40, 4)
    model = TabNetClassifier(n_d=4, n_a=4, n_steps=2, seed=0, verbose=0, device_name="cpu")
    model.fit(x, (x.sum(1) > 0).astype(int), max_epochs=2, batch_size=20, virtual_batch_size=10)
    return {"losses": list(map(float, model.history["loss"])), "probabilities": model.predict_proba(x[:3]).tolist()}
