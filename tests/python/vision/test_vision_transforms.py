"""naru.vision.transforms on PIL images and tensors, compared with Pillow, NumPy and each other."""
import collections
import math

import numpy as np
import pytest

import naru as torch
import naru.vision.transforms.functional as F
from naru.vision import transforms as T
from naru.vision import tv_tensors
from naru.vision.transforms import v2

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
ImageOps = pytest.importorskip("PIL.ImageOps")

ARRAY = np.random.RandomState(0).randint(0, 256, (13, 17, 3), dtype=np.uint8)
PICTURE = Image.fromarray(ARRAY)
BYTES = torch.from_numpy(ARRAY.transpose(2, 0, 1).copy())
FLOATS = BYTES.float() / 255
NEAREST, BILINEAR, BICUBIC = (T.InterpolationMode(mode) for mode in ("nearest", "bilinear", "bicubic"))


def pixels(image):
    """(C, H, W) of either kind of image, as an array."""
    if isinstance(image, torch.Tensor):
        return image.numpy()
    return np.asarray(image).reshape(image.height, image.width, -1).transpose(2, 0, 1)


def test_images_become_tensors_and_come_back():
    tensor = T.ToTensor()(PICTURE)
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor.numpy(), ARRAY.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert torch.equal(T.ToTensor()(ARRAY), tensor)
    assert torch.equal(T.PILToTensor()(PICTURE), BYTES)
    assert np.array_equal(np.asarray(T.ToPILImage()(BYTES)), ARRAY)
    assert np.array_equal(np.asarray(T.ToPILImage()(ARRAY)), ARRAY)
    for mode, dtype in (("L", torch.uint8), ("I", torch.int32), ("F", torch.float32), ("1", torch.uint8), ("I;16", torch.int32)):
        picture = Image.new(mode, (3, 2), 1)
        assert (F.pil_to_tensor(picture).dtype, F.pil_to_tensor(picture).shape) == (dtype, (1, 2, 3))
    assert F.pil_to_tensor(Image.new("1", (1, 1), 1)).item() == 255
    assert F.to_pil_image(torch.zeros(4, 2, 2, dtype=torch.uint8)).mode == "RGBA"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.to_tensor(FLOATS), TypeError, "pic should be PIL Image or ndarray"),
        (lambda: F.to_tensor(ARRAY[None]), ValueError, "2/3 dimensional. Got 4"),
        (lambda: F.to_pil_image(FLOATS, "CMYK"), ValueError, "Only modes .* are supported for 3D inputs"),
        (lambda: F.resize(PICTURE, [1, 2, 3]), ValueError, "1 or 2 element tuple/list, not a 3"),
        (lambda: F.resize([1], 3), TypeError, "img should be PIL Image or Tensor"),
        (lambda: F.pad(PICTURE, [1, 2, 3]), ValueError, "1, 2, or 4 element tuple, not a 3"),
        (lambda: F.pad(BYTES, 1, padding_mode="wrap"), ValueError, "constant, edge, reflect or symmetric"),
        (lambda: T.RandomCrop(40)(BYTES), ValueError, r"Required crop size \(40, 40\) is larger than input image size \(13, 17\)"),
        (lambda: F.normalize(BYTES, [0.5], [0.5]), TypeError, "should be a float tensor"),
        (lambda: F.normalize(FLOATS, [0.5] * 3, [0.0] * 3), ValueError, "division by zero"),
        (lambda: T.Normalize([0.5], [0.5])(PICTURE), TypeError, "should be Tensor Image"),
        (lambda: F.adjust_hue(FLOATS, 0.6), ValueError, r"is not in \[-0.5, 0.5\]"),
        (lambda: T.ColorJitter(hue=0.7), ValueError, "hue values should be between"),
        (lambda: T.RandomErasing(value="zeros"), ValueError, "should be 'random'"),
        (lambda: T.GaussianBlur(2), ValueError, "odd and positive"),
        (lambda: F.equalize(FLOATS), TypeError, "Only torch.uint8"),
        (lambda: F.convert_image_dtype(FLOATS, torch.int32), RuntimeError, "cannot be performed safely"),
        (lambda: T.RandomChoice(3), TypeError, "should be a sequence"),
        (lambda: T.Resize("big"), TypeError, "Size should be int or sequence"),
    ],
)
def test_what_can_not_be_meant_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "transform",
    [
        lambda x: F.hflip(x), lambda x: F.vflip(x), lambda x: F.invert(x), lambda x: F.posterize(x, 3), lambda x: F.solarize(x, 100),
        lambda x: F.equalize(x), lambda x: F.crop(x, 2, 3, 5, 6), lambda x: F.crop(x, -2, 3, 9, 30), lambda x: F.center_crop(x, [20, 7]),
        lambda x: F.center_crop(x, 5), lambda x: F.pad(x, [1, 2, 3, 4], 9), lambda x: F.pad(x, 3, padding_mode="edge"),
        lambda x: F.pad(x, [2, 5], padding_mode="reflect"), lambda x: F.pad(x, 4, padding_mode="symmetric"), lambda x: F.pad(x, [-1, 2, -3, 4]),
        lambda x: F.rotate(x, 90, expand=True), lambda x: F.affine(x, 0, [2, -3], 1, 0, fill=[7]),
    ],
)  # fmt: skip
def test_tensors_and_pil_images_are_changed_alike(transform):
    assert np.array_equal(pixels(transform(BYTES)), pixels(transform(PICTURE)))


