"""Runs the tests and counts them; called by ``./run test`` after the build.

Each suite runs in its own process, so that a crash is a failure and does not end the run. The last line on standard output is the sum, ``N passed,
N failed, N skipped``; the exit status is 0 only if nothing failed and something passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools import under_wine, windows_python  # noqa: E402

REPORTS = ROOT / "build" / "reports"
AARCH64 = str(ROOT / "tools" / "aarch64")
# Not run in qemu: accuracy tests compare with long double, which aarch64 computes in software (a test checks that the bits equal x86-64's); two
# tests start themselves, which needs a kernel that can run aarch64 programs; a child forked from a process with threads sometimes hangs in qemu.
# NOT_IN_THE_SHARE also omits tests that take a minute or more.
NOT_IN_QEMU = ["*StaysWithinItsErrorBound*", "NormalCdf.IsWithin*", "Lgamma.KeepsItsPrecision*", "OpenClBuffers.all_of_this_holds*",
               "ThreadPool.a_forked_child*", "Lifetime.WorkInHandlers*", "LibraryCall.*"]
NOT_IN_THE_SHARE = ["MatMul.float32_agrees*", "MatMul.float64_float16*", "MatMul.bfloat16_large*", "Map.gives_what_one_element*",
                    "MatMul.deterministic_is_one_chain*", "CachingAllocator.a_child_forked*"]
# Tests with subprocesses are left out: they would need that kernel, too.
PYTHON_IN_QEMU = ["tests/python/ops/test_operators.py", "tests/python/ops/test_bits.py", "-k", "not other_machine_code"]
# Limit in seconds: a suite that hangs must be reported as a failure by name, before the CI job is killed.
TIME_LIMIT = 4400


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_gtest(report: Path) -> Count:
    count = Count()
    for suite in json.loads(report.read_text(encoding="utf-8"))["testsuites"]:
        for test in suite["testsuite"]:
            if test["status"] != "RUN":
                continue  # filtered out, or disabled by name
            if test.get("failures"):
                count.failed += 1
            elif test["result"] == "SKIPPED":
                count.skipped += 1
            else:
                count.passed += 1
    return count


def count_junit(report: Path) -> Count:
    count = Count()
    for suite in xml.parse(report).getroot().iter("testsuite"):
        total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        count += Count(max(total - skipped - failed, 0), failed, skipped)
    return count


def print_stacks(folder: Path) -> None:
    """Prints where the Python processes of a suite are (tests/python/conftest.py opens a file for each, named after its process)."""
    for file in sorted(folder.iterdir()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.name), signal.SIGUSR1)
            time.sleep(1)
            threads = file.read_text(encoding="utf-8").split("\n\n")
            print(f"-- process {file.name}", *("\n".join(t.splitlines()[:15]) for t in threads), sep="\n", flush=True)


def run_suite(name: str, command: list[str], report: Path, counter, ok: tuple[int, ...] = (0,), **env: str) -> Count:
    """Runs one suite and prints its counts; a crash, a hang or a missing report counts as one more failure."""
    print(f"== {name}", flush=True)
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as stacks, subprocess.Popen(command, cwd=ROOT, env={**os.environ, "NARU_TEST_STACKS": stacks, **env}) as suite:
        try:
            status = suite.wait(TIME_LIMIT)
            trouble = f"ended with status {status}"
        except subprocess.TimeoutExpired:
            status, trouble = -1, f"did not end within {TIME_LIMIT} s"
            print_stacks(Path(stacks))
        finally:
            suite.kill()
    try:
        count = counter(report)
    except (OSError, ValueError, KeyError, xml.ParseError):
        count = Count()
    if status not in ok and count.failed == 0:
        print(f"{name} {trouble}")
        count.failed += 1
    print(f"   {name}: {count} ({time.monotonic() - start:.0f} s)", flush=True)
    return count


def side_by_side() -> list[str]:
    """pytest arguments for running files in parallel, one per processor (four at most)."""
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 4)
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"] if workers > 1 else []


def pytest(name: str, arguments: list[str], python: str = sys.executable, **env: str) -> Count:
    report = REPORTS / f"{name.replace(' ', '-')}.xml"
    command = [python, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    return run_suite(name, command, report, count_junit, ok=(0, 5), **env)  # 5: no tests were selected


def in_qemu(name: str, binary: str, left_out: list[str], processor: str = "max") -> Count:
    """Runs a C++ test program that was cross-compiled for aarch64."""
    report = REPORTS / f"aarch64-{processor}-{binary}.json"
    command = [AARCH64, "exec", str(ROOT / "build/aarch64/tests/cpp" / binary), "--gtest_brief=1", f"--gtest_output=json:{report}",
               f"--gtest_filter=-{':'.join(left_out)}"]
    return run_suite(f"{name}, aarch64 in qemu ({processor})", command, report, count_gtest, NARU_CACHE_DIR="", NARU_QEMU_CPU=processor)


def aarch64_share() -> Count:
    """Tests of the layers below operators; skipped, with the reason, if ``./run`` could not build them."""
    if reason := os.environ.get("NARU_NO_AARCH64"):
        print(f"== tests of aarch64: skipped: {reason}", flush=True)
        return Count(skipped=1)
    total = Count()
    for layer in ("core", "ir", "render", "runtime", "cpu"):
        total += in_qemu(f"C++ tests of {layer}", f"test_{layer}", NOT_IN_QEMU + NOT_IN_THE_SHARE)
    return total


def aarch64_whole() -> Count:
    """All C++ tests, the code generator's tests once more on an older processor (cortex-a72, 2016), and the operators from Python."""
    total = in_qemu("C++ tests", "naru_tests", NOT_IN_QEMU)
    total += in_qemu("C++ tests of render", "test_render", NOT_IN_QEMU, "cortex-a72")
    report = REPORTS / "aarch64-python.xml"
    command = [AARCH64, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *PYTHON_IN_QEMU]
    return total + run_suite("Python tests, aarch64 in qemu", command, report, count_junit)


