"""Every operator case on every device, in every layout, compared with NumPy in float64; gradients compared with finite differences; and equal bits
for every way of executing the work."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import naru
from bitwise import unfused
from naru import _C
from naru.testing.operator_cases import CASES, REFERENCES, as_tuple, bits, compare, differentiable, layouts, on_device, result_bits

IDS = [c.name for c in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_operator_agrees_with_numpy_in_every_layout(case, device):
    for dtype in (naru.float32, naru.float64) if _C._describe_device(device)["fp64"] else (naru.float32,):
        arrays = case.operands(1)
        kinds = [layouts(a, device, dtype) for a in arrays]
        for name in ("contiguous", "transposed", "offset", "strided"):
            operands = [k.get(name, k["contiguous"]) for k in kinds]
            compare(case, case.run(*operands), arrays, dtype)


BROADCASTING = [c for c in CASES if c.extra.get("broadcasts")]


@pytest.mark.parametrize("case", BROADCASTING, ids=[c.name for c in BROADCASTING])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (), (1, 1), (3,), (17,), (129,), (1000,), (5000,)], ids=str)
def test_an_operator_takes_every_size(case, shape, device):
    arrays = case.operands(2, [shape] * len(case.shapes))
    operands = on_device(arrays, device, naru.float32)
    compare(case, case.run(*operands), arrays, naru.float32)


@pytest.mark.parametrize("case", BROADCASTING, ids=[c.name for c in BROADCASTING])
def test_an_operator_reads_a_repeated_element_through_stride_0(case, device):
    shapes = [(1, 1)] + [(6, 9)] * (len(case.shapes) - 1)
    arrays = case.operands(3, shapes)
    operands = on_device(arrays, device, naru.float32)
    operands[0] = operands[0].expand(6, 9)
    compare(case, case.run(*operands), [np.broadcast_to(arrays[0], (6, 9))] + arrays[1:], naru.float32)


INTEGER_RULES = {"Arith", "ArithNoBool", "Rounding", "Compare", "Logical", "Predicate", "Bits", "Shift", "Power"}
INTEGER_ROWS = [(name, arity) for name, arity, rule, *_ in _C._elementwise_table() if rule in INTEGER_RULES]


@pytest.mark.parametrize("there", ["cpu", "mps:0"])
@pytest.mark.parametrize("name, arity", INTEGER_ROWS, ids=[name for name, _ in INTEGER_ROWS])
def test_an_operator_that_keeps_integers_computes_them_exactly(name, arity, there):
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        for size in (5, 9000):
            arrays = [np.random.default_rng(i).integers(1, 5, size) * (-1 if dtype != "uint8" and i == 0 else 1) for i in range(arity)]
            got = _C._elementwise(name, *[naru.tensor(a, dtype=getattr(naru, dtype), device=there) for a in arrays])
            wanted = np.asarray(REFERENCES[name](*arrays))
            assert str(got.dtype) == ("torch.bool" if wanted.dtype == bool else f"torch.{dtype}")
            np.testing.assert_array_equal(got.cpu().numpy(), wanted if wanted.dtype == bool else wanted.astype(np.int64).astype(dtype))


LIMITING = {
    "clamp": lambda x: x.clamp(0, 2), "clamp_": lambda x: x.clamp_(0, 2), "clamp by tensors": lambda x: x.clamp(naru.zeros_like(x), naru.ones_like(x)),
    "clamp_min": lambda x: x.clamp(min=0), "clamp_max": lambda x: x.clamp(max=0), "relu": naru.relu, "relu6": naru.nn.functional.relu6,
    "hardtanh": naru.nn.functional.hardtanh, "hardsigmoid": naru.nn.functional.hardsigmoid, "hardswish": naru.nn.functional.hardswish,
    "hardshrink": naru.nn.functional.hardshrink, "softshrink": naru.nn.functional.softshrink,
    "threshold": lambda x: naru.nn.functional.threshold(x, 1, 2), "a NaN for a limit": lambda x: naru.ones_like(x).clamp(-x.abs(), x),
}


@pytest.mark.parametrize("there", ["cpu", "mps:0"])
@pytest.mark.parametrize("name", LIMITING)
def test_nan_is_not_lost_where_values_are_limited(name, there):
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for size in (3, 5000):
            assert LIMITING[name](naru.full((size,), float("nan"), dtype=getattr(naru, dtype), device=there)).isnan().all()


GRADIENTS = [c for c in CASES if c.gradient]


@pytest.mark.parametrize("case", GRADIENTS, ids=[c.name for c in GRADIENTS])
def test_a_gradient_agrees_with_finite_differences(case, device):
    arrays = case.operands(4)
    wanted = differentiable(case, arrays)
    operands = [naru.tensor(a, device=device) for a in arrays]
    for i in wanted:
        operands[i].requires_grad_()
    first = as_tuple(case.run(*operands))[0]
    rng = np.random.default_rng(5)
    weights = rng.uniform(-1, 1, tuple(first.shape))
    first.backward(naru.tensor(weights, device=device))

    def value(values):
        return float((np.asarray(as_tuple(case.reference(*values))[0], float) * weights).sum())

    for i in wanted:
        g = operands[i].grad
        assert g is not None and g.shape == operands[i].shape and g.device == operands[i].device
        got = g.cpu().numpy()
        direction = rng.uniform(-1, 1, arrays[i].shape)
        h = 1e-6
        plus = [a + h * direction if k == i else a for k, a in enumerate(arrays)]
        minus = [a - h * direction if k == i else a for k, a in enumerate(arrays)]
        slope = (value(plus) - value(minus)) / (2 * h)
        assert abs(slope - float((got * direction).sum())) <= 2e-6 * max(1.0, float(np.abs(got).sum()))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_bits_are_the_same_however_the_work_is_done(case):
    plain = result_bits(case)
    assert result_bits(case, "cuda:0") == plain, "a virtual device gave other bits than cpu"
    with unfused():
        assert result_bits(case) == plain, "unfused gave other bits than fused"
    threads = naru.get_num_threads()
    try:
        for n in (1, 2, 3):
            naru.set_num_threads(n)
            assert result_bits(case) == plain, f"{n} threads gave other bits than {threads}"
    finally:
        naru.set_num_threads(threads)


@pytest.fixture(scope="module")
def digests_of():
    """Digests of all cases from a process of its own, with other machine code or none."""
    kept = {}

    def run(**environment):
        key = tuple(environment.items())
        if key not in kept:
            done = subprocess.run([sys.executable, "-m", "naru.testing.operator_cases"], capture_output=True, text=True, env={**os.environ, **environment})
            assert done.returncode == 0, done.stderr
            kept[key] = json.loads(done.stdout)
        return kept[key]
    return run


@pytest.mark.parametrize("environment", [{"NARU_JIT": "0"}, {"NARU_ISA": "avx2"}, {"NARU_FUSE": "0"}, {"NARU_NUM_THREADS": "1"}, {"NARU_CACHING": "0"}],
                         ids=lambda e: "=".join(*e.items()))
def test_the_bits_are_the_same_with_other_machine_code_and_settings(digests_of, environment):
    wanted, got = digests_of(), digests_of(**environment)
    assert {n for n in wanted if wanted[n] != got[n]} == set()


@pytest.mark.parametrize("size", [1, 100, 5000, 70000])
def test_random_numbers_have_the_same_bits_on_every_device(size):
    for make in (lambda d: naru.rand(size, device=d), lambda d: naru.randn(size, device=d), lambda d: naru.randint(0, 1000, (size,), device=d),
                 lambda d: naru.randperm(size, device=d), lambda d: naru.bernoulli(naru.full((size,), 0.3, device=d)),
                 lambda d: naru.multinomial(naru.full((size,), 1.0, device=d), 1)):
        seen = []
        for d in ("cpu", "cuda:0", "cuda:1", "mps:0"):
            naru.manual_seed(7)
            seen.append(bits(make(d)))
        assert len(set(seen)) == 1


def test_every_row_of_the_elementwise_table_has_a_reference():
    from naru.testing.operator_cases import REFERENCES
    assert {r[0] for r in _C._elementwise_table()} == set(REFERENCES)