@pytest.mark.parametrize("size", [5, [4, 20], [20, 30]])
@pytest.mark.parametrize("mode", [BILINEAR, BICUBIC])
def test_tensors_are_resized_as_pillow_does_it(size, mode):
    # Pillow clips overshoots between its two passes; this image stays within 0..255. It rounds twice, by 0.5 each, the first time before
    # weights whose absolute values add up to 1.25 or less.
    tame = ARRAY // 2 + 64
    ours, pillows = F.resize(T.ToTensor()(tame) * 255, size, mode), F.resize(Image.fromarray(tame), size, mode)
    assert np.abs(pixels(ours) - pixels(pillows)).max() <= 0.5 + 0.5 * 1.25 + 0.01
    assert F.resize(BYTES, 13) is BYTES


def test_one_number_is_the_shorter_side():
    assert F.resize(BYTES, 26).shape == (3, 26, 34)
    assert F.resize(BYTES, 12, max_size=14).shape == (3, 11, 14)
    with pytest.raises(ValueError, match="must be strictly greater"):
        F.resize(BYTES, 12, max_size=11)
    assert T.Resize((3, 4))(PICTURE).size == (4, 3)


@pytest.mark.parametrize("mode", [NEAREST, BILINEAR])
def test_affine_maps_take_pixels_where_the_matrix_says(mode):
    angle, moved, scale, shear = 20.0, (2, -1), 1.3, (10.0, -5.0)
    a, x, y = math.radians(angle), *map(math.radians, shear)
    turn = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    forward = scale * turn @ np.array([[1, 0], [-math.tan(y), 1]]) @ np.array([[1, -math.tan(x)], [0, 1]])
    center = np.array([8.5, 6.5])
    expected = np.zeros((13, 17))
    image = FLOATS[0].numpy()
    for row, column in np.ndindex(13, 17):
        u, v = np.linalg.solve(forward, np.array([column + 0.5, row + 0.5]) - center - moved) + center - 0.5
        if mode is NEAREST:
            places = [(round(v), round(u), 1.0)]
        else:
            left, top = math.floor(u), math.floor(v)
            places = [(top + i, left + j, abs(1 - i - (v - top)) * abs(1 - j - (u - left))) for i in (0, 1) for j in (0, 1)]
        expected[row, column] = sum(image[i, j] * w for i, j, w in places if 0 <= i < 13 and 0 <= j < 17)
    found = F.affine(FLOATS[:1], angle, list(moved), scale, list(shear), mode)[0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_perspective_moves_corners():
    start = [[0, 0], [17, 0], [17, 13], [0, 13]]
    same = F.perspective(FLOATS, start, start)
    np.testing.assert_allclose(same.numpy(), FLOATS.numpy(), atol=1e-4)
    moved = [[x + 2, y + 1] for x, y in start]
    np.testing.assert_allclose(F.perspective(FLOATS, start, moved)[:, 1:, 2:].numpy(), FLOATS[:, :-1, :-2].numpy(), atol=1e-4)


def test_colors_are_those_of_their_definitions():
    red, green, blue = (FLOATS[i].numpy() for i in range(3))
    grey = 0.2989 * red + 0.587 * green + 0.114 * blue
    image = FLOATS.numpy()
    np.testing.assert_allclose(F.rgb_to_grayscale(FLOATS)[0].numpy(), grey, atol=1e-6)
    for found, expected in (
        (F.adjust_brightness(FLOATS, 1.5), image * 1.5),
        (F.adjust_saturation(FLOATS, 0.3), image * 0.3 + grey * 0.7),
        (F.adjust_contrast(FLOATS, 1.8), image * 1.8 - grey.mean() * 0.8),
        (F.adjust_gamma(FLOATS, 0.5, 0.9), 0.9 * image**0.5),
        (F.autocontrast(FLOATS), (image - image.min((1, 2), keepdims=True)) / np.ptp(image, (1, 2), keepdims=True)),
    ):
        np.testing.assert_allclose(found.numpy(), expected.clip(0, 1), atol=1e-5)
    assert np.array_equal(np.asarray(F.autocontrast(PICTURE)), np.asarray(ImageOps.autocontrast(PICTURE)))


@pytest.mark.parametrize("turn", [-0.5, -0.2, 0.0, 0.3])
def test_hues_turn_as_colorsys_has_them(turn):
    import colorsys

    found = F.adjust_hue(FLOATS, turn).numpy()
    for place in ((0, 0), (3, 5), (12, 16), (7, 2)):
        h, s, v = colorsys.rgb_to_hsv(*FLOATS.numpy()[:, place[0], place[1]])
        np.testing.assert_allclose(found[:, place[0], place[1]], colorsys.hsv_to_rgb((h + turn) % 1, s, v), atol=1e-5)
    grey = torch.full((3, 2, 2), 0.5)
    assert torch.equal(F.adjust_hue(grey, turn), grey)


def test_blur_is_a_product_of_bells():
    image = torch.zeros(1, 9, 9)
    image[0, 4, 4] = 1
    bell = np.exp(-0.5 * (np.arange(-2, 3) / 0.8) ** 2)
    bell /= bell.sum()
    np.testing.assert_allclose(F.gaussian_blur(image, 5, 0.8)[0, 2:7, 2:7].numpy(), np.outer(bell, bell), atol=1e-6)


def test_types_are_converted_so_that_white_stays_white():
    white = torch.tensor([[[0, 255]]], dtype=torch.uint8)
    assert F.convert_image_dtype(white, torch.float32).tolist() == [[[0, 1]]]
    assert F.convert_image_dtype(white, torch.int16).tolist() == [[[0, 255 * 128]]]
    assert torch.equal(F.convert_image_dtype(F.convert_image_dtype(BYTES, torch.float32), torch.uint8), BYTES)


def test_noise_is_added_to_tensors_of_floating_point():
    torch.manual_seed(0)
    grey = torch.full((3, 40, 40), 0.5)
    noisy = v2.GaussianNoise(0.1, 0.05)(grey)
    assert noisy.mean().item() == pytest.approx(0.6, abs=0.01)
    assert noisy.std().item() == pytest.approx(0.05, abs=0.005)
    with pytest.raises(ValueError, match="float dtype"):
        v2.GaussianNoise()(BYTES)


def test_transforms_of_tensors_have_gradients_and_take_batches():
    batch = torch.rand(2, 2, 3, 8, 8, requires_grad=True)
    out = T.Compose([T.Resize(6), T.RandomRotation(20, BILINEAR), T.GaussianBlur(3), T.Normalize([0.5] * 3, [0.2] * 3)])(batch)
    assert out.shape == (2, 2, 3, 6, 6)
    out.sum().backward()
    assert batch.grad.abs().sum().item() > 0
    assert T.Resize(6)(torch.zeros(0, 3, 8, 8)).shape == (0, 3, 6, 6)


def drawn(monkeypatch, transform, image):
    """The names and bounds of what a transform draws, in order."""
    log = []
    plain = {name: getattr(torch, name) for name in ("rand", "randint", "randperm")}
    uniform = torch.Tensor.uniform_
    monkeypatch.setattr(torch, "rand", lambda *a, **k: log.append("rand") or plain["rand"](*a, **k))
    monkeypatch.setattr(torch, "randint", lambda low, high, **k: log.append(("randint", low, high)) or plain["randint"](low, high, **k))
    monkeypatch.setattr(torch, "randperm", lambda n: log.append(("randperm", n)) or plain["randperm"](n))
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda x, a=0, b=1: log.append(("uniform", round(a, 3), round(b, 3))) or uniform(x, a, b))
    transform(image)
    monkeypatch.undo()
    return log


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (T.RandomHorizontalFlip(), ["rand"]),
        (T.RandomCrop(8, padding=2), [("randint", 0, 10), ("randint", 0, 14)]),
        (T.RandomCrop((13, 8)), [("randint", 0, 1), ("randint", 0, 10)]),
        (v2.RandomCrop((13, 8)), [("randint", 0, 10)]),
        (T.RandomCrop((13, 17)), []),
        (T.RandomRotation(9), [("uniform", -9, 9)]),
        (
            T.RandomAffine(9, (0.5, 0.25), (0.9, 1.1), (1, 2, 3, 4)),
            [("uniform", *span) for span in ((-9, 9), (-8.5, 8.5), (-3.25, 3.25), (0.9, 1.1), (1, 2), (3, 4))],
        ),
        (T.ColorJitter(0.1, 0.2, 0.3, 0.4), [("randperm", 4), *[("uniform", *s) for s in ((0.9, 1.1), (0.8, 1.2), (0.7, 1.3), (-0.4, 0.4))]]),
        (v2.ColorJitter(hue=0.4), [("randperm", 4), ("uniform", -0.4, 0.4)]),
        (T.GaussianBlur(3), [("uniform", 0.1, 2.0)]),
    ],
)
def test_what_is_random_is_drawn_in_torchvisions_order(monkeypatch, transform, expected):
    assert drawn(monkeypatch, transform, BYTES) == expected


