"""segmentation-models-pytorch: networks that label each pixel, losses and metrics."""
import pytest
import segmentation_models_pytorch as smp
import torch
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
NETWORKS = {"Unet": "resnet18", "FPN": "resnet18", "Linknet": "mobilenet_v2", "PSPNet": "densenet121", "UnetPlusPlus": "vgg11"}


def data(device):
    return torch.linspace(0, 60, 2 * 3 * 32 * 32).sin().reshape(2, 3, 32, 32).to(device), (torch.arange(2048) // 50 % 2).reshape(2, 1, 32, 32).to(device)


@recorded
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_pytorchs_losses_and_masks(device, name):
    torch.manual_seed(0)
    options = {"decoder_channels": (16, 8, 8)} if name in ("Unet", "UnetPlusPlus") else {}
    net = getattr(smp, name)(NETWORKS[name], encoder_weights=None, encoder_depth=3 if name != "FPN" else 5, classes=1, **options)
    net.eval().to(device)  # of statistics of so few pixels, roundings would be seen
    x, y = data(device)
    loss = smp.losses.DiceLoss("binary")(net(x), y)
    loss.backward()
    return {"loss": loss, "mask": net(x)[:, 0, ::8, ::8], "gradient": next(net.encoder.parameters()).grad.norm()}


@recorded
def test_losses_and_metrics_are_pytorchs(device):
    x = torch.linspace(-3, 3, 2048, device=device).sin().reshape(2, 1, 32, 32)
    y = data(device)[1]
    losses = [smp.losses.FocalLoss("binary")(x, y), smp.losses.JaccardLoss("binary")(x, y), smp.losses.TverskyLoss("binary")(x, y), smp.losses.LovaszLoss("binary")(x, y),
              smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)(x, y.float())]  # fmt: skip
    counts = smp.metrics.get_stats((x > 0).long(), y, mode="binary")
    return {"losses": losses, "counts": [c.tolist() for c in counts], "iou": smp.metrics.iou_score(*counts, reduction="micro")}
