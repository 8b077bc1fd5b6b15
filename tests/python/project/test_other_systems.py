"""Cross builds, as far as they can be tested cheaply: presets, toolchains, and the tools that inspect the results."""
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tools import linked, under_wine

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ["macos-arm64", "windows-x64"]


def mach_o(library, processor=0x0100000C):
    name = library.encode() + b"\0" * (8 - len(library) % 8)
    command = struct.pack("<6I", 0xC, 24 + len(name), 24, 0, 0, 0) + name
    return struct.pack("<8I", 0xFEEDFACF, processor, 0, 2, 1, len(command), 0, 0) + command


def pe(library, machine=0x8664):
    head = b"MZ" + b"\0" * 0x3A + struct.pack("<I", 0x40)
    optional = struct.pack("<H110x", 0x20B) + struct.pack("<4I", 0, 0, 0x1000, 40)
    sections = struct.pack("<8s6I12x", b".idata", 0x100, 0x1000, 0x100, 0x200, 0, 0)[:40]
    headers = head + b"PE\0\0" + struct.pack("<2H12xHH", machine, 1, len(optional), 0) + optional + sections
    return headers.ljust(0x200, b"\0") + struct.pack("<5I", 0, 0, 0, 0x1028, 0) + b"\0" * 20 + library.encode() + b"\0" * 64


MADE = {
    "macos-arm64": (mach_o, "/usr/lib/libSystem.B.dylib", "/opt/homebrew/lib/libfmt.dylib"),
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
    file.write_bytes(make(own, 7))  # built for another processor
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
