"""The board's state (docs/conformance.json: counts and reasons) and the page generated from it (docs/conformance.md)."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
STATE, PAGE = ROOT / "docs" / "conformance.json", ROOT / "docs" / "conformance.md"
OUTCOMES = ("right", "wrong", "refused", "missing", "crash")
DTYPES = ("float32", "float64", "int64", "bool", "uint8", "complex64", "bfloat16", "float16")
REASONS_KEPT = 3
NUMBER = re.compile(r"\(?-?(\d+\.?\d*(e[-+]?\d+)?|nan|inf)([+-](\d+\.?\d*(e[-+]?\d+)?|nan|inf)j\))?j?\b")


def without_numbers(reason: str) -> str:
    """Normalizes a reason, so that it is the same on every machine."""
    said = NUMBER.sub("N", reason)
    said = re.sub(r"N(, N)+", "N, …", said)
    return re.sub(r"^((gradient: |result N: |N: )*)N of N elements differ.*", r"\1values differ", said)


class State:
    """Counts by operator and dtype, and the most common reasons for each operator."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.counts: dict[str, dict[str, Counter[str]]] = {}
        self.reasons: dict[str, Counter[tuple[str, str]]] = {}
        self.internal: set[str] = set()
        self.raised = self.random = 0

    def add(self, recorded: dict[str, Any], answers: list[tuple[str, str]]) -> None:
        op, dtype = recorded["op"], recorded["dtype"]
        counts = self.counts.setdefault(op, {}).setdefault(dtype, Counter())
        self.raised += recorded["raised"]
        self.random += sum(not s["repeats"] for s in recorded["samples"])
        if recorded["internal"]:
            self.internal.add(op)
        for sample, (outcome, reason) in zip(recorded["samples"], answers):
            counts[outcome] += 1
            if reason:
                form = "" if sample["form"] == "function" else sample["form"] + ": "
                self.reasons.setdefault(op, Counter())[(outcome, form + without_numbers(reason))] += 1

    def as_json(self) -> str:
        rows: dict[str, Any] = {}
        for op in sorted(self.counts):
            counts = {d: [c[o] for o in OUTCOMES] for d, c in sorted(self.counts[op].items())}
            reasons = sorted(self.reasons.get(op, Counter()).items(), key=lambda r: (-r[1], r[0]))[:REASONS_KEPT]
            row = {"counts": counts, "reasons": [[o, n, text] for (o, text), n in reasons]}
            if op in self.internal:
                row["internal"] = True
            rows[op] = row
        return written({"pytorch": self.version, "raised": self.raised, "random": self.random, "outcomes": OUTCOMES, "operators": rows})


def written(state: dict[str, Any]) -> str:
    """Serializes a state with one operator per line."""
    fields = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in state.items() if k != "operators")
    lines = [f"    {json.dumps(op)}: {json.dumps(row, ensure_ascii=False)}" for op, row in sorted(state["operators"].items())]
    return "{\n" + fields + '  "operators": {\n' + ",\n".join(lines) + "\n  }\n}\n"


def renewed(old: str, new: str) -> str:
    """Merges `new`, a state of some operators, into `old`; counts of the other operators stay."""
    state = json.loads(old)
    state["operators"].update(json.loads(new)["operators"])
    return written(state)


def share(counts: Counter[str]) -> str:
    every = sum(counts.values())
    return f"{int(1000 * counts['right'] / every) / 10:.1f} %" if every else "–"


def row_of(first: str, counts: Counter[str]) -> str:
    return f"| {first} | {sum(counts.values())} | " + " | ".join(str(counts[o]) for o in OUTCOMES) + f" | {share(counts)} |"


