"""naru.kernel in complete programs: without a compiler, with a warm cache, under naru run, from threads."""
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

import naru
from kernel_cases import MATMUL, VEC_ADD


def run_python(program, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is not None, reason="the wheel ziglang is installed here, which has a compiler")
def test_without_a_compiler_the_error_says_what_to_install(tmp_path):
    done = run_python("""
        import naru
        try:
            naru.kernel("kernel void f(float* x) { x[0] = 1; }", "f")(naru.ones(1), grid=1)
        except RuntimeError as error:
            print(error)
        print((naru.ones(3) + 1).sum().item())
        """, PATH=str(tmp_path), CC="")
    assert done.returncode == 0, done.stderr
    assert "there is no C compiler" in done.stdout and "apt-get install gcc" in done.stdout and "pip install ziglang" in done.stdout and "CC" in done.stdout and "6.0" in done.stdout


def test_the_compiler_of_a_package_serves_where_there_is_no_other(tmp_path):
    """A stand-in for the wheel ziglang, a hundred megabytes: what it is called, and with which words."""
    (tmp_path / "ziglang").mkdir()
    zig = tmp_path / "ziglang" / "zig"
    zig.write_text('#!/bin/sh\n[ "$1" = cc ] || exit 1\nshift\nPATH=/usr/bin:/bin exec cc "$@"\n')
    zig.chmod(0o755)
    done = run_python("""
        import naru
        x = naru.ones(1)
        naru.kernel("kernel void f(float* x) { x[0] = 7; }", "f")(x, grid=1)
        print(x.item())
        """, PATH=str(tmp_path), CC="", NARU_CACHE_DIR=str(tmp_path), PYTHONPATH=f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}")
    assert done.stdout == "7.0\n", done.stderr


def test_the_second_start_of_a_program_compiles_nothing(tmp_path):
    program = """
        import naru
        x = naru.ones(3)
        naru.kernel("kernel void f(float* x) { x[global_id(0)] += 1; }", "f")(x, grid=3)
        print(x.tolist(), naru._C._kernel_cache()["compilations"])
        """
    first, second = (run_python(program, NARU_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == "[2.0, 2.0, 2.0] 1\n", first.stderr
    assert second.stdout == "[2.0, 2.0, 2.0] 0\n", second.stderr


def test_a_program_with_kernels_runs_under_naru_run(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(f"""
        import torch
        k = torch.kernel({VEC_ADD!r}, "vec_add")
        for device in ("cpu", "mps"):
            a, b = torch.arange(1000.0, device=device), torch.ones(1000, device=device)
            out = torch.empty(1000, device=device)
            k(a, b, out, grid=1000)
            print(device, out.sum().item())
        """))
    done = subprocess.run([sys.executable, "-m", "naru", "run", str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "cpu 500500.0\nmps 500500.0\n", done.stderr


def test_threads_of_python_may_call_one_kernel_at_a_time_of_their_own():
    from concurrent.futures import ThreadPoolExecutor

    k = naru.kernel(MATMUL, "matmul")

    def work(seed):
        a = naru.full((64, 64), float(seed))
        c = naru.zeros(64, 64)
        for _ in range(5):
            k(a, naru.eye(64), c, 64, 64, 64, blocks=(4, 4), threads=(16, 16))
        return naru.equal(a, c)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
