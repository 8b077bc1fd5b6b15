"""Pooling, normalization over channels, padding and resampling: errors, memory formats, second derivatives, statistics, modules, training."""
import random

import numpy as np
import pytest

import naru
from bitwise import bits
from naru import nn
from naru.nn import functional as F
from rendered_programs import Calls, random_pools

CALLS = {
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, 1), (1, 2, 3, 4)), "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False), (1, 2, 3, 3)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 3), (1, 2, 5)), "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (1, 1, 3, 4)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (3, 2, 2)), "instance_norm": (F.instance_norm, (2, 2, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), (2, 4, 2)), "local_response_norm": (lambda x: F.local_response_norm(x, 2, 1.0), (1, 3, 2)),
    "pad reflect": (lambda x: F.pad(x, (2, 1), "reflect"), (1, 2, 4)), "pad constant": (lambda x: F.pad(x, (2, -1)), (2, 4)),
    "bicubic": (lambda x: F.interpolate(x, (4, 3), mode="bicubic"), (1, 1, 3, 2)), "unfold": (lambda x: F.unfold(x, 2, padding=1), (1, 2, 3, 3)),
    "fold": (lambda x: F.fold(x, (3, 3), 2), (1, 4, 4)), "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (1, 4, 1, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_and_their_gradients_agree_with_differences(name):
    call, shape = CALLS[name]
    x = naru.randn(*shape, dtype=naru.float64, requires_grad=True)
    assert naru.autograd.gradcheck(call, [x])
    assert naru.autograd.gradgradcheck(call, [x])


def test_the_gradients_of_batch_norms_parameters_have_gradients_too():
    x, w, b = (naru.randn(*s, dtype=naru.float64, requires_grad=True) for s in ((3, 2, 2), (2,), (2,)))
    mean, var = naru.zeros(2, dtype=naru.float64), naru.ones(2, dtype=naru.float64)
    for training in (True, False):
        call = lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training)  # noqa: B023, E731
        assert naru.autograd.gradcheck(call, [x, w, b]) and naru.autograd.gradgradcheck(call, [x, w, b])


