"""The Adafactor optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import number

Tensor = _C.Tensor

__all__ = ["Adafactor"]


def _require(good: bool, text: str, value: Any) -> None:
    if not good:
        raise ValueError(f"{text} but is: {value}")


class Adafactor(Descent):
    """Scales steps by running means of squared gradients, stored as a row and a column for each matrix (Shazeer and Stern, 2018).

    Args:
        params: parameters or groups; not complex.
        lr: the largest step relative to a parameter's root mean square; at step t it is at most 1 / sqrt(t).
        beta2_decay: the weight of the new squares in the running mean is t ** beta2_decay.
        eps: the lower bounds of a row's mean (the dtype's eps if None) and of a parameter's root mean square.
        d: updates with a larger root mean square are scaled down to it.
        weight_decay: decoupled weight decay: p is multiplied by 1 - lr · weight_decay.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.

    ValueError for options out of range.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.ones(2, 2)); p.grad = naru.ones(2, 2)
    >>> naru.optim.Adafactor([p], lr=0.1).step()
    >>> p.data
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]])
    """

    _may_be_captured = False

    _takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        _require(number(lr) >= 0.0, "Learning rate should be >= 0", lr)
        _require(beta2_decay <= 0.0, "beta2_decay should be <= 0", beta2_decay)
        _require(eps[0] is None or eps[0] >= 0.0, "epsilon1 should be >= 0", eps[0])
        _require(eps[1] >= 0.0, "epsilon2 should be >= 0", eps[1])
        _require(d >= 1.0, "Clipping threshold d should be >= 1", d)
        _require(weight_decay >= 0.0, "weight_decay should be >= 0", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _state_for(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return super()._state_for(param, group)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.dim() < 2:
            return {"step": zero_steps(), "variance": zeros_for(param)}
        row, column = [*param.shape[:-1], 1], [*param.shape[:-2], 1, param.shape[-1]]
        like: dict[str, Any] = {"dtype": param.dtype, "device": param.device}
        return {"step": zero_steps(), "row_var": _C.zeros(row, **like), "col_var": _C.zeros(column, **like)}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        _C._adafactor_step(
            param, grad, state.get("row_var"), state.get("col_var"), state.get("variance"), int(number(state["step"])),
            number(group["lr"]), group["beta2_decay"], *group["eps"], group["d"], group["weight_decay"],
        )  # fmt: skip

    _decays_itself = True
