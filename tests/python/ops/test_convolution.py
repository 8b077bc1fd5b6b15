"""Convolution: shapes, dtypes, memory formats, errors, second derivatives, modules, and a network trained to the same bits on two devices."""
import numpy as np
import pytest

import naru
from bitwise import bits
from naru import nn
from naru.nn import functional as F


@pytest.mark.parametrize("call, shapes", [
    (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2), [(2, 4, 9), (4, 4, 3), (4,)]),
    (lambda x, w, b: F.conv2d(x, w, b, 2, 1, groups=2), [(1, 4, 5, 4), (4, 2, 3, 2), (4,)]),
    (lambda x, w, b: F.conv3d(x, w, b, padding="same"), [(1, 2, 2, 3, 2), (2, 2, 2, 1, 2), (2,)]),
    (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, dilation=2), [(1, 2, 2, 3), (2, 2, 2, 2), (2,)]),
], ids=["conv1d", "conv2d", "conv3d", "conv_transpose2d"])
def test_gradients_and_their_gradients_agree_with_differences(call, shapes, device):
    operands = [naru.randn(*s, dtype=naru.float64).to(device).requires_grad_() for s in shapes]
    assert naru.autograd.gradcheck(call, operands)
    assert naru.autograd.gradgradcheck(call, operands)


