"""Gradients compared with finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .grad_mode import enable_grad

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference."""


def _refuse(name: str, value: Any, accepted: tuple) -> None:
    if value not in accepted:
        raise NotImplementedError(f"{name}={value!r} is not supported yet: naru has no such mode, and would check nothing")


def _differences(tensor: Tensor, outputs: Callable[[], list[Tensor]], eps: float) -> list[list[Tensor]]:
    """For each element of `tensor`, the central differences of all outputs."""
    flat = tensor.data.reshape(-1)
    if flat.numel() and flat.data_ptr() != tensor.data.data_ptr():
        raise ValueError("gradcheck: inputs must be contiguous")
    columns = []
    for i in range(flat.numel()):
        value = flat[i].item()
        with _C.no_grad():
            flat[i] = value + eps
            high = [o.detach().clone() for o in outputs()]
            flat[i] = value - eps
            low = [o.detach().clone() for o in outputs()]
            flat[i] = value
        columns.append([((h - l) / (2 * eps)).reshape(-1) for h, l in zip(high, low)])
    return columns


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """True if d func / d input agrees with central differences of step `eps`, for every input that requires grad.

    nondet_tol: how far two backward passes may differ. fast_mode checks everything all the same. check_forward_ad,
    check_batched_grad and check_batched_forward_grad raise NotImplementedError.
    """
    unsupported = {"check_forward_ad": check_forward_ad, "check_batched_grad": check_batched_grad, "check_batched_forward_grad": check_batched_forward_grad}
    for option, value in unsupported.items():
        _refuse(option, value, (False,))
    _refuse("check_backward_ad", check_backward_ad, (True,))
    _refuse("masked", masked, (None, False))
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    watched = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    if not watched:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")

    def fail(text: str) -> bool:
        if raise_exception:
            raise GradcheckError(text)
        return False

    def outputs() -> list[Tensor]:
        result = func(*args)
        return [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, Tensor)]

    for position, tensor in enumerate(watched):
        columns = _differences(tensor, outputs, eps)
        for number, out in enumerate(outputs()):
            if not out.requires_grad:
                continue
            for j in range(out.numel()):
                seed = _C.zeros_like(out.detach()).reshape(-1)
                seed[j] = 1
                start = seed.reshape(out.shape)
                rows = [_C._grad([out], [tensor], [start], retain_graph=True, create_graph=False, allow_unused=True)[0] for _ in range(2)]
                if check_grad_dtypes and rows[0] is not None and rows[0].dtype != tensor.dtype:
                    return fail(f"Backward gave a gradient of {rows[0].dtype} for input {position} of {tensor.dtype}")
                row, again = (_C.zeros_like(tensor.detach()) if r is None else r.detach() for r in rows)
                if not _C.allclose(row, again, 0.0, nondet_tol, equal_nan=True):
                    return fail(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                        "different values, although analytical gradient matches numerical gradient. "
                        f"The tolerance for nondeterminism was {nondet_tol}."
                    )
                want = _C.stack([columns[i][number][j] for i in range(len(columns))]) if columns else row.reshape(-1)
                if not _C.allclose(row.reshape(-1), want, rtol, atol):
                    return fail(
                        f"Jacobian mismatch for output {number} with respect to input {position},\n"
                        f"numerical:{want}\nanalytical:{row.reshape(-1)}"
                    )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    **options: Any,
) -> bool:
    """True if the second derivatives of `func` agree with differences of the first; see `gradcheck`.

    grad_outputs: the gradients of the outputs to start from; random ones if None.
    """
    _refuse("gen_non_contig_grad_outputs", gen_non_contig_grad_outputs, (False,))
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]

    def results(*given: Any) -> list[Tensor]:
        made = func(*given)
        return [o for o in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(o, Tensor) and o.requires_grad]

    if grad_outputs is None:
        starts = [_C.randn(o.shape, dtype=o.dtype, device=o.device).requires_grad_() for o in results(*args)]
    else:
        starts = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    @enable_grad()  # also where gradcheck only looks for values
    def first(*given: Any) -> tuple:
        own = given[: len(args)]
        watched = [t for t in own if isinstance(t, Tensor) and t.requires_grad]
        grads = _C._grad(
            results(*own), watched, list(given[len(args) :]), retain_graph=True, create_graph=True, allow_unused=True
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(first, [*args, *starts], **options)
