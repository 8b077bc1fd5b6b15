"""The optimizers Adam and AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ._descent import Descent, zero_steps, zeros_for
from .optimizer import check_option, differentiable_number, number

if TYPE_CHECKING:
    from collections.abc import Iterator

Tensor = _C.Tensor

__all__ = ["Adam", "AdamW"]


class Adam(Descent):
    """Scales steps by running means of the gradient (m) and of its square (v).

    At step t:  p -= lr · m̂ / (sqrt(v̂) + eps)  with m̂ = m / (1 - beta1ᵗ), v̂ = v / (1 - beta2ᵗ). weight_decay adds
    weight_decay · p to the gradient, or with decoupled_weight_decay shrinks p itself (AdamW). amsgrad uses the largest v
    so far.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        betas: the decay rates of the running means of the gradient and of its square.
        foreach: ignored: the parameters of a group are always updated together.
        maximize: maximises the objective instead of minimising it.
        capturable: whether `step()` may be captured in a graph.
        differentiable: whether autograd records the step; then lr, betas and weight_decay that require gradients get them.
        fused: ignored: updates are always fused.

    >>> import naru
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.Adam([p], lr=0.1).step()
    >>> p.data
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        for i in (0, 1):
            check_option(f"beta parameter at index {i}", betas[i], 0.0 <= number(betas[i]) < 1.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    _reads_gradients = True

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": zero_steps(), "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_for(param)
        return state

    def _update_group(self, group: dict[str, Any], params: list[Tensor], grads: None) -> None:
        if group["capturable"]:
            self._update_on_device(group, params)
            return
        known = self.state
        states = [known[p] for p in params]
        counts = _C._count_steps(states, params)
        if counts is None:
            states = [self._state_for(p, group) for p in params]
            counts = _C._count_steps(states, params)
        if counts.count(counts[0]) == len(counts):
            self._update_together(group, counts[0], params, states)
            return
        for count in dict.fromkeys(counts):
            self._update_together(group, count, *_where(counts, count, params, states))

    def _update_on_device(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """One step of a group whose step counts are on the device, so that it can be captured in a graph."""
        beta1, beta2 = group["betas"]
        states = [self._state_with_count(p, group) for p in params]
        for members in self._counted_together(params, states):
            first, *others = (states[i]["step"] for i in members)
            _C._adam_step_on_device(
                *_with_state(group, [params[i] for i in members], [states[i] for i in members]), first, group["lr"], number(beta1), number(beta2), group["eps"],
                group["weight_decay"], group["decoupled_weight_decay"], group["amsgrad"], group["maximize"],
            )  # fmt: skip
            if together := self._vectors.get(id(first)):
                if others:
                    with _C.no_grad():
                        together[0][1:].add_(1)
                together[2] = together[0]._version

    def _state_with_count(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        new = not self.state[param]
        state = self._state_for(param, group)
        if new:
            state["step"] = None
        elif not isinstance(state["step"], Tensor) or state["step"].device != param.device:
            state["step"] = _C.tensor(float(state["step"]), dtype=_C.float32, device=param.device)
        return state

    def _counted_together(self, params: list[Tensor], states: list[dict[str, Any]]) -> list[list[int]]:
        """Partitions the parameter indices into lists that have always been stepped together. Their step counts are elements of one vector, each a separate
        tensor, so that values that depend on the count are computed once for all of them."""
        vectors = self.__dict__.setdefault("_vectors", {})  # by the id of the first count: the vector, its counts, its version
        new: dict[Any, list[int]] = {}
        for i, (param, state) in enumerate(zip(params, states)):
            if state["step"] is None:
                new.setdefault(param.device, []).append(i)
        for device, members in new.items():
            vector = _C.zeros(len(members), dtype=_C.float32, device=device)
            counts = [vector[k] for k in range(len(members))]
            for i, count in zip(members, counts):
                states[i]["step"] = count
            vectors[id(counts[0])] = [vector, counts, vector._version]
        place = {id(state["step"]): i for i, state in enumerate(states)}
        found = []
        for first, (vector, counts, version) in list(vectors.items()):
            members = [place.get(id(count), -1) for count in counts]
            if -1 not in members and vector._version == version:
                found.append(members)
            elif any(i >= 0 for i in members):
                del vectors[first]  # a member has no gradient now, or its count was replaced: from now on each is counted separately
        taken = {i for members in found for i in members}
        return found + [[i] for i in range(len(params)) if i not in taken]

    def _update_differentiably(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        beta1, beta2 = (differentiable_number(b) for b in group["betas"])
        lr, decay = (differentiable_number(group[name]) for name in ("lr", "weight_decay"))
        for param, grad in zip(params, grads):
            if group["maximize"]:
                grad = -grad
            state = self._state_for(param, group)
            state["step"] = state["step"] + 1
            count = float(state["step"])
            if decay and group["decoupled_weight_decay"]:
                param.copy_(param.clone() * (1 - lr * decay))  # backward needs the parameter as it was
            elif decay:
                grad = grad + decay * param.clone()
            mean = state["exp_avg"] = beta1 * state["exp_avg"] + (1 - beta1) * grad
            square = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"] = _C.maximum(state["max_exp_avg_sq"], square)
            root = (square / (1 - beta2**count)).sqrt() + group["eps"]
            param.sub_(lr / (1 - beta1**count) * mean / root)

    def _update_together(
        self, group: dict[str, Any], count: int, params: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Step number `count` of the given parameters."""
        beta1, beta2 = group["betas"]
        _C._adam_step(
            *_with_state(group, params, states), count, number(group["lr"]), number(beta1), number(beta2), group["eps"],
            group["weight_decay"], group["decoupled_weight_decay"], group["amsgrad"], group["maximize"],
        )  # fmt: skip


def _where(values: list[Any], value: Any, *lists: list[Any]) -> Iterator[list[Any]]:
    """Filters each list to the entries whose `values` equal `value`."""
    return ([entry for entry, each in zip(entries, values) if each == value] for entries in lists)


def _with_state(
    group: dict[str, Any], params: list[Tensor], states: list[dict[str, Any]]
) -> tuple[list[Tensor], ...]:
    """(parameters, means, means of squares, largest means of squares; the last empty without amsgrad)."""
    largest = [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []
    return params, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states], largest


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p -= lr · weight_decay · p.

    Args:
        params: parameters, pairs of name and parameter, or groups of them.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator.
        amsgrad: whether to use the largest mean of squares so far.
        maximize: maximises the objective instead of minimising it.
        foreach: ignored: the parameters of a group are always updated together.
        capturable: whether `step()` may be captured in a graph.
        differentiable: whether autograd records the step; then lr, betas and weight_decay that require gradients get them.
        fused: ignored: updates are always fused.

    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([0.5])
    >>> naru.optim.AdamW([p], lr=0.1).step()
    >>> p.data
    tensor([0.8990])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
