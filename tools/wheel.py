"""Packs wheels, checks their contents, and tests them in empty environments; called by ``./run wheel``.

    python tools/wheel.py EXTENSION_FOLDER [--out DIST] [--platform linux-aarch64]    packs a built extension
    python tools/wheel.py --build PYTHON... [--out DIST]                              builds one for other Pythons
    python tools/wheel.py --sdist [--out DIST]                                        packs the sources, and builds a wheel of them
    python tools/wheel.py EXTENSION_FOLDER --target NAME --python PYTHON              packs the extension for macOS or Windows (docs/platforms.md)
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools import linked, python_headers, under_wine, windows_python, wine_load  # noqa: E402

MOST_BYTES = 8 << 20
# The system libraries that a wheel for Linux may require (PEP 600); all others are linked statically.
NEWEST_GLIBC = (2, 34)  # of Debian 12, Ubuntu 22.04, RHEL 9: what README.md says
SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libpthread.so.0", "libdl.so.2"}
# Mangled names that libnaru.so must not show: those of the layers below the operators, but for functions that the extension calls, and of libraries.
INSIDE = re.compile(r"_Z(N|T[IVS]N?)K?(4naru(2ir|6render|3cpu|8backends)|6asmjit|3fmt|8nlohmann|3hwy)")
SHOWN = re.compile(r"_ZN4naru(2ir14operator_names|3cpu(8isa_name|16matmul_libraries|12measure_peak|7set_isa|7set_jit|20set_matmul_libraries))")

TRAIN = """
import naru as torch
from naru import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(64, 20)
y = (x.sum(1) > 0).long()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True)
losses = []
for epoch in range(20):
    for a, b in data:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
torch.save(model.state_dict(), "model.pt")
kept = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
kept.load_state_dict(torch.load("model.pt"))
assert torch.equal(kept(x), model(x)) and losses[-1] < losses[0] / 4, losses
for library, use in (("NumPy", lambda: x.numpy().shape), ("LAPACK", lambda: torch.linalg.det(torch.eye(2)))):
    try:
        print(f"{library}: {use()}")
    except RuntimeError as error:
        print(f"{library}: {error}")
print("products:", torch.matmul_libraries())
print(f"{torch.__version__} trained: {losses[0]:.3f} -> {losses[-1]:.3f}")
"""

# Extras to install with a wheel (None: no dependencies and no libraries of the machine), and what a training run must print then.
BESIDE = {None: ("own kernels",), "": ("NumPy: (64, 20)", "LAPACK: 1.0", "OpenBLAS"), "[onednn]": ("oneDNN",)}


def run(*command: object, **options: object) -> str:
    """Runs a command and returns its output; exits with the output if it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nfailed with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def built(python: Path | str, folder: Path, *settings: str, platform: str | None = None, root: Path = ROOT) -> Path:
    """Builds a wheel of a source tree with pip."""
    environment = {**os.environ, **({"_PYTHON_HOST_PLATFORM": platform} if platform else {})}
    if compiler := shutil.which("c++"):
        environment.setdefault("CXX", compiler)  # the same path as in ./run build, since it is part of ccache's key
    run(sys.executable, "-m", "pip", "--python", python, "wheel", root, "-w", folder, "--no-deps", "-q", "--disable-pip-version-check",
        *settings, env=environment)  # fmt: skip
    (made,) = folder.glob("*.whl")
    return made


