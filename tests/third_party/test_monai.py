"""monai: networks, losses, metrics, transforms and inference over windows."""
import numpy as np
import pytest
import torch
from facts import recorded
from monai.data import DataLoader, Dataset
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric, compute_iou
from monai.networks.nets import DenseNet121, SegResNet, UNet, UNETR
from monai.transforms import Compose, NormalizeIntensityd, RandFlipd, RandGaussianNoised, Rotate90d, ScaleIntensityd, Zoomd

pytestmark = pytest.mark.filterwarnings("ignore")


@recorded
@pytest.mark.parametrize("name", ["unet", "segresnet", "unetr", "densenet"])
def test_networks_learn_with_pytorchs_losses(device, name):
    torch.manual_seed(0)
    if name == "unet":
        net = UNet(2, 1, 2, channels=(4, 8), strides=(2,), num_res_units=1)
    elif name == "segresnet":
        net = SegResNet(2, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,))
    elif name == "unetr":
        net = UNETR(1, 2, (16, 16), feature_size=4, hidden_size=16, mlp_dim=16, num_heads=2, spatial_dims=2, proj_type="perceptron")
    else:
        net = DenseNet121(spatial_dims=2, in_channels=1, out_channels=2, block_config=(1, 1), init_features=8, growth_rate=4)
    x = torch.linspace(-3, 3, 2 * 256).sin().reshape(2, 1, 16, 16)
    net, x = net.to(device), x.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        out = net(x)
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([0, 1], device=device)) if name == "densenet" else DiceCELoss(to_onehot_y=True, softmax=True)(out, (x > 0).float())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@recorded
def test_losses_and_metrics_are_pytorchs(device):
    x = torch.linspace(-2, 2, 2 * 3 * 64, device=device).sin().reshape(2, 3, 8, 8)
    y = torch.nn.functional.one_hot((torch.arange(128, device=device) * 7 // 5).reshape(2, 8, 8) % 3, 3).movedim(-1, 1).float()
    hard = torch.nn.functional.one_hot(x.argmax(1), 3).movedim(-1, 1).float()
    dice = DiceMetric(reduction="none")
    dice(hard, y)
    return {
        "dice": DiceLoss(softmax=True)(x, y), "focal": FocalLoss()(x, y), "tversky": TverskyLoss(softmax=True)(x, y), "metric": dice.aggregate(),
        "iou": compute_iou(hard, y), "distance": HausdorffDistanceMetric()(hard, y),
    }  # fmt: skip


@recorded
def test_transforms_draw_pytorchs_pictures():
    transform = Compose([
        ScaleIntensityd("image"), NormalizeIntensityd("image"), Rotate90d(["image", "label"]), RandFlipd(["image", "label"], prob=0.5, spatial_axis=1),
        RandGaussianNoised("image", prob=1.0), Zoomd(["image", "label"], 1.3, mode=["bilinear", "nearest"]),
    ])  # fmt: skip
    transform.set_random_state(4)
    items = [{"image": np.linspace(0, i + 3, 64, dtype=np.float32).reshape(1, 8, 8), "label": np.eye(8, dtype=np.float32)[None] * i} for i in range(4)]
    return [[batch["image"], batch["label"]] for batch in DataLoader(Dataset(items, transform), batch_size=2)]


@recorded
def test_windows_cover_a_picture(device):
    torch.manual_seed(0)
    net = torch.nn.Conv2d(1, 2, 3, padding=1).to(device)
    x = torch.linspace(0, 9, 400, device=device).sin().reshape(1, 1, 20, 20)
    with torch.no_grad():
        return sliding_window_inference(x, (8, 8), 3, net, overlap=0.25, mode="gaussian")[0, :, ::6, ::6]
