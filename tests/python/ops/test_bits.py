"""The bits of every operator's results, of random numbers and of a training run are recorded in a file made on x86-64. Other processors must
reproduce them, and changes must not alter them on x86-64. To regenerate the file after an intended change, or for new cases: `./run python
tests/python/ops/test_bits.py`."""
import contextlib
import hashlib
import json
import pathlib

import numpy as np
import pytest

import naru
from bitwise import bits
from naru import _C, nn
from naru.testing.operator_cases import CASES, as_tuple, differentiable, on_device

FILE = pathlib.Path(__file__).parents[1] / "bits.json"


def digest(tensors):
    whole = hashlib.sha256()
    for t in tensors:
        for part in bits(t):
            whole.update(part if isinstance(part, bytes) else str(part).encode())
    return whole.hexdigest()[:16]


def results(case, dtype, shapes=None):
    """What a case gives, and its gradients."""
    arrays = case.operands(6, shapes)
    operands = on_device(arrays, "cpu", dtype)
    wanted = differentiable(case, arrays) if case.gradient else []
    for i in wanted:
        operands[i].requires_grad_()
    out = as_tuple(case.run(*operands))
    if wanted:
        out[0].backward(naru.ones_like(out[0]))
    return [*out, *(operands[i].grad for i in wanted)]


def of_case(case):
    found = {"float32": digest(results(case, naru.float32))}
    if case.extra.get("broadcasts"):
        found["float32, worth fusing"] = digest(results(case, naru.float32, [(131, 67)] * len(case.shapes)))
        for dtype in (naru.float64, naru.float16, naru.bfloat16):
            found[str(dtype).removeprefix("torch.")] = digest(results(case, dtype))
    return found


def of_integers(name, arity):
    found = []
    for dtype in (naru.uint8, naru.int8, naru.int16, naru.int32, naru.int64):
        numbers = [(np.arange(101) * 7 + 3 * i) % 11 + 1 for i in range(arity)]
        found.append(_C._elementwise(name, *[naru.tensor(a, dtype=dtype) for a in numbers]))
    return {"integers": digest(found)}


def of_casts():
    values = naru.tensor(np.concatenate([np.linspace(-300, 300, 1001), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e10, -1e10, 1e30, 65520, 2**-25, 1e-42]]))
    dtypes = [getattr(naru, t) for t in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")]
    return {str(a): digest([values.to(a).to(b) for b in dtypes]) for a in dtypes}


RANDOM = {
    "rand": lambda n: naru.rand(n), "randn": lambda n: naru.randn(n), "randn of float64": lambda n: naru.randn(n, dtype=naru.float64),
    "randint": lambda n: naru.randint(0, 1000, (n,)), "randperm": lambda n: naru.randperm(n),
    "bernoulli": lambda n: naru.bernoulli(naru.full((n,), 0.3)), "multinomial": lambda n: naru.multinomial(naru.rand(n) + 1, min(n, 7)),
    "dropout": lambda n: nn.functional.dropout(naru.ones(n), 0.4, training=True),
}


def of_random_numbers(make):
    naru.manual_seed(7)
    return {str(n): digest([make(n), make(n)]) for n in (1, 100, 70001)}


def of_training():
    """A small network, 25 steps of Adam: the losses, and what it has learnt."""
    naru.manual_seed(3)
    x = naru.randn(96, 20)
    y = (x[:, :4] * x[:, 4:8]).argmax(1)
    net = nn.Sequential(nn.Linear(20, 33), nn.GELU(), nn.LayerNorm(33), nn.Dropout(0.1), nn.Linear(33, 4))
    optimizer = naru.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for step in range(25):
        batch = slice(step % 3 * 32, step % 3 * 32 + 32)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": digest(losses), "parameters": digest(list(net.parameters()))}


INTEGER_RULES = {"Arith", "ArithNoBool", "Rounding", "Compare", "Logical", "Predicate", "Bits", "Shift"}
SUBJECTS = {
    # The bits of vendor libraries depend on the processor.
    **{case.name: lambda case=case: of_case(case) for case in CASES if not case.extra.get("library")},
    **{f"{name} of integers": lambda name=name, arity=arity: of_integers(name, arity)
       for name, arity, rule, *_ in _C._elementwise_table() if rule in INTEGER_RULES},
    **{f"random: {name}": lambda make=make: of_random_numbers(make) for name, make in RANDOM.items()},
    "casts": of_casts,
    "training": of_training,
}


@contextlib.contextmanager
def own_products():
    """Not the libraries', whose bits are their own."""
    naru.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        naru.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def kept():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_bits_are_those_that_x86_64_gave(subject, kept):
    assert subject in kept, "bits.json does not know it: ./run python tests/python/ops/test_bits.py"
    with own_products():
        assert SUBJECTS[subject]() == kept[subject]


def test_the_file_knows_nothing_else(kept):
    assert set(kept) == set(SUBJECTS), "./run python tests/python/ops/test_bits.py"


if __name__ == "__main__":
    with own_products():
        made = {subject: SUBJECTS[subject]() for subject in SUBJECTS}
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(s)}: {json.dumps(b)}" for s, b in made.items()) + "\n}\n")
