"""kornia: pictures filtered, moved, measured and augmented."""
import kornia
import pytest
import torch
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
K = kornia


def picture(device="cpu"):
    return torch.linspace(0, 40, 2 * 3 * 256).sin().abs().reshape(2, 3, 16, 16).to(device)


FUNCTIONS = {
    "blur": lambda x: K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "median": lambda x: K.filters.median_blur(x, (3, 3)),
    "sobel": K.filters.sobel,
    "laplacian": lambda x: K.filters.laplacian(x, 3),
    "bilateral": lambda x: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "canny": lambda x: K.filters.canny(x)[0],
    "unsharp": lambda x: K.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "hsv": K.color.rgb_to_hsv,
    "lab": K.color.rgb_to_lab,
    "yuv": K.color.rgb_to_yuv,
    "equalize": K.enhance.equalize,
    "clahe": lambda x: K.enhance.equalize_clahe(x, grid_size=(4, 4)),
    "gamma": lambda x: K.enhance.adjust_gamma(x, 0.7),
    "rotate": lambda x: K.geometry.rotate(x, torch.tensor([30.0, -10.0], device=x.device)),
    "pyramid": K.geometry.transform.pyrdown,
    "warp": lambda x: K.geometry.warp_perspective(x, torch.tensor([[[1.0, 0.1, 0], [0.05, 0.9, 1], [0.001, 0, 1]]] * 2, device=x.device), (12, 12)),
    "dilation": lambda x: K.morphology.dilation(x, torch.ones(3, 3, device=x.device)),
    "harris": K.feature.harris_response,
    "ssim": lambda x: K.metrics.ssim(x, x.flip(-1), 5),
    "histogram": lambda x: K.enhance.histogram(x.reshape(2, -1), torch.linspace(0, 1, 8, device=x.device), torch.tensor(0.1, device=x.device)),
    "distance": lambda x: K.contrib.distance_transform((x[:, :1] > 0.9).float()),
}


@recorded
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_give_pytorchs_pictures(device, name):
    found = FUNCTIONS[name](picture(device))
    return {"part": found.reshape(2, -1)[:, ::17][:, :12], "mean": found.float().mean()}


@recorded
def test_losses_and_gradients_are_pytorchs(device):
    x = picture(device).requires_grad_()
    y = x.detach().roll(2, -1)
    labels = (torch.arange(512, device=device) % 3).reshape(2, 16, 16)
    losses = [
        K.losses.ssim_loss(x, y, 5), K.losses.total_variation(x).mean(), K.losses.focal_loss(x, labels, 0.5, reduction="mean"),
        K.losses.dice_loss(x, labels), K.losses.charbonnier_loss(x, y, reduction="mean"), K.losses.psnr_loss(x, y, 1.0),
    ]  # fmt: skip
    sum(losses).backward()
    return {"losses": losses, "gradient": x.grad.reshape(-1)[::197]}


@recorded
@pytest.mark.parametrize("name", ["RandomHorizontalFlip", "RandomAffine", "ColorJitter", "RandomPerspective", "RandomGaussianBlur", "RandomErasing"])
def test_augmentations_draw_pytorchs_numbers(name):
    options = {"RandomAffine": {"degrees": 20.0}, "ColorJitter": {"brightness": 0.3, "contrast": 0.3, "hue": 0.1}, "RandomGaussianBlur": {"kernel_size": (3, 3), "sigma": (0.5, 1.5)}}
    augment = getattr(K.augmentation, name)(**options.get(name, {}), p=1.0 if name != "RandomHorizontalFlip" else 0.5)
    torch.manual_seed(3)
    return augment(picture()).reshape(2, -1)[:, ::61]


@recorded
def test_homographies_and_rotations_are_pytorchs():
    a = torch.linspace(0, 5, 16).cos().reshape(1, 8, 2)
    b = a @ torch.tensor([[0.9, 0.1], [-0.2, 1.1]]) + 0.3
    turn = K.geometry.conversions.axis_angle_to_rotation_matrix(torch.tensor([[0.1, -0.4, 0.7]]))
    return {"homography": K.geometry.find_homography_dlt(a, b), "turn": turn, "quaternion": K.geometry.conversions.rotation_matrix_to_quaternion(turn)}
