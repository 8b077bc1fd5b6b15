"""`naru selftest DEVICE`: runs every operator case on a device, in every memory layout, against float64 on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import naru
from naru.testing.operator_cases import CASES, Case, compare, layouts, on_device, result_bits

FAMILIES = {
    "reductions": "sum mean prod amax amin max min argmax argmin any all var std norm logsumexp cumsum",
    "products": "matmul dot linear",
    "networks": "softmax log_softmax cross_entropy mse_loss layer_norm embedding",
    "indexing": "index gather index_select scatter_add masked_fill sort topk",
    "fused": "fused gelu",
}
_FAMILY = {word: family for family, words in FAMILIES.items() for word in words.split()}
# Empty, one element, and sizes that leave a partial vector.
REDUCED = [(2, 1), (3, 129), (129, 3), (2, 500)]
SIZES = [(0,), (3, 0), (), (1,), (17,), (129,), (1000,), (5000,)]


def family_of(case: Case) -> str:
    """'elementwise', 'reductions', 'products', 'networks', 'indexing', 'fused', 'linalg', 'fourier' or 'shapes'."""
    if case.extra.get("elementwise"):
        return "elementwise"
    if case.extra.get("library"):
        return "linalg"
    if case.extra.get("host"):
        return "fourier"
    return _FAMILY.get(case.name.split("(")[0].split()[0], "shapes")


@dataclass
class Family:
    """The results of a family's checks."""

    checks: int = 0
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    cases: int = 0
    same_bits: int = 0
    worst: float = 0.0
    worst_case: str = ""


def variants(case: Case, device: str, dtype, quick: bool) -> Iterator[tuple[str, list, list]]:
    """A case's operands in every memory layout: (name, tensors, the arrays with their values)."""
    arrays = case.operands(1)
    kinds = [layouts(a, device, dtype) for a in arrays]
    for name in ("contiguous", "transposed") if quick else ("contiguous", "transposed", "offset", "strided"):
        yield name, [k.get(name, k["contiguous"]) for k in kinds], arrays
    # The first row repeated, through stride 0.
    arrays = [np.repeat(a[:1], len(a), 0) if a.ndim and a.shape[0] else a for a in arrays]
    operands = on_device([a[:1] if a.ndim else a for a in arrays], device, dtype)
    yield "stride 0", [t.expand(a.shape) for t, a in zip(operands, arrays)], arrays
    if case.extra.get("elementwise"):
        shapes = SIZES[:5] if quick else SIZES
    elif family_of(case) == "reductions" and len(case.shapes[0]) == 2:
        shapes = REDUCED[:2] if quick else REDUCED
    else:
        return
    for shape in shapes:
        arrays = case.operands(2, [shape] * len(case.shapes))
        yield f"size {shape}", on_device(arrays, device, dtype), arrays


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _made(case: Case, device: str, dtype: Any, quick: bool, found: Family) -> Any:
    """The operands of a case. Errors while a device creates them are reported, too."""
    try:
        yield from variants(case, device, dtype, quick)
    except Exception as wrong:
        found.wrong.append(f"{case.name}, operands, {str(dtype).removeprefix('torch.')}: {_reason(wrong)}")


def _check(case: Case, device: str, dtypes: list, quick: bool, found: Family) -> None:
    found.cases += 1
    for dtype in dtypes:
        for name, operands, arrays in _made(case, device, dtype, quick, found):
            found.checks += 1
            try:
                error = compare(case, case.run(*operands), arrays, dtype)
            except NotImplementedError as unsupported:
                found.missing.append(f"{case.name}: {_reason(unsupported)}")
                return
            except Exception as wrong:  # record any error of a device, and continue with the next case
                found.wrong.append(f"{case.name}, {name}, {str(dtype).removeprefix('torch.')}: {_reason(wrong)}")
                continue
            if dtype is naru.float32 and error > found.worst:
                found.worst, found.worst_case = error, case.name
    if device == "cpu" or quick:
        return
    try:
        found.same_bits += result_bits(case, device) == result_bits(case)
    except Exception as wrong:
        found.wrong.append(f"{case.name}, gradient: {_reason(wrong)}")


def run(device: str, quick: bool = False, tell: Callable[[str], None] = lambda name: None) -> dict[str, Family]:
    """Runs all cases on a device; returns the results by family. Quick: float32 in two layouts, no gradients. tell: called with each case before it runs."""
    dtypes = [naru.float32]
    if not quick and naru._C._describe_device(device)["fp64"]:
        dtypes.append(naru.float64)
    families: dict[str, Family] = {}
    for case in CASES:
        tell(case.name)
        _check(case, device, dtypes, quick, families.setdefault(family_of(case), Family()))
    return families


def report(device: str, found: dict[str, Family], quick: bool = False) -> tuple[str, bool]:
    """The table of a run, and whether there were no errors."""
    bits = not quick and device != "cpu"
    rows = [("operators", "cases", "checks", "wrong", "missing", "worst error") + (("bits of cpu",) if bits else ())]
    for name, f in found.items():
        worst = f"{f.worst:.2f} ulp ({f.worst_case})" if f.worst_case else "-"
        row = (name, f.cases, f.checks, len(f.wrong), len(f.missing), worst) + ((f"{f.same_bits} of {f.cases}",) if bits else ())
        rows.append(tuple(map(str, row)))
    from .._command.screen import table

    lines = [f"{device}: {naru._C.device_name(device)}", "", table(rows)]
    for f in found.values():
        lines += [f"wrong: {text}" for text in f.wrong] + [f"missing: {text}" for text in f.missing]
    right = not any(f.wrong for f in found.values())
    checks = sum(f.checks for f in found.values())
    lines.append(f"\n{checks} checks against float64 on the CPU: " + ("all right" if right else "some WRONG"))
    return "\n".join(lines), right


def figures(device: str, found: dict[str, Family]) -> dict[str, Any]:
    """A run in the format of `naru selftest --json`."""
    return {"device": device, "name": naru._C.device_name(device), "right": not any(f.wrong for f in found.values()),
            "families": {name: asdict(f) for name, f in found.items()}}  # fmt: skip
