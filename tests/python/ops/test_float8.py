"""The float8 types: conversion by the formats' definitions, copies of bits, the few operators that PyTorch has for them, and what is refused."""
import copy
import io
import pickle

import numpy as np
import pytest

import naru as torch
import naru.safetensors

# exponent bits, mantissa bits, bias, and what is written beyond the greatest number
FORMATS = {
    "float8_e4m3fn": (4, 3, 7, "greatest"), "float8_e5m2": (5, 2, 15, "infinity"), "float8_e4m3fnuz": (4, 3, 8, "nan"),
    "float8_e5m2fnuz": (5, 2, 16, "nan"),
}  # fmt: skip
POWERS = "float8_e8m0fnu"
TYPES = [*FORMATS, POWERS]


def dtype(name):
    return getattr(torch, name)


def values_of(name):
    """What the 256 codes stand for, in float64."""
    if name == POWERS:
        return np.append(2.0 ** (np.arange(255) - 127.0), np.nan)
    exponent_bits, mantissa_bits, bias, _ = FORMATS[name]
    magnitudes = []
    for code in range(128):
        e, m = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        magnitudes.append((m / 2**mantissa_bits + (e > 0)) * 2.0 ** (max(e, 1) - bias))
    if name == "float8_e4m3fn":
        magnitudes[127] = np.nan
    if name == "float8_e5m2":
        magnitudes[124:] = [np.inf, np.nan, np.nan, np.nan]
    both = np.array(magnitudes + [-v for v in magnitudes])
    if name.endswith("fnuz"):
        both[128] = np.nan
    return both


def nearest(name, x):
    """The value in the format that is nearest to each x (float64), of two the one with an even code."""
    if name == POWERS:
        mantissa, exponent = np.frexp(np.abs(x))
        code = exponent + 126 + (mantissa >= 0.75)
        code = np.where(np.abs(x) < 2.0**-126, np.abs(x) > 2.0**-127, code)
        return values_of(name)[np.where(np.isfinite(x), np.minimum(code, 255), 255).astype(int)]
    positive = values_of(name)[:128]
    finite = positive[np.isfinite(positive)]
    step = finite[-1] - finite[-2]
    grid = np.append(finite, finite[-1] + step)  # rounding happens as if the exponents went on
    with np.errstate(invalid="ignore"):
        size = np.minimum(np.abs(x), grid[-1])
        above = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
        low, high = grid[above - 1], grid[above]
        code = np.where((size - low < high - size) | ((size - low == high - size) & (above % 2 == 1)), above - 1, above)
    beyond = {"greatest": finite[-1], "infinity": np.inf, "nan": np.nan}[FORMATS[name][3]]
    rounded = np.where(code >= len(finite), beyond, grid[code])
    rounded = np.where(np.isnan(x), np.nan, np.copysign(rounded, x))
    return np.where(rounded == 0, 0.0, rounded) if name.endswith("fnuz") else rounded


