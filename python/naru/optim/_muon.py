"""Muon, an optimizer for matrices."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._descent import Descent, zeros_for
from .optimizer import number

Tensor = _C.Tensor

__all__ = ["Muon"]


class Muon(Descent):
    """Orthogonalized momentum, for the matrices of hidden layers (Jordan et al., 2024). Use another optimizer for biases, embeddings and last layers.

    Args:
        params: parameters or groups; ValueError unless they have 2 dimensions.
        lr: the learning rate before it is adjusted to a matrix's shape.
        weight_decay: decoupled weight decay: p is multiplied by 1 - lr · weight_decay.
        momentum, nesterov: the decay rate of the running mean of gradients, and whether to use Nesterov's momentum.
        ns_coefficients, ns_steps: the coefficients and the number of Newton-Schulz iterations, which run in bfloat16.
        eps: the lower bound of the norm by which a matrix is divided first.
        adjust_lr_fn: "original" (or None), "match_rms_adamw" or "spectral_unclamped": how lr depends on a matrix's shape.

    >>> p = naru.nn.Parameter(naru.eye(2)); p.grad = naru.eye(2)
    >>> naru.optim.Muon([p], lr=0.1).step()
    >>> p.data[0, 1]
    tensor(0.)
    """

    _takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", number(lr)), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}")

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_for(param)}

    def _update_group(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        for param, grad in zip(params, grads):
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            _C._muon_step(
                param, grad, self._state_for(param, group)["momentum_buffer"], number(group["lr"]), group["weight_decay"],
                group["momentum"], group["nesterov"], *group["ns_coefficients"], group["eps"], group["ns_steps"],
                group["adjust_lr_fn"] or "original",
            )  # fmt: skip
