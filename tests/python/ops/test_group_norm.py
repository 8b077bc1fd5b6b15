"""group_norm and instance_norm beside the formula in float64: shapes, groups, layouts, types, great means, gradients, random."""
import random

import naru as torch
import pytest

F = torch.nn.functional
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-11, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def by_formula(x, groups, weight, bias, eps):
    rows = x.reshape(x.shape[0], groups, -1)
    d = rows - rows.mean(2, keepdim=True)
    hat = (d / (d.square().mean(2, keepdim=True) + eps).sqrt()).reshape(x.shape)
    each = (1, x.shape[1], *[1] * (x.dim() - 2))
    hat = hat if weight is None else hat * weight.reshape(each)
    return hat if bias is None else hat + bias.reshape(each)


def laid_out(x, how):
    if how == "channels_last" and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    if how == "turned" and x.dim() > 2:
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "part":
        return torch.cat([x, x], 0)[x.shape[0] :]
    if how == "expanded":
        return x[:1].expand(x.shape)
    return x


def close(found, expected, tolerance):
    scale = max(expected.abs().max().item(), 1) if expected.numel() else 1
    return found.shape == expected.shape and (found.double().cpu() - expected).abs().le(tolerance * scale).all()


@pytest.mark.parametrize("seed", range(24))
def test_any_group_norm_is_the_formulas(device, seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    types = [t for t in TOLERANCE if not (t == torch.float64 and device.startswith("mps"))]
    dtype, how = r.choice(types), r.choice(["contiguous", "channels_last", "channels_last", "turned", "part", "expanded"])
    groups = r.choice([1, 2, 3, 8])
    channels = groups * r.choice([1, 2, 5, 16])
    shape = (r.choice([1, 3]), channels, *[r.choice([1, 2, 7, 16]) for _ in range(r.choice([1, 2, 2, 2, 3]))])
    eps, far = r.choice([1e-5, 1e-2]), r.choice([0, 0, 30 if dtype.itemsize == 2 else 1000])
    x = laid_out((torch.randn(shape) + far).to(dtype), how).to(device).detach().requires_grad_()
    w, b = ((torch.rand(channels) + 0.5).to(dtype).to(device).requires_grad_() if r.random() < 0.7 else None for _ in range(2))
    wants = [t for t in (x, w, b) if t is not None and (t is x or r.random() < 0.8)]
    y = F.group_norm(x, groups, w, b, eps)
    gradient = laid_out(torch.randn(shape).to(dtype), r.choice(["contiguous", "channels_last", "expanded"])).to(device)
    found = torch.autograd.grad(y, wants, gradient)

    exact = {id(t): t.detach().double().cpu().requires_grad_() for t in (x, w, b) if t is not None}
    expected = by_formula(exact[id(x)], groups, exact.get(id(w)), exact.get(id(b)), eps)
    assert y.dtype == dtype and y.stride() == x.contiguous(memory_format=torch.channels_last if how == "channels_last" and x.dim() == 4 else torch.contiguous_format).stride()
    tolerance = TOLERANCE[dtype]
    assert close(y.detach(), expected.detach(), tolerance)
    for g, e in zip(found, torch.autograd.grad(expected, [exact[id(t)] for t in wants], gradient.double().cpu())):
        assert close(g, e, tolerance * 4), (dtype, how, shape, groups)


def test_one_operator_and_its_node(device):
    x = torch.randn(2, 6, 4, device=device, requires_grad=True)
    y = F.group_norm(x, 3)
    assert y.grad_fn.name() == "NativeGroupNormBackward0" and y.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def test_derivatives_of_derivatives():
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 6, 3, dtype=torch.float64).requires_grad_(), torch.rand(6, dtype=torch.float64).requires_grad_(), torch.rand(6, dtype=torch.float64).requires_grad_()
    for groups in (1, 3, 6):
        for layout in (lambda t: t, lambda t: t[..., None].contiguous(memory_format=torch.channels_last)):
            f = lambda x, w, b, groups=groups, layout=layout: F.group_norm(layout(x), groups, w, b)  # noqa: E731
            assert torch.autograd.gradcheck(f, (x, w, b), check_forward_ad=True) and torch.autograd.gradgradcheck(f, (x, w, b))


def test_nothing_to_normalise(device):
    for shape in ((0, 4, 3), (2, 4, 0)):
        x = torch.zeros(shape, device=device, requires_grad=True)
        w = torch.ones(4, device=device, requires_grad=True)
        y = F.group_norm(x, 2, w) if shape[0] == 0 else torch.instance_norm(x, w, None, None, None, True, 0.1, 1e-5, False)
        y.sum().backward()
        assert y.shape == shape and x.grad.shape == shape and w.grad.tolist() == [0, 0, 0, 0]


def test_pictures_one_by_one_are_groups_of_one_channel(device):
    x = torch.randn(2, 3, 5, 4, device=device)
    assert torch.equal(F.instance_norm(x), F.group_norm(x, 3))
    assert F.instance_norm(x.contiguous(memory_format=torch.channels_last)).is_contiguous()
