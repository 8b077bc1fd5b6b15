"""Softmax and layer_norm, which the cpu computes a few rows at a time: the bits equal those of whole instructions, as a virtual device runs them."""
import numpy as np
import pytest

import naru as torch
from opencl import need_xpu, processors_count

F = torch.nn.functional
SHAPES = ((1, 5), (3, 1), (2, 3), (7, 64), (600, 300), (1030, 16), (2, 3, 40), (3, 20000))


def softmax(x, w, b):
    return torch.softmax(x, -1)


def log_softmax(x, w, b):
    return torch.log_softmax(x, -1)


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def layer_norm_without_parameters(x, w, b):
    return F.layer_norm(x, x.shape[-1:])


def layer_norm_over_all_but_the_first(x, w, b):
    return F.layer_norm(x, x.shape[1:])


def results(function, values, device, dtype, transposed, ones):
    """The result and all gradients, as bytes."""
    x, w, b, g = (torch.from_numpy(v).to(device=device, dtype=dtype) for v in values)
    if transposed:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    for t in (x, w, b):
        t.requires_grad_()
    y = function(x, w, b)
    y.sum().backward() if ones else y.backward(g)
    return [t.detach().float().cpu().numpy().tobytes() for t in (y, *(t.grad for t in (x, w, b) if t.grad is not None))]


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("function", (softmax, log_softmax, layer_norm, layer_norm_without_parameters, layer_norm_over_all_but_the_first))
def test_rows_at_a_time_give_the_bits_of_whole_instructions(function, dtype):
    rng = np.random.default_rng(5)
    for shape in SHAPES:
        values = [rng.standard_normal(s).astype("f4") * 3 for s in (shape, shape[-1:], shape[-1:], shape)]
        for transposed, ones in ((False, False), (True, False), (False, True)):
            assert results(function, values, "cpu", dtype, transposed, ones) == results(function, values, "cuda:0", dtype, transposed, ones), (shape, transposed, ones)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("function", (softmax, log_softmax, layer_norm, layer_norm_over_all_but_the_first))
def test_a_rendered_device_gives_the_same_bits_by_one_kernel_for_a_row(function, dtype):
    rng = np.random.default_rng(5)
    with processors_count():
        need_xpu()
        for shape in ((7, 64), (600, 300), (2, 3, 40), (3, 3000), (2, 20000)):
            values = [rng.standard_normal(s).astype("f4") * 3 for s in (shape, shape[-1:], shape[-1:], shape)]
            assert results(function, values, "cpu", dtype, False, False) == results(function, values, "xpu:0", dtype, False, False), shape


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("norm", ("layer_norm", "rms_norm"))
def test_norms_of_small_rows_of_any_numbers_have_the_bits_of_whole_instructions(norm, dtype):
    """Without gradients and with them; weights of the elements' type or float32; rows whose statistics float32 is too narrow for; NaN, infinities."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        rows, n = int(rng.integers(1, 6)), int(rng.integers(1, 300))
        x = rng.standard_normal((rows, n)) * 10.0 ** rng.integers(-30, 30, (rows, 1)) if dtype.itemsize > 2 else rng.standard_normal((rows, n))
        x += rng.choice([0, 0, 1, 1e3, 1e4], (rows, 1)) * (rng.random() < 0.5)
        x[rng.random(x.shape) < 0.002] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
        wide, has_weight, has_bias, eps = rng.random() < 0.5, rng.random() < 0.7, rng.random() < 0.7, float(rng.choice([0.0, 1e-30, 1e-5]))
        w, b = rng.standard_normal((2, n))

        def computed(device, gradient):
            made = [torch.from_numpy(v).to(device=device, dtype=t).requires_grad_(gradient) for v, t in ((x, dtype), *((v, torch.float32 if wide else dtype) for v in (w, b)))]
            weight, bias = (t if has else None for t, has in zip(made[1:], (has_weight, has_bias)))
            y = F.layer_norm(made[0], (n,), weight, bias, eps) if norm == "layer_norm" else F.rms_norm(made[0], (n,), weight, eps)
            if gradient:
                y.backward(torch.full_like(y, 0.5))
            return [torch.nan_to_num(t.detach().double().cpu(), 7e77).tolist() for t in (y, *(t.grad for t in made if t.grad is not None))]

        for gradient in (False, True):
            if norm == "rms_norm" and wide and dtype == torch.float64 and has_weight:
                continue  # types that rms_norm does not mix
            assert computed("cpu", gradient) == computed("cuda:0", gradient), (rows, n, wide, has_weight, has_bias, eps)


def test_threads_do_not_change_the_bits_of_rows():
    x, w, b = (torch.randn(*s, requires_grad=True) for s in ((1500, 200), (200,), (200,)))
    threads, all_bits = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            for t in (x, w, b):
                t.grad = None
            torch.softmax(layer_norm(x, w, b), 1).square().sum().backward()
            all_bits.append([t.grad.numpy().tobytes() for t in (x, w, b)])
    finally:
        torch.set_num_threads(threads)
    assert all_bits[0] == all_bits[1] == all_bits[2]


@pytest.mark.parametrize("name", ("cumsum", "cumprod"))
def test_running_sums_and_products_take_a_row_of_one_block_in_order(name):
    rng = np.random.default_rng(2)
    for rows, length in ((1, 40), (16, 1), (16, 15), (17, 16), (40, 33), (64, 256)):
        a = rng.standard_normal((rows, length)).astype("f4")
        a[0, 0], a[-1, length // 2] = -0.0, np.nan
        expected = getattr(np, name)(np.concatenate([np.full((rows, 1), name == "cumprod", "f4"), a], 1), axis=1)[:, 1:]
        x = torch.from_numpy(a)
        assert getattr(x, name)(1).numpy().tobytes() == expected.tobytes(), (rows, length)
        assert getattr(x.t().contiguous().t(), name)(1).numpy().tobytes() == expected.tobytes(), (rows, length)