X, W = (2, 4, 5, 5), (6, 4, 3, 3)
BAD = {
    "channels": (lambda x, w: F.conv2d(x[:, :3], w),
                 "Given groups=1, weight of size [6, 4, 3, 3], expected input[2, 3, 5, 5] to have 4 channels, but got 3 channels instead"),
    "a kernel larger than the input": (lambda x, w: F.conv2d(x[:, :, :2], w, padding=(0, 1)), "Calculated padded input size per channel: (2 x 7). "
                                       "Kernel size: (3 x 3). Kernel size can't be greater than actual input size"),
    "dimensions": (lambda x, w: F.conv2d(x[0, 0], w), "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 5]"),
    "dimensions of the weight": (lambda x, w: F.conv1d(x[0], w), "Expected 4-dimensional input for 4-dimensional weight [6, 4, 3, 3], but got 3-dimensional "
                                 "input of size [4, 5, 5] instead"),
    "bias": (lambda x, w: F.conv2d(x, w, x[0, 0, 0]), "Given weight of size [6, 4, 3, 3], expected bias to be 1-dimensional with 6 elements, but got bias of size [5]"),
    "types": (lambda x, w: F.conv2d(x, w.double()), "expected scalar type Float but found Double"),
    "groups": (lambda x, w: F.conv2d(x, w, groups=4), "Given groups=4, expected weight to be divisible by 4 at dimension 0, but got weight of size [[6, 4, 3, 3]] instead"),
    "no groups": (lambda x, w: F.conv2d(x, w, groups=0), "non-positive groups is not supported"),
    "stride": (lambda x, w: F.conv2d(x, w, stride=0), "non-positive stride is not supported"),
    "dilation": (lambda x, w: F.conv2d(x, w, dilation=0), "non-positive dilation is not supported"),
    "padding": (lambda x, w: F.conv2d(x, w, padding=-1), "negative padding is not supported"),
    "a list too long": (lambda x, w: F.conv2d(x, w, stride=(1, 1, 1)), "expected stride to be a single integer value or a list of 2 values to match the "
                        "convolution dimensions, but got stride=[1, 1, 1]"),
    "same and stride": (lambda x, w: F.conv2d(x, w, padding="same", stride=2), "padding='same' is not supported for strided convolutions"),
    "word": (lambda x, w: F.conv2d(x, w, padding="full"), "Invalid padding string: 'full'"),
    "transposed channels": (lambda x, w: F.conv_transpose2d(x, w), "Given transposed=1, weight of size [6, 4, 3, 3], expected input[2, 4, 5, 5] to have 6 channels, "
                            "but got 4 channels instead"),
    "output padding": (lambda x, w: F.conv_transpose2d(x, w[:4], output_padding=1), "output padding must be smaller than either stride or dilation"),
    "nothing left": (lambda x, w: F.conv_transpose2d(x[:, :, :1], w[:4], padding=2), "Output size is too small"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_an_error_that_names_the_shapes(name):
    call, text = BAD[name]
    with pytest.raises(RuntimeError) as error:
        call(naru.ones(*X), naru.ones(*W))
    assert text in str(error.value)


def test_bool_is_not_implemented_and_devices_must_agree():
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.conv2d(naru.ones(*X).bool(), naru.ones(*W).bool())
    with pytest.raises(RuntimeError, match="weight"):
        F.conv2d(naru.ones(*X), naru.ones(*W, device="cuda:0"))


def test_integers_are_computed_exactly_and_16_bit_types_in_float32(device):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-9, 9, X), rng.integers(-9, 9, W)
    wanted = F.conv2d(naru.tensor(x).double(), naru.tensor(w).double(), padding=1)
    for dtype in (naru.int8, naru.int16, naru.int32, naru.int64, naru.float16, naru.bfloat16):
        got = F.conv2d(naru.tensor(x, device=device).to(dtype), naru.tensor(w, device=device).to(dtype), padding=1)
        assert got.dtype == dtype and naru.equal(got.cpu(), wanted.to(dtype))


def test_autocast_computes_convolutions_in_16_bits():
    with naru.autocast("cpu", dtype=naru.bfloat16):
        assert F.conv2d(naru.ones(*X), naru.ones(*W)).dtype == naru.bfloat16
        assert nn.ConvTranspose1d(2, 3, 3)(naru.ones(1, 2, 4)).dtype == naru.bfloat16


@pytest.mark.parametrize("which", ["input", "weight", "both"])
def test_channels_last_operands_give_channels_last_results_and_gradients(which, device):
    x, w = naru.randn(2, 4, 6, 5, device=device), naru.randn(6, 4, 3, 3, device=device)
    wanted = F.conv2d(x, w, padding=1)
    last = {"memory_format": naru.channels_last}
    a = x.to(**last) if which != "weight" else x.clone()
    b = w.to(**last) if which != "input" else w.clone()
    y = F.conv2d(a.requires_grad_(), b.requires_grad_(), padding=1)
    assert y.stride() == (180, 1, 30, 6) and y.is_contiguous(**last)
    np.testing.assert_allclose(y.detach().cpu().numpy(), wanted.cpu().numpy(), rtol=1e-4, atol=1e-5)
    y.sum().backward()
    assert a.grad.stride() == a.stride() and b.grad.stride() == b.stride()


def test_no_images_and_no_channels_are_shapes_like_any_other(device):
    assert F.conv2d(naru.ones(0, 4, 5, 5, device=device), naru.ones(*W, device=device)).shape == (0, 6, 3, 3)
    w = naru.ones(*W, device=device, requires_grad=True)
    F.conv2d(naru.ones(0, 4, 5, 5, device=device), w).sum().backward()
    assert naru.equal(w.grad, naru.zeros(*W, device=device))


def test_modules_print_draw_and_save_as_pytorchs_do():
    assert repr(nn.Conv2d(3, 8, 3, padding=1, groups=1, bias=False)) == "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)"
    assert repr(nn.ConvTranspose1d(2, 4, 3, 2, 1, 1)) == "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(2,), padding=(1,), output_padding=(1,))"
    assert repr(nn.Conv1d(2, 4, 3, padding="same")) == "Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=same)"
    layer = nn.Conv3d(4, 6, (1, 2, 3), groups=2)
    assert layer.weight.shape == (6, 2, 1, 2, 3) and list(layer.state_dict()) == ["weight", "bias"]
    assert layer.weight.abs().max().item() <= 12 ** -0.5 and layer.bias.abs().max().item() <= 12 ** -0.5
    for bad, text in [(lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"), (lambda: nn.Conv2d(4, 3, 3, groups=2), "out_channels must be"),
                      (lambda: nn.Conv2d(1, 1, 3, padding="x"), "Invalid padding string 'x'"), (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), "padding_mode must be one of"),
                      (lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect"), 'Only "zeros" padding mode is supported for ConvTranspose2d')]:
        with pytest.raises(ValueError, match=text):
            bad()


def test_a_transposed_convolution_gives_the_output_size_that_is_asked_for():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2)
    assert layer(naru.ones(1, 2, 4, 4), output_size=(10, 9)).shape == (1, 3, 10, 9)
    with pytest.raises(ValueError, match=r"requested an output size of \[11, 9\], but valid sizes range from \[9, 9\] to \[10, 10\]"):
        layer(naru.ones(1, 2, 4, 4), output_size=(11, 9))
    with pytest.raises(RuntimeError, match=r"expected kernel_size to be a single integer value or a list of 2 values .* but got kernel_size=\[3\]"):
        nn.ConvTranspose2d(2, 3, (3,))(naru.ones(1, 2, 4, 4), output_size=(9, 9))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10))