def summed(rows: dict[str, Any], internal: bool) -> dict[str, Counter[str]]:
    """Sums the counts by dtype over internal operators, or over public ones."""
    found: dict[str, Counter[str]] = {d: Counter() for d in DTYPES}
    for row in rows.values():
        if row.get("internal", False) == internal:
            for dtype, counts in row["counts"].items():
                found[dtype].update(dict(zip(OUTCOMES, counts)))
    return found


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def table_of(rows: dict[str, Any], internal: bool) -> list[str]:
    """A table of the operators with samples that are not right; outcomes in each row are ordered from worst."""
    out = ["| operator | samples | not right | by dtype | why |", "|---|---|---|---|---|"]
    for op in sorted(rows):
        row = rows[op]
        total: Counter[str] = Counter()
        for counts in row["counts"].values():
            total.update(dict(zip(OUTCOMES, counts)))
        bad = {o: total[o] for o in OUTCOMES[1:] if total[o]}
        if row.get("internal", False) != internal or not bad:
            continue
        dtypes = ", ".join(f"{d} {sum(c[1:])}" for d in DTYPES if (c := row["counts"].get(d)) and sum(c[1:]))
        why = REASONS.get(op) or "; ".join(f"{n} {o}: {text}" for o, n, text in row["reasons"])
        out.append(f"| `{op}` | {sum(total.values())} | {', '.join(f'{n} {o}' for o, n in bad.items())} | {dtypes} | {cell(why)} |")
    return out


def page(text: str) -> str:
    """Generates the page from the text of the state file."""
    state = json.loads(text)
    rows = state["operators"]
    by_dtype, internal = summed(rows, False), summed(rows, True)
    total: Counter[str] = sum(by_dtype.values(), Counter())
    head = "| | samples | " + " | ".join(OUTCOMES) + " | right |"
    out = [
        "# The board of conformance",
        "",
        f"Made by `./run conformance`: every sample of the OpInfo database in PyTorch {state['pytorch']}'s wheel (the calls that its",
        "own tests make of every operator), of its modules and of its optimizers (five steps), run by PyTorch and by naru on the",
        "cpu. `docs/conformance.json` has the counts, so that a change that lowers one shows in review.",
        "",
        "- *right*: PyTorch's values, dtype and shape; where PyTorch gives a view, a view of the same strides; PyTorch's",
        "  gradients, and, for a part of the samples in float64, gradients of gradients. Values are equal to the tolerances of",
        "  `torch.testing.assert_close`, or, where PyTorch is farther from the exact value itself, to twice its own error.",
        "- *wrong*: any of it is not so. *refused*: an error where PyTorch computes. *missing*: a name that there is not.",
        "  *crash*: the end of the process, or more than 30 seconds.",
        "- The first samples of each operator are also run as a method, in place, and by the operator's other names.",
        "- Of decompositions that leave signs open (`svd`, `eigh`), what PyTorch's own tests make unique is compared; places",
        "  (`topk`, `sort`) may name another of equal elements. Random numbers are PyTorch's",
        "  (`naru.random.set_algorithm(\"pytorch\")`).",
        f"- Left out: {state['raised']} samples that PyTorch itself raises for, those of more than 4 MiB, and the values of `empty`",
        "  and its kin.",
        "",
        head,
        "|---|" + "---|" * (len(OUTCOMES) + 2),
        row_of("**all**", total),
        *(row_of(d, by_dtype[d]) for d in DTYPES),
        row_of("names that PyTorch does not document", sum(internal.values(), Counter())),
        "",
        f"{sum(not r.get('internal', False) for r in rows.values())} operators and variants, all samples right of {all_right(rows)}.",
        "",
        "## What is not right",
        "",
        *table_of(rows, False),
        "",
        "## Names that PyTorch does not document",
        "",
        "They begin with an underscore, or belong to its dispatcher or its compiler of CUDA text; they are no part of the totals.",
        "",
        *table_of(rows, True),
    ]
    return "\n".join(out) + "\n"


def all_right(rows: dict[str, Any]) -> int:
    return sum(not r.get("internal", False) and not any(sum(c[1:]) for c in r["counts"].values()) for r in rows.values())
