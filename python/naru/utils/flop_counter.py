"""`torch.utils.flop_counter`: how many floating-point operations products, convolutions and attention take, a multiplication and an addition each one.

What is counted is called within the `with`; the products of a backward are not calls, and are not counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from .. import _C
from ..functional import broadcast_shapes
from ..overrides import TorchFunctionMode

Tensor = _C.Tensor

__all__ = ["FlopCounterMode"]


def _product(a: Tensor, b: Tensor) -> int:
    """Of a matrix product, batches included."""
    columns = b.shape[-1] if b.dim() > 1 else 1
    batch = math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2])) if a.dim() > 2 or b.dim() > 2 else 1
    rows = a.shape[-2] if a.dim() > 1 else 1
    return 2 * batch * rows * a.shape[-1] * columns


def _convolution(x: Tensor, weight: Tensor, result: Tensor, transposed: bool) -> int:
    places = math.prod((x if transposed else result).shape[2:] if x.dim() == weight.dim() else (x if transposed else result).shape[1:])
    batch = x.shape[0] if x.dim() == weight.dim() else 1
    return 2 * batch * places * weight.numel()


def _attention(query: Tensor, key: Tensor, value: Tensor) -> int:
    batch = math.prod(query.shape[:-2])
    return 2 * batch * query.shape[-2] * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _einsum(equation: str, operands: list[Tensor]) -> int:
    """Of the products that sum something, two operands after another."""
    inputs, arrow, wanted = equation.replace(" ", "").partition("->")
    terms = []
    for term, x in zip(inputs.split(","), operands):
        head, dots, tail = term.partition("...")
        covered = range(x.dim() - len(head) - len(tail), 0, -1)
        terms.append(dict(zip((*head, *covered, *tail), x.shape)))
    written = inputs.replace(",", "").replace(".", "")
    kept = set(wanted if arrow else (c for c in written if written.count(c) == 1))
    if "..." in wanted or not arrow:
        kept.update(name for term in terms for name in term if isinstance(name, int))
    total, done = 0, terms[0]
    for i, term in enumerate(terms[1:], 2):
        keep = kept.union(*terms[i:])
        a, b = ({n: size for n, size in x.items() if n in keep or n in y} for x, y in ((done, term), (term, done)))
        both = {n: max(a.get(n, 1), b.get(n, 1)) if 0 not in (a.get(n), b.get(n)) else 0 for n in {**a, **b}}
        if not keep.issuperset(both):
            total += 2 * math.prod(both.values())
        done = {n: size for n, size in both.items() if n in keep}
    return total


def _flops(name: str, args: tuple, result: Any) -> int:
    """Of a call by its function's name."""
    if name in ("mm", "bmm", "matmul", "mv", "__matmul__"):
        return _product(args[0], args[1])
    if name == "linear":
        return _product(args[0], args[1].t())
    if name in ("addmm", "baddbmm", "addmv"):
        return _product(args[1], args[2])
    if name.startswith("conv"):
        return _convolution(args[0], args[1], result, "transpose" in name)
    if name == "_scaled_dot_product_attention":
        return _attention(*args[:3])
    return 0


class FlopCounterMode(TorchFunctionMode):
    """Counts the operations of calls within `with FlopCounterMode() as counter:`.

    Args:
        mods, custom_mapping: of no account.
        depth: of no account: what is counted is not told apart by modules.
        display: whether the table is printed at the end.

    >>> import naru
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = naru.ones(2, 3) @ naru.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    _sees_all = True  # attention, too, which is a function of naru's own beneath

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        super().__init__()
        self.display, self.depth = display, depth
        self.flop_counts: dict[str, dict[str, int]] = {"Global": defaultdict(int)}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = tuple(a for a in (*args, *(kwargs or {}).values()) if isinstance(a, Tensor))
        count = _einsum(*args) if name == "_einsum" else _flops(name, given, result) if len(given) > 1 else 0
        if count:
            self.flop_counts["Global"][name.lstrip("_") if not name.endswith("__") else name] += count
        return result

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """{"Global": {function: operations}}: modules are not told apart."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_table(self, depth: int | None = None) -> str:
        """A text with a line a function."""
        rows = sorted(self.flop_counts["Global"].items(), key=lambda row: -row[1])
        return "\n".join(f"{name:<40} {count:>16,}" for name, count in [*rows, ("total", self.get_total_flops())])

    def __exit__(self, *exc: Any) -> Any:
        if self.display:
            print(self.get_table())
        return super().__exit__(*exc)
