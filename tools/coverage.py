"""Generates docs/coverage.md: device support, differentiability and dtypes of each operator, found by running the operator cases.

    python -m tools.coverage            writes the page
    python -m tools.coverage --check    checks whether it is up to date (as tests/python/project/test_coverage_page.py does)
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from dataclasses import dataclass, field

os.environ.setdefault("NARU_VIRTUAL", "cuda:2,mps:1")

import naru  # noqa: E402
from naru.testing.operator_cases import CASES, Case, as_tuple, differentiable, on_device  # noqa: E402
from tools.pages import ROOT, write_page  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"

TYPES = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
# Instruction families that are not rendered for devices (kHostOnly in src/ir).
HOST_ONLY = [name for name, family, _ in naru._C._coverage("cpu") if family in ("linalg", "fourier")]
INTEGERS, FLOATS = ("u8", "i8", "i16", "i32", "i64"), ("f16", "bf16", "f32", "f64")


@dataclass
class Row:
    """The properties of one operator, from all its cases."""

    on_devices: set[str] = field(default_factory=set)
    derivatives: int = 0
    types: set[str] = field(default_factory=set)


def name_of(case: Case) -> str:
    """The operator's name: the case's name without its variant suffix."""
    special = {"max": "max", "min": "min", "index": "indexing", "complex": "complex"}
    word = re.split(r"[ (,]", case.name)[0]
    return case.name.split()[1] if word == "complex" else special.get(word, word)


def operands_of(case: Case, dtype: naru.dtype, device: str = "cpu") -> list[naru.Tensor]:
    """The floating-point operands converted to that dtype; all operands, if there are only integers."""
    arrays = case.operands(3)
    kinds = "f" if any(a.dtype.kind == "f" for a in arrays) else "i"
    return [naru.tensor(a, device=device).to(dtype) if a.dtype.kind in kinds else naru.tensor(a, device=device) for a in arrays]


def takes(case: Case, dtype: naru.dtype) -> bool:
    """Whether the call runs with floating-point operands of another dtype; results are checked elsewhere."""
    try:
        as_tuple(case.run(*operands_of(case, dtype)))[0].tolist()
    except Exception:  # noqa: BLE001
        return False
    return True


def derivatives_of(case: Case) -> int:
    """How many times the case can be differentiated: 0, 1 or 2 (at least)."""
    if not case.gradient:
        return 0
    operands = operands_of(case, naru.float64)
    wanted = [operands[i].requires_grad_() for i in differentiable(case, case.operands(3))]
    outs = [t for t in as_tuple(case.run(*operands)) if t.requires_grad]
    if not outs or not wanted:
        return 0
    first = [g for g in naru.autograd.grad((outs[0] * outs[0]).sum(), wanted, create_graph=True, allow_unused=True) if g is not None]
    if not any(g.requires_grad for g in first):  # the derivatives are constant
        return 2
    try:
        naru.autograd.grad(sum((g * g).sum() for g in first), wanted, allow_unused=True)
    except RuntimeError:
        return 1
    return 2


def served_on_devices(case: Case) -> str:
    """"native", or "fallback" if the host does part of the work. All devices with a compiler share the renderer, so one of them represents all."""
    with naru.virtual("mps", without=HOST_ONLY), naru.fallback.policy("count"):
        naru.fallback.reset()
        as_tuple(case.run(*on_device(case.operands(3), "mps:0", naru.float32)))[0].tolist()
        used = naru.fallback.report()
        naru.fallback.reset()
    return "fallback" if used else "native"


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES:
            row = found.setdefault(name_of(case), Row())
            row.on_devices.add(served_on_devices(case))
            row.derivatives = max(row.derivatives, derivatives_of(case))
            row.types |= {short for short, name in TYPES.items() if short not in row.types and takes(case, getattr(naru, name))}
    return found


def types_text(types: set[str]) -> str:
    """Formats dtypes in order; all integer types, and all floating-point types, are each one word."""
    parts = ["bool"] if "bool" in types else []
    parts += ["integers"] if types.issuperset(INTEGERS) else [t for t in INTEGERS if t in types]
    parts += ["floating"] if types.issuperset(FLOATS) else [t for t in FLOATS if t in types]
    parts += ["complex"] if types.issuperset(("c64", "c128")) else [t for t in ("c64", "c128") if t in types]
    return ", ".join(parts)


def page() -> str:
    """Returns the page's text."""
    found = rows()
    fallback = sum("fallback" in r.on_devices for r in found.values())
    twice = sum(r.derivatives == 2 for r in found.values())
    out = [
        "# What is covered",
        "",
        "Made by `python -m tools.coverage` from the one list of operator cases (`python/naru/testing/operator_cases.py`), by running them; `tests/python/project/test_coverage_page.py`",
        "keeps it up to date. Each case is run on every kind of device, in every layout, against NumPy, and beside PyTorch by `./run test --torch`.",
        "",
        "*devices*: those with compilers of their own (cuda, rocm, xpu, mps); *fallback*: the host does a part of it. The cpu does all. *derivatives*: how often it can be",
        "derived. *types* of its operands (but of indices); integers are " + ", ".join(TYPES[t] for t in INTEGERS) + ", floating "
        + ", ".join(TYPES[t] for t in FLOATS) + ".",
        "",
        f"{len(found)} operators, {fallback} with a fallback on devices, {twice} whose gradients have gradients.",
        "",
        "| operator | devices | derivatives | types |",
        "|---|---|---|---|",
    ]
    for name in sorted(found, key=lambda n: (n.lower(), n)):
        row = found[name]
        devices = "fallback" if "fallback" in row.on_devices else "native"
        out.append(f"| `{name}` | {devices} | {row.derivatives or '–'} | {types_text(row.types)} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    sys.exit(write_page("coverage", PAGE, page))
