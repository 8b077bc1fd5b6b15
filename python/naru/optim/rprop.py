"""The Rprop optimizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["Rprop"]


class Rprop(Descent):
    """Resilient backpropagation: each element has a step size, which grows while its gradient keeps its sign, and shrinks when the sign changes.

    Args:
        params: parameters or groups.
        lr: the initial step size of each element.
        etas: the factors by which a step size shrinks and grows.
        step_sizes: the smallest and the largest step size.
        capturable: ignored: the step count is on the host, so steps can't be captured in a graph.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        differentiable: whether autograd records the step.

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