def nvrtc() -> dict[str, str]:
    """The path of the compiler in the wheel nvidia-cuda-nvrtc, for the C++ tests, which do not search Python's folders."""
    folder = Path(sysconfig.get_path("purelib")) / "nvidia"
    found = [str(file) for file in sorted(folder.glob("*/lib/libnvrtc.so.*")) if ".alt." not in file.name]
    return {"NARU_NVRTC": found[-1]} if found and "NARU_NVRTC" not in os.environ else {}


def opencl_wrapper() -> dict[str, str]:
    """PoCL compiles in half the time what it need not read its own headers for (tests/fakes/opencl_headers.cpp)."""
    wrapper = ROOT / "build/release/tests/fakes/libopencl.so"
    if not wrapper.exists() or "NARU_OPENCL_LIBRARY" in os.environ:
        return {}
    return {"NARU_OPENCL_LIBRARY": str(wrapper), "NARU_FAKE_OPENCL_HEADERS": "own"}


def cpp_tests(chosen: str | None) -> Count:
    report = REPORTS / "cpp.json"
    command = [str(ROOT / "build/release/tests/cpp/naru_tests"), "--gtest_brief=1", f"--gtest_output=json:{report}"]
    if chosen:
        command.append(f"--gtest_filter={chosen}")
    return run_suite("C++ tests", command, report, count_gtest, NARU_CACHE_DIR="", **nvrtc(), **opencl_wrapper())