def test_a_random_part_has_an_area_and_a_shape_of_the_ranges():
    torch.manual_seed(0)
    image = torch.rand(3, 60, 80)
    places = [T.RandomResizedCrop.get_params(image, (0.2, 0.5), (0.5, 2.0)) for _ in range(50)]
    for top, left, height, width in places:
        assert 0 <= top <= 60 - height
        assert 0 <= left <= 80 - width
        assert 0.17 < height * width / 4800 < 0.53
        assert 0.45 < width / height < 2.2
    assert len(set(places)) > 40
    assert T.RandomResizedCrop.get_params(image, (0.9, 1.0), (5.0, 6.0)) == (22, 0, 16, 80)


def test_probabilities_are_kept():
    torch.manual_seed(0)
    image = torch.arange(2.0).view(1, 1, 2)
    flipped = [T.RandomHorizontalFlip(0.25)(image)[0, 0, 0].item() for _ in range(400)]
    assert 70 < sum(flipped) < 130
    assert all(T.RandomErasing(0.0)(image) is image for _ in range(5))
    erased = T.RandomErasing(1.0, value=5.0, scale=(0.2, 0.3))(torch.zeros(3, 20, 20))
    assert 0.15 < (erased == 5).float().mean().item() < 0.35
    assert T.RandomApply([T.Pad(1)], p=0.0)(image) is image
    assert T.RandomApply([T.Pad(1)], p=1.0)(image).shape == (1, 3, 4)


