"""The wheel of the tested extension: its contents, and that it works in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import naru

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import wheel as wheels  # noqa: E402

EXTENSION = Path(naru._C.__file__).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not (EXTENSION / "_C.pyi").exists():
        pytest.skip(f"{EXTENSION} has no stub: this is no extension that is packed (a sanitizer's, or a cross-compiled one)")
    return wheels.pack(EXTENSION, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """The Python of an environment that has naru and nothing else, not even NumPy."""
    return wheels.environment(tmp_path_factory.mktemp("alone"), wheel)


def test_a_wheel_needs_nothing_of_the_system_but_the_c_library(wheel):
    assert wheels.faults(wheel) == []
    assert "manylinux" in wheel.name


def test_the_version_is_said_once(wheel):
    said = naru.version.naru
    assert f"-{said}-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert f"\nVersion: {said}\n" in text
    major, minor, _ = map(int, said.split("."))  # the package with the types of `import torch` has the same version
    assert re.search(rf"^Requires-Dist: naru-torch-stubs<{major}\.{minor + 1},>={major}\.{minor} *; extra == .stubs.$", text, re.MULTILINE)
    asked = {(page.name, version) for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
             for version in re.findall(r"\bnaru(?:\[\w+\])?==([\w.]+)", page.read_text(encoding="utf-8"))}  # fmt: skip
    assert asked and {version for _, version in asked} == {said}, asked


def test_every_extra_that_a_page_or_a_message_names_is_there(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode().partition("\n\n")[0]
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", text, re.MULTILINE))
    texts = [ROOT / "README.md", *(p for folder in ("docs", "python/naru", "src") for p in (ROOT / folder).rglob("*") if p.suffix in (".md", ".py", ".cpp", ".h"))]
    named = {extra for page in texts for names in re.findall(r"\bnaru\[([\w,]+)\]", page.read_text(encoding="utf-8")) for extra in names.split(",")}
    assert named and named <= extras, named - extras
    # The first page lists all extras, and ./run docs installs at least what the extra docs requires.
    listed = re.search(r"# extras: (.*)", texts[0].read_text(encoding="utf-8"))[1]
    assert set(re.sub(r"\([^)]*\)", "", listed).replace(" ", "").split(",")) == extras
    asked = set(re.findall(r"^Requires-Dist: (\S+) *; extra == .docs.$", text, re.MULTILINE))
    assert asked and asked < set((ROOT / "tools" / "requirements-docs.txt").read_text().splitlines())


def test_no_page_and_no_message_asks_pip_for_a_naru_of_any_version():
    """PyPI has a package of that name, which is not this one."""
    texts = [ROOT / "README.md", *(p for folder in ("docs", "python/naru", "src") for p in (ROOT / folder).rglob("*") if p.suffix in (".md", ".py", ".cpp", ".h"))]
    wrong = [str(p.relative_to(ROOT)) for p in texts if re.search(r"pip install [^\n#`]*\bnaru\b(?![=/_-])(?!\[\w+\]==)", p.read_text(encoding="utf-8"))]
    assert wrong == []


def test_naru_trains_saves_and_loads_where_there_is_no_other_package(alone):
    printed = wheels.tried(alone)
    assert "Numpy is not available" in printed and "trained" in printed


@pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("ninja") is None, reason="cmake and ninja are not installed")
def test_a_cpp_program_is_built_with_the_wheel_alone(alone, tmp_path):
    found = subprocess.run([alone, "-c", "import naru; print(naru.utils.cmake_prefix_path)"], capture_output=True, text=True, check=True).stdout.strip()
    for command in (["cmake", "-S", ROOT / "tests" / "install", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={found}"], ["cmake", "--build", tmp_path]):
        subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "uses_naru", tmp_path / "libplugin.so"], capture_output=True, text=True, env={})
    assert done.returncode == 0 and "one generator for a program and its plugin: yes" in done.stdout, done.stdout + done.stderr


def test_naru_trains_beside_numpy(wheel, tmp_path):
    inside = wheels.environment(tmp_path, wheel, packages=sysconfig.get_path("platlib"))
    assert "NumPy: (64, 20)" in wheels.tried(inside)
    # pytest imports naru because of its plugin, so it is loaded before the test.
    (tmp_path / "test_it.py").write_text("import torch\n\n\ndef test_it(virtual_devices):\n    assert torch.__spec__.name == 'naru'\n")
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "NARU_"))}
    command = [inside.parent / "naru", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=bare)
    assert done.returncode == 0 and re.search(r"^1 passed in", done.stdout, re.MULTILINE), done.stdout + done.stderr


@pytest.mark.parametrize("command", [["devices"], ["--version"], ["check", "script.py"], ["run", "script.py"]])
def test_commands_work_where_there_is_no_other_package(alone, tmp_path, command):
    (tmp_path / "script.py").write_text("import torch\nprint(torch.ones(2, 3).sum())\n")
    done = subprocess.run([alone.parent / "naru", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command, package", [("selftest cpu", "NumPy"), ("completion bash", "Cyclopts"), ("jupyter install", "ipykernel"), ("bench --picture a.png", "matplotlib")])
def test_a_command_that_needs_another_package_says_which_in_a_line(alone, tmp_path, command, package):
    done = subprocess.run([alone.parent / "naru", *command.split()], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "NARU_VIRTUAL": ""})
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert f"needs {package}, which this Python does not have: pip install " in done.stderr


def test_what_needs_numpy_says_so(alone):
    program = "import naru\ntry: naru.ones(2).numpy()\nexcept RuntimeError as e: print(e)\nprint(repr(naru.arange(3)), naru.arange(6).reshape(2, 3).tolist())"
    done = subprocess.run([alone, "-c", program], capture_output=True, text=True, env={})
    assert done.stdout.splitlines() == ["Numpy is not available; `pip install numpy`", "tensor([0, 1, 2]) [[0, 1, 2], [3, 4, 5]]"], done.stderr
