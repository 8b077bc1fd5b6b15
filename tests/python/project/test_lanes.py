"""The suites that ./run test runs for each of its options."""
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def suites(monkeypatch):
    """tools/test.py, which runs nothing: each suite is written down and passes."""
    spec = importlib.util.spec_from_file_location("run_test", ROOT / "tools" / "test.py")
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "run_test", tool)
    spec.loader.exec_module(tool)
    tool.ran = []
    monkeypatch.setattr(tool, "run_suite", lambda name, *rest, **more: tool.ran.append(name) or tool.Count(passed=1))
    monkeypatch.setattr(tool, "in_qemu", lambda name, *rest, **more: tool.Count(passed=1))
    monkeypatch.setenv("NARU_THIRD_PARTY_PYTHON", "python")
    return tool


@pytest.mark.parametrize(
    "option, name",
    [("--notebooks", "notebooks"), ("--types", "types"), ("--third-party", "packages of others"), ("--aarch64", "Python tests, aarch64 in qemu")],
)
def test_a_lane_with_an_environment_of_its_own_runs_its_tests_and_no_others(suites, option, name):
    assert suites.main([option]) == 0 and suites.ran == [name]
    assert suites.main([option, "-k", "x"]) == 0 and suites.ran == [name, name]


def test_the_lane_of_wine_takes_this_pythons_wheel_and_is_skipped_without_one(suites, tmp_path, monkeypatch, capsys):
    version = "".join(map(str, __import__("sys").version_info[:2]))
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    monkeypatch.setattr(suites.under_wine, "wine", lambda: "/usr/bin/wine64")
    monkeypatch.setattr(suites.windows_python, "python_of", lambda version: tmp_path / "python.exe")
    installed = []
    monkeypatch.setattr(suites.windows_python, "install", lambda folder, version, *packages: installed.extend(packages))
    assert suites.main(["--wine"]) == 1 and suites.ran == [] and "skipped: no wheel" in capsys.readouterr().out
    (tmp_path / "dist").mkdir()
    wheel = tmp_path / "dist" / f"naru-0.1.0-cp{version}-cp{version}-win_amd64.whl"
    for name in (wheel.name, "naru-0.1.0-cp27-cp27-win_amd64.whl", f"naru-0.1.0-cp{version}-cp{version}-macosx_11_0_arm64.whl"):
        (tmp_path / "dist" / name).touch()
    assert suites.main(["--wine"]) == 0 and suites.ran == ["Python tests under wine"] and installed[0] == wheel


def test_the_lane_of_opencl_runs_on_each_implementation_that_runs_a_kernel(suites, monkeypatch, capsys):
    monkeypatch.setattr(suites, "opencl_implementations", lambda: {"one": {"A": "1"}, "two": {"A": "2"}})
    answers = {"1": (0, "2.0"), "2": (1, "x\nnaru.DeviceUnavailableError: Error: no denormals\n")}

    def tried(command, env, **more):
        status, words = answers[env["A"]]
        return __import__("subprocess").CompletedProcess(command, status, words, words)

    monkeypatch.setattr(suites.subprocess, "run", tried)
    assert suites.main(["--opencl"]) == 0 and suites.ran == ["OpenCL, one"]
    said = capsys.readouterr().out
    assert "OpenCL, two: skipped, as it runs no kernel: naru.DeviceUnavailableError: Error: no denormals" in said and "1 passed, 0 failed, 1 skipped" in said


def test_all_tests_are_those_of_cpp_and_of_python(suites):
    cpp = ["C++ tests", "everything fails once", "examples of docs/extending.md"]
    assert suites.main([]) == 0 and sorted(suites.ran) == ["C++ tests", "Python tests", *cpp[1:]]  # side by side
    suites.ran.clear()
    assert suites.main(["--cpp"]) == 0 and sorted(suites.ran) == cpp
    suites.ran.clear()
    assert suites.main(["--python", "-q"]) == 0 and suites.ran == ["Python tests"]
