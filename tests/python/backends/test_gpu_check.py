"""tools/gpu_check: what it runs with a device, and what it prints without one."""
import importlib.machinery
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opencl import need_xpu, processors_count
from tools.sanitized import SANITIZED

TOOL = Path(__file__).resolve().parents[3] / "tools" / "gpu_check"


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    sys.modules["gpu_check"] = module
    loader.exec_module(module)
    yield module
    del sys.modules["gpu_check"]


@pytest.fixture
def logs(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "LOGS", tmp_path)
    return tmp_path


def call(*arguments):
    return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def test_a_dry_run_names_every_step_and_why_it_would_not_run():
    done = call("rocm", "--dry")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for name in ("selftest", "operators", "streams and DataParallel", "users kernels", "benchmark"):
        line = next(line for line in lines if line.startswith(f"-- {name}: "))
        assert "would not run: no rocm device: " in line
    cuda = call("cuda", "--dry").stdout
    assert "-- compute-sanitizer memcheck: " in cuda and "-- compute-sanitizer racecheck: " in cuda and "-- benchmark bfloat16: " in cuda


def test_a_kind_that_naru_does_not_know_is_refused_with_those_that_it_knows():
    done = call("gpu", "--dry")
    assert done.returncode == 2 and "no kind 'gpu'; the kinds are cuda, rocm, xpu, mps" in done.stderr


def test_without_a_device_nothing_is_written_and_the_reason_is_said(tmp_path):
    done = call("rocm", "--no-build", "-o", tmp_path / "page.md")
    assert done.returncode == 1 and "no rocm device: " in done.stderr and not (tmp_path / "page.md").exists()


def test_steps_run_on_a_device_and_the_page_says_what_came_of_them(tmp_path):
    with processors_count():
        need_xpu()
    page = tmp_path / "page.md"
    done = call("xpu", "--no-build", "--only", "doctor", "--only", "benchmark", "--size", "32", "-o", page)
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    assert "# What ran on xpu" in text and "| device xpu:0 | " in text and "| doctor | right |" in text
    assert "10 products of (32, 32) matrices of float32" in text


def test_a_step_that_fails_is_on_the_page_with_the_end_of_its_output(tool, logs):
    steps = [tool.Step("good", [sys.executable, "-c", "print('fine')"]), tool.Step("bad", [sys.executable, "-c", "print('this broke'); raise SystemExit(3)"]),
             tool.Step("no program", ["/nowhere/program"]), tool.Step("absent", ["true"], missing="there is none")]  # fmt: skip
    for step in steps:
        tool.run(step, time.monotonic() + 60)
    assert [s.result for s in steps] == ["right", "FAILED", "FAILED", "not run"]
    text = tool.results("cuda", [("processor", "x")], steps)
    assert "| bad | FAILED |" in text and "## bad: FAILED" in text and "this broke" in text and "fine" not in text
    assert "- absent: there is none" in text


def test_tests_of_which_none_ran_count_as_failed(tool, logs):
    step = tool.pytest("nothing", sys.executable, ["tests/python/devices/test_coverage.py"], {}, "-k", "no_such_test")
    tool.run(step, time.monotonic() + 60)
    assert step.result == "FAILED"
    assert tool.pytest("absent", sys.executable, ["tests/python/test_no_such_file.py"], {}).missing


def test_what_the_time_does_not_suffice_for_is_not_run_or_ends(tool, logs):
    late, long = tool.Step("late", ["true"]), tool.Step("long", [sys.executable, "-c", "import time; time.sleep(600)"])
    tool.run(late, time.monotonic() - 1)
    assert late.result == "not run" and late.missing == "the time was over"
    tool.run(long, time.monotonic() + 0.5)
    assert long.result == "FAILED" and "the time was over" in long.text


def test_what_a_step_has_started_ends_with_it(tool, logs):
    begin = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print(p.pid, flush=True); time.sleep(600)"
    step = tool.Step("long", [sys.executable, "-c", begin], limit=3)
    tool.run(step, time.monotonic() + 60)
    assert step.result == "FAILED" and "the time was over (3 s)" in step.text
    def alive():
        try:
            return Path("/proc", step.text.split()[0], "stat").read_text().split()[2] != "Z"
        except OSError:
            return False

    end = time.monotonic() + 30
    while alive() and time.monotonic() < end:
        time.sleep(0.01)  # the device is failing
    assert not alive()


TESTS = """
import os, time
lost = False
class DeviceLostError(RuntimeError): pass
def use():
    if lost: raise DeviceLostError("device 'cuda:0' was lost: cuEventSynchronize failed with 700")
def test_first(): use()
def test_crashes(): os.abort()
def test_second(): use()
def test_second_is_no_other(): use()
def test_is_wrong(): assert 1 == 2
def test_hangs(): time.sleep(600)
def test_loses_the_device():
    global lost
    lost = True
    use()
def test_third(): use()
"""


