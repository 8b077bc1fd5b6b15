"""What nested tensors print."""

from __future__ import annotations

from .. import _C
from ._tensor import NestedTensor, components


def text(x: NestedTensor) -> str:
    """Its structure; of layout torch.strided, its components."""
    if x.layout is _C.jagged:
        history = f", grad_fn={x.grad_fn}" if x.grad_fn is not None else f", requires_grad={x.requires_grad}" if x.requires_grad else ""
        return f"NestedTensor(size={x._sizes()}, offsets={x._ragged.offsets}{history}, contiguous={x.is_contiguous()})"
    rows = []
    for part in components(x):
        plain = part.detach()
        lines = str(plain.requires_grad_() if x.grad_fn is not None else plain).split("\n")
        rows.append("\n".join("  " + line for line in lines))
    history = f", grad_fn=<{x.grad_fn.name()}>" if x.grad_fn is not None else ", requires_grad=True" if x.requires_grad else ""
    where = f", device='{x.device}'" if x.device.type != "cpu" else ""
    return "nested_tensor([\n" + ",\n".join(rows) + "\n]" + where + history + ")"
