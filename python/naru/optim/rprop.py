"""Rprop."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Rprop"]


class Rprop(Descent):
    """Resilient backpropagation: a step size for each element, which grows while its gradient keeps its sign, and shrinks where it turns.

    Args:
        params: parameters or groups.
        lr: the step size that each element begins with.
        etas: the factors of a step size that shrinks and that grows.
        step_sizes: the least and the greatest step size.
        capturable: of no account: the steps are counted on the host, and can't be captured in a graph.
        foreach: of no account: many parameters are always updated together.
        maximize: climbs instead.
        differentiable: whether the step itself has a derivative.

    ValueError for options out of range.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Rprop([p], lr=0.1).step()
    >>> p.data
    tensor([0.9000])
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_option("learning rate", lr, number(lr) >= 0.0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        size = _C.full_like(param.detach(), number(group["lr"]))
        return {"step": zero_steps(), "prev": zeros_for(param), "step_size": size}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        _C._rprop_step(param, grad, state["prev"], state["step_size"], *group["etas"], *group["step_sizes"])