def other_programs(aarch64: bool) -> Count:
    """Test programs that replace the allocator, the examples of docs/extending.md, and the share of aarch64 tests."""
    total = Count()
    for program, name in (("faults", "everything fails once"), ("extending", "examples of docs/extending.md")):
        report = REPORTS / f"{program}.json"
        command = [str(ROOT / f"build/release/tests/{program}/naru_{program}"), "--gtest_brief=1", f"--gtest_output=json:{report}"]
        total += run_suite(name, command, report, count_gtest, NARU_VIRTUAL="", NARU_CACHE_DIR="")
    return total + aarch64_share() if aarch64 else total


# A part that needs no /proc, no fork, no kernel in C and no stand-in of a driver. (Complex exponentials of NumPy, with which test_operators.py compares,
# are among what wine 8 lacks.)
PYTHON_UNDER_WINE = ["tensor", "optim", "random", "names", "vision", "ops/test_bits.py", "ops/test_indexing.py", "ops/test_linalg.py", "nn/test_nn.py",
                     "files/test_serialization.py", "files/test_safetensors.py", "data/test_data.py", "autograd/test_autograd_graph.py"]  # fmt: skip


def wine_tests(chosen: list[str], paths: bool) -> Count:
    """Python tests with the newest wheel for Windows, in a Python for Windows under wine (tools/windows_python.py)."""
    version = sys.version_info[:2]
    wheels = sorted((ROOT / "dist").glob(f"naru-*-cp{version[0]}{version[1]}-win_amd64.whl"), key=os.path.getmtime)
    python = windows_python.python_of(version)
    if not wheels or python is None or under_wine.wine() is None:
        print(f"== Python tests under wine: skipped: no {'wheel' if not wheels else 'Python for Windows' if python is None else 'wine'}", flush=True)
        return Count(skipped=1)
    report = REPORTS / "wine-python.xml"
    with tempfile.TemporaryDirectory() as folder:
        windows_python.install(Path(folder), version, wheels[-1], windows_python.NUMPY, "scipy-openblas32", *windows_python.TESTS)
        where = [] if paths else [f"tests/python/{file}" for file in PYTHON_UNDER_WINE]
        command = [sys.executable, "tools/windows_python.py", f"{version[0]}.{version[1]}", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        return run_suite("Python tests under wine", [*command, *where, *chosen], report, count_junit, PYTHONPATH=folder)


# Of these tests `./run test` takes a share.
ALL_KERNELS = ("backends/test_cuda.py", "backends/test_rocm.py", "backends/test_metal.py", "kernels/test_kernelcheck.py")


def opencl_implementations() -> dict[str, dict[str, str]]:
    """OpenCL implementations for processors: their names, and the variables with which the loader finds each one alone."""
    folder = ROOT / "build" / "opencl"

    def alone(name: str, library: Path) -> str:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "only.icd").write_text(f"{library}\n", encoding="utf-8")
        return str(folder / name)

    intel = ROOT / ".venv-opencl" / "lib"
    return {
        "PoCL": {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors/pocl.icd"},
        "Intel's": {"OCL_ICD_VENDORS": alone("intel", intel / "libintelocl.so"), "LD_LIBRARY_PATH": str(intel)},
        "rusticl": {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors/rusticl.icd", "RUSTICL_ENABLE": "llvmpipe"},
        "Oclgrind": {"OCL_ICD_VENDORS": alone("oclgrind", Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so"))},
    }


def opencl_tests(chosen: list[str]) -> Count:
    """The tests of OpenCL devices on each implementation; one that cannot run a kernel is skipped, with its words."""
    total = Count()
    for name, variables in opencl_implementations().items():
        variables = {**variables, "NARU_OPENCL_CPU": "1", "NARU_CACHE_DIR": str(ROOT / "build" / "opencl" / "cache")}
        kernel = 'import naru; print(naru.rand(4, device="xpu").exp().sum().item())'
        tried = subprocess.run([sys.executable, "-c", kernel], env={**os.environ, **variables, "NARU_VIRTUAL": ""}, capture_output=True, text=True)
        if tried.returncode:
            words = [line for line in tried.stderr.splitlines() if "ERROR" in line or "Undefined" in line or "Error:" in line]
            print(f"== OpenCL, {name}: skipped, as it runs no kernel: {'; '.join(words)}", flush=True)
            total.skipped += 1
        else:
            total += pytest(f"OpenCL, {name}", ["tests/python/backends/test_opencl.py", *chosen], **variables)
    return total


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="./run test", allow_abbrev=False)
    parser.add_argument("-k", metavar="EXPR", help="only the Python tests whose names match")
    parser.add_argument("--cpp", action="store_true", help="only the C++ tests")
    parser.add_argument("--python", action="store_true", help="only the Python tests")
    parser.add_argument("--third-party", action="store_true", help="only packages written for PyTorch, over naru")
    parser.add_argument("--torch", action="store_true", help="also the comparison with PyTorch")
    parser.add_argument("--aarch64", action="store_true", help="only the tests of aarch64, in qemu")
    parser.add_argument("--wine", action="store_true", help="only Python tests with the wheel for Windows, under wine")
    parser.add_argument("--notebooks", action="store_true", help="only the notebooks")
    parser.add_argument("--opencl", action="store_true", help="only the tests of OpenCL devices, on each implementation for processors")
    parser.add_argument("--kernels", action="store_true", help="only the rendered kernels, all of them")
    parser.add_argument("--types", action="store_true", help="only what type checkers say")
    parser.add_argument("--gtest_filter", help="which of the C++ tests")
    return parser.parse_known_args(arguments)


def main(arguments: list[str]) -> int:
    options, rest = parse(arguments)
    chosen = ["-k", options.k] if options.k else []
    paths = [argument for argument in rest if not argument.startswith("-") and (ROOT / argument.split("::")[0]).exists()]
    lanes = ("aarch64", "wine", "notebooks", "opencl", "types", "kernels", "third_party")  # each has its own environment and runs no other tests
    lane = any(getattr(options, name) for name in lanes)
    cpp = not (lane or options.python or options.k or paths)
    python = not (lane or options.cpp)
    oracle = ROOT / "tests" / "python" / "oracle_torch"

    total = Count()
    if options.aarch64:
        total += aarch64_whole()
    if options.wine:
        total += wine_tests([*chosen, *rest], bool(paths))
    if options.opencl:
        total += opencl_tests([*chosen, *rest])
    if options.kernels:
        total += pytest("kernels", [*(f"tests/python/{file}" for file in ALL_KERNELS), *side_by_side(), *chosen, *rest], NARU_TEST_KERNELS="all")
    for name, asked, where, interpreter in (
        ("notebooks", options.notebooks, "tests/notebooks", sys.executable),  # this interpreter is that of the lane's environment
        ("types", options.types, "tests/types", sys.executable),
        ("packages of others", options.third_party, "tests/third_party", os.environ.get("NARU_THIRD_PARTY_PYTHON", "")),
    ):
        if asked:
            total += pytest(name, [*([] if paths else [where]), *chosen, *rest], interpreter)
    # Each suite of C++ tests mostly uses one thread: the Python tests begin when the first of them ends.
    with ThreadPoolExecutor(2 if side_by_side() else 1) as pool:
        suites = [pool.submit(cpp_tests, options.gtest_filter)] if cpp else []
        if cpp and not options.gtest_filter:
            suites.append(pool.submit(other_programs, not arguments))
        if python:
            where = [] if paths else ["tests/python", f"--ignore={oracle}"]
            suites.append(pool.submit(pytest, "Python tests", [*where, *chosen, *(rest or side_by_side())]))
        total = sum((suite.result() for suite in suites), total)
    if options.torch:
        peers = os.environ["NARU_PEERS_PYTHON"]
        total += pytest("comparison with PyTorch", [str(oracle), *chosen, *rest], peers, NARU_ORACLE="torch")

    if total.passed + total.failed == 0:
        print("no test was run")
    print(total)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
