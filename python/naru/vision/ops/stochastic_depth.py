"""Dropout of whole residual branches (arXiv:1603.09382)."""

from __future__ import annotations

from typing import Any

import naru

from ...nn.modules import Module
from .. import _names

__getattr__ = _names.module_getattr(__name__)


def stochastic_depth(input: Any, p: float, mode: str, training: bool = True) -> Any:
    """While `training`, 0 with probability `p`, else `input` / (1 - p): decided once for the batch (`mode` 'batch') or for each row ('row'). Raises
    ValueError for other modes or for p outside [0, 1].

    >>> naru.vision.ops.stochastic_depth(naru.ones(2, 2), 1.0, "row")
    tensor([[0., 0.],
            [0., 0.]])
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    size = [input.shape[0] if mode == "row" else 1] + [1] * (input.dim() - 1)
    noise = naru.empty(size, dtype=input.dtype, device=input.device).bernoulli_(1.0 - p)
    return input * (noise.div_(1.0 - p) if p < 1.0 else noise)


class StochasticDepth(Module):
    """`stochastic_depth` with `p` and `mode` as a layer.

    >>> naru.vision.ops.StochasticDepth(0.5, "row").eval()(naru.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input: Any) -> Any:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
