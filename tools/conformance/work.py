"""The work on a sample, identical in both libraries: the call, its results, gradients, second derivatives."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import plain

STEPS = 5


def tensors_in(v: Any, library: Any) -> list[Any]:
    """The tensors in nested lists, tuples and dictionaries, in order."""
    if isinstance(v, library.Tensor):
        return [v]
    if isinstance(v, (list, tuple)):
        return [t for x in v for t in tensors_in(x, library)]
    if isinstance(v, dict):
        return [t for x in v.values() for t in tensors_in(x, library)]
    return []


def weights(shape: Any, library: Any, dtype: Any) -> Any:
    """Deterministic, varied numbers in a shape, used as the results' gradient."""
    n = int(np.prod(tuple(shape)))
    w = (np.arange(n) * 7919 % 13 - 6) / 5.0
    if plain.dtype_name(dtype).startswith("complex"):
        w = w + 1j * (np.arange(n) * 104729 % 11 - 5) / 4.0
    return library.tensor(w.reshape(tuple(shape))).to(dtype)


def gradient(outs: list[Any], inputs: list[Any], library: Any, again: bool) -> list[Any]:
    return list(library.autograd.grad(outs, inputs, [weights(t.shape, library, t.dtype) for t in outs], allow_unused=True, create_graph=again))


def differentiable(v: Any, library: Any) -> list[Any]:
    return [t for t in tensors_in(v, library) if t.requires_grad]


def parameters_of(call: Any) -> list[Any]:
    """The parameters of a module; an empty list for a function."""
    return list(call.parameters()) if hasattr(call, "parameters") else []


def gradients(result: Any, process: Callable[[Any], Any] | None, given: Any, library: Any, twice: bool) -> list[Any]:
    """The gradients of the result with respect to the tensors (None if there is none), followed by the second derivatives."""
    inputs: list[Any] = []
    for t in tensors_in(given, library):
        if t.requires_grad and t.is_leaf and not any(t is other for other in inputs):
            inputs.append(t)
    outs = differentiable(process(result) if process else result, library)
    if not outs or not inputs:
        return []
    first = gradient(outs, inputs, library, twice)
    found: list[Any] = list(first)
    if twice:
        again = [g for g in first if g is not None and g.requires_grad]
        found += gradient(again, inputs, library, False) if again else [None] * len(inputs)
    return found


def layer(kind: Any, args: list[Any], keywords: dict[str, Any], state: dict[str, Any], training: bool, dtype: Any) -> Any:
    """A module of a class, with the given state."""
    made = kind(*args, **keywords).to(dtype)
    made.load_state_dict(state)
    return made.train(training)


def optimizer(kind: Any, keywords: dict[str, Any], library: Any) -> Callable[..., Any]:
    """The parameters after some steps of an optimizer with constant gradients."""

    def steps(*given: Any) -> list[Any]:
        leaves = [t.detach().clone().requires_grad_() for t in given]
        made = kind(leaves, **keywords)

        def closure() -> Any:
            made.zero_grad()
            loss = sum(((p - 0.3) ** 2 * (2.5 + weights(p.shape, library, p.dtype))).sum() for p in leaves)
            loss.backward()
            return loss

        for _ in range(STEPS):
            made.step(closure)
        return [p.detach() for p in leaves]

    return steps


def write_in_place(call: Callable[..., Any], given: list[Any], keywords: dict[str, Any], library: Any) -> Any:
    """Calls the function on a copy of its first argument, which it may write."""
    first = given[0].clone()
    out = call(first, *given[1:], **keywords)
    return (out, first)