def pip_wheel(python: Path | str, out: Path, *settings: str, platform: str | None = None, root: Path = ROOT) -> Path:
    """Builds a wheel of a source tree with pip, with the most general platform tag that its libraries allow."""
    with tempfile.TemporaryDirectory() as folder:
        made = built(python, Path(folder), *settings, platform=platform, root=root)
        run(sys.executable, "-m", "auditwheel", "repair", "-w", out, made, env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
        return max(out.glob(made.name.split("-linux_")[0] + "-manylinux*"), key=os.path.getmtime)


def pack(extension: Path, out: Path, platform: str | None = None) -> Path:
    """Packs a wheel of the package with the extension in a folder."""
    with tempfile.TemporaryDirectory() as built:
        return pip_wheel(sys.executable, out, "--no-build-isolation", "-C", f"cmake.define.NARU_PREBUILT={extension}", "-C", f"build-dir={built}",
                         platform=platform)  # fmt: skip


# Of each target: the platform's tag, the extension's name, and where Python finds names of its own ("": wherever the process has them).
TARGETS = {
    "macos-arm64": ("macosx_{}_{}_arm64", "_C.cpython-{}-darwin.so"),
    "macos-x64": ("macosx_{}_{}_x86_64", "_C.cpython-{}-darwin.so"),
    "windows-x64": ("win_amd64", "_C.cp{}-win_amd64.pyd"),
}
# What may be shown beside the entry point: on macOS the allocation functions of zig's C++ library, which programs replace, and marks of the linker;
# on both systems nanobind's exceptions, which its headers export.
ALSO_SHOWN = re.compile(r"__Z(nw|na|dl|da)\w+|___dso_handle|__mh_(dylib|bundle)_header|_?_ZT[VIS]N8nanobind\w+")


def extension_of(target: str, version: tuple[int, int]) -> str:
    """The name of the extension's file."""
    return TARGETS[target][1].format("".join(map(str, version)))


def tag_of(target: str, version: tuple[int, int], oldest: tuple[int, ...]) -> str:
    """The wheel's tag; oldest: the oldest version of macOS that the extension's load commands allow."""
    python = "cp" + "".join(map(str, version))
    return f"{python}-{python}-" + TARGETS[target][0].format(*oldest)


def retagged(wheel: Path, tag: str, out: Path) -> Path:
    """A copy of a wheel with another tag, in its name and in its metadata."""
    name, release = wheel.name.split("-")[:2]
    to = out / f"{name}-{release}-{tag}.whl"
    info = f"{name}-{release}.dist-info"
    rows = []
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if entry.filename == f"{info}/RECORD" or entry.is_dir():
                continue
            data = old.read(entry)
            if entry.filename == f"{info}/WHEEL":
                lines = [line for line in data.decode().splitlines() if line and not line.startswith("Tag:")]
                data = "\n".join([*lines, f"Tag: {tag}", ""]).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append((entry.filename, f"sha256={digest}", len(data)))
            new.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
        new.writestr(f"{info}/RECORD", text.getvalue())
    return to


def pack_for(target: str, extension: Path, python: str, out: Path) -> Path:
    """Packs a wheel for another system of the extension for a Python's version in a folder."""
    version = python_headers.version_of(python_headers.folder_of(python))
    file = extension / extension_of(target, version)
    found = linked.read(target, file)
    if found is None:
        raise SystemExit(f"naru: {file} is no library for {target}")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as folder:
        shutil.copy2(file, one)
        shutil.copy2(extension / "_C.pyi", one)
        made = built(sys.executable, Path(folder), "--no-build-isolation", "-C", f"cmake.define.NARU_PREBUILT={one}", "-C", f"build-dir={scratch}")
        return retagged(made, tag_of(target, version, found.oldest), out)


def lacking(python: str, names: set[str]) -> list[str] | None:
    """Those of the names that a Python of this machine does not have; None if it is a folder of headers alone."""
    if (Path(python) / "Python.h").is_file():
        return None
    code = "import ctypes, json, sys; print(json.dumps([n for n in json.load(sys.stdin) if not hasattr(ctypes.pythonapi, n)]))"
    done = subprocess.run([python, "-c", code], input=json.dumps(sorted(names)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def faults_elsewhere(wheel: Path, target: str, python: str) -> list[str]:
    """Describes what is wrong with the contents of a wheel for macOS or Windows: they can't be run, but they can be read."""
    version = python_headers.version_of(python_headers.folder_of(python))
    name = f"naru/{extension_of(target, version)}"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        found = [f"{wanted} is missing" for wanted in ("naru/py.typed", "naru/_C.pyi", "naru/__init__.py", name) if wanted not in names]
        found += [f"{each} does not belong there" for each in names
                  if each.endswith((".so", ".dylib", ".dll", ".pyd", ".pyc", ".a")) and each != name or each.startswith("naru/lib/")]  # fmt: skip
        if found:
            return found
        file = Path(archive.extract(name, folder))
        own = f"python{version[0]}{version[1]}.dll" if target.startswith("windows") else ""
        found += filter(None, [linked.trouble(target, file, also=(own,)).removeprefix(f"{file}: ")])
        if (read := linked.read(target, file)) is None:
            return found
        prefix = "" if own else "_"
        wanted = {each.removeprefix(prefix) for each in read.wanted.get(own, ())}
        if "Py_IncRef" not in wanted and not any(each.startswith("Py") for each in wanted):
            found.append("it wants nothing of Python")
        if absent := lacking(python, wanted):
            found.append(f"it wants names that Python {version[0]}.{version[1]} does not have: {absent[:5]}")
        if undeclared := sorted(wanted - set(python_headers.names(python_headers.folder_of(python)))):
            found.append(f"it wants names that Python's headers do not declare: {undeclared[:5]}")
        shown = {each for each in read.shown if not ALSO_SHOWN.fullmatch(each)}
        if shown != {f"{prefix}PyInit__C"}:
            found.append(f"it shows {sorted(shown)[:5]}")
        if wheel.stem.split("-", 2)[2] != (tag := tag_of(target, version, read.oldest)):
            found.append(f"its tag is not {tag}")
        data = file.read_bytes()
        here = {str(ROOT), str(Path(sys.prefix)), str(Path.home())}
        found += [f"it has the path {each} of this machine" for each in sorted(here) if len(each) > 5 and each.encode() in data]
        found += [f"it looks for libraries in {each}" for each in read.paths if not each.startswith("@loader_path/")]
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"it is larger than {MOST_BYTES >> 20} MiB")
    return found


def loads_under_wine(wheel: Path, target: str, python: str) -> str:
    """What is wrong with a wheel's extension when it is loaded under wine beside a stand-in for Python (tools/wine_load.py); "" if nothing is."""
    headers = python_headers.folder_of(python)
    name = extension_of(target, python_headers.version_of(headers))
    (compiler,) = (ROOT / "build" / target).glob("zig-*/clang")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        file = Path(archive.extract(f"naru/{name}", folder))
        return wine_load.trouble(file, str(compiler), {each for each, data in python_headers.names(headers).items() if data}) or ""


def tried_under_wine(wheel: Path, target: str, python: str) -> tuple[bool, str]:
    """Whether a wheel for Windows works as far as that can be told here, and what was tried: a training run in a Python for Windows under wine, alone
    and with NumPy and OpenBLAS; the extension is only loaded where there is no Python of its version."""
    if under_wine.wine() is None:
        return True, "not run: this machine has no wine (Debian: apt install wine64)"
    version = python_headers.version_of(python_headers.folder_of(python))
    if (inside := windows_python.python_of(version)) is None:
        wrong = loads_under_wine(wheel, target, python)
        return not wrong, wrong or "loads under wine, beside a stand-in for Python's DLL; nothing of it has run, as no Python for Windows was at hand"
    printed = ""
    for extras, words in list(BESIDE.items())[:2]:
        beside = "alone" if extras is None else f"with what naru{extras} asks for"
        if extras is not None and version > windows_python.NUMPY_UP_TO:
            printed += f"{beside}: not tried, as wine lacks what NumPy for this Python needs\n"
            continue
        with tempfile.TemporaryDirectory() as folder:
            windows_python.install(Path(folder), version, *([wheel] if extras is None else [wheel, windows_python.NUMPY, "scipy-openblas32"]))
            done = windows_python.run(inside, "-c", TRAIN, packages=(Path(folder),), cwd=Path(folder), **({"NARU_MATMUL": "own"} if extras is None else {}))
        said = done.stdout + done.stderr
        if done.returncode != 0 or any(word not in said for word in words):
            return False, f"{wheel.name} under wine, {beside}: status {done.returncode}, wanted {', '.join(words)} in what it printed:\n{said[-4000:]}"
        printed += f"{beside}, under wine:\n  " + said.strip().replace("\n", "\n  ") + "\n"
    return True, printed.rstrip()


def resolved(wheel: Path, target: str, version: tuple[int, int]) -> str:
    """What pip would install with the wheel on that system; or that the packages it asks for could not be looked up."""
    tag = wheel.stem.rsplit("-", 1)[1]
    # Packages may ask for a newer macOS, or be for both processors.
    tags = [tag] if target.startswith("windows") else [f"macosx_{n}_{m}_{arch}" for n, m in [(11, 0), (12, 0), (13, 0), (14, 0), (10, 9), (10, 13)]
                                                       for arch in (tag.split("_", 3)[3], "universal2")]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "-q", "--report", "-", "--disable-pip-version-check", "--target", folder, "--only-binary=:all:",
                   *(part for each in tags for part in ("--platform", each)), "--python-version", ".".join(map(str, version)), wheel]  # fmt: skip
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        return f"pip did not resolve it: {done.stderr.strip().splitlines()[-1]}"
    listed = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return "pip would install " + ", ".join(f"{entry['name']} {entry['version']}" for entry in listed)


def pack_sources(out: Path, scratch: Path) -> tuple[Path, Path]:
    """Packs a source distribution, and builds a wheel in `scratch` from it alone with pip.

    The sources are unpacked below build/, at the same depth as this tree's own build, so that ccache finds earlier compilations.
    """
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-c", "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])", folder, cwd=ROOT)
        (made,) = Path(folder).glob("*.tar.gz")
        sources = Path(shutil.copy(made, out))
    place = ROOT / "build" / "sdist"
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(sources) as archive:
        archive.extractall(place, filter="data")
    (unpacked,) = place.iterdir()
    wheel = pip_wheel(sys.executable, scratch, root=unpacked)
    shutil.rmtree(place)
    return sources, wheel


