"""Recurrent layers and cells, and packed sequences. Values and gradients of cells and single layers are operator cases; this file tests what is
built from them: layers, directions, projections, packing, states, errors."""

import numpy as np
import pytest

import naru
from naru import nn
from naru.nn.utils import rnn

KINDS = {"RNN": (nn.RNN, {}), "relu": (nn.RNN, {"nonlinearity": "relu"}), "GRU": (nn.GRU, {}), "LSTM": (nn.LSTM, {}), "LSTM with projections": (nn.LSTM, {"proj_size": 2})}
CELLS = {"RNN": nn.RNNCell, "GRU": nn.GRUCell, "LSTM": nn.LSTMCell}


@pytest.fixture(params=KINDS)
def make(request):
    kind, options = KINDS[request.param]
    return lambda *sizes, **more: kind(*sizes, dtype=naru.float64, **options, **more)


def states(last):
    return last if isinstance(last, tuple) else (last,)


def zero_states(m, n):
    places = m.num_layers * (2 if m.bidirectional else 1)
    h = naru.randn(places, n, m.proj_size or m.hidden_size, dtype=naru.float64)
    return (h, naru.randn(places, n, m.hidden_size, dtype=naru.float64)) if m.mode == "LSTM" else h


def chosen(hx, n):
    return tuple(t[:, n : n + 1] for t in hx) if isinstance(hx, tuple) else hx[:, n : n + 1]


