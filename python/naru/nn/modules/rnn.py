"""Recurrent layers and cells. The formulas, which are PyTorch's, are in naru/ops/recurrent.h."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ... import _C
from .. import init
from .._packed import PackedSequence
from ..parameter import Parameter
from .module import Module, check_layer_count

Tensor = _C.Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_RUN = {"LSTM": _C._lstm, "GRU": _C._gru, "RNN_TANH": _C._rnn_tanh, "RNN_RELU": _C._rnn_relu}


def _draw(module: Module) -> None:
    bound = 1 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


def _check_numbers(input_size: Any, hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, dropout: Any, proj_size: int) -> None:
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int), ("hidden_size", hidden_size, int)
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, number in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if number <= 0:
            raise ValueError(f"{name} must be greater than zero")
    check_layer_count(num_layers)
    _C.empty(num_layers, hidden_size, device="meta")  # RuntimeError if the number of elements overflows
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """Base of RNN, LSTM and GRU: `mode` is one of "RNN_TANH", "RNN_RELU", "LSTM", "GRU".

    Parameters: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (and weight_hr_l0 for an LSTM with projections), and so on for each layer; with
    the suffix "_reverse" for the other direction. They are initialised uniform in ± 1 / sqrt(hidden_size).

    Args:
        input_size, hidden_size: the last dimensions of the input and of the hidden state.
        num_layers: the number of stacked layers.
        bias: whether there are biases.
        batch_first: whether input and output are (N, L, ...) instead of (L, N, ...).
        dropout: the probability of dropout between layers.
        bidirectional: whether sequences are processed in both directions.
        proj_size: the size of an LSTM's projections; 0 for none.
        device, dtype: the parameters' device and dtype.

    >>> rnn = naru.nn.modules.rnn.RNNBase("GRU", 3, 4)
    >>> [(name, tuple(p.shape)) for name, p in rnn.named_parameters()]
    [('weight_ih_l0', (12, 3)), ('weight_hh_l0', (12, 4)), ('bias_ih_l0', (12,)), ('bias_hh_l0', (12,))]
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_numbers(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        gates, directions, state = _GATES[mode] * hidden_size, 2 if bidirectional else 1, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for end in (f"_l{layer}", f"_l{layer}_reverse")[:directions]:
                shapes = {"weight_ih": (gates, input_size if layer == 0 else state * directions), "weight_hh": (gates, state)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + end, Parameter(_C.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + end for name in shapes])
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialises all parameters."""
        _draw(self)

    def flatten_parameters(self) -> None:
        """Does nothing: naru does not need the parameters in one block of memory."""

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_flat_weights": self._flat_weights}  # which PyTorch expects in files

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_flat_weights"})

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The expected shape of the hidden state for the input."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The expected shape of the cell state for the input."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """RuntimeError unless `input` has the expected dimensions: (steps, batch, input_size), or (all steps, input_size) for packed
        sequences."""
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}") -> None:
        """RuntimeError unless `hx` has the expected size; `msg` is formatted with the expected and the actual size."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """RuntimeError unless the input and the hidden state (for an LSTM, the pair of states) have the expected sizes."""
        self.check_input(input, batch_sizes)
        size = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            return self.check_hidden_size(hidden, size)
        self.check_hidden_size(hidden[0], size, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Reorders the sequences of the hidden states."""
        if permutation is None or hx is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(_C.index_select(t, 1, permutation) for t in hx)
        return _C.index_select(hx, 1, permutation)

    def _run(self, input: Any, hx: Any) -> tuple[Any, Any]:
        """(outputs, the other results of the core) for a tensor or a packed sequence."""
        packed = isinstance(input, PackedSequence)
        data, sizes, order, back = input if packed else (input, None, None, None)
        hx = self.permute_hidden(hx, order)
        if self.mode == "LSTM":
            hx = () if hx is None else hx
        out, *last = _RUN[self.mode](
            data, sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first
        )
        state = self.permute_hidden(tuple(last) if self.mode == "LSTM" else last[0], back)
        return (PackedSequence(out, sizes, order, back) if packed else out), state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False)
        ):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """h' = f(w_ih x + b_ih + w_hh h + b_hh) for each step of a sequence, in stacked layers.

    Args:
        input_size: the size of the input's last dimension.
        hidden_size: the size of the hidden state.
        num_layers: the number of layers, each over the outputs of the previous one.
        nonlinearity: f: "tanh" or "relu".
        bias: whether there are biases.
        batch_first: whether inputs and outputs are (N, T, ...) instead of (T, N, ...).
        dropout: the dropout probability of outputs between layers, in training.
        bidirectional: whether a second network processes the sequence in reverse; the outputs are concatenated.

    Shapes: input (T, N, input_size), (T, input_size) for a single sequence, or a PackedSequence; hx (layers · directions, N, hidden_size), zeros if not
    given. Returns the outputs (T, N, directions · hidden_size) and the last hidden state.

    >>> import naru
    >>> out, h = naru.nn.RNN(3, 5, num_layers=2)(naru.ones(7, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size", 0) > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), in stacked layers.

    Args: as in `RNN`, without nonlinearity, and
        proj_size: if above 0, outputs and hidden states are projected to this size.

    Shapes: as `RNN`'s; hx is a pair, the hidden state and the cell state. Returns the outputs and the pair after the last step.

    >>> import naru
    >>> out, (h, c) = naru.nn.LSTM(3, 5, batch_first=True, proj_size=2)(naru.ones(4, 7, 3))
    >>> out.shape, h.shape, c.shape
    (torch.Size([4, 7, 2]), torch.Size([1, 4, 2]), torch.Size([1, 4, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014), in stacked layers. Arguments and shapes: as in `RNN`, without nonlinearity.

    >>> import naru
    >>> out, h = naru.nn.GRU(3, 5, bidirectional=True)(naru.ones(7, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size", 0) > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


class RNNCellBase(Module):
    """Base of the cells: weight_ih (chunks · hidden_size, input_size), weight_hh, bias_ih and bias_hh, uniform in ± 1 / sqrt(hidden_size).

    Args:
        input_size, hidden_size: the last dimensions of the input and of the hidden state.
        bias: whether there are biases.
        num_chunks: the number of gates: 1 for RNNCell, 4 for LSTMCell, 3 for GRUCell.
        device, dtype: the parameters' device and dtype.

    >>> naru.nn.modules.rnn.RNNCellBase(3, 4, True, num_chunks=2).weight_ih.shape
    torch.Size([8, 3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_C.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(_C.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_C.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialises all parameters."""
        _draw(self)

    def _zeros(self, input: Tensor) -> Tensor:
        return _C.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)

    def _check(self, t: Tensor, what: str) -> None:
        if t.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {t.dim()}D instead")

    @property
    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an RNN: input (N, input_size) or (input_size), hx (N, hidden_size), zeros if not given; returns the next hx.

    Args:
        bias: whether there are biases.
        nonlinearity: "tanh" or "relu".
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> cell = naru.nn.RNNCell(1, 1, bias=False)
    >>> _ = naru.nn.init.ones_(cell.weight_ih), naru.nn.init.zeros_(cell.weight_hh)
    >>> cell(naru.tensor([1.0])).data
    tensor([0.7616])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, "input")
        hx = self._zeros(input) if hx is None else hx
        self._check(hx, "hidden")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return (_C.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.rnn_relu_cell)(input, hx, *self._weights)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: hx is the pair of hidden state and cell state, zeros if not given; returns the next pair.

    Args:
        input_size: the number of features of the input.
        hidden_size: the number of features of the hidden state.
        bias: whether there are biases.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> h, c = naru.nn.LSTMCell(3, 5)(naru.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, "input")
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        for number, part in enumerate(hx):
            self._check(part, f"hx[{number}]")
        return _C.lstm_cell(input, hx, *self._weights)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units. Arguments and shapes: as in `RNNCell`.

    Args:
        input_size: the number of features of the input.
        hidden_size: the number of features of the hidden state.
        bias: whether there are biases.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> cell = naru.nn.GRUCell(3, 2)
    >>> h = naru.zeros(2)
    >>> for x in naru.ones(4, 3):
    ...     h = cell(x, h)
    >>> h.shape, bool((h.abs() < 1).all())
    (torch.Size([2]), True)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, "input")
        hx = self._zeros(input) if hx is None else hx
        self._check(hx, "hidden")
        return _C.gru_cell(input, hx, *self._weights)
