"""Kernels that virtual cuda devices interpret (docs/kernelcheck.md): right results, no false alarm, and the faults of mutants."""
import json
import os
import subprocess
import sys
from pathlib import Path

import naru
import numpy as np
import pytest
from checked_kernels import KERNELS, mutants
from naru import _C
from naru.testing.operator_cases import CASES, result_bits

HOME = Path(__file__).resolve().parents[3]
SUPPORT = Path(__file__).parents[1] / "support"
ALL = os.environ.get("NARU_TEST_KERNELS") == "all"


def missing():
    """Why there is no NVRTC; '' if there is one."""
    with naru.virtual("cuda", execute="ptx"):
        try:
            _C.synchronize("cuda:0")
        except RuntimeError as error:
            return str(error)
    return ""


WHY = missing()
needs_nvrtc = pytest.mark.skipif(bool(WHY), reason=f"no NVRTC here (pip install nvidia-cuda-nvrtc): {WHY}")


@pytest.fixture
def checked():
    """A virtual device whose faults are collected."""
    with naru.virtual("cuda", execute="ptx"):
        _C._collect_kernel_faults(True)
        try:
            yield
        finally:
            _C._collect_kernel_faults(False)


def run(kernel, source):
    """Whether the results are right, and the kinds of the faults."""
    _C._collect_kernel_faults(True)
    arguments = [naru.from_numpy(a.copy()).to("cuda") if isinstance(a, np.ndarray) else a for a in kernel.arguments]
    k = naru.kernel(source, "k")
    shared = {"shared": kernel.shared} if kernel.shared else {}
    k(*arguments, blocks=kernel.blocks, threads=kernel.threads, **shared)
    expected = kernel.expected()
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = [a.cpu().numpy() for a in arguments[-len(expected) :]]
    right = all(np.allclose(r.astype("f8"), np.asarray(e, "f8").reshape(r.shape), 1e-4, 1e-5) for r, e in zip(results, expected))
    return right, _C._kernel_faults()


@needs_nvrtc
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_a_right_kernel_has_right_results_and_no_fault(checked, kernel):
    right, faults = run(kernel, kernel.source)
    assert faults == [] and right


# Mutants that compute what the kernel does, by kernel and line, and why.
EQUIVALENT = {
    ("softmax", "float most = s[0];"): "the maximum of the other elements: softmax is the same for any number in its place that lets nothing overflow",
}


@needs_nvrtc
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_mutants_are_found(checked, kernel):
    """A missing barrier or initialisation is a fault. A shifted index is one, or stays within its array: then the results show it."""
    missed, equivalent = [], set()
    for what, line, source in mutants(kernel):
        right, faults = run(kernel, source)
        text = kernel.source.split("\n")[line - 1].strip()
        if (kernel.name, text) in EQUIVALENT and right and not faults:
            equivalent.add((kernel.name, text))
        elif not faults and (right or what != "index shifted"):
            missed.append((what, text))
    assert missed == [] and equivalent == {key for key in EQUIVALENT if key[0] == kernel.name}


FAULTY = """
import torch

source = '''
__global__ void shift(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i + 2];
}'''
shift = torch.kernel(source, "shift")
weight, out = torch.zeros(16, 16, device="cuda"), torch.empty(256, device="cuda")
shift(weight, out, 256, blocks=4, threads=64)
print("done", out.sum().item())
"""


def command(*words, **environment):
    done = subprocess.run([sys.executable, "-m", "naru", *words], capture_output=True, text=True, cwd=HOME, env={**os.environ, "NARU_VIRTUAL": "", **environment})
    return done.returncode, done.stdout, done.stderr


