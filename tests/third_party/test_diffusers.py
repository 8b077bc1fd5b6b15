"""diffusers: a small UNet trained on noise, schedulers' steps, an autoencoder."""
import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, UNet2DModel
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")


def unet(device):
    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4, attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ).to(device)  # fmt: skip


@recorded
def test_a_unet_learns_noise_with_pytorchs_losses(device):
    model, scheduler = unet(device), DDPMScheduler(num_train_timesteps=100)
    clean, noise = torch.randn(4, 1, 8, 8).to(device), torch.randn(4, 1, 8, 8).to(device)
    steps = torch.tensor([3, 30, 60, 90], device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(clean, noise, steps), steps).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@recorded
@pytest.mark.parametrize("kind", [DDPMScheduler, DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler], ids=lambda k: k.__name__)
def test_samplers_take_pytorchs_steps(kind):
    scheduler = kind(num_train_timesteps=100)
    scheduler.set_timesteps(6)
    x = torch.linspace(-1, 1, 16).reshape(1, 1, 4, 4)
    for i, t in enumerate(scheduler.timesteps):
        options = {"generator": torch.Generator().manual_seed(i)} if kind in (DDPMScheduler, EulerDiscreteScheduler) else {}
        x = scheduler.step((0.3 * scheduler.scale_model_input(x, t)).sin(), t, x, **options).prev_sample
    return x


@recorded
def test_an_autoencoder_has_pytorchs_output(device):
    torch.manual_seed(0)
    model = AutoencoderKL(block_out_channels=(8, 8), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4).to(device)
    x = torch.linspace(-2, 2, 3 * 256, device=device).sin().reshape(1, 3, 16, 16)
    found = model(x).sample
    found.square().mean().backward()
    return {"out": found, "gradient": model.encoder.conv_in.weight.grad}
