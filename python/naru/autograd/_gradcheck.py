"""Gradients compared with finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """True if d func / d input agrees with central differences of step `eps`, for every input that requires grad."""
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    watched = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    if not watched:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")

    def outputs() -> list[Tensor]:
        result = func(*args)
        return [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, Tensor)]

    for position, tensor in enumerate(watched):
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
        for number, out in enumerate(outputs()):
            if not out.requires_grad:
                continue
            for j in range(out.numel()):
                seed = _C.zeros_like(out.detach()).reshape(-1)
                seed[j] = 1
                (row,) = _C._grad([out], [tensor], [seed.reshape(out.shape)], retain_graph=True, create_graph=False, allow_unused=True)
                row = _C.zeros_like(tensor.detach()) if row is None else row.detach()
                want = _C.stack([columns[i][number][j] for i in range(flat.numel())]) if flat.numel() else row.reshape(-1)
                if not _C.allclose(row.reshape(-1), want, rtol, atol):
                    if raise_exception:
                        raise GradcheckError(
                            f"Jacobian mismatch for output {number} with respect to input {position},\n"
                            f"numerical:{want}\nanalytical:{row.reshape(-1)}"
                        )
                    return False
    return True