def faults(wheel: Path) -> list[str]:
    """Describes what is wrong with a wheel's contents."""
    found = []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        for wanted in ("naru/py.typed", "naru/_C.pyi", "naru/__init__.py", "naru/include/naru/naru.h", "naru/share/cmake/naru/naruConfig.cmake"):
            if wanted not in names:
                found.append(f"{wanted} is missing")
        found += [f"{n} does not belong there" for n in names if n.endswith((".cpp", ".txt", ".pyc", ".map")) and n.startswith("naru/")
                  and not n.startswith(("naru/_missing/", "naru/_documentation/"))]  # fmt: skip
        binaries = sorted(n for n in names if ".so" in Path(n).suffixes)
        if [Path(n).name.partition(".")[0] for n in binaries] != ["_C", "libnaru"]:
            found.append(f"wanted the extension and its library, got {binaries}")
        library = next((Path(n).name for n in binaries if "/lib/" in n), "")
        for name in binaries:
            file = archive.extract(name, folder)
            needed = {line.split("[")[1].rstrip("]") for line in run("readelf", "-d", file).splitlines() if "(NEEDED)" in line}
            found += [f"{name} needs {each}" for each in sorted(needed - SYSTEM - {library})]
            glibc = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("readelf", "-W", "--version-info", file))
            if (newest := max((int(a), int(b)) for a, b in glibc)) > NEWEST_GLIBC:
                found.append(f"{name} needs glibc {newest[0]}.{newest[1]}")
            # (readelf reads files of any processor, nm only of its own.)
            symbols = [line.split() for line in run("readelf", "-W", "--dyn-syms", file).splitlines()]
            shown = {row[7].split("@")[0] for row in symbols if len(row) > 7 and row[4] in ("GLOBAL", "WEAK") and row[6].isdigit()}
            if Path(name).name == library:
                inside = sorted(each for each in shown if INSIDE.match(each) and not SHOWN.match(each))
                found += [f"{name} shows {inside[:5]}"] if inside else []
            elif shown != {"PyInit__C"}:
                found.append(f"{name} shows {sorted(shown - {'PyInit__C'})[:5]}")
            if str(ROOT).encode() in Path(file).read_bytes():
                found.append(f"{name} names {ROOT}")
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"{wheel.stat().st_size} bytes, more than {MOST_BYTES}")
    return found