def test_tests_behind_one_that_crashes_hangs_or_loses_the_device_are_run_all_the_same(tool, logs, tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_them.py").write_text(TESTS)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "TEST_SECONDS", 2)
    step = tool.pytest("them", sys.executable, ["tests/test_them.py"], {})
    tool.run(step, time.monotonic() + 120)
    assert step.result == "FAILED"
    came = {name.partition("::test_")[2]: result for name, result in step.tests.items()}
    right = dict.fromkeys(("first", "second", "second_is_no_other", "third"), "PASSED")
    assert came == {**right, **dict.fromkeys(("crashes", "is_wrong", "hangs", "loses_the_device"), "FAILED")}
    ended = {name.partition("::test_")[2]: how for name, how in step.ended.items()}
    assert ended == {"crashes": "the process ended in", "hangs": "the process ended in", "loses_the_device": "the device was lost in"}
    assert tool.counted(step) == "4 passed, 4 failed, 0 skipped"
    page = tool.results("cuda", [], [step])
    assert "the process ended in tests/test_them.py::test_crashes" in page
    assert "== tests/test_them.py::test_is_wrong (call)" in page and "assert 1 == 2" in page, "what failed before another one crashed or hung"


def test_tests_for_which_the_time_does_not_suffice_are_told_from_those_that_failed(tool, logs, tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_them.py").write_text("import time\ndef test_a(): pass\ndef test_long(): time.sleep(600)\ndef test_b(): pass\n")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    step = tool.pytest("them", sys.executable, ["tests/test_them.py"], {}, limit=60 if SANITIZED else 6)
    tool.run(step, time.monotonic() + 120)
    assert step.result == "FAILED" and step.ended == {"tests/test_them.py::test_long": "the time was over in"}
    assert step.tests == {"tests/test_them.py::test_a": "PASSED"}


def test_packages_that_the_python_has_are_not_shadowed(tool, tmp_path, monkeypatch):
    site = tmp_path / "site"
    for name in ("numpy", "only_here"):
        (site / name).mkdir(parents=True)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "LACKING", tmp_path / "lacking")
    tool.fill_lacking(sys.executable)
    assert [p.name for p in (tmp_path / "lacking").iterdir()] == ["only_here"]


def test_what_was_right_is_left_out_where_a_run_is_resumed(tmp_path):
    with processors_count():
        need_xpu()
    page = tmp_path / "page.md"
    for resumed in (False, True):
        done = call("xpu", "--no-build", "--only", "doctor", "-o", page, *(["--resume"] if resumed else []))
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("- doctor: it was right in the last run" in page.read_text()) is resumed and ("| doctor | right |" in page.read_text()) is not resumed


def script(name, *arguments):
    environment = {**os.environ, "NARU_VIRTUAL": "cuda:1"}
    return subprocess.run([sys.executable, str(TOOL.parent / "gpu" / f"{name}.py"), *map(str, arguments)], capture_output=True, text=True, timeout=600, env=environment)


def test_a_share_of_the_bits_goes_on_behind_a_case_that_ended_the_process(tmp_path):
    out = tmp_path / "bits.jsonl"
    done = script("bits", "3/60", out)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) > 5 and {r["what"] for r in rows} == {"bits"}
    # The process crashed in the third case.
    out.write_text("".join(json.dumps(r) + "\n" for r in rows[:2]))
    out.with_suffix(".now").write_text(rows[2]["case"])
    done = script("bits", "3/60", out, "--resume")
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert done.returncode == 1 and "CRASHED" in done.stdout
    assert [(r["case"], r["what"]) for r in found] == [(r["case"], "CRASHED" if i == 2 else "bits") for i, r in enumerate(rows)]
    assert script("bits", "3/60", out, "--library").returncode == 0


def test_the_table_and_the_steps_of_training_run_on_any_device_that_is_called_cuda(tmp_path):
    out = tmp_path / "table.jsonl"
    assert script("table", "naru", out, "--tiny", "--only", "add").returncode == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) >= 4 and all(r["ms"] > 0 and "error" not in r for r in rows)
    out.write_text(out.read_text() + json.dumps({"library": "torch", "row": rows[0]["row"], "ms": rows[0]["ms"] / 2, "host_us": 1.0}) + "\n")
    beside = script("table", "beside", out, "--markdown").stdout.splitlines()
    assert beside[0].startswith("| row | naru / PyTorch |") and beside[2].startswith(f"| {rows[0]['row']} | 2.00 |")
    for what, mode in (("mlp", "graph"), ("gpt", "eager"), ("resnet", "eager")):
        done = script("training", "naru", what, "--tiny", "--steps", 3, "--mode", mode)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["row"] == f"{what} {mode}" and all(math.isfinite(x) for x in found["loss"]) and (what == "resnet" or found["loss"][1] < found["loss"][0])
