"""Every operator case on every device, in every layout, against NumPy in float64; gradients against finite differences; and the same bits
however the work is done."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import naru
from naru import _C
from naru.testing.operator_cases import CASES, as_tuple, bits, compare, differentiable, layouts, on_device, result_bits

IDS = [c.name for c in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_operator_agrees_with_numpy_in_every_layout(case, device):
    for dtype in (naru.float32, naru.float64):
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
    try:
        _C.set_fusion(False)
        assert result_bits(case) == plain, "unfused gave other bits than fused"
    finally:
        _C.set_fusion(True)
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