def environment(folder: Path, wheel: Path, python: Path | str = sys.executable, packages: str | None = None, extras: str | None = None) -> Path:
    """Creates an environment with only the wheel and returns its Python; `packages`: a folder of further packages to make visible; `extras`: also
    install the wheel's dependencies and those of these extras ("", "[onednn]")."""
    run(python, "-m", "venv", "--without-pip", folder)
    inside = folder / "bin" / "python"
    alone = ["--no-deps", "--no-index"] if extras is None else []
    run(sys.executable, "-m", "pip", "--python", inside, "install", "-q", "--disable-pip-version-check", *alone, f"{wheel}{extras or ''}")
    if packages:
        (site,) = (folder / "lib").glob("python3*/site-packages")
        (site / "more.pth").write_text(packages + "\n", encoding="utf-8")
    return inside


def tried(inside: Path, **variables: str) -> str:
    """The output of a training run in an environment, outside of this tree."""
    with tempfile.TemporaryDirectory() as folder:
        bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NARU_"))} | variables
        return run(inside, "-c", TRAIN, cwd=folder, env=bare)


def tried_everywhere(wheel: Path, python: Path | str) -> str:
    """The output of training runs with the wheel alone, and with each set of extras."""
    printed = ""
    for extras, words in BESIDE.items():
        with tempfile.TemporaryDirectory() as folder:
            beside = "alone" if extras is None else f"with what naru{extras} asks for"
            try:
                inside = environment(Path(folder), wheel, python, extras=extras)
            except SystemExit as error:
                if extras is None:
                    raise
                printed += f"{beside}: not tried, as pip could not install it: {str(error).splitlines()[-1]}\n"
                continue
            said = tried(inside, **({"NARU_MATMUL": "own"} if extras is None else {}))
            if absent := [word for word in words if word not in said]:
                raise SystemExit(f"{wheel.name}, {beside}: {absent} not in what it printed:\n{said}")
            printed += f"{beside}:\n  " + said.strip().replace("\n", "\n  ") + "\n"
    return printed