def same(a, b):
    """Equal numbers with equal signs, NaN for NaN."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    nan = np.isnan(b)
    return a.shape == b.shape and np.array_equal(np.isnan(a), nan) and np.array_equal(a[~nan], b[~nan]) and np.array_equal(np.signbit(a[~nan]), np.signbit(b[~nan]))


def every_code(name, device="cpu"):
    return torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype(name)).to(device)


@pytest.mark.parametrize("name", TYPES)
def test_every_code_stands_for_its_number(name, device):
    x = every_code(name, device)
    assert same(x.to(torch.float32).cpu().numpy(), values_of(name).astype(np.float32))
    assert same(x.cpu().double().numpy(), values_of(name)) and same(x.tolist(), values_of(name))
    assert same(x.half().cpu().numpy(), values_of(name).astype(np.float16)) if name != POWERS else x.half()[127].item() == 1.0
    numbers = x[100:120]
    assert numbers.to(torch.int64).tolist() == [int(v) for v in values_of(name)[100:120]]
    assert x.to(torch.bool).tolist() == [bool(v) for v in values_of(name)]


def inputs():
    """All numbers of float16; random bits of float32; the borders between neighbours, and what is a bit beside them."""
    halves = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.float16).float()
    random = torch.tensor(np.random.default_rng(5).integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32))
    borders = []
    for name in FORMATS:
        v = values_of(name)[:128]
        v = v[np.isfinite(v)]
        borders += [*((v[1:] + v[:-1]) / 2), v[-1] * 2, v[-1] + (v[-1] - v[-2]) / 2]
    borders = np.array(borders, np.float32)
    around = np.concatenate([borders, np.nextafter(borders, np.float32(0)), np.nextafter(borders, np.float32(np.inf))])
    return torch.cat([halves, random, torch.tensor(np.concatenate([around, -around]))])


@pytest.mark.parametrize("name", TYPES)
def test_numbers_round_to_the_nearest_code(name, device):
    x = inputs().to(device)
    y = x.to(dtype(name))
    assert y.dtype == dtype(name) and same(y.float().cpu().numpy(), nearest(name, x.cpu().numpy().astype(np.float64)))
    # float64 by way of float32, as in PyTorch; 16-bit types and integers exactly.
    assert torch.equal(x.double().to(dtype(name)).view(torch.uint8), y.view(torch.uint8))
    whole = torch.arange(-300, 300, device=device)
    assert same(whole.to(dtype(name)).float().cpu().numpy(), nearest(name, whole.cpu().numpy().astype(np.float64)))
    assert same(torch.tensor([True, False], device=device).to(dtype(name)).tolist()[0], 1.0)


def test_numbers_beyond_the_greatest_are_pytorchs():
    """Recorded from PyTorch 2.15: x = 464, 480, 65536, inf, -inf, nan."""
    x = torch.tensor([464.0, 480.0, 65536.0, float("inf"), float("-inf"), float("nan")])
    for name, codes in {
        "float8_e4m3fn": [0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x7F], "float8_e5m2": [0x5F, 0x60, 0x7C, 0x7C, 0xFC, 0x7F],
        "float8_e4m3fnuz": [0x80] * 6, "float8_e5m2fnuz": [0x63, 0x64, 0x80, 0x80, 0x80, 0x80], POWERS: [0x88, 0x88, 0x8F, 0xFF, 0xFF, 0xFF],
    }.items():  # fmt: skip
        assert x.to(dtype(name)).view(torch.uint8).tolist() == codes, name


LAYOUTS = {
    "transposed": lambda t: t.reshape(16, -1).t(), "offset": lambda t: t[3:], "every third": lambda t: t[1::3],
    "stride 0": lambda t: t[7:8].expand(5), "empty": lambda t: t[:0], "one element": lambda t: t[9], "odd tail": lambda t: t[:37],
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TYPES)
def test_layouts_convert_and_copy_as_dense_ones(name, layout, device):
    arranged = LAYOUTS[layout]
    x = torch.linspace(-3, 3, 256, device=device)
    y = arranged(x.to(dtype(name)))
    assert torch.equal(y.float(), arranged(x.to(dtype(name)).float())) and y.float().shape == y.shape
    assert torch.equal(arranged(x).to(dtype(name)).float(), y.float())
    for made in (y.clone(), y.contiguous(), torch.empty_like(y).copy_(y), copy.deepcopy(y), y.cpu()):
        assert made.dtype == y.dtype and same(made.tolist(), y.tolist())


@pytest.mark.parametrize("name", TYPES)
def test_operators_that_move_elements_keep_every_bit(name, device):
    x = every_code(name, device)
    codes = x.view(torch.uint8)
    places = torch.tensor([255, 0, 128, 127, 3], device=device)
    for f in (
        lambda t: t[places], lambda t: t.index_select(0, places), lambda t: torch.cat([t, t[:3]]), lambda t: torch.stack([t, t]),
        lambda t: t.view(16, 16).permute(1, 0).contiguous(), lambda t: t.repeat(2), lambda t: t.roll(5), lambda t: t[::7].clone(),
        lambda t: torch.nn.functional.pad(t, (1, 2)), lambda t: t.masked_select(codes > 100), lambda t: t.view(16, 16)[:, 3],
        lambda t: torch.nn.functional.embedding(places, t.view(256, 1)), lambda t: torch.where(codes > 100, t, t.roll(1)),
    ):  # fmt: skip
        assert torch.equal(f(x).view(torch.uint8), f(codes)) and f(x).dtype == x.dtype
    changed, plain = x.clone(), codes.clone()
    for t in (changed, plain):
        t[10:13] = t[200:203]
        t[places] = t[:5].clone()
        t.view(16, 16)[2] = t.view(16, 16)[5]
    assert torch.equal(changed.view(torch.uint8), plain)


@pytest.mark.parametrize("name", TYPES)
def test_the_operators_that_there_are_agree_with_float32(name, device):
    x = every_code(name, device)
    wide = x.float()
    for f in (
        torch.abs, torch.isnan, torch.isinf, torch.isfinite, lambda t: t == t.roll(128), lambda t: t != t.roll(1), lambda t: t == 1.0,
        torch.any, torch.all, lambda t: t.view(16, 16).all(1), lambda t: torch.where(torch.isnan(t), 0.0, t), lambda t: t.fill_(2.0), lambda t: t.zero_(), lambda t: +t,
    ):  # fmt: skip
        got, want = f(x.clone()), f(wide.clone())
        assert got.dtype == (torch.bool if want.dtype == torch.bool else x.dtype), f
        assert same(got.float().cpu().numpy(), nearest(name, want.cpu().numpy().astype(np.float64)) if want.dtype != torch.bool else want.float().cpu().numpy())
    assert torch.equal(x[:100], x[:100].clone()) and not torch.equal(x, x.clone())  # NaN differs from itself
    assert (torch.tensor([0.3125], dtype=torch.float8_e4m3fn) == 0.3).item()  # numbers are rounded to the type


REFUSED = {
    "add": lambda x: x + x, "sub": lambda x: x - 1, "div": lambda x: x / x, "neg": lambda x: -x, "exp": torch.exp,
    "sum": torch.sum, "mean": torch.mean, "max": torch.max, "argmax": torch.argmax, "lt": lambda x: x < 1, "sqrt": torch.sqrt,
    "cumsum": lambda x: x.cumsum(0), "relu": torch.relu, "softmax": lambda x: x.softmax(0), "sort": torch.sort, "maximum": lambda x: torch.maximum(x, x),
    "bmm": lambda x: torch.bmm(x.view(1, 2, 2), x.view(1, 2, 2)), "dot": lambda x: torch.dot(x, x), "mv": lambda x: torch.mv(x.view(2, 2), x[:2]),
    "add_": lambda x: x.add_(x), "sub_": lambda x: x.sub_(2), "logical_not": torch.logical_not, "clamp": lambda x: x.clamp(0, 1), "pow": lambda x: x**2,
    "rand": lambda x: torch.rand(3, dtype=x.dtype, device=x.device), "normal_": lambda x: x.normal_(), "std": torch.std, "prod": torch.prod,
    "index_add": lambda x: x.index_add(0, torch.tensor([0], device=x.device), x[:1]), "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4,)),
    "var": torch.var, "norm": torch.norm, "round": torch.round, "isclose": lambda x: torch.isclose(x, x), "div_": lambda x: x.div_(2),
    "accumulate": lambda x: x.index_put_((torch.tensor([0], device=x.device),), x[0], accumulate=True),
    "bitwise": lambda x: x & x, "fmod": lambda x: torch.fmod(x, 2), "atan2": lambda x: torch.atan2(x, x), "lerp": lambda x: torch.lerp(x, x, 0.5),
    "conv": lambda x: torch.nn.functional.conv1d(x.view(1, 1, 4), x[:2].view(1, 1, 2)), "unique": torch.unique, "numpy": lambda x: x.cpu().numpy(),
    "arange": lambda x: torch.arange(3, dtype=x.dtype, device=x.device), "fft": lambda x: torch.fft.fft(x), "median": torch.median,
}  # fmt: skip


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("op", REFUSED)
def test_other_arithmetic_is_refused_and_changes_nothing(op, name, device):
    x = torch.tensor([1.0, -2.0, 0.5, 3.0]).to(dtype(name)).to(device)
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:  # NotImplementedError is a RuntimeError
        REFUSED[op](x)
    assert str(caught.value)
    assert x.tolist() == [1.0, -2.0, 0.5, 3.0]


@pytest.mark.parametrize("name", TYPES)
def test_products_of_elements_are_float32s_rounded_once(name, device):
    x = every_code(name, device)
    a, b = x.view(1, 256), x.view(256, 1)
    want = nearest(name, (a.float() * b.float()).cpu().numpy().astype(np.float64))
    assert same((a * b).float().cpu().numpy(), want) and same(torch.outer(x, x).float().cpu().numpy(), want)
    assert same(torch.diag(x[:3]).float().cpu().numpy(), np.diag(x[:3].float().cpu().numpy())) or name == POWERS


def test_sums_and_products_in_another_type(device):
    x = torch.tensor([[1.0, 2.0], [0.5, 3.0]], device=device).to(torch.float8_e5m2)
    assert torch.sum(x, dtype=torch.float32).item() == 6.5 and x.sum(0, dtype=torch.float64).tolist() == [1.5, 5.0]
    assert torch.prod(x, dtype=torch.float32).item() == 3.0 and x.cumsum(1, dtype=torch.float32).tolist() == [[1.0, 3.0], [0.5, 3.5]]
    assert x.mean(dtype=torch.float32).item() == 1.625


def test_autocast_casts_them_beside_other_types():
    x, f = torch.ones(4, 4).to(torch.float8_e4m3fn), torch.ones(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (f @ x).dtype == torch.bfloat16 and torch.nn.functional.mse_loss(f, x).dtype == torch.float32


@pytest.mark.parametrize("op", ["cat", "stack"])
def test_autocast_leaves_them_alone_where_there_are_only_they(op):
    x = torch.ones(4, 4).to(torch.float8_e4m3fn)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = getattr(torch, op)([x, x])
    assert y.dtype == x.dtype and same(y.float().numpy(), getattr(torch, op)([x.float(), x.float()]).numpy())


def test_types_do_not_promote():
    for name in TYPES:
        for other in [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64, torch.uint16, *(dtype(t) for t in TYPES if t != name)]:
            with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote"):
                torch.promote_types(dtype(name), other)
        assert torch.promote_types(dtype(name), dtype(name)) == dtype(name)
        x = torch.ones(2, dtype=dtype(name))
        assert torch.result_type(x, 1.0) == x.dtype
        with pytest.raises(RuntimeError, match="Promotion for Float8"):
            torch.cat([x, torch.ones(2)])
        with pytest.raises(RuntimeError, match="Promotion for Float8"):
            x == torch.ones(2)


@pytest.mark.parametrize("name", TYPES)
def test_they_are_no_default_type(name):
    with pytest.raises(TypeError):
        torch.set_default_dtype(dtype(name))
    assert torch.get_default_dtype() == torch.float32


def test_numbers_that_do_not_fit_are_refused_by_fill():
    for number in (1000.0, float("inf")):
        with pytest.raises(RuntimeError, match="value cannot be converted to type c10::Float8_e4m3fn without overflow"):
            torch.full((2,), number, dtype=torch.float8_e4m3fn)
    assert torch.ones(2).to(torch.float8_e5m2).fill_(float("inf")).tolist() == [float("inf")] * 2
    x = torch.ones(2).to(torch.float8_e4m3fn)
    assert torch.where(torch.tensor([True, False]), x, 1e9).tolist() == [1.0, 448.0]
    assert torch.tensor([1000.0], dtype=torch.float8_e4m3fn).item() == 448.0
    assert torch.tensor([[1, 2], [3, 300]], dtype=torch.float8_e5m2).tolist() == [[1.0, 2.0], [3.0, 320.0]]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_products_are_float32s_rounded_once(name, device):
    torch.manual_seed(0)
    a, b, c = (torch.randn(s, device=device).to(dtype(name)) for s in ((17, 33), (33, 9), (17, 9)))
    wide = a.float() @ b.float()
    for got in (a @ b, torch.mm(a, b), torch.nn.functional.linear(a, b.t())):
        assert got.dtype == a.dtype and torch.equal(got.float(), wide.to(dtype(name)).float())
    assert torch.equal(torch.addmm(c, a, b).float(), torch.addmm(c.float(), a.float(), b.float()).to(dtype(name)).float())


@pytest.mark.parametrize("out", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, None])
def test_scaled_products(out, device):
    torch.manual_seed(1)
    a, b = torch.randn(16, 32, device=device).to(torch.float8_e4m3fn), torch.randn(32, 48, device=device).to(torch.float8_e5m2)
    one = torch.tensor(0.37, device=device), torch.tensor([1.9], device=device)
    rows = torch.rand(16, 1, device=device) + 0.5, torch.rand(1, 48, device=device) + 0.5
    bias = torch.randn(48, device=device)
    for sa, sb in (one, rows):
        want = (a.float() * sa) @ (b.float() * sb)
        got = torch._scaled_mm(a, b, sa, sb, out_dtype=out)
        assert got.dtype == (out or a.dtype) and torch.equal(got.float(), want.to(got.dtype).float())
        assert torch.equal(torch._scaled_mm(a, b, sa, sb, bias=bias, out_dtype=out).float(), (want + bias).to(got.dtype).float())
    divided = torch._scaled_mm(a, b, *one, scale_result=torch.tensor(2.0, device=device), out_dtype=out)
    want = (a.float() * one[0]) @ (b.float() * one[1])
    assert torch.equal(divided.float(), (want / 2 if divided.dtype == a.dtype else want).to(divided.dtype).float())
    F = torch.nn.functional
    kind = F.ScalingType.RowWise
    got = F.scaled_mm(a, b, rows[0], kind, [rows[1]], [kind], output_dtype=torch.float32)
    assert torch.equal(got, (a.float() * rows[0]) @ (b.float() * rows[1]))


def test_scaled_products_have_no_gradient_and_say_so():
    a = torch.ones(4, 4).to(torch.float8_e4m3fn).requires_grad_()
    product = torch._scaled_mm(a, a.detach(), torch.tensor(1.0), torch.tensor(1.0), out_dtype=torch.float32)
    assert product.requires_grad
    with pytest.raises(NotImplementedError, match="derivative for aten::_scaled_mm is not implemented"):
        product.sum().backward()


def test_scaled_products_refuse_other_scales_and_types():
    f8 = torch.float8_e4m3fn
    a, one = torch.ones(4, 4).to(f8), torch.tensor(1.0)
    for arguments in ((a.float(), a, one, one), (a, a, one.double(), one), (a, a, torch.ones(4), torch.ones(4)), (a, a, torch.ones(4, 1), one)):
        with pytest.raises(ValueError, match="Invalid scaling configuration"):
            torch._scaled_mm(*arguments)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch._scaled_mm(a, a[:2], one, one)
    F = torch.nn.functional
    with pytest.raises(NotImplementedError, match="scales are for a matrix"):
        F.scaled_mm(a, a, one, F.ScalingType.BlockWise1x32, one, F.ScalingType.TensorWise)
    with pytest.raises(NotImplementedError, match="swizzled"):
        F.scaled_mm(a, a, one, F.ScalingType.TensorWise, one, F.ScalingType.TensorWise, swizzle_a=F.SwizzleType.SWIZZLE_32_4_4)


@pytest.mark.parametrize("name", TYPES)
def test_files_pickles_and_dlpack_keep_every_bit(name, tmp_path):
    x = every_code(name)
    file = io.BytesIO()
    torch.save({"x": x, "t": x.view(16, 16).t()}, file)
    file.seek(0)
    loaded = torch.load(file)
    read = [loaded["x"], loaded["t"].t().reshape(-1), pickle.loads(pickle.dumps(x)), torch.from_dlpack(x), copy.copy(x)]
    if not name.endswith("fnuz"):
        naru.safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
        read.append(naru.safetensors.load_file(tmp_path / "x.safetensors")["x"])
    else:
        with pytest.raises(ValueError, match="the format has no"):
            naru.safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
    for y in read:
        assert y.dtype == x.dtype and torch.equal(y.view(torch.uint8), x.view(torch.uint8))
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype and torch.from_dlpack(x).data_ptr() == x.data_ptr()


def test_text_and_limits():
    x = torch.tensor([1.0, -0.0, float("nan"), 448.0], dtype=torch.float8_e4m3fn)
    assert str(x) == "tensor([  1.,  -0.,  nan, 448.], dtype=torch.float8_e4m3fn)"
    for name in TYPES:
        limits, values = torch.finfo(dtype(name)), values_of(name)
        finite = values[np.isfinite(values)]
        assert limits.max == finite.max() and limits.bits == 8 and dtype(name).itemsize == 1 and dtype(name).is_floating_point
        assert limits.tiny == (2.0**-127 if name == POWERS else 2.0 ** (1 - FORMATS[name][2])) and dtype(name).is_signed == (name != POWERS)
    assert torch.tensor([1.0]).type("torch.Float8_e5m2Tensor").dtype == torch.float8_e5m2 and x.type() == "torch.Float8_e4m3fnTensor"


def test_gradients_go_through_conversions():
    x = torch.randn(8, requires_grad=True)
    (x.to(torch.float8_e5m2).to(torch.float32) * 3).sum().backward()
    assert torch.equal(x.grad, torch.full((8,), 3.0))
    leaf = torch.ones(3).to(torch.float8_e4m3fn).requires_grad_()
    (leaf.float() * 2).sum().backward()
    assert leaf.grad.dtype == torch.float8_e4m3fn and leaf.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("dim", [None, 1])
def test_products_of_all_elements_have_gradients(dim, device):
    x = torch.tensor([[1.0, 2.0], [0.5, 4.0]], device=device, requires_grad=True)
    y = x.to(torch.float8_e5m2)
    (torch.prod(y, dtype=torch.float32) if dim is None else torch.prod(y, dim, dtype=torch.float32).sum()).backward()
    assert x.grad.tolist() == ([[4.0, 2.0], [8.0, 1.0]] if dim is None else [[2.0, 1.0], [4.0, 0.5]])


@pytest.mark.parametrize("operand", range(3))
def test_addmm_has_gradients(operand, device):
    """They are computed in float32 and rounded once to the operand's type."""
    operands = [torch.ones(2, 2, device=device).to(torch.float8_e5m2) for _ in range(3)]
    x = operands[operand].requires_grad_()
    y = torch.addmm(*operands)
    assert y.requires_grad and y.dtype == torch.float8_e5m2 and y.tolist() == [[3.0, 3.0]] * 2
    y.float().sum().backward()
    assert x.grad.dtype == torch.float8_e5m2 and x.grad.tolist() == [[1.0 if operand == 0 else 2.0] * 2] * 2


