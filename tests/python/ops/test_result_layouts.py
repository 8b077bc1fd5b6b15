"""The memory layout of results: PyTorch 2.15's stride rules for operators that are not plainly elementwise."""

import pytest

import naru as torch

F = torch.nn.functional
S = torch.special


def _pictures(device):
    return (torch.rand(2, 3, 4, 5, device=device) + 0.5).contiguous(memory_format=torch.channels_last)


def _turned(device):
    return (torch.rand(4, 5, 3, device=device) + 0.5).permute(2, 0, 1)


AS_THE_INPUT = {
    "i0": torch.i0, "i1": S.i1, "erfcx": S.erfcx, "log_ndtr": S.log_ndtr, "hardshrink": F.hardshrink, "softshrink": F.softshrink, "isreal": torch.isreal,
    "nextafter": lambda x: torch.nextafter(x, x + 1), "gcd": lambda x: torch.gcd((x * 9).int(), (x * 6).int()), "sort": lambda x: x.sort(1).values,
    "argsort": lambda x: x.argsort(-1), "complex": lambda x: torch.complex(x, x), "polar": lambda x: torch.polar(x, x),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([0], device=x.device), 1.0), "clone": torch.clone,
}  # fmt: skip

ROW_MAJOR = {
    "scatter": lambda x: x.scatter(1, torch.zeros_like(x[:, :1], dtype=torch.int64), 1.0), "softmax": lambda x: x.softmax(1),
    "scatter_add": lambda x: x.scatter_add(1, torch.zeros_like(x[:, :1], dtype=torch.int64), x[:, :1]),
    "index_add": lambda x: x.index_add(1, torch.tensor([0], device=x.device), x[:, :1]), "narrow_copy": lambda x: torch.narrow_copy(x, 1, 0, 2),
    "index_copy": lambda x: x.index_copy(1, torch.tensor([0], device=x.device), x[:, :1]), "renorm": lambda x: x.renorm(2, 1, 1.0),
    "kthvalue": lambda x: x.kthvalue(2, 1).values, "logcumsumexp": lambda x: x.logcumsumexp(1),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_THE_INPUT)
def test_results_in_the_order_of_the_input(name, device):
    for x in (_pictures(device), _turned(device)):
        assert AS_THE_INPUT[name](x).stride() == x.stride()


@pytest.mark.parametrize("name", ROW_MAJOR)
def test_results_in_row_major_order(name, device):
    for x in (_pictures(device), _turned(device)):
        assert ROW_MAJOR[name](x).is_contiguous()


def test_what_joins_pictures_keeps_their_format(device):
    x, turned = _pictures(device), _turned(device)
    last = dict(memory_format=torch.channels_last)
    for joined in (torch.cat([x, x]), torch.cat([x, x], 1), x.roll(1, 0), torch.cat([x[:, :2], x[:, 2:]], 1)):
        assert joined.is_contiguous(**last) and not joined.is_contiguous()
    assert torch.equal(torch.cat([x, x], 1), torch.cat([x.contiguous(), x.contiguous()], 1))
    assert torch.cat([x, x.contiguous()]).is_contiguous() and torch.cat([turned, turned]).is_contiguous()
    volumes = torch.rand(1, 2, 3, 4, 5, device=device).contiguous(memory_format=torch.channels_last_3d)
    assert torch.cat([volumes, volumes], 2).is_contiguous(memory_format=torch.channels_last_3d)


def test_batch_norm_of_what_is_turned_is_row_major_and_of_pictures_is_theirs(device):
    x, turned = _pictures(device), _turned(device)
    assert F.batch_norm(x, None, None, training=True).stride() == x.stride()
    assert F.batch_norm(turned, None, None, training=True).is_contiguous()
    rows = torch.rand(3, 6, device=device).t()
    assert torch.equal(F.batch_norm(rows, None, None, training=True), F.batch_norm(rows.contiguous(), None, None, training=True))


def test_shuffled_channels_are_never_the_input_itself(device):
    x = torch.rand(2, 4, 3, device=device)
    for groups in (1, 2, 4):
        F.channel_shuffle(x, groups).zero_()
    assert x.abs().sum() > 0


GRADIENTS = {
    "relu": torch.relu, "sigmoid": torch.sigmoid, "exp": torch.exp, "gelu": F.gelu, "x * y": lambda x: x * x.detach().cos(), "x * 2": lambda x: x * 2, "x / y": lambda x: x / (x.detach() + 9),
    "x ** 2": lambda x: x**2, "clamp": lambda x: x.clamp(0.2, 0.8), "where": lambda x: torch.where(x > 0.5, x, 0.0), "beside channels": lambda x: x * torch.ones(1, x.size(1), 1, 1, device=x.device),
    "batch_norm": lambda x: torch.relu(F.batch_norm(x, None, None, training=True)), "max_pool2d": lambda x: torch.relu(F.max_pool2d(x, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_pictures_lie_as_the_pictures(name, device):
    for x in (_pictures(device), _pictures(device).contiguous()):
        x = x.clone().requires_grad_()
        y = GRADIENTS[name](x)
        g = torch.rand_like(y)
        found = torch.autograd.grad(y, x, g)[0]
        assert y.is_contiguous() == x.is_contiguous() and found.stride() == x.stride()
        rows = x.detach().contiguous().requires_grad_()
        wanted = torch.autograd.grad(GRADIENTS[name](rows), rows, g.contiguous())[0]
        assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)
