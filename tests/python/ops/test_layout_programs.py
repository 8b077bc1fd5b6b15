"""Operands of every layout, dtype and position in a deferred chain that is then reduced, scanned, sorted, gathered ...: the same bits as operators
run one by one, and agreement with NumPy in float64."""
import itertools
import math
import random

import naru
import numpy as np
import pytest
from bitwise import bits
from layout_programs import LARGE, LAYOUTS, SHAPES, TRIPLES, Program, Seen, differences, one_by_one, outcome, ways_of
from naru import _C
from naru.testing.operator_cases import REFERENCES
from opencl import need_xpu, processors_count

SEEDS = range(2880)  # each triple once, and as many reductions
PARTS = 6
seen = Seen()


pytestmark = pytest.mark.usefixtures("own_matmuls")


def check(program):
    wanted = one_by_one(program)
    seen.add(program, wanted)
    assert differences(program, ways_of(program), wanted) == [], str(program)


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_over_every_layout_give_the_bits_of_their_operators_one_by_one(part):
    for seed in SEEDS[part::PARTS]:
        check(Program(seed))


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_recorded_programs_give_the_same_bits_when_they_are_replayed(device, capsys):
    recorded = Seen()
    for program in map(Program, SEEDS[::4]):
        wanted = one_by_one(program)
        if isinstance(wanted, str) or program.kind == "write":
            continue  # rejected; or the program's own operands are written, so that a replay starts from the new values
        operands, graph = program.tensors(device), naru.Graph(device=device)
        try:
            with naru.graph(graph):
                results = program.run(operands)
        except RuntimeError as error:
            assert "captur" in str(error), str(program)  # it reads values, or is an optimizer that is not capturable
            continue
        recorded.add(program, wanted)
        for _ in range(2):
            graph.replay()
            assert [bits(t) for t in results] == wanted, str(program)
    with capsys.disabled():
        print(f"\nreplays on {device}: {recorded.counts()}")


def test_processors_through_opencl_give_the_same_bits():
    with processors_count():
        need_xpu()
        for program in [p for p in map(Program, SEEDS) if p.kind in ("reduction", "several reductions", "argreduce", "row-fused")][:20]:
            wanted = one_by_one(program)
            if not isinstance(wanted, str):
                assert outcome(program, "xpu:0") == wanted, str(program)


def test_every_layout_of_every_dtype_meets_every_kind_of_instruction_that_takes_the_dtype(capsys):
    for number, triple in enumerate(seen.never()):
        for attempt in range(40):  # until a seed draws operators that the dtype supports
            if not seen.count[triple]:
                check(Program(10**7 + 100 * number + attempt, triple))
    with capsys.disabled():
        print(f"\n{seen}")
    ran = {(dtype, kind) for _, dtype, kind in seen.count}
    assert [t for t in seen.never() if t[1:] in ran] == []
    assert len(ran) * len(LAYOUTS) > 0.9 * len(TRIPLES)


# --- one operator and one reduction, against NumPy

EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
DTYPES = ["float64", "float32", "int64", "int32", "bfloat16", "float16", "int16", "int8", "uint8", "bool"]
# The expected result of a reduction, and a bound on its error from the magnitudes of the elements `size`, the error of each `e`, and the unit
# roundoff `u` (Higham,
# Accuracy and Stability of Numerical Algorithms, 2nd edition, (4.4): a sum of n terms in any order loses at most (n - 1) u times the sum of magnitudes).
REDUCTIONS = {
    "sum": (lambda t, d: t.sum(d), lambda a, d: a.sum(d), lambda size, e, n, u, d: e.sum(d) + n * u * size.sum(d)),
    "mean": (lambda t, d: t.mean(d), lambda a, d: a.mean(d), lambda size, e, n, u, d: (e.sum(d) + (n + 1) * u * size.sum(d)) / n),
    "amax": (lambda t, d: t.amax(d), lambda a, d: a.max(d), lambda size, e, n, u, d: e.max(d)),
    "amin": (lambda t, d: t.amin(d), lambda a, d: a.min(d), lambda size, e, n, u, d: e.max(d)),
    "any": (lambda t, d: t.any(d), lambda a, d: (a != 0).any(d), None),
    "all": (lambda t, d: t.all(d), lambda a, d: (a != 0).all(d), None),
}
# Steps: an operand rounded to the next lower precision may give another integer.
JUMPS = {"floor_divide", "div_trunc", "remainder", "fmod"}
# Allowed error in ulps of the operator, relative to the greater of its result and 1: the bounds of docs/mathematics.md plus rounding to narrow types.
OFF = 8
ORACLE = 2e-13  # the error of the reference itself (its digamma is a series), as in operator_cases.compare


