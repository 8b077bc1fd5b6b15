"""out= of elementwise operators: the result is computed where it is told, with the values and errors of a result that is made and copied."""
import itertools

import pytest

import naru as torch

UNARY = ["neg", "abs", "exp", "sqrt", "tanh", "floor", "logical_not", "isnan", "sigmoid", "round", "reciprocal"]
BINARY = ["add", "sub", "mul", "div", "maximum", "atan2", "fmod", "remainder", "eq", "lt", "pow", "hypot", "copysign", "floor_divide"]
TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint16]


def numbers(dtype, device, shape=(6, 7), seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * 6 + 1).to(dtype).to(device)


def outcome(call):
    try:
        return call()
    except (RuntimeError, TypeError) as e:
        return type(e)


def check(function, operands, out):
    """The direct way gives what copying gives: `want` is the function's own result, written to a twin of out."""
    want = outcome(lambda: function(*operands))
    if isinstance(want, type):
        assert outcome(lambda: function(*operands, out=out)) is want
        return
    twin = out.clone()
    got = outcome(lambda: function(*operands, out=out))
    if isinstance(got, type):
        assert want.dtype != out.dtype or want.shape != out.shape
        return
    assert got is out
    if twin.shape != want.shape:
        twin = torch.empty(want.shape, dtype=twin.dtype, device=twin.device)
    twin.copy_(want)
    assert out.dtype == twin.dtype and torch.equal(torch.nan_to_num(out) if out.is_floating_point() else out, torch.nan_to_num(twin) if out.is_floating_point() else twin)


LAYOUTS = {
    "dense": lambda t: t, "transposed": lambda t: t.t().contiguous().t(), "offset": lambda t: torch.cat([t, t])[len(t):],
    "every second": lambda t: torch.stack([t, t], -1).flatten(-2)[..., ::2],
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY + BINARY)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_every_type_layout_and_shape_of_out(name, device):
    function = getattr(torch, name)
    for dtype, (layout, arranged) in itertools.product(TYPES, LAYOUTS.items()):
        a, b = numbers(dtype, device), numbers(dtype, device, seed=1)
        operands = (arranged(a),) if name in UNARY else (arranged(a), b)
        result = outcome(lambda: function(*operands))  # noqa: B023
        for out_type in {dtype, torch.float32, torch.bool} | ({result.dtype} if not isinstance(result, type) else set()):
            check(function, operands, arranged(torch.zeros(6, 7, dtype=out_type, device=device)))
        check(function, operands, torch.zeros(0, dtype=dtype, device=device))
        if name in BINARY:
            check(function, (a, b[:1]), torch.zeros(6, 7, dtype=dtype, device=device))
            check(function, (a, 2), torch.zeros(6, 7, dtype=dtype, device=device))


def test_no_temporary_is_made(device):
    a, b, out = (torch.ones(1 << 16, device=device) for _ in range(3))
    address = out.data_ptr()
    torch.add(a, b, out=out)
    assert out[0].item() == 2 and out.data_ptr() == address and out._version == 1
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.mul(a, out, out=out)
        torch.cuda.synchronize()
        assert torch.cuda.max_memory_allocated() == before and out.sum().item() == 2 * (1 << 16)


def test_operands_may_be_the_target_and_other_overlaps_are_refused(device):
    x = torch.arange(12.0, device=device)
    assert torch.add(x, x, out=x).tolist() == [2.0 * i for i in range(12)]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.add(x[1:], 1, out=x[:-1])
    y = torch.arange(9.0, device=device).view(3, 3)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.sub(y, y.t(), out=y)
    with pytest.raises(RuntimeError):
        torch.neg(y, out=torch.zeros(1, 1, device=device).expand(3, 3))


def test_gradients_are_refused_and_no_grad_is_taken():
    a, out = torch.ones(3, requires_grad=True), torch.zeros(3)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(a, out=out)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(out, out=a)
    with torch.no_grad():
        assert torch.neg(a, out=out).tolist() == [-1.0] * 3
    held = torch.ones(3, requires_grad=True)
    saved = torch.zeros(3)
    product = held * saved
    torch.neg(torch.ones(3), out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_other_parameters_and_numbers_take_the_other_way():
    a, out = torch.full((3,), 7.0), torch.empty(3)
    assert torch.add(a, a, alpha=2, out=out).tolist() == [21.0] * 3
    assert torch.div(a, 2, rounding_mode="floor", out=out).tolist() == [3.0] * 3
    assert torch.round(torch.full((3,), 1.26), decimals=1, out=out).tolist() == torch.round(torch.full((3,), 1.26), decimals=1).tolist()
    assert torch.pow(2, a, out=out).tolist() == [128.0] * 3
    with pytest.raises(TypeError):
        torch.hypot(a, 2.0, out=out)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.exp(a, out=out).dtype == torch.float32


def test_a_resized_target_takes_the_result_s_strides():
    """As PyTorch's: of channels_last and transposed operands."""
    x = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert torch.add(x, 1, out=torch.empty(0)).stride() == x.stride() and torch.exp(x, out=torch.empty(0)).stride() == x.stride()
    assert torch.add(x.permute(3, 2, 1, 0), 1, out=torch.empty(0)).shape == (5, 4, 3, 2)


def test_threshold_converts_its_numbers_to_the_tensor_s_type():
    x = torch.tensor([0, 1, 2])
    F = torch.nn.functional
    assert F.threshold(x, 1, 2.0).dtype == torch.int64 and F.threshold(x, 1, 2.0).tolist() == [2, 2, 2]
    assert F.threshold(x, 1, 2.0, inplace=True) is x and x.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_second_derivatives_of_exponential_units_at_zero(name):
    x = torch.zeros(1, requires_grad=True)
    (first,) = torch.autograd.grad(getattr(torch.nn.functional, name)(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.item() == 0.0