def close(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", CELLS)
def test_a_layer_is_its_cell_step_by_step(kind):
    layer, cell = getattr(nn, kind)(3, 4, dtype=naru.float64), CELLS[kind](3, 4, dtype=naru.float64)
    cell.load_state_dict({name.removesuffix("_l0"): t for name, t in layer.state_dict().items()})
    x, state = naru.randn(6, 2, 3, dtype=naru.float64), None
    out, last = layer(x)
    for t in range(6):
        state = cell(x[t], state)
        close(out[t], states(state)[0])
    for a, b in zip(states(last), states(state)):
        close(a[0], b)


@pytest.mark.parametrize("bias", [True, False])
def test_a_second_layer_reads_the_outputs_of_the_first_and_the_other_direction_the_sequence_from_its_end(make, bias):
    both = make(3, 4, num_layers=2, bidirectional=True, bias=bias)
    x = naru.randn(5, 2, 3, dtype=naru.float64)
    hx = zero_states(both, 2)
    below, seen = x, []
    for layer in range(2):
        outs = []
        for d, end in enumerate(("", "_reverse")):
            one = make(below.shape[-1], 4, bias=bias)
            one.load_state_dict({name + "_l0": both.state_dict()[f"{name}_l{layer}{end}"] for name in [n.removesuffix("_l0") for n in one.state_dict()]})
            at = 2 * layer + d
            own = tuple(t[at : at + 1] for t in states(hx))
            out, last = one(below.flip(0) if d else below, own if one.mode == "LSTM" else own[0])
            outs.append(out.flip(0) if d else out)
            seen.append(states(last))
        below = naru.cat(outs, -1)
    out, last = both(x, hx)
    close(out, below)
    for k, part in enumerate(states(last)):
        close(part, naru.cat([s[k] for s in seen]))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_packed_sequence_gives_what_each_sequence_gives_alone(make, batch_first, bidirectional):
    m = make(3, 4, num_layers=2, batch_first=batch_first, bidirectional=bidirectional)
    lengths = [2, 5, 1, 5]
    x = naru.randn(*((4, 5, 3) if batch_first else (5, 4, 3)), dtype=naru.float64, requires_grad=True)
    hx = zero_states(m, 4)
    packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    out, last = m(packed, hx)
    padded, back = rnn.pad_packed_sequence(out, batch_first)
    assert back.tolist() == lengths
    (padded**2).sum().backward()
    mine, x.grad = x.grad, None
    for n, length in enumerate(lengths):
        one = x[n : n + 1, :length] if batch_first else x[:length, n : n + 1]
        alone, end = m(one, chosen(hx, n))
        close(padded[n : n + 1, :length] if batch_first else padded[:length, n : n + 1], alone)
        assert (padded[n, length:] if batch_first else padded[length:, n]).count_nonzero() == 0
        for a, b in zip(states(last), states(end)):
            close(a[:, n : n + 1], b)
        (alone**2).sum().backward()
    close(mine, x.grad)


def test_one_sequence_needs_no_batch(make):
    m = make(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    x, hx = naru.randn(5, 3, dtype=naru.float64), zero_states(m, 1)
    out, last = m(x, tuple(t[:, 0] for t in hx) if isinstance(hx, tuple) else hx[:, 0])
    whole, end = m(x[None], hx)
    close(out, whole[0])
    for a, b in zip(states(last), states(end)):
        close(a, b[:, 0])


def test_gradients_of_gradients_are_right(make):
    m = make(2, 3, bidirectional=True)
    inputs = [naru.randn(3, 2, 2, dtype=naru.float64), *states(zero_states(m, 2)), *(w.detach() for w in m.parameters())]
    for t in inputs:
        t.requires_grad_()
    count = len(inputs) - 1 - len([*m.parameters()])
    f = {"LSTM": naru.lstm, "GRU": naru.gru, "RNN_TANH": naru.rnn_tanh, "RNN_RELU": naru.rnn_relu}[m.mode]

    def run(x, *rest):
        return f(x, rest[:count] if count > 1 else rest[0], rest[count:], True, 1, 0.0, False, True, False)

    assert naru.autograd.gradcheck(run, inputs, eps=1e-6, atol=1e-6)
    weights = inputs[count + 2 :]
    assert naru.autograd.gradgradcheck(lambda *some: run(*some, *weights), inputs[: count + 2], eps=1e-6, atol=1e-5)


def test_dropout_stands_between_layers_in_training_only(make):
    m = make(3, 4, num_layers=2, dropout=0.5)
    x = naru.randn(5, 2, 3, dtype=naru.float64)
    assert not naru.equal(m(x)[0], m(x)[0])
    m.eval()
    assert naru.equal(m(x)[0], m(x)[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1, but got dropout=0.5 and num_layers=1"):
        make(3, 4, dropout=0.5)


@pytest.mark.parametrize("device", ["cpu", "cuda:1", "mps"])
def test_a_layer_runs_where_it_lies_with_the_bits_of_the_cpu(make, device):
    naru.use_deterministic_algorithms(True)
    try:
        m, x = make(3, 4, num_layers=2).float(), naru.randn(5, 2, 3)
        wanted, _ = m(x)
        out, last = m.to(device)(x.to(device))
        assert out.device == m.weight_ih_l0.device and all(t.device == out.device for t in states(last)) and naru.equal(out.cpu(), wanted)
    finally:
        naru.use_deterministic_algorithms(False)


def test_the_functions_run_the_layers(make):
    m = make(3, 4, num_layers=2)
    f = {"LSTM": naru.lstm, "GRU": naru.gru, "RNN_TANH": naru.rnn_tanh, "RNN_RELU": naru.rnn_relu}[m.mode]
    x, hx = naru.randn(5, 2, 3, dtype=naru.float64), zero_states(m, 2)
    weights = [w for each in m.all_weights for w in each]
    assert naru.equal(f(x, hx, weights, True, 2, 0.0, False, False, False)[0], m(x, hx)[0])
    packed = rnn.pack_padded_sequence(x, [5, 3])
    assert naru.equal(f(packed.data, packed.batch_sizes, hx, weights, True, 2, 0.0, False, False)[0], m(packed, hx)[0].data)


X, H, P = naru.ones(2, 1, 3), naru.ones(1, 1, 4), rnn.pack_sequence([naru.ones(2, 3)])
ERRORS = {
    "input_size": (lambda: nn.LSTM(3, 4)(naru.ones(2, 1, 5)), RuntimeError, r"input\.size\(-1\) must be equal to input_size\. Expected 3, got 5"),
    "dimensions": (lambda: nn.GRU(3, 4)(naru.ones(2, 1, 3, 1)), ValueError, "GRU: Expected input to be 2D or 3D, got 4D instead"),
    "dimensions of RNN": (lambda: nn.RNN(3, 4)(naru.ones(3)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
    "hidden size": (lambda: nn.GRU(3, 4)(X, naru.ones(2, 1, 4)), RuntimeError, r"Expected hidden size \(1, 1, 4\), got \[2, 1, 4\]"),
    "hidden[0]": (lambda: nn.LSTM(3, 4)(X, (naru.ones(1, 1, 5), H)), RuntimeError, r"Expected hidden\[0\] size \(1, 1, 4\), got \[1, 1, 5\]"),
    "hidden[1]": (lambda: nn.LSTM(3, 4)(X, (H, naru.ones(1, 2, 4))), RuntimeError, r"Expected hidden\[1\] size \(1, 1, 4\), got \[1, 2, 4\]"),
    "states for a batch": (lambda: nn.LSTM(3, 4)(X, (H[0], H[0])), RuntimeError, "For batched 3-D input, hx and cx should also be 3-D but got"),
    "states for one": (lambda: nn.GRU(3, 4)(X[:, 0], H), RuntimeError, "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor"),
    "dtype": (lambda: nn.GRU(3, 4)(X.double()), ValueError, r"RNN input dtype \(torch.float64\) does not match weight dtype \(torch.float32\)"),
    "device": (lambda: nn.GRU(3, 4)(X.to("cuda")), RuntimeError, "device"),
    "no steps": (lambda: nn.RNN(3, 4)(naru.ones(0, 1, 3)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
    "parameters": (lambda: naru.gru(X, H, nn.GRU(3, 4)._flat_weights[:3], True, 1, 0.0, False, False, False), RuntimeError, "got an incorrect number of RNN parameters"),
    "too few arguments": (lambda: naru.lstm(X), TypeError, r"lstm\(\) takes 9 positional arguments \(1 given\)"),
    "parameters that are none": (lambda: naru.gru(X, H, 3, True, 1, 0.0, False, False, False), TypeError, r"gru\(\): argument 'params' must be tuple of Tensors, not int"),
    "layers": (lambda: nn.LSTM(3, 4, 0), ValueError, "num_layers must be greater than zero"),
    "size": (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
    "kind of size": (lambda: nn.LSTM(3.0, 4), TypeError, "input_size should be of type int, got: float"),
    "projection": (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
    "wide projection": (lambda: nn.LSTM(3, 4, proj_size=5), ValueError, "proj_size has to be smaller than hidden_size"),
    "dropout": (lambda: nn.LSTM(3, 4, dropout=2), ValueError, r"dropout should be a number in range \[0, 1\]"),
    "nonlinearity": (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'. Select from 'tanh' or 'relu'."),
    "cell's input": (lambda: nn.LSTMCell(3, 4)(naru.ones(2, 5)), RuntimeError, "input has inconsistent input_size: got 5 expected 3"),
    "cell's batch": (lambda: nn.LSTMCell(3, 4)(naru.ones(2, 3), (naru.ones(3, 4),) * 2), RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3"),
    "cell's hidden": (lambda: nn.GRUCell(3, 4)(naru.ones(2, 3), naru.ones(2, 5)), RuntimeError, "hidden0 has inconsistent hidden_size: got 5, expected 4"),
    "cell's dimensions": (lambda: nn.RNNCell(3, 4)(X), ValueError, "RNNCell: Expected input to be 1D or 2D, got 3D instead"),
    "lengths that rise": (lambda: rnn.pack_padded_sequence(X.expand(2, 2, 3), [1, 2]), RuntimeError, "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"),
    "a length of 0": (lambda: rnn.pack_padded_sequence(X.expand(2, 2, 3), [2, 0]), RuntimeError, "Length of all samples has to be greater than 0"),
    "too few lengths": (lambda: rnn.pack_padded_sequence(X.expand(2, 2, 3), [2]), RuntimeError, r"Expected `len\(lengths\)` to be equal to batch_size, but got 1 \(batch_size=2\)"),
    "a length beyond the end": (lambda: rnn.pack_padded_sequence(X, [3]), RuntimeError, "to be at most the length of the input, but got 3"),
    "total_length": (lambda: rnn.pad_packed_sequence(P, total_length=1), ValueError, "Expected total_length to be at least the length of the longest sequence"),
    "sizes that do not fit": (lambda: nn.GRU(3, 4)(rnn.PackedSequence(naru.ones(4, 3), naru.tensor([1, 1]))), RuntimeError, "batch_sizes: their sum is 2, but the packed data has 4 rows"),
    "sizes that rise": (lambda: nn.GRU(3, 4)(rnn.PackedSequence(naru.ones(3, 3), naru.tensor([1, 2]))), RuntimeError, "batch_sizes: wanted numbers above 0 that do not rise, got 2 behind 1"),
    "half a sequence": (lambda: rnn.PackedSequence(naru.ones(3)), AssertionError, "Expected data to be a list or tuple of length 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_what_does_not_fit_is_pytorchs_error(what):
    run, kind, text = ERRORS[what]
    with pytest.raises(kind, match=text):
        run()


def test_names_and_printing_are_pytorchs():
    m = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, dropout=0.1)
    assert [*m.state_dict()][:6] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse"]
    assert str(m) == "LSTM(3, 4, proj_size=2, num_layers=2, dropout=0.1, bidirectional=True)"
    assert str(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)" and str(nn.RNN(3, 4, batch_first=True)) == "RNN(3, 4, batch_first=True)"
    assert m.weight_ih_l1.shape == (16, 4) and m.weight_hr_l1.shape == (2, 4) and m._flat_weights[0] is m.weight_ih_l0


def test_packing_takes_the_padding_out_and_back():
    parts = [naru.tensor([1, 2, 3]), naru.tensor([4, 5]), naru.tensor([6])]
    packed = rnn.pack_sequence(parts)
    assert packed.data.tolist() == [1, 4, 6, 2, 5, 3] and packed.batch_sizes.tolist() == [3, 2, 1] and packed.sorted_indices is None
    assert [t.tolist() for t in rnn.unpack_sequence(packed)] == [t.tolist() for t in parts]
    mixed = rnn.pack_sequence(parts[::-1], enforce_sorted=False)
    assert mixed.data.tolist() == packed.data.tolist() and mixed.unsorted_indices.tolist() == [2, 1, 0]
    assert [t.tolist() for t in rnn.unpack_sequence(mixed)] == [t.tolist() for t in parts[::-1]]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 2, 3, -1], [4, 5, -1, -1], [6, -1, -1, -1]] and lengths.tolist() == [3, 2, 1]


def test_a_packed_sequence_moves_as_a_tensor_does():
    packed = rnn.pack_sequence([naru.ones(1, 2), naru.ones(3, 2)], enforce_sorted=False)
    there = packed.to("cuda")
    assert there.is_cuda and there.sorted_indices.is_cuda and there.batch_sizes.device.type == "cpu" and packed.to("cpu") is packed
    assert there.cpu().data.device.type == "cpu" and packed.double().data.dtype == naru.float64 and packed.pin_memory().is_pinned()
    data, sizes, order, back = packed
    assert data is packed.data and sizes is packed[1] and order.tolist() == [1, 0] == back.tolist()