def layouts_of(a, layout):
    """The float64 values that a layout of `a` stands for, over a's whole shape."""
    if layout in ("one number a row", "expanded"):
        a = a[..., :1]
    elif layout == "one number a column":
        a = a[(slice(0, 1),) * (a.ndim - 1)]
    elif layout in ("one number", "no dimensions"):
        a = a[(slice(0, 1),) * a.ndim]
    return a


def cases():
    """(operator, dtype, reduction) in every combination, each with a drawing of layouts, positions and sizes."""
    table = [(name, arity, lo, hi) for name, arity, _, lo, hi, *_ in _C._elementwise_table() if name in REFERENCES]
    for number, ((name, arity, lo, hi), dtype, reduction) in enumerate(itertools.product(table, DTYPES, REDUCTIONS)):
        yield number, name, arity, lo, hi, dtype, reduction


def operands_of(number, arity, lo, hi, dtype):
    """Values that each dtype holds exactly, in [lo, hi]; never 0 for integers where they may be divided by."""
    r, rng = random.Random(number), np.random.default_rng(number)
    shape = r.choice(r.choices([SHAPES, LARGE], [3, 1])[0])
    names = [r.choice(list(LAYOUTS)) for _ in range(arity)]
    names[r.randrange(arity)] = "whole" if r.random() < 0.5 else r.choice(["transposed", "window", "every other"])
    step = 4 if dtype[0] in "fb" and dtype != "bool" else 1
    least, most = math.ceil(lo * step), math.floor(hi * step)
    if dtype in ("uint8", "bool"):
        least, most = max(least, 1 if lo > 0 else 0), max(most, 0)
    if dtype == "bool":
        least, most = min(least, 1), min(most, 1)
    arrays = [rng.integers(least, max(most, least) + 1, shape) / step for _ in range(arity)]
    return shape, names, arrays, r.randrange(len(shape))


@pytest.mark.parametrize("kind", ["cpu", "cuda:0"])
def test_every_operator_and_reduction_of_every_dtype_is_what_numpy_says(kind):
    checked = 0
    for number, name, arity, lo, hi, dtype, reduction in cases():
        if dtype == "bool" and name.endswith("_shift"):
            continue  # NumPy shifts them as int8
        shape, names, arrays, d = operands_of(number, arity, lo, hi, dtype)
        if name == "where":
            arrays[0] = arrays[0] > 0
        tensors = [LAYOUTS[layout](naru.tensor(a, device=kind).to(naru.bool if a.dtype == bool else getattr(naru, dtype))) for layout, a in zip(names, arrays)]
        run, reference, bound = REDUCTIONS[reduction]
        try:
            value = _C._elementwise(name, *tensors)
            got = run(value, d)
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # not supported for this dtype
        checked += 1
        seen_as = [layouts_of(a, layout) for a, layout in zip(arrays, names)]
        if name.startswith("bitwise"):
            seen_as = [a.astype(bool if dtype == "bool" else np.int64) for a in seen_as]
        with np.errstate(all="ignore"):
            exact = np.broadcast_to(np.asarray(REFERENCES[name](*seen_as)), shape).astype(np.float64)
        if value.dtype == naru.bool:
            exact = (exact != 0).astype(np.float64)  # a sum of bools is a logical or
        elif not value.is_floating_point():
            exact = exact.astype(np.int64).astype(str(value.dtype).removeprefix("torch.")).astype(np.float64)  # integers wrap around
        label = f"{name}({', '.join(f'{dtype} {n}' for n in names)}) of {shape}, {reduction}({d}) on {kind}"
        assert tuple(got.shape) == shape[:d] + shape[d + 1:], label
        result, computed = str(got.dtype).removeprefix("torch."), str(value.dtype).removeprefix("torch.")
        found, wanted = got.double().cpu().numpy() if result != "bool" else got.cpu().numpy(), reference(exact, d)
        if result not in EPSILON:
            np.testing.assert_array_equal(found, wanted, err_msg=label)
            continue
        u = EPSILON[computed] if computed in EPSILON else 0
        size = np.abs(exact)
        off = (OFF * u + ORACLE if name not in JUMPS else 0) * np.maximum(size, 1)
        limit = bound(size, off, shape[d], max(EPSILON["float32"] if result in ("float16", "bfloat16") else EPSILON[result], 0), d) + 2 * EPSILON[result] * np.abs(wanted)
        with np.errstate(invalid="ignore"):
            right = (np.abs(found - wanted) <= limit) | (found == wanted)
        assert right.all(), f"{label}: off by {np.abs(found - wanted).max()}, at most {limit.max()}"
    assert checked > 3000