def test_deterministic_training_gives_the_same_bits_on_every_device_and_number_of_threads(own_matmuls, device):
    def weights(there, threads):
        before = naru.get_num_threads()
        naru.set_num_threads(threads)
        try:
            naru.manual_seed(3)
            model, x, y = lenet(), naru.randn(16, 1, 14, 14).to(there), naru.randint(0, 10, (16,)).to(there)
            model.to(there)
            optimizer = naru.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for _ in range(4):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            return [bits(p) for p in model.parameters()]
        finally:
            naru.set_num_threads(before)

    assert weights(device, 2) == weights("cpu", 1)


def pointwise_case(rng):
    """Images, weights and a gradient of random sizes and layouts for a convolution with kernel 1."""
    dims = int(rng.integers(1, 4))
    batch, ins, outs = int(rng.integers(1, 6)), int(rng.integers(1, 150)), int(rng.integers(1, 150))
    sizes = [int(n) for n in rng.integers(1, {1: 900, 2: 30, 3: 10}[dims], dims)]

    def arranged(channels):
        x = naru.from_numpy(rng.standard_normal((batch, channels, *sizes)).astype("float32"))
        kind = int(rng.integers(0, 6))
        if kind == 1:
            return x.movedim(1, -1).contiguous().movedim(-1, 1)  # channels last
        if kind == 2:
            return naru.cat([x, x], 1)[:, channels:]  # gaps between images
        if kind == 3:
            return naru.stack([x, x], -1).flatten(-2)[..., ::2]
        if kind == 4:
            return x[:, :1].expand(x.shape)
        if kind == 5:
            return naru.cat([x, x], 1).movedim(1, -1).contiguous().movedim(-1, 1)[:, :channels]  # channels last, with gaps
        return x

    return [F.conv1d, F.conv2d, F.conv3d][dims - 1], arranged(ins), naru.from_numpy(rng.standard_normal((outs, ins, *[1] * dims)).astype("float32")), arranged(outs)


def test_weight_gradients_of_pointwise_convolutions():
    """By float64, and with the same bits for one thread and two."""
    rng = np.random.default_rng(11)
    threads = naru.get_num_threads()
    for _ in range(60):
        convolution, x, w, g = pointwise_case(rng)
        w.requires_grad_()
        y = convolution(x, w)
        found = []
        try:
            for n in (1, 2):
                naru.set_num_threads(n)
                found.append(naru.autograd.grad(y, [w], g, retain_graph=True)[0])
        finally:
            naru.set_num_threads(threads)
        wanted = naru.einsum("ncp,nkp->kc", x.double().flatten(2), g.double().flatten(2))
        scale = naru.einsum("ncp,nkp->kc", x.double().flatten(2).abs(), g.double().flatten(2).abs()) + 1e-30
        assert ((found[0].flatten(1).double() - wanted).abs() / scale).max().item() < 2e-6, (x.shape, x.stride(), g.shape, g.stride())
        assert naru.equal(found[0], found[1]), (x.shape, x.stride(), g.shape, g.stride())