@needs_nvrtc
def test_the_command_names_kernel_line_thread_and_tensor(tmp_path):
    (tmp_path / "train.py").write_text(FAULTY)
    status, out, err = command("kernelcheck", str(tmp_path / "train.py"))
    assert status == 1, out + err
    assert "done 0.0\n" in out
    assert "out of bounds: kernel 'shift', line 4: out[i] = x[i + 2];\n  thread (62, 0, 0) of block (3, 0, 0): reads 4 bytes, 0 bytes behind `x` (256,) float32, made by zeros at " in out
    assert "train.py:10 (2 times)\n" in out
    assert "naru kernelcheck: 1 fault in 1 kernel, of " in out
    status, out, err = command("kernelcheck", "--json", "--counts", str(tmp_path / "train.py"))
    found = json.loads(out.splitlines()[-1])
    assert status == 1 and [f["kind"] for f in found["faults"]] == ["out of bounds"] and found["kernels"]["naru_user_shift"]["threads"] == 256


@needs_nvrtc
def test_the_command_ends_with_0_where_no_kernel_has_a_fault(tmp_path):
    (tmp_path / "train.py").write_text("import torch\nx = torch.ones(10, 10, device='cuda')\nprint((x @ x).sum().item())\n")
    status, out, err = command("kernelcheck", str(tmp_path / "train.py"))
    assert status == 0 and out.startswith("1000.0\nnaru kernelcheck: no fault in "), out + err
    assert command("kernelcheck", "-c", "raise SystemExit(3)")[0] == 3


def test_without_the_compiler_the_error_says_what_to_install(tmp_path):
    status, out, err = command("kernelcheck", "-c", "pass", NARU_NVRTC_LIBRARY="/nowhere/libnvrtc.so")
    assert status == 2 and "execute=ptx needs NVRTC" in err and "pip install nvidia-cuda-nvrtc" in err, out + err


@needs_nvrtc
def test_a_fault_is_an_error_at_the_next_wait():
    source = "kernel void over(float* x, int n) { x[global_id(0) + n] = 1; }"
    over = naru.kernel(source, "over")
    with naru.virtual("cuda", execute="ptx"):
        x = naru.zeros(64, device="cuda")
        over(x, 0, grid=64)
        assert x.sum().item() == 64
        over(x, 8, grid=64)
        with pytest.raises(RuntimeError, match=r"out of bounds: kernel 'over', line 1 \(.*thread .*: writes 4 bytes, 0 bytes behind `x` \(64,\) float32, made by zeros at .*test_kernelcheck.py"):
            x.cpu()
        assert x.sum().item() == 64  # the device goes on
        with pytest.raises(IndexError):
            x[naru.tensor([99], device="cuda")].cpu()


def test_only_cuda_executes_ptx():
    with pytest.raises(RuntimeError, match="execute=ptx is for cuda"):
        naru.virtual("mps", execute="ptx")
    with pytest.raises(RuntimeError, match="execute: wanted ptx"):
        naru.virtual("cuda", execute="sass")


@needs_nvrtc
@pytest.mark.parametrize("part", range(8) if ALL else (3,))
def test_operators_and_their_gradients_have_the_bits_of_the_cpu_and_no_fault(checked, part):
    naru.use_deterministic_algorithms(True)
    try:
        for case in CASES[part::8]:
            if not (case.extra.get("library") or case.extra.get("host")):  # a library's on the cpu
                assert result_bits(case, "cuda:0") == result_bits(case), case.name
                assert _C._kernel_faults() == [], case.name
    finally:
        naru.use_deterministic_algorithms(False)


def interpreted(*command, **environment):
    there = {**os.environ, "NARU_VIRTUAL": "cuda:1(execute=ptx)", "PYTHONPATH": str(Path(naru.__file__).resolve().parents[1]), **environment}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=HOME, env=there, timeout=3000)
    return done.returncode, done.stdout + done.stderr


@needs_nvrtc
@pytest.mark.parametrize("kind", ("rows", "gathers") if not ALL else ("selections", "rows", "long_rows", "column_sums", "batch_norms", "gathers", "random_pools", "overwritten"))
def test_random_calls_have_the_bits_of_the_cpu(kind):
    code, said = interpreted("tests/python/support/rendered_programs.py", "cuda:0", kind)
    assert code == 0 and said == f"{kind} []\n", said[-4000:]