X = (2, 4, 5, 5)
BAD = {
    "pool: stride 0": (lambda x: F.max_pool2d(x, 2, (0, 0)), RuntimeError, "stride should not be zero"),
    "pool: padding": (lambda x: F.max_pool2d(x, 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1"),
    "pool: negative padding": (lambda x: F.avg_pool2d(x, 2, padding=-1), RuntimeError, "pad must be non-negative, but got pad: -1"),
    "pool: dilation": (lambda x: F.max_pool2d(x, 2, dilation=0), RuntimeError, "dilation should be greater than zero"),
    "pool: a list too long": (lambda x: F.max_pool2d(x, (2, 2, 2)), RuntimeError, "max_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    "pool: too small": (lambda x: F.max_pool2d(x, 7), RuntimeError, "Given input size: (4x5x5). Calculated output size: (4x0x0). Output size is too small"),
    "pool: dimensions": (lambda x: F.max_pool2d(x[0, 0], 2), RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input"),
    "pool: bool": (lambda x: F.max_pool2d(x.bool(), 2), NotImplementedError, "\"max_pool2d\" not implemented for 'Bool'"),
    "avg: divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
    "avg: int32": (lambda x: F.avg_pool2d(x.int(), 2), NotImplementedError, "\"avg_pool2d\" not implemented for 'Int'"),
    "adaptive: negative": (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError, "elements of output_size must be greater than or equal to 0"),
    "adaptive: list": (lambda x: F.adaptive_avg_pool2d(x, (1, 2, 3)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
    "adaptive: empty": (lambda x: F.adaptive_max_pool2d(x[..., :0], 2), RuntimeError, "Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 4, 5, 0]"),
    "fractional": (lambda x: F.fractional_max_pool2d(x, 2), ValueError, "fractional_max_pool2d requires specifying either an output_size or an output_ratio"),
    "fractional: too many in 3d": (lambda x: F.fractional_max_pool3d(x[..., None].expand(-1, -1, -1, -1, 5), 3, x.shape[-1] - 2), RuntimeError, "fractional_max_pool3d(): pool time 3 too large relative to input time 5"),
    "fractional: too many": (lambda x: F.fractional_max_pool2d(x, 2, 5), RuntimeError, "fractional_max_pool2d(): pool height 2 too large relative to input height 5"),
    "unpool": (lambda x: F.max_unpool2d(x, x.long() + 1000, 2), RuntimeError, "Found an invalid max index"),
    "unpool: shapes": (lambda x: F.max_unpool2d(x, x[:1].long(), 2), RuntimeError, "Expected shape of indices to be same as that of the input tensor"),
    "batch_norm: running": (lambda x: F.batch_norm(x, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    "batch_norm: length": (lambda x: F.batch_norm(x, x[0, 0, 0, :3], x[0, 0, 0, :3]), RuntimeError, "running_mean should contain 4 elements not 3"),
    "batch_norm: one": (lambda x: F.batch_norm(x[:1, :, :1, :1], None, None, training=True), ValueError, "Expected more than 1 value per channel when training, got input size"),
    "batch_norm: types": (lambda x: F.batch_norm(x.double(), x[0, 0, 0, :4], x[0, 0, 0, :4]), RuntimeError, "mixed dtype (CPU)"),
    "batch_norm: module": (lambda x: nn.BatchNorm1d(4)(x), ValueError, "expected 2D or 3D input (got 4D input)"),
    "group_norm": (lambda x: F.group_norm(x, 3), RuntimeError, "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 4, 5, 5] and num_groups=3"),
    "group_norm: one": (lambda x: F.group_norm(x[:1, :, :1, :1], 4), ValueError, "Expected more than 1 value per channel when training, got input size"),
    "instance_norm": (lambda x: F.instance_norm(x[0, 0]), ValueError, "Expected more than 1 spatial element when training"),
    "pad: reflect": (lambda x: F.pad(x, (5, 1, 1, 1), "reflect"), RuntimeError, "Padding size should be less than the corresponding input dimension, but got: padding (5, 1) at dimension 3"),
    "pad: circular": (lambda x: F.pad(x, (6, 1, 1, 1), "circular"), RuntimeError, "Padding value causes wrapping around more than once."),
    "pad: dimensions": (lambda x: F.pad(x, (1, 1), "reflect"), NotImplementedError, "Padding size 2 is not supported for 4D input tensor."),
    "pad: mode": (lambda x: F.pad(x, (1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
    "pad: value": (lambda x: F.pad(x, (1, 1, 1, 1), "reflect", 2.0), RuntimeError, "doesn't take in value argument"),
    "interpolate: nothing": (lambda x: F.interpolate(x), ValueError, "either size or scale_factor should be defined"),
    "interpolate: both": (lambda x: F.interpolate(x, 3, 2), ValueError, "only one of size or scale_factor should be defined"),
    "interpolate: mode": (lambda x: F.interpolate(x, 3, mode="linear"), NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
    "interpolate: corners": (lambda x: F.interpolate(x, 3, align_corners=True), ValueError, "align_corners option can only be set with"),
    "interpolate: integers": (lambda x: F.interpolate(x.long(), 3, mode="bilinear"), NotImplementedError, "not implemented for 'Long'"),
    "interpolate: 0": (lambda x: F.interpolate(x, 0), RuntimeError, "Input and output sizes should be greater than 0"),
    "unfold": (lambda x: F.unfold(x, 7), RuntimeError, "calculated shape of the array of sliding blocks as (-1, -1), but its components must be at least one."),
    "fold": (lambda x: F.fold(x[0, :, :4], (6, 6), 2), RuntimeError, "expected size of input's dimension 2 to match the calculated number of sliding blocks 5 * 5 = 25, but got input.size(2)=5"),
    "grid_sample": (lambda x: F.grid_sample(x, x[..., :2][:1]), RuntimeError, "expected grid and input to have same batch size"),
    "grid_sample: mode": (lambda x: F.grid_sample(x, x[..., :2], "foo"), ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'foo'"),
    "affine_grid": (lambda x: F.affine_grid(x[0, :, :2, :2], X), ValueError, "Expected a batch of 2D affine matrices of shape Nx2x3 for size"),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 3), RuntimeError, "input.size(-3)=4 is not divisible by 9"),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), RuntimeError, "Number of channels must be divisible by groups. Got 4 channels and 3 groups."),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_pytorchs_error(name):
    call, kind, text = BAD[name]
    with pytest.raises(kind) as error:
        call(naru.ones(*X))
    assert text in str(error.value)


LAST = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1), "avg_pool2d": lambda x: F.avg_pool2d(x, 2), "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True), "group_norm": lambda x: F.group_norm(x, 2), "pad": lambda x: F.pad(x, (1, 1)),
    "pad reflect": lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), "nearest": lambda x: F.interpolate(x, scale_factor=2), "bilinear": lambda x: F.interpolate(x, 7, mode="bilinear"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2), "relu": F.relu, "local_response_norm": lambda x: F.local_response_norm(x, 2),
}


@pytest.mark.parametrize("name", LAST)
def test_channels_last_is_kept_and_changes_no_value(name, device):
    x = naru.randn(2, 8, 6, 5, device=device)
    last = x.to(memory_format=naru.channels_last).requires_grad_()
    wanted, got = LAST[name](x), LAST[name](last)
    assert got.is_contiguous(memory_format=naru.channels_last) and not got.is_contiguous()
    np.testing.assert_allclose(got.detach().cpu().numpy(), wanted.cpu().numpy(), rtol=1e-5, atol=1e-6)
    got.sum().backward()
    assert last.grad.shape == x.shape


def test_a_nan_is_the_greatest_of_its_window(device):
    x = naru.tensor([[[1.0, float("nan"), 3.0, 4.0, 2.0, 2.0]]], device=device)
    values, at = F.max_pool1d(x, 2, return_indices=True)
    assert values.isnan().tolist() == [[[True, False, False]]] and at.tolist() == [[[1, 3, 4]]]


def test_random_pools_and_their_gradients_have_the_bits_of_the_cpu(device):
    calls = Calls(device)
    random_pools(calls, np.random.default_rng(5), 40)
    assert calls.wrong == []


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_16_bit_types_are_computed_in_float32(dtype, device):
    x = naru.randn(2, 4, 6, 6, device=device).to(dtype)
    for call in (lambda x: F.avg_pool2d(x, 3, 1), lambda x: F.max_pool2d(x, 2), lambda x: F.interpolate(x, 9, mode="bilinear"), lambda x: F.group_norm(x, 2),
                 lambda x: F.batch_norm(x, None, None, training=True)):
        got, exact = call(x), call(x.float())
        assert got.dtype == dtype
        np.testing.assert_allclose(got.float().cpu().numpy(), exact.cpu().numpy(), rtol=2 ** -7 if dtype == naru.bfloat16 else 2 ** -10, atol=1e-2)


def test_integers_are_pooled_padded_and_resampled_exactly(device):
    x = naru.arange(16, device=device).reshape(1, 1, 4, 4)
    assert F.max_pool2d(x, 2).tolist() == [[[[5, 7], [13, 15]]]] and F.avg_pool2d(x, 2).tolist() == [[[[2, 4], [10, 12]]]]
    assert F.pad(x, (1, 0, 0, 0), "circular")[0, 0, 0].tolist() == [3, 0, 1, 2, 3]
    assert F.interpolate(x.to(naru.uint8), 2)[0, 0].tolist() == [[0, 2], [8, 10]]


def test_batch_norm_keeps_running_statistics_as_asked(device):
    x = naru.randn(8, 3, 4, 4, device=device) * 2 + 1
    layer, average = nn.BatchNorm2d(3, momentum=0.25).to(device), nn.BatchNorm2d(3, momentum=None).to(device)
    for batch in (x[:4], x[4:]):
        layer(batch), average(batch)
    per = [batch.transpose(0, 1).flatten(1) for batch in (x[:4], x[4:])]
    mean = 0.75 * (0.25 * per[0].mean(1)) + 0.25 * per[1].mean(1)
    np.testing.assert_allclose(layer.running_mean.cpu().numpy(), mean.cpu().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(average.running_var.cpu().numpy(), ((per[0].var(1) + per[1].var(1)) / 2).cpu().numpy(), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 2 and list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    y = average.eval()(x)
    wanted = (x - average.running_mean.view(1, 3, 1, 1)) / (average.running_var.view(1, 3, 1, 1) + 1e-5).sqrt()
    np.testing.assert_allclose(y.detach().cpu().numpy(), wanted.cpu().numpy(), rtol=1e-4, atol=1e-5)
    assert nn.BatchNorm1d(3, track_running_stats=False).eval()(naru.tensor([[1.0, 2, 3], [3, 2, 1]])).tolist()[0][0] == pytest.approx(-1, abs=1e-4)


def test_a_graph_holds_convolutions_pools_and_resampling():
    x, w = naru.randn(2, 3, 8, 8, device="cuda:0"), naru.randn(4, 3, 3, 3, device="cuda:0")

    def work():
        return F.interpolate(F.max_pool2d(F.conv2d(x, w, padding=1), 2), scale_factor=2, mode="bilinear")

    graph = naru.cuda.CUDAGraph()
    with naru.cuda.graph(graph):
        y = work()
    for _ in range(2):
        x.copy_(naru.randn(2, 3, 8, 8).to("cuda:0"))
        graph.replay()
        assert bits(y) == bits(work())


def test_an_unpooled_image_has_the_greatest_elements_where_they_were():
    pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    x = naru.randn(1, 2, 5, 5)
    y, at = pool(x)
    back = unpool(y, at, output_size=x.size())
    assert back.shape == x.shape and naru.equal(pool(back)[0].clamp(min=0), y.clamp(min=0)) and (back != 0).sum().item() == 8


REPRS = {
    "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)": lambda: nn.BatchNorm2d(3),
    "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)": lambda: nn.InstanceNorm2d(3),
    "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)": lambda: nn.GroupNorm(2, 4),
    "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)": lambda: nn.LocalResponseNorm(2),
    "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)": lambda: nn.MaxPool2d(2),
    "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))": lambda: nn.AvgPool1d(2),
    "AvgPool2d(kernel_size=2, stride=2, padding=0)": lambda: nn.AvgPool2d(2),
    "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)": lambda: nn.LPPool2d(2, 3),
    "AdaptiveAvgPool2d(output_size=1)": lambda: nn.AdaptiveAvgPool2d(1),
    "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))": lambda: nn.MaxUnpool2d(2),
    "ZeroPad2d((1, 1, 1, 1))": lambda: nn.ZeroPad2d(1),
    "ConstantPad1d(padding=(1, 1), value=2.0)": lambda: nn.ConstantPad1d(1, 2.0),
    "ReflectionPad2d((1, 2, 3, 4))": lambda: nn.ReflectionPad2d((1, 2, 3, 4)),
    "Upsample(scale_factor=2.0, mode='nearest')": lambda: nn.Upsample(scale_factor=2),
    "Fold(output_size=(3, 3), kernel_size=2, dilation=1, padding=0, stride=1)": lambda: nn.Fold((3, 3), 2),
    "PixelShuffle(upscale_factor=3)": lambda: nn.PixelShuffle(3),
}


@pytest.mark.parametrize("text", REPRS)
def test_modules_print_as_pytorchs_do(text):
    assert repr(REPRS[text]()) == text


SHAPES = [(nn.MaxPool1d(2), (1, 2, 6), (1, 2, 3)), (nn.MaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)), (nn.AvgPool3d(2), (2, 4, 4, 4), (2, 2, 2, 2)),
          (nn.FractionalMaxPool2d(2, output_ratio=0.5), (1, 2, 8, 8), (1, 2, 4, 4)), (nn.FractionalMaxPool3d(2, output_size=3), (2, 8, 8, 8), (2, 3, 3, 3)),
          (nn.LPPool1d(2, 2), (1, 2, 6), (1, 2, 3)), (nn.AdaptiveMaxPool3d((1, None, 2)), (1, 2, 4, 3, 5), (1, 2, 1, 3, 2)), (nn.AdaptiveAvgPool1d(3), (2, 7), (2, 3)),
          (nn.InstanceNorm1d(2, affine=True, track_running_stats=True), (3, 2, 5), (3, 2, 5)), (nn.InstanceNorm3d(2), (2, 3, 3, 3), (2, 3, 3, 3)),
          (nn.ReplicationPad3d(1), (1, 2, 3, 3, 3), (1, 2, 5, 5, 5)), (nn.CircularPad1d(2), (1, 2, 3), (1, 2, 7)), (nn.UpsamplingBilinear2d(scale_factor=2), (1, 2, 3, 4), (1, 2, 6, 8)),
          (nn.UpsamplingNearest2d(5), (1, 2, 3, 4), (1, 2, 5, 5)), (nn.PixelUnshuffle(2), (1, 2, 4, 4), (1, 8, 2, 2)), (nn.ChannelShuffle(2), (1, 4, 3, 3), (1, 4, 3, 3)),
          (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 5, 5), (1, 3, 5, 5)), (nn.Conv1d(2, 3, 4, padding="same", padding_mode="reflect"), (1, 2, 9), (1, 3, 9)),
          (nn.Unfold(2), (1, 3, 4, 5), (1, 12, 12)), (nn.GroupNorm(2, 4), (2, 4), (2, 4))]


@pytest.mark.parametrize("layer, shape, wanted", SHAPES, ids=[type(s[0]).__name__ + str(i) for i, s in enumerate(SHAPES)])
def test_modules_give_the_shapes_they_promise(layer, shape, wanted):
    assert tuple(layer(naru.randn(*shape)).shape) == wanted


def test_groups_of_one_value_are_normalised_where_there_are_several_images():
    x = naru.arange(6.0).reshape(3, 2, 1)
    assert F.group_norm(x, 2, bias=naru.tensor([1.0, 2.0])).tolist() == [[[1.0], [2.0]]] * 3


def test_lazy_modules_find_out_their_input_at_the_first_call_and_load_what_others_saved():
    model = nn.Sequential(nn.LazyConv2d(4, 3, groups=2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3))
    assert repr(model[0]) == "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1), groups=2)" and nn.parameter.is_lazy(model[3].weight)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        model[0].weight.shape  # noqa: B018
    other, third = (nn.Sequential(nn.LazyConv2d(4, 3, groups=2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3)) for _ in range(2))
    third.load_state_dict(model.state_dict())
    weight = model[0].weight
    model(naru.randn(2, 6, 5, 5)).sum().backward()
    assert [type(m) for m in model] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert model[0].weight is weight and type(weight) is nn.Parameter and weight.grad.shape == (4, 3, 3, 3) and model[3].in_features == 36
    other.load_state_dict(model.state_dict())
    x = naru.randn(3, 6, 5, 5)
    assert naru.equal(other.eval()(x), model.eval()(x)) and third(x).shape == (3, 3)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv1d(4, 3, groups=2)(naru.ones(1, 3, 5))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        nn.LazyBatchNorm1d()(naru.ones(3))
    with pytest.raises(RuntimeError, match="at least one dimension"):
        nn.LazyLinear(3)(naru.ones(()))
    assert nn.LazyInstanceNorm1d()(naru.randn(4, 9)).shape == (4, 9)


class Block(nn.Module):
    """Two convolutions with batch norm around a shortcut, as in a ResNet."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(8),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def test_a_residual_network_trains_to_the_same_bits_on_every_device_and_its_loss_falls(own_matmuls, device):
    def train(there):
        naru.manual_seed(3)
        model, x, y = resnet(), naru.randn(8, 3, 20, 20), naru.arange(8) % 5
        model.to(there)
        x, y = x.to(there), y.to(there)
        optimizer = naru.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        return [bits(t) for t in model.state_dict().values()]

    assert train(device) == train("cpu")


@pytest.mark.parametrize("layer", [nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4), nn.LayerNorm([4, 2, 2]), nn.Conv2d(4, 2, 1)])
def test_parameters_get_gradients_of_zero_from_an_empty_batch(layer):
    layer(naru.zeros(0, 4, 2, 2, requires_grad=True)).sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in layer.parameters())


@pytest.mark.parametrize(("image", "places"), [((1, 1, 2, 2), (1, 2, 2, 2)), ((1, 1, 2, 2, 2), (1, 2, 2, 2, 3))])
def test_the_nearest_element_has_no_slope_by_its_place(image, places):
    x, grid = naru.rand(image, requires_grad=True), naru.zeros(places, requires_grad=True)
    F.grid_sample(x, grid, mode="nearest", align_corners=False).sum().backward()
    assert not grid.grad.any() and x.grad.sum() == np.prod(places[1:-1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.ReflectionPad1d(2)(naru.zeros(3, 0, 10)), RuntimeError, "Expected 2D or 3D .batch mode. tensor with possibly 0 batch size"),
        (lambda: nn.ReplicationPad3d(1)(naru.zeros(3, 2, 0, 3, 3)), RuntimeError, "Expected 4D or 5D"),
        (lambda: F.unfold(naru.zeros(3, 0, 3, 4), 2), RuntimeError, "Expected 3D or 4D"),
        (lambda: F.fold(naru.zeros(1, 4, 12), (4, 5), 2, dilation=8), RuntimeError, "too small .non-positive."),
        (lambda: F.interpolate(naru.zeros(1, 1, 4), scale_factor=1e20), RuntimeError, "without overflow"),
        (lambda: F.interpolate(naru.zeros(1, 1, 4), size=[1.5]), TypeError, "expected size to be one of int"),
        (lambda: F.linear(naru.tensor(1.0), naru.ones(1, 1)), RuntimeError, "need to be at least 1D, but they are 0D and 2D"),
        (lambda: F.fractional_max_pool2d(naru.zeros(1, 4, 4), 2, output_ratio=[0.5]), ValueError, "requires output_ratio to either be a single Int"),
    ],
)
def test_sizes_that_can_not_be_are_pytorchs_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_who_does_not_say_where_the_corners_are_is_told():
    with pytest.warns(UserWarning, match="align_corners=False since 1.3.0"):
        F.affine_grid(naru.eye(2, 3)[None], (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="unit-size grids"):
        F.affine_grid(naru.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True)


def test_a_plain_dict_of_parameters_is_taken_in_the_order_of_its_names():
    values = nn.ParameterDict({"b": naru.ones(1), "a": naru.ones(1)})
    values.update([("d", naru.ones(1)), ("c", naru.ones(1))])
    assert list(values) == ["a", "b", "d", "c"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_windows_of_channels_that_lie_last_have_the_same_bits(dtype):
    """The kernels take vectors of channels, then single ones: every count of both, padding, gaps, and NaN, beside rows of one channel."""
    rng, kind = random.Random(dtype), getattr(naru, dtype)
    naru.manual_seed(5)
    for channels in [*range(1, 20), 31, 33, 64, 65, 100, 130]:
        height, width = rng.randint(3, 9), rng.randint(3, 9)
        x = (naru.randn(2, channels, height, width) * 8).to(kind)
        if kind.is_floating_point:
            x.view(-1)[rng.randrange(x.numel())] = float("nan")
        last = x.contiguous(memory_format=naru.channels_last)
        kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2)
        padding = rng.randint(0, kernel // 2)
        if dilation * (kernel - 1) >= min(height, width):
            dilation = 1
        calls = [lambda t: F.max_pool2d(t, kernel, stride, padding, dilation, return_indices=True)]  # noqa: B023
        if kind.is_floating_point:
            calls += [lambda t: (F.avg_pool2d(t, kernel, stride, padding),), lambda t: (F.interpolate(t, scale_factor=2, mode="bilinear"),)]  # noqa: B023
        for call in calls:
            for a, b in zip(call(x), call(last)):
                assert b.is_contiguous(memory_format=naru.channels_last) or channels == 1
                assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes(), (channels, kernel, stride, padding, dilation)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_windows_with_much_overlap_are_sums_over_one_dimension_after_the_other(dtype, device):
    """Whatever the layout: the last dimension first, in float32 for 16-bit types. So are gradients, with the transposed windows."""
    rng, kind = random.Random(dtype), getattr(naru, dtype)
    if device.startswith("mps") and dtype == "float64":
        pytest.skip("mps has no float64")
    exact = kind if kind.itemsize > 2 else naru.float32
    naru.manual_seed(6)
    layouts = {
        "rows": lambda t: t, "channels last": lambda t: t.contiguous(memory_format=naru.channels_last if t.dim() == 4 else naru.channels_last_3d),
        "transposed": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2), "apart": lambda t: naru.stack([t, t], -1)[..., 0],
        "behind others": lambda t: naru.cat([t, t])[len(t) :], "one for all channels": lambda t: t[:, :1].expand(t.shape),
    }  # fmt: skip
    for trial in range(36):
        mode = ("bilinear", "bicubic", "trilinear")[trial % 3]
        of = 3 if mode == "trilinear" else 2
        size = [rng.randint(2, 7) for _ in range(of)]
        wanted = [rng.choice([2 * n, 2 * n + 1, 3 * n]) for n in size]
        if of == 3 and rng.random() < 0.7:
            kept = rng.randrange(3)  # not resampled
            wanted[kept] = size[kept]
        channels = rng.choice([1, 2, 3, 8, 17, 36])
        name = list(layouts)[trial % len(layouts)]
        x = layouts[name](naru.randn(2, channels, *size, device=device).to(kind)).detach()
        g = layouts[rng.choice(list(layouts))](naru.randn(2, channels, *wanted, device=device).to(kind))

        def one_by_one(t, order):
            now = list(size)
            for d in order:
                now[d] = wanted[d]
                t = F.interpolate(t, now, mode=mode)  # noqa: B023
            return t

        leaf, first, second = x.clone().requires_grad_(), *(x.to(exact).contiguous().requires_grad_() for _ in range(2))
        whole = F.interpolate(leaf, wanted, mode=mode)
        whole.backward(g)
        expected = one_by_one(first, reversed(range(of))).to(kind)
        one_by_one(second, range(of)).backward(g.to(exact))
        for got, want in ((whole, expected), (leaf.grad, second.grad.to(kind))):
            assert naru.equal(got, want), (name, mode, size, wanted, channels, (got.float() - want.float()).abs().max())


# What PyTorch 2.15 gives for (0 .. 34) squared, as 5 rows of 7.
ANTIALIASED = {
    "bilinear": [[49, 55.875, 64.875, 74.875, 86.125, 98.625, 112.125, 126.625, 142.375], [343, 365.5, 393.25, 422, 452, 483.25, 515.5, 548.75, 583.25],
                 [698.25, 731.6875, 772.5625, 814.4375, 857.5625, 901.9375, 947.3125, 993.6875, 1041.3125]],
    "bicubic": [[19.642, 24.7468, 32.4534, 40.7897, 50.251, 60.8373, 72.5486, 85.6362, 100.3988],
                [348.1103, 370.5957, 401.6655, 431.4123, 462.2841, 494.2808, 527.4026, 562.2641, 599.5405],
                [761.8932, 796.3232, 843.4492, 887.9102, 933.4961, 980.207, 1028.043, 1077.8684, 1130.6171]],
}  # fmt: skip


@pytest.mark.parametrize("mode", ANTIALIASED)
def test_antialiasing_with_aligned_corners_changes_the_scale_alone(mode, device):
    x = naru.arange(35.0, device=device).reshape(1, 1, 5, 7) ** 2
    y = F.interpolate(x, size=(3, 9), mode=mode, antialias=True, align_corners=True)
    assert naru.allclose(y.cpu()[0, 0], naru.tensor(ANTIALIASED[mode]), rtol=1e-5)
