"""Runs programs built for Windows under wine, and compares their output with that of the same programs built for this machine: equal to the bit,
where they print bits.

    python tools/under_wine.py FOLDER [NATIVE_FOLDER]
    python tools/under_wine.py --tests PROGRAM...

Runs each FOLDER/*.exe. The exit status is 1 if one fails, or if its output differs from that of NATIVE_FOLDER's program of the same name. Or runs
programs of C++ tests (GoogleTest), and the status is 1 if a test fails.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("/usr/lib/wine/wine64", "/usr/lib/wine/wine")
SECONDS = 300
TESTS_SECONDS = 1800
# Programs that are expected to fail, with their message: user kernels are not supported on Windows yet; the digits file is missing.
REFUSES = {"vec_add": "kernels in C run on the cpu on Linux only", "digits": "cannot open digits.bin"}


def wine():
    """The path of wine; None if it is not installed."""
    found = shutil.which("wine64") or shutil.which("wine")
    return found or next((place for place in PLACES if os.path.exists(place)), None)


def environment():
    """The environment for both sides: wine keeps its files under build/, and naru uses its own matrix products, since OpenBLAS is not searched for
    on Windows."""
    quiet = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "winemenubuilder.exe=d;mscoree=d;mshtml=d"}
    return {**os.environ, "WINEPREFIX": str(ROOT / "build" / "wine"), "NARU_MATMUL": "own", **quiet}


def said(command, around, seconds=SECONDS):
    """Exit status, output and errors of a program run in its own folder; line ends and times are normalized."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, errors="replace", timeout=seconds)
    return done.returncode, re.sub(r"[\d.]+ us", "... us", done.stdout), done.stderr


def trouble(name, theirs, ours):
    """Describes what is wrong with a program's result under wine, compared with its native result (None: unknown); "" if nothing is."""
    status, output, errors = theirs
    if name in REFUSES:
        return "" if status != 0 and REFUSES[name] in errors else f"{name} was to say {REFUSES[name]!r}, and said: {output}{errors}"
    if ours is None:
        return "" if status == 0 else f"{name} ended with status {status}: {output}{errors}"
    if (status, output) == ours[:2]:
        return ""
    return f"{name} ended with status {status} under wine and {ours[0]} here, and said\n{output}{errors}where here it says\n{ours[1]}{ours[2]}"


def prepared(path):
    """The environment for both sides, after wine has made its files."""
    around = environment()
    place = Path(around["WINEPREFIX"])
    place.parent.mkdir(parents=True, exist_ok=True)
    if not (place / "system.reg").is_file():  # once, and without pipes, which its services would keep open beside another program's
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([path, "wineboot", "-i"], env=around, timeout=SECONDS, **quiet)
    return around


def counted(output):
    """How many tests a program of GoogleTest says have passed, and the names of those that have failed."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", output)
    return int(passed[1]) if passed else 0, sorted(set(re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", output)))


def tests(*programs):
    """Runs programs of C++ tests."""
    path = wine()
    if path is None:
        print("naru: no wine on this machine, so that no test ran (Debian: apt install wine64)")
        return 0
    around, wrong = prepared(path), not programs
    for program in map(Path, programs):
        status, output, errors = said([path, program.resolve(), "--gtest_brief=1"], around, TESTS_SECONDS)
        passed, failed = counted(output)
        print(f"naru: {program.stem} under wine: {passed} tests passed, {len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
        if status != 0 or failed or not passed:
            print(f"naru: {program.stem} ended with status {status}: {output[-4000:]}{errors[-2000:]}", file=sys.stderr)
            wrong = True
    return int(wrong)


def main(folder, native=None):
    path = wine()
    if path is None:
        print("naru: no wine on this machine, so that nothing for Windows was run (Debian: apt install wine64)")
        return 0
    around = prepared(path)
    troubles, compared, programs = [], 0, sorted(Path(folder).resolve().glob("*.exe"))
    for program in programs:
        here = Path(native or "").resolve() / program.stem
        ours = said([here], around) if native and here.is_file() else None
        compared += ours is not None and ours[0] == 0 and program.stem not in REFUSES
        troubles.append(trouble(program.stem, said([path, program], around), ours))
    for found in filter(None, troubles):
        print(f"naru: {found}", file=sys.stderr)
    if any(troubles) or not programs:
        return 1
    print(f"naru: {len(programs)} programs for Windows ran under wine; {compared} of them were compared with this machine's and say the same")
    return 0


if __name__ == "__main__":
    sys.exit(tests(*sys.argv[2:]) if sys.argv[1:2] == ["--tests"] else main(*sys.argv[1:]))