@pytest.mark.parametrize("module", [T, v2])
def test_augmentations_give_images_of_the_same_kind(module):
    torch.manual_seed(0)
    kinds = [module.AutoAugment(policy) for policy in module.AutoAugmentPolicy]
    for transform in (*kinds, module.RandAugment(3, fill=7), module.TrivialAugmentWide()):
        for _ in range(4):
            out = transform(BYTES)
            assert (out.shape, out.dtype) == (BYTES.shape, torch.uint8)
            assert transform(PICTURE).size == PICTURE.size


def test_v2_changes_the_pictures_of_a_sample_alike():
    Pair = collections.namedtuple("Pair", "image label")
    flip = v2.RandomHorizontalFlip(1.0)
    labels = torch.tensor([1, 2])
    out = flip({"a": PICTURE, "b": [v2.ToImage()(ARRAY), labels], "c": (7, Pair(PICTURE, "cat"))})
    assert np.array_equal(np.asarray(out["a"]), ARRAY[:, ::-1])
    assert torch.equal(out["b"][0].as_subclass(torch.Tensor), BYTES.flip(-1))
    assert out["b"][1] is labels
    assert out["c"][0] == 7
    assert isinstance(out["c"][1], Pair)
    image, label = flip(BYTES, labels)
    assert torch.equal(image, BYTES.flip(-1))
    assert label is labels
    torch.manual_seed(0)
    first, second = v2.RandomCrop(4)(PICTURE, v2.ToImage()(PICTURE))
    assert np.array_equal(pixels(first), pixels(second))


