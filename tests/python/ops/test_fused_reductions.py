"""Reductions of deferred operands: fusion gives the same bits as separate nodes, whether operands are freed, kept, written in place or used again."""
import random

import pytest

import naru
from bitwise import unfused

SHAPE = (60, 2, 50)
MAPS = [
    lambda a, b: a * b, lambda a, b: a - b, lambda a, b: (a + 1).exp(), lambda a, b: naru.maximum(a, b), lambda a, b: a.abs().sqrt() + b, lambda a, b: a * 2.5,
]
FOLDS = [
    lambda t: t.sum(), lambda t: t.sum(0), lambda t: t.sum(2), lambda t: t.sum((0, 2)), lambda t: t.mean(), lambda t: t.mean(1), lambda t: t.amax((0, 1)),
    lambda t: t.min(2)[0], lambda t: (t > 0.5).sum(), lambda t: (t > 0.1).all(0), lambda t: t.var(), lambda t: t.norm(), lambda t: naru.count_nonzero(t),
    lambda t: t.float().sum((0, 1)), lambda t: t.prod(0), lambda t: t.sum(1, dtype=naru.float64) if t.device.type != "mps" else t.sum(1),
]


def operands(device, dtype):
    generator = naru.Generator()
    generator.manual_seed(5)

    def make(*shape):
        return (naru.randn(*shape, generator=generator) * 2).to(device, dtype)

    wide = make(60, 2, 100)
    return [make(*SHAPE), make(*SHAPE), wide[:, :, ::2], make(50), make(60, 1, 1), make(60, 1, 50), make(50, 2, 60).transpose(0, 2), make(1)]


def run(device, dtype, seed):
    """A program drawn from the seed, and the bits of all that it leaves."""
    draw, named, left = random.Random(seed), operands(device, dtype), []

    def pick():
        # Of the whole shape, so that any result that is reduced has it.
        return draw.choice([t for t in named if t.shape == SHAPE])

    for _ in range(4):
        t = draw.choice(MAPS)(pick(), draw.choice(named))
        if draw.random() < 0.3:
            named.append(t)
        if draw.random() < 0.2:
            draw.choice(named[:2]).add_(draw.choice(named[3:6]))
        t = draw.choice(MAPS)(t, draw.choice(named))
        reduced = draw.choice(FOLDS)(t)
        if draw.random() < 0.2:
            t *= 2
        if draw.random() < 0.3:
            left.append(t)
        del t
        left.append(reduced * 2 if draw.random() < 0.5 else reduced)
        if reduced.shape == (50,) and draw.random() < 0.5:
            named.append(reduced.to(dtype))
    return [(t.cpu().view(naru.int16) if t.dtype in (naru.bfloat16, naru.float16) else t.cpu()).numpy().tobytes() for t in left + named]


@pytest.mark.parametrize("dtype", [naru.float32, naru.bfloat16, naru.float64], ids=str)
def test_the_bits_are_those_of_one_step_after_another(device, dtype):
    if dtype == naru.float64 and device.startswith("mps"):
        dtype = naru.float16  # the device has no float64
    for seed in range(60):
        fused = run(device, dtype, seed)
        with unfused():
            assert run(device, dtype, seed) == fused, seed


def test_gradients_are_the_same(device):
    def gradients():
        x, y, *_ = operands(device, naru.float32)
        x.requires_grad_(), y.requires_grad_()
        loss = ((x * y - 1) ** 2).mean() + (x.exp() * y).sum(0).amax() + (x - y).abs().sum((0, 2)).prod()
        loss.backward()
        return [t.cpu().numpy().tobytes() for t in (loss.detach(), x.grad, y.grad)]

    fused = gradients()
    with unfused():
        assert gradients() == fused


def test_random_numbers_keep_their_places(device):
    def total(dim):
        naru.manual_seed(3)
        return naru.nn.functional.dropout(naru.ones(SHAPE, device=device), 0.5).sum(dim).cpu().numpy().tobytes()

    for dim in range(3):
        fused = total(dim)
        with unfused():
            assert total(dim) == fused
