"""LSTM and GRU layers over whole sequences. The cpu runs their steps in one loop; virtual devices take operators, with the same bits."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import naru
from bitwise import bits
from naru import nn
from naru.nn.utils import rnn

# steps, batch, input, hidden: single rows, few units, more than a panel of weights, more rows than the input's products take at once, odd sizes
SHAPES = {"one row": (9, 1, 5, 40), "few units": (6, 4, 3, 2), "panels": (5, 3, 70, 97), "many rows": (4, 67, 9, 33), "two steps": (2, 3, 4, 5)}
SIZES = {"padded": None, "packed": [6, 6, 5, 3, 1, 1], "packed alike": [4, 4, 4]}


@pytest.fixture
def exact() -> Iterator[None]:
    naru.use_deterministic_algorithms(True)
    yield
    naru.use_deterministic_algorithms(False)


def layer_of(kind: str, width: int, hidden: int, **options) -> nn.Module:
    naru.manual_seed(3)
    return getattr(nn, kind)(width, hidden, **options)


def tensors_of(found) -> list[naru.Tensor]:
    out, last = found
    return [out.data if isinstance(out, rnn.PackedSequence) else out, *(last if isinstance(last, tuple) else (last,))]


def everything(m: nn.Module, x: naru.Tensor, device: str = "cpu", lengths: list[int] | None = None, states: bool = True) -> list[naru.Tensor]:
    """Outputs, final states, and the gradients of input, initial states and parameters, on the cpu."""
    m = m.to(device)
    for p in m.parameters():
        p.grad = None
    x = x.detach().to(device).requires_grad_()
    places, batch = m.num_layers * (2 if m.bidirectional else 1), len(lengths) if lengths else x.shape[0 if m.batch_first else 1]
    count = 2 if m.mode == "LSTM" else 1
    hx = [naru.linspace(-1, 1, places * batch * m.hidden_size, dtype=x.dtype).reshape(places, batch, m.hidden_size).to(device).requires_grad_() for _ in range(count)]
    given = rnn.pack_padded_sequence(x, lengths, m.batch_first) if lengths else x
    results = tensors_of(m(given, (tuple(hx) if count == 2 else hx[0]) if states else None))
    weights = [naru.linspace(-1, 2, r.numel(), dtype=r.dtype).reshape(r.shape).to(device) for r in results]
    naru.autograd.backward(results, weights)
    gradients = [x.grad, *(h.grad for h in hx if states), *(p.grad for p in m.parameters())]
    return [t.detach().cpu() for t in (*results, *gradients)]


def drawn(shape: tuple[int, ...], dtype=np.float32) -> naru.Tensor:
    return naru.tensor(np.random.default_rng(1).normal(size=shape).astype(dtype))


@pytest.mark.parametrize("dtype", [naru.float32, naru.float64, naru.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_the_loop_gives_the_bits_of_the_operators(exact, kind, shape, dtype):
    steps, batch, width, hidden = SHAPES[shape]
    m, x = layer_of(kind, width, hidden, dtype=dtype), drawn((steps, batch, width)).to(dtype)
    here, there = everything(m, x), everything(m, x, "cuda")
    for a, b in zip(here, there, strict=True):
        assert bits(a) == bits(b)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_directions_layers_and_packed_sequences_have_the_same_bits_on_devices(exact, kind, bias, sizes):
    lengths = SIZES[sizes]
    m = layer_of(kind, 5, 7, num_layers=2, bidirectional=True, batch_first=True, bias=bias)
    x = drawn((len(lengths), max(lengths), 5) if lengths else (3, 6, 5))
    for states in (True, False):
        for a, b in zip(everything(m, x, "cpu", lengths, states), everything(m, x, "cuda", lengths, states), strict=True):
            assert bits(a) == bits(b)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_threads_change_no_bits(kind):
    m, x, before = layer_of(kind, 64, 200), drawn((12, 40, 64)), naru.get_num_threads()
    try:
        naru.set_num_threads(1)
        wanted = everything(m, x)
        naru.set_num_threads(4)
        for a, b in zip(everything(m, x), wanted, strict=True):
            assert bits(a) == bits(b)
    finally:
        naru.set_num_threads(before)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_row_has_the_same_bits_in_any_batch(kind):
    m, x = layer_of(kind, 20, 70), drawn((7, 21, 20))
    with naru.no_grad():
        whole = m(x)[0]
        for first, last in ((0, 1), (3, 5), (2, 20)):
            assert bits(m(x[:, first:last].contiguous())[0]) == bits(whole[:, first:last].contiguous())


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_inference_has_the_bits_of_training(kind):
    m, x = layer_of(kind, 6, 50, bidirectional=True), rnn.pack_padded_sequence(drawn((8, 5, 6)), [8, 7, 7, 2, 1])
    trained = tensors_of(m(x))
    with naru.no_grad():
        for a, b in zip(tensors_of(m(x)), trained, strict=True):
            assert bits(a) == bits(b.detach())


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_memory_that_is_not_dense_changes_nothing(kind):
    m, x = layer_of(kind, 6, 9), drawn((5, 4, 6))
    wanted = everything(m, x)
    apart = naru.zeros(6, 4, 10)
    apart[:, :, ::2] = x.permute(2, 1, 0)
    for a, b in zip(everything(m, apart[:, :, ::2].permute(2, 1, 0).detach()), wanted, strict=True):
        assert bits(a) == bits(b)
    turned = layer_of(kind, 6, 9)
    with naru.no_grad():
        for name, p in list(turned.named_parameters()):
            if p.dim() == 2:
                setattr(turned, name, nn.Parameter(p.t().contiguous().t()))
    for a, b in zip(everything(turned, x), wanted, strict=True):
        assert bits(a.contiguous()) == bits(b)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("used", [0, 1, -1])
def test_results_without_a_use_need_no_gradient(kind, used):
    m, x = layer_of(kind, 3, 4, dtype=naru.float64), drawn((5, 2, 3), np.float64).requires_grad_()
    results = tensors_of(m(x))
    (mine,) = naru.autograd.grad(results[used].sum(), x, retain_graph=True)
    (wanted,) = naru.autograd.grad(sum((r * (i == used % len(results))).sum() for i, r in enumerate(results)), x)
    assert naru.equal(mine, wanted)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients_of_chosen_inputs_are_those_of_all(kind):
    m, x = layer_of(kind, 3, 4), drawn((5, 2, 3)).requires_grad_()
    wanted = naru.autograd.grad(m(x)[0].sum(), [x, *m.parameters()])
    for i, t in enumerate([x, *m.parameters()]):
        (alone,) = naru.autograd.grad(m(x)[0].sum(), t)
        assert bits(alone) == bits(wanted[i])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("reverse", [False, True])
def test_packed_gradients_and_their_gradients_are_right(kind, reverse):
    m = layer_of(kind, 2, 3, bidirectional=reverse, dtype=naru.float64)
    names, values = zip(*m.named_parameters(), strict=True)
    x = drawn((4, 3, 2), np.float64)

    def run(x, *parameters):
        given = rnn.pack_padded_sequence(x, [4, 2, 1])
        return tuple(tensors_of(naru.func.functional_call(m, dict(zip(names, parameters, strict=True)), (given,))))

    inputs = [x.requires_grad_(), *(p.detach().requires_grad_() for p in values)]
    assert naru.autograd.gradcheck(run, inputs, eps=1e-6, atol=1e-7)
    assert naru.autograd.gradgradcheck(run, inputs[:2] + inputs[2:], eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_result_written_before_backward_is_reported(kind):
    out = layer_of(kind, 3, 4)(drawn((5, 2, 3)).requires_grad_())[0]
    out.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_special_values_go_through_as_in_operators(exact):
    for kind in ("LSTM", "GRU"):
        m, x = layer_of(kind, 4, 34), drawn((5, 3, 4))
        x[1, 0, 0], x[2, 1, 1], x[3, 2, 2] = float("inf"), float("nan"), -1e38
        for a, b in zip(everything(m, x), everything(m, x, "cuda"), strict=True):
            assert bits(a) == bits(b)


DIGEST = """
import hashlib, naru
naru.use_deterministic_algorithms(True)
whole = hashlib.sha256()
for kind in ("LSTM", "GRU"):
    for rows in (1, 2, 3, 19):
        naru.manual_seed(0)
        m, x = getattr(naru.nn, kind)(30, 70, bidirectional=True), naru.randn(6, rows, 30, requires_grad=True)
        y = m(x)[0]
        y.sum().backward()
        for t in (y, x.grad, *(p.grad for p in m.parameters())):
            whole.update(t.detach().numpy().tobytes())
print(whole.hexdigest())
"""


def test_loops_of_another_width_give_the_same_bits():
    def digest(**environment: str) -> str:
        return subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout

    assert digest(NARU_LOOP_ISA="avx2") == digest() == digest(NARU_ISA="none")