def test_v2_pictures_are_known_as_such():
    image = v2.ToImage()(PICTURE)
    assert isinstance(image, tv_tensors.Image)
    assert isinstance(image, torch.Tensor)
    out = v2.Compose([v2.Resize(5), v2.ToDtype(torch.float32, scale=True)])(image)
    assert isinstance(out, tv_tensors.Image)
    assert (out.dtype, out.shape) == (torch.float32, (3, 5, 6))
    assert type(image + 1) is torch.Tensor
    assert type(v2.ToPureTensor()(image)) is torch.Tensor
    assert isinstance(v2.ToPILImage()(image), Image.Image)
    # A tensor that precedes an image is not an image.
    label = torch.rand(3, 9, 9)
    assert v2.CenterCrop(4)(label, image)[0] is label
    assert v2.ToDtype({tv_tensors.Image: torch.float32, "others": None})(image, label)[0].dtype == torch.float32


def test_v2_transforms_of_ones_own_say_what_to_do_and_draw_once():
    class Shift(v2.Transform):
        def make_params(self, flat_inputs):
            return {"by": len(flat_inputs)}

        def transform(self, inpt, params):
            return inpt + params["by"]

    images = [tv_tensors.Image(torch.zeros(1, 2, 2)) for _ in range(3)]
    assert [image.max().item() for image in Shift()(images)] == [3, 3, 3]


def test_v2_choices_are_made_of_their_transforms():
    torch.manual_seed(0)
    choice = v2.RandomChoice([v2.Pad(1), v2.Pad(2)], p=[1, 3])
    sizes = [choice(BYTES).shape[-1] for _ in range(100)]
    assert 10 < sizes.count(19) < 40
    assert v2.RandomOrder([v2.Pad(1), v2.CenterCrop(5)])(BYTES, 3)[0].shape[-1] in (5, 7)
    assert v2.RandomApply([v2.Pad(1)], p=1.0)(BYTES, 3)[1] == 3
    with pytest.raises(ValueError, match="at least one transform"):
        v2.Compose([])


def test_transforms_say_what_they_are():
    assert repr(T.Resize(5)) == "Resize(size=5, interpolation=bilinear, max_size=None, antialias=True)"
    assert repr(T.Compose([T.ToTensor(), T.RandomHorizontalFlip(0.3)])) == "Compose(\n    ToTensor()\n    RandomHorizontalFlip(p=0.3)\n)"


def test_a_name_that_is_missing_says_so():
    with pytest.raises(AttributeError, match=r"torchvision.transforms.v2.MixUp is not in naru.vision yet"):
        _ = v2.MixUp
    with pytest.raises(ImportError, match=r"torchvision.transforms.AugMix is not in naru.vision yet"):
        from naru.vision.transforms import AugMix  # noqa: F401


@pytest.mark.parametrize(
    "transform",
    [
        lambda x: F.resize(x, 5), lambda x: F.rotate(x, 30, expand=True, fill=[5.0]), lambda x: F.pad(x, 3, 5),
        lambda x: F.pad(x, 3, padding_mode="reflect"), lambda x: F.crop(x, -2, 3, 9, 30), lambda x: F.adjust_hue(x, 0.2),
        lambda x: F.adjust_contrast(x, 0.2), lambda x: F.adjust_sharpness(x, 0.2), F.equalize, F.autocontrast, lambda x: F.gaussian_blur(x, 3),
        lambda x: F.perspective(x, [[0, 0], [16, 0], [16, 12], [0, 12]], [[1, 2], [15, 1], [14, 10], [2, 11]]),
        lambda x: F.normalize(F.convert_image_dtype(x), [0.5] * 3, [0.2] * 3),
    ],
)  # fmt: skip
def test_images_stay_on_their_device_and_are_the_same_there(transform, device, own_matmuls):
    out = transform(BYTES.to(device))
    assert out.device == torch.device(device)
    assert torch.equal(out.cpu(), transform(BYTES))


def test_without_pillow_tensors_are_transformed_and_the_rest_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert T.Compose([T.Resize(5), T.RandomCrop(3)])(BYTES).shape == (3, 3, 3)
    assert v2.Compose([v2.ToImage(), v2.Resize(5)])(ARRAY).shape == (3, 5, 6)
    with pytest.raises(ImportError, match="install it with: pip install pillow"):
        T.ToPILImage()(BYTES)


def test_transforms_are_pickled():
    import pickle

    for transform in (T.Compose([T.ToTensor(), T.RandomCrop(3)]), v2.Resize(5), v2.RandomCrop(4), v2.AutoAugment()):
        again = pickle.loads(pickle.dumps(transform))
        assert (type(again), repr(again)) == (type(transform), repr(transform))
