"""L-BFGS. The directions and the line search are computed in C++ (naru/optim/steps.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import enable_grad
from .optimizer import Optimizer, as_real, check_option, number

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Quasi-Newton steps (Liu and Nocedal, 1989) over all parameters as one vector. Only one parameter group is allowed (ValueError), on one device.

    Args:
        params: parameters; complex ones are treated as pairs of real ones.
        lr: the length of a step, or the initial length of the line search.
        max_iter: the maximum number of iterations per step.
        max_eval: the maximum number of calls of the closure per step; max_iter · 5 / 4 if None.
        tolerance_grad: a step ends when no element of the gradient exceeds it.
        tolerance_change: a step ends when neither the loss nor a parameter changes by more than it.
        history_size: how many past iterations are kept.
        line_search_fn: None, or "strong_wolfe".
        maximize: whether to maximise the loss.

    `step(closure)` calls the closure several times, and returns the first loss. The closure clears the gradients, computes the loss and its gradients, and
    returns the loss.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([3.0, -1.0]))
    >>> optimizer = naru.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - naru.tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), p.data
    (13.0, tensor([1.0000, 2.0000]))
    """

    _may_be_captured = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_option("learning rate", lr, number(lr) >= 0.0)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self) -> Tensor:
        parts = [as_real((_C.zeros_like(p) if p.grad is None else p.grad).detach()).reshape(-1) for p in self._params]
        flat = _C.cat(parts)
        return -flat if self.param_groups[0].get("maximize", False) else flat

    def _add_grad(self, step_size: float, update: Tensor) -> None:
        start = 0
        for p in map(as_real, self._params):
            p.add_(update[start : start + p.numel()].view_as(p), alpha=step_size)
            start += p.numel()

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float, Tensor]:
        """(the result of the closure, the loss to minimise, its gradient)"""
        with enable_grad():
            found = closure()
        loss = float(found)
        return found, -loss if self.param_groups[0].get("maximize", False) else loss, self._gather_flat_grad()

    def _search(self, closure: Callable[[], Any], t: float, d: Tensor, loss: float, grad: Tensor, slope: float, most: int) -> Any:
        """(loss, gradient, t, evaluations) at the end of a line search along d; the parameters are restored."""
        before = [p.clone() for p in self._params]

        def at(length: float) -> tuple[float, Tensor]:
            self._add_grad(length, d)
            _, value, there = self._evaluate(closure)
            for p, old in zip(self._params, before):
                p.copy_(old)
            return value, there

        return _C._strong_wolfe(at, t, d, loss, grad, slope, 1e-9, most)

    def _remember(self, state: dict[str, Any], grad: Tensor, most: int) -> None:
        """Adds the last step to the history if the curvature along it is positive."""
        change, step = grad - state["prev_flat_grad"], state["d"] * number(state["t"])
        curve = change.dot(step).item()
        if not curve > 1e-10:
            return
        if len(state["old_dirs"]) == most:
            for name in ("old_dirs", "old_stps", "ro"):
                state[name].pop(0)
        for name, value in (("old_dirs", change), ("old_stps", step), ("ro", change.new_tensor(1.0 / curve))):
            state[name].append(value)
        state["H_diag"] = change.new_tensor(curve / change.dot(change).item())

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to max_iter iterations; returns the loss before them.

        Args:
            closure: a function that computes the loss and its gradients, and returns the loss.

        >>> p = naru.nn.Parameter(naru.tensor([3.0]))
        >>> optimizer = naru.optim.LBFGS([p])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (p - 1).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> p.data.round(decimals=3)
        tensor([1.])
        """
        with _C.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        if not self._params:
            with enable_grad():
                return closure()
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr, most_evaluations, tolerance = number(group["lr"]), group["max_eval"], group["tolerance_change"]
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)
        first, loss, grad = self._evaluate(closure)
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max().item() <= group["tolerance_grad"]:
            return first
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            begins = state["n_iter"] == 1
            if begins:
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                self._remember(state, grad, group["history_size"])
            inverse = _C.tensor([number(value) for value in state["ro"]], dtype=_C.float64)
            d = state["d"] = _C._lbfgs_direction(grad, state["old_dirs"], state["old_stps"], inverse, number(state["H_diag"]))
            state["prev_flat_grad"], last = grad.clone(), loss
            state["prev_loss"] = loss
            length = grad.abs().sum().item()
            t = state["t"] = min(1.0, 1.0 / length if length else 1.0) * lr if begins else lr
            slope = grad.dot(d).item()
            if slope > -tolerance:
                break
            made = 0
            if group["line_search_fn"] is not None:
                loss, grad, t, made = self._search(closure, t, d, loss, grad, slope, most_evaluations - evaluations)
                state["t"] = t
                self._add_grad(t, d)
            else:
                self._add_grad(t, d)
                if n != group["max_iter"]:
                    _, loss, grad = self._evaluate(closure)
                    made = 1
            evaluations += made
            state["func_evals"] += made
            if n == group["max_iter"] or evaluations >= most_evaluations or grad.abs().max().item() <= group["tolerance_grad"]:
                break
            if (d * t).abs().max().item() <= tolerance or abs(loss - last) < tolerance:
                break
        return first
