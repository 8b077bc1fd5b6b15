"""Cumulative sums, products and extremes, and scattered sums, in the canonical order of all devices: chains in blocks of 256, and the blocks'
totals in the same way."""
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


# Rows shorter and longer than a block, and than a block of blocks; few rows, and more than are processed together.
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
        if len(shape) > 1:  # the same rows as columns, not adjacent in memory
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
            same = (r == v) | np.isnan(r)  # for equal elements the later index, and for NaNs
            np.testing.assert_array_equal(p, np.maximum.accumulate(np.where(same, np.arange(len(r)), -1)))


def total(first, values, few):
    """What stands at a place and what goes there, added up: chains in blocks where places are few for their values, and what these end with in the
    same way; else one chain."""
    if not few:
        return np.add.accumulate(np.concatenate([first[None], values]), 0, dtype=values.dtype)[-1]
    blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)] or [values]
    blocks[0] = np.concatenate([first[None], blocks[0]])
    while True:
        ends = np.stack([np.add.accumulate(b, 0, dtype=b.dtype)[-1] for b in blocks])
        if len(ends) == 1:
            return ends[0]
        blocks = [ends[at : at + BLOCK] for at in range(0, len(ends), BLOCK)]


def added(target, at, x):
    if x.dtype == np.float16:  # rounded once
        return added(target.astype(np.float32), at, x.astype(np.float32)).astype(np.float16)
    return np.stack([total(target[place], x[at == place], len(x) > 1024 * len(target)) for place in range(len(target))])


# Value counts on both sides of the threshold for blocks; more than a block of blocks at one index; unused indices; scalars and rows.
@pytest.mark.parametrize("shape, places", [((2049,), 1), ((2048,), 1), ((70000,), 3), ((66500,), 1), ((3100, 5), 2), ((3072, 5), 2)], ids=str)
def test_what_goes_to_one_place_is_added_in_blocks(shape, places, device):
    rng = np.random.default_rng(6)
    at = rng.integers(0, places, shape[0])
    for dtype in (np.float32, np.float16):
        x, target = rng.uniform(-1, 1, shape).astype(dtype), rng.uniform(-1, 1, (places + 1, *shape[1:])).astype(dtype)
        wanted = added(target, at, x).tobytes()
        t, i, v = (torch.tensor(a, device=device) for a in (target, at, x))
        assert t.index_add(0, i, v).cpu().numpy().tobytes() == wanted
        assert t.index_put((i,), v, accumulate=True).cpu().numpy().tobytes() == wanted
        whole = i.view(-1, *[1] * (len(shape) - 1)).expand(shape).contiguous()
        assert t.scatter_add(0, whole, v).cpu().numpy().tobytes() == wanted
    wide = torch.tensor(rng.integers(-9, 9, shape), device=device)
    assert torch.equal(torch.zeros(places + 1, *shape[1:], dtype=torch.int64).index_add(0, i.cpu(), wide.cpu()),
                       torch.zeros(places + 1, *shape[1:], dtype=torch.int64, device=device).index_add(0, i, wide).cpu())


def test_rows_of_places_of_their_own_begin_anew(device):
    rng = np.random.default_rng(7)
    x, at = rng.uniform(-1, 1, (3, 2100)).astype(np.float32), rng.integers(0, 2, (3, 2100))
    wanted = np.stack([added(np.zeros(2, np.float32), at[r], x[r]) for r in range(3)])
    found = torch.zeros(3, 2, device=device).scatter_add(1, torch.tensor(at, device=device), torch.tensor(x, device=device))
    assert found.cpu().numpy().tobytes() == wanted.tobytes()
    weight = torch.zeros(4, 3, device=device, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor(at, device=device), weight).backward(torch.tensor(np.stack([x] * 3, -1), device=device))
    rows = added(np.zeros((4, 3), np.float32), at.reshape(-1), np.stack([x.reshape(-1)] * 3, -1))
    assert weight.grad.cpu().numpy().tobytes() == rows.tobytes()


def test_places_named_by_two_indices_or_apart_in_memory_have_blocks_of_their_own(device):
    rng = np.random.default_rng(8)
    a, b, x = rng.integers(0, 2, 9000), rng.integers(0, 2, 9000), rng.uniform(-1, 1, 9000).astype(np.float32)
    wanted = added(np.zeros(4, np.float32), 2 * a + b, x)
    memory = torch.zeros(2, 6, device=device)
    memory[:, ::3].index_put_(tuple(torch.tensor(i, device=device) for i in (a, b)), torch.tensor(x, device=device), accumulate=True)
    assert memory.cpu()[:, ::3].contiguous().numpy().tobytes() == wanted.tobytes() and not memory[:, 1::3].any()
    beside = torch.zeros(2, 3, device=device).scatter_add(0, torch.tensor(a.reshape(-1, 3), device=device), torch.tensor(x.reshape(-1, 3), device=device))
    for column in range(3):
        one = added(np.zeros(2, np.float32), a[column::3], x[column::3])
        assert beside[:, column].cpu().numpy().tobytes() == one.tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_a_whole_row_may_go_to_one_place(device, dtype):
    at = torch.tensor([[1], [2]], device=device).expand(2, 200000)
    found = torch.zeros(3, dtype=dtype, device=device).index_put((at,), torch.ones(2, 200000, dtype=dtype, device=device), accumulate=True)
    assert found.tolist() == [0, 200000, 200000]


def test_long_rows_and_many_writes_to_equal_places_give_the_bits_of_cpu_as_a_gpu_does_them():
    program = """
        import numpy as np, naru
        rng = np.random.default_rng(5)
        x, at = naru.tensor(rng.uniform(-1, 1, (2500, 3)).astype(np.float32)), naru.tensor(rng.integers(0, 7, 2500))
        long = naru.tensor(rng.uniform(-1, 1, 66000).astype(np.float32))
        one = naru.zeros(66000, dtype=naru.int64)
        work = {"rows": lambda t, i, l: t.t().cumsum(1), "long": lambda t, i, l: l.cumsum(0), "index_add": lambda t, i, l: t.index_add(0, i, t),
                "half": lambda t, i, l: t.half().index_add(0, i, t.half()), "put": lambda t, i, l: t.index_copy(0, i, t),
                "rows of two": lambda t, i, l: naru.zeros(2, 3, device=t.device).half().index_add(0, i % 2, t.half()),
                "one place": lambda t, i, l: naru.zeros(2, device=l.device).index_add(0, one.to(l.device), l)}
        print([name for name, f in work.items() if f(x, at, long).numpy().tobytes() != f(x.to("xpu"), at.to("xpu"), long.to("xpu")).cpu().numpy().tobytes()])
    """
    with processors_count():
        need_xpu()
    environment = {**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_OPENCL_LOOPS": "0"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == "[]\n", done.stderr
