"""Running sums, products and extremes in the one order that all devices have: chains in blocks of 256, and the blocks' ends in the same way."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import naru as torch
from opencl import need_xpu, processors_count

BLOCK = 256


def running(x, ufunc):
    """The last dimension of a NumPy array, in that order."""
    if x.shape[-1] <= BLOCK:
        return ufunc.accumulate(x, -1, dtype=x.dtype)
    chains = [ufunc.accumulate(x[..., at : at + BLOCK], -1, dtype=x.dtype) for at in range(0, x.shape[-1], BLOCK)]
    before = running(np.stack([c[..., -1] for c in chains[:-1]], -1), ufunc)
    return np.concatenate([chains[0], *(ufunc(before[..., i : i + 1], c) for i, c in enumerate(chains[1:]))], -1)


# Rows of less and more than a block, of a block of blocks and more; few, and as many as are taken side by side.
SHAPES = [(1,), (256,), (257,), (65537 + 256 + 3,), (3, 1000), (16, 512), (37, 700)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_running_sums_and_products_have_the_bits_of_the_one_order(shape, dtype, device):
    rng = np.random.default_rng(3)
    for f, ufunc, low in ((torch.cumsum, np.add, -1), (torch.cumprod, np.multiply, 0.99)):
        x = rng.uniform(low, 1.01, shape).astype(str(dtype).removeprefix("torch."))
        wanted = running(x, ufunc)
        t = torch.tensor(x, device=device)
        assert f(t, -1).cpu().numpy().tobytes() == wanted.tobytes()
        if len(shape) > 1:  # the same rows, down the columns, and not side by side in memory
            assert f(t.t().contiguous(), 0).cpu().numpy().T.tobytes() == wanted.tobytes()
            assert f(t.t(), 0).t().contiguous().cpu().numpy().tobytes() == wanted.tobytes()
            assert f(t.repeat_interleave(2, 1)[:, ::2], 1).cpu().numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(1000,), (5, 600), (20, 300)], ids=str)
def test_other_types_and_extremes_go_through_blocks_as_well(shape, device):
    rng = np.random.default_rng(4)
    x = rng.integers(-(2**62), 2**62, shape)
    assert torch.tensor(x, device=device).cumsum(-1).cpu().numpy().tobytes() == np.cumsum(x, -1).tobytes()
    small = rng.integers(-100, 100, shape).astype(np.int8)
    assert torch.equal(torch.tensor(small, device=device).cumsum(-1, dtype=torch.int8).cpu(), torch.tensor(np.cumsum(small, -1, dtype=np.int8)))
    half = rng.uniform(-1, 1, shape).astype(np.float16)
    wanted = running(half.astype(np.float32), np.add).astype(np.float16)
    assert torch.tensor(half, device=device).cumsum(-1).cpu().numpy().tobytes() == wanted.tobytes()
    y = np.round(rng.uniform(-1, 1, shape), 1).astype(np.float32)
    y.reshape(-1)[-40] = np.nan
    for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
        values, places = getattr(torch, name)(torch.tensor(y, device=device), -1)
        np.testing.assert_array_equal(values.cpu().numpy(), ufunc.accumulate(y, -1))
        rows, found, at = y.reshape(-1, shape[-1]), values.cpu().numpy().reshape(-1, shape[-1]), places.cpu().numpy().reshape(-1, shape[-1])
        for r, v, p in zip(rows, found, at):
            same = (r == v) | np.isnan(r)  # of equal elements the later one's place, and of NaNs
            np.testing.assert_array_equal(p, np.maximum.accumulate(np.where(same, np.arange(len(r)), -1)))


def test_long_rows_and_many_writes_to_equal_places_give_the_bits_of_cpu_as_a_gpu_does_them():
    program = """
        import numpy as np, naru
        rng = np.random.default_rng(5)
        x, at = naru.tensor(rng.uniform(-1, 1, (2500, 3)).astype(np.float32)), naru.tensor(rng.integers(0, 7, 2500))
        long = naru.tensor(rng.uniform(-1, 1, 66000).astype(np.float32))
        work = {"rows": lambda t, i, l: t.t().cumsum(1), "long": lambda t, i, l: l.cumsum(0), "index_add": lambda t, i, l: t.index_add(0, i, t),
                "half": lambda t, i, l: t.half().index_add(0, i, t.half()), "put": lambda t, i, l: t.index_copy(0, i, t)}
        print([name for name, f in work.items() if f(x, at, long).numpy().tobytes() != f(x.to("xpu"), at.to("xpu"), long.to("xpu")).cpu().numpy().tobytes()])
    """
    with processors_count():
        need_xpu()
    environment = {**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_OPENCL_LOOPS": "0"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == "[]\n", done.stderr