def test_modules_move_to_them(device):
    layer = torch.nn.Linear(8, 4, bias=False).to(device)
    want = layer.weight.detach().to(torch.float8_e4m3fn)
    layer.to(torch.float8_e4m3fn)
    assert layer.weight.dtype == torch.float8_e4m3fn and torch.equal(layer.weight.detach().view(torch.uint8), want.view(torch.uint8))
    assert layer(torch.ones(2, 8, device=device).to(torch.float8_e4m3fn)).dtype == torch.float8_e4m3fn


def test_sparse_tensors_hold_float8_and_refuse_to_add_them():
    code = torch.float8_e4m3fn
    places, values = torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0])
    sparse = torch.sparse_coo_tensor(places, values.to(code), (3,))
    assert sparse.dtype == code and "float8_e4m3fn" in repr(sparse)
    assert sparse.float().to_dense().tolist() == [1, 2, 0]
    assert torch.sparse_coo_tensor(places, values, (3,)).to(code).float().to_dense().tolist() == [1, 2, 0]
    compressed = torch.eye(2).to(code).to_sparse_csr()
    assert compressed.dtype == code and compressed.values().float().tolist() == [1, 1]
    for refused in (sparse.to_dense, sparse.coalesce, compressed.to_dense):  # PyTorch has no sums of them
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
            refused()
