"""Whether autocast casts the operands of a call, and whether they are batched, is asked by ops/call/wrapped.h, for all operators in one order.

So no function of the operators asks by hand; EXCEPTIONS are the files that do, and why.
"""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"
ASKS = re.compile(r"\b(?:is_batched|are_batched|have_parts)\(|\bautocast::(?:Casts|decide)\b")

WRITES = "writes into its operand: the value of the batch, or parts, take the place of what was there"
INDEX = "reads an index: what each position is decides, not what the call is"
EXCEPTIONS = {
    "ops/elementwise/elementwise.cpp": "the elementwise table: the same questions, of its rows",
    "ops/elementwise/arithmetic.cpp": "records a quotient that has no derivative: that of a vmap by its value",
    "ops/tensor/apply.cpp": "below operators: computes what a row of the table, or a composition, is made of",
    "ops/tensor/copy.cpp": WRITES,
    "ops/shape/resize.cpp": WRITES,
    "ops/index/mask.cpp": WRITES + "; a rule of masked_fill looks which operand is batched",
    "ops/index/addressing.cpp": WRITES,
    "ops/index/index.cpp": INDEX,
    "ops/index/index_writes.cpp": INDEX,
    "ops/tensor/print.cpp": "no operator: prints what a tensor is",
    "ops/tensor/reading.cpp": "no operator: reads elements",
    "ops/linalg/lapack.cpp": "no operator: reads whether LAPACK failed, for all entries at once",
    "ops/sparse/sparse.h": "refuses what has no elements of its own",
    "ops/sparse/functions.cpp": "refuses what has no elements of its own",
    "ops/shape/cat.cpp": "chooses a way to join blocks, behind the head",
    "ops/linalg/least_squares.cpp": "a mark depends on it: tolerances may be those of entries",
    "ops/loss/losses.cpp": "a rule depends on it: weights may be those of entries",
    "ops/loss/cross_entropy.cpp": "reads 16-bit numbers as float32 where autocast would cast them first",
    "ops/sort/quantiles.cpp": "a rule depends on it: shares may be those of entries",
}


def sources(folder=SRC / "ops"):
    own = {SRC / "ops" / "call", SRC / "ops" / "batch"}
    return sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".inc") and p.parent not in own)


def asks(text):
    """The lines that ask what a tensor is."""
    lines = (line.partition("//")[0] for line in text.splitlines())
    return [line.strip() for line in lines if ASKS.search(line)]


def test_no_operator_asks_by_hand():
    found = {str(p.relative_to(SRC)): lines for p in sources() if (lines := asks(p.read_text()))}
    by_hand = {name: lines for name, lines in found.items() if name not in EXCEPTIONS}
    assert by_hand == {}, "begin with ops::wrapped (ops/call/wrapped.h): its one test serves all of them"
    assert set(EXCEPTIONS) <= set(found), "no exception is needed for these"


def test_the_search_finds_what_it_is_for():
    assert asks("  if (is_batched(t)) return f(t);  // vmap\n  x = 1;") == ["if (is_batched(t)) return f(t);"]
    assert asks('  if (const autocast::Casts c("f", {&t}); c) return f(c[0]);') and asks("if (ops::have_parts(a, b))")
    assert not asks("// is_batched(t)")


def rows_that_cast():
    rows = re.split(r'^\s*\{(?=")', (SRC / "core" / "operators.cpp").read_text(), flags=re.M)[1:]
    return {row.split('"')[1] for row in rows if ".autocast" in row}


def test_a_name_is_given_where_autocast_has_a_rule():
    text = "".join(p.read_text() for p in [*sources(), *sources(SRC / "nn")])
    named = set(re.findall(r'\bwrapped\(\s*"(\w+)"', text))
    assert len(named) > 60
    assert named <= rows_that_cast(), "without a rule of autocast the place of the name is ops::kNoCasts: it costs nothing in a block"


@pytest.mark.parametrize("question", ["Casts casts(", "kBatched", "kSparse"])
def test_the_questions_stand_in_one_order(question):
    text = (SRC / "ops" / "call" / "wrapped.cpp").read_text().partition("special_call(")[2]
    order = [text.index(q) for q in ("Casts casts(", "kBatched", "kSparse")]
    assert order == sorted(order) and text.count(question) == 1