def tried_on_aarch64(wheel: Path) -> str:
    """The output of training runs in qemu, with the wheel alone and together with NumPy."""
    sysroot = ROOT / "build" / "aarch64-sysroot"
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder) / "packages"
        run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index", "--target", packages,
            "--only-binary=:all:", "--platform", wheel.stem.rsplit("-", 1)[1].split(".")[0], "--python-version", "3.11", wheel)  # fmt: skip
        bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NARU_"))}
        for seen in (f"{packages}", f"{packages}:{sysroot / 'python'}"):
            environment = {**bare, "PYTHONHOME": f"{sysroot / 'usr'}", "PYTHONPATH": seen}
            printed += run(ROOT / "tools" / "aarch64", "exec", sysroot / "usr" / "bin" / "python3.11", "-c", TRAIN, cwd=folder, env=environment)
    return printed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("extension", nargs="?", type=Path)
    options.add_argument("--build", nargs="+", metavar="PYTHON", default=[])
    options.add_argument("--sdist", action="store_true")
    options.add_argument("--out", type=Path, default=ROOT / "dist")
    options.add_argument("--platform")
    options.add_argument("--target", choices=TARGETS)
    options.add_argument("--python", default=sys.executable)
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    wrong = False

    def show(wheel: Path, python: Path | str) -> None:
        """Prints a wheel's properties; trains with it, unless something is wrong with it."""
        nonlocal wrong
        found = faults(wheel)
        wrong = wrong or bool(found)
        print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  {'; '.join(found) or 'in order'}", flush=True)
        if not found:
            said = tried_on_aarch64(wheel) if asked.platform else tried_everywhere(wheel, python)
            print("  " + said.rstrip().replace("\n", "\n  "), flush=True)

    if asked.target:
        wheel = pack_for(asked.target, asked.extension.resolve(), asked.python, asked.out)
        found = faults_elsewhere(wheel, asked.target, asked.python)
        wrong = bool(found)
        print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  {'; '.join(found) or 'in order'}", flush=True)
        if not found and asked.target.startswith("windows"):
            works, said = tried_under_wine(wheel, asked.target, asked.python)
            wrong = not works
            print("  " + said.replace("\n", "\n  "), flush=True)
        print(f"  {resolved(wheel, asked.target, python_headers.version_of(python_headers.folder_of(asked.python)))}", flush=True)
    elif asked.extension:
        show(pack(asked.extension.resolve(), asked.out, asked.platform), sys.executable)
    for python in asked.build:
        show(pip_wheel(python, asked.out), python)
    if asked.sdist:
        with tempfile.TemporaryDirectory() as scratch:  # the wheel in `out` is that of the tested extension
            sources, wheel = pack_sources(asked.out, Path(scratch))
            print(f"{sources.name}  {sources.stat().st_size / 1e6:.1f} MB", flush=True)
            show(wheel, sys.executable)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
