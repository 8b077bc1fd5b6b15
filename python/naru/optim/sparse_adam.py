"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zeros_for
from .optimizer import check_option, number

Tensor = _C.Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Descent):
    """Adam that updates only the rows for which a sparse gradient has coordinates; parameters and moments of other rows are unchanged.

    RuntimeError for dense gradients. Steps are counted per parameter, not per row.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        lr: the learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator.
        maximize: maximises the objective instead of minimising it.

    >>> table = naru.nn.Embedding.from_pretrained(naru.zeros(3, 1), freeze=False, sparse=True)
    >>> table(naru.tensor([1])).sum().backward()
    >>> naru.optim.SparseAdam(table.parameters(), lr=0.1).step()
    >>> table.weight.data.flatten()
    tensor([ 0.0000, -0.1000,  0.0000])
    """

    _may_be_captured = False

    _takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not number(lr) > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_option("beta parameter at index 0", betas[0], 0.0 <= betas[0] < 1.0)
        check_option("beta parameter at index 1", betas[1], 0.0 <= betas[1] < 1.0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [[i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_complex()]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}

    def _update_group(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        (beta1, beta2), eps, lr = group["betas"], group["eps"], number(group["lr"])
        for param, grad in zip(params, grads):
            if not grad.is_sparse:
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            state = self._state_for(param, group)
            state["step"] += 1
            _C._sparse_adam_step(
                param, -grad if group["maximize"] else grad, state["exp_avg"], state["exp_avg_sq"], state["step"], lr, beta1, beta2, eps
            )  # fmt: skip
