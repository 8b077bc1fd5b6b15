"""The layering rules: which layers a layer may include and call."""
import json
import re
import shutil
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"
OBJECTS = ROOT / "build" / "release" / "src" / "CMakeFiles"
COMMANDS = ROOT / "build" / "release" / "compile_commands.json"
ALLOWED = {
    "core": {"core"},
    "ir": {"core", "ir"},
    "render": {"core", "ir", "render"},
    "runtime": {"core", "ir", "render", "runtime"},
    "cpu": {"core", "ir", "render", "runtime", "cpu"},
    "graph": {"core", "graph"},
    "ops": {"core", "ir", "runtime", "graph", "ops"},
    "engine": {"core", "runtime", "graph", "ops", "engine"},
    "nn": {"core", "runtime", "graph", "ops", "nn"},
    "optim": {"core", "runtime", "graph", "ops", "nn", "optim"},
    "data": {"core", "runtime", "graph", "ops", "nn", "optim", "data"},
    "library": {"core", "runtime", "cpu", "graph", "library"},
    "distributed": {"core", "runtime", "graph", "ops", "engine", "data", "distributed"},
    "backends": {"core", "ir", "render", "runtime", "cpu", "backends"},
}
CMAKE = (SRC / "CMakeLists.txt").read_text()
LAYERS = re.search(r"set\(NARU_LAYERS ([^)]*)\)", CMAKE).group(1).split()
# Folder -> layer. If CMake lists none, a layer is the folder of its name; "backends/cpu/*" are the subfolders.
FOLDERS = {layer: layer for layer in LAYERS} | {"backends": "backends"}
for _layer, _listed in re.findall(r"set\(NARU_FOLDERS_(\w+) ([^)]*)\)", CMAKE):
    FOLDERS |= {folder.strip('"'): _layer for folder in _listed.split()}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def sources():
    return sorted(p for p in SRC.rglob("*") if p.suffix in (".h", ".cpp", ".inc"))


def layer_of(path):
    """The layer of a file, given relative to src/: that of the longest folder that it is in. None of a file outside the layers."""
    folder = str(Path(path).parent)
    while folder not in (".", "/"):
        within = f"{Path(folder).parent}/*"
        if layer := FOLDERS.get(folder) or FOLDERS.get(within):
            return layer
        folder = str(Path(folder).parent)
    return None


def test_each_source_is_in_a_layer():
    assert {layer_of(p.relative_to(SRC)) for p in sources()} == set(ALLOWED)
    assert layer_of("backends/cpu/gemm/matmul.cpp") == "cpu" and layer_of("backends/cpu/cpu.cpp") == "backends"
    assert layer_of("autograd/history/history.h") == layer_of("kernels/call/call.h") == layer_of("ops/shape/views.cpp") == "ops"
    assert layer_of("naru/tensor.h") is None


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SRC)))
def test_a_layer_includes_only_layers_below_it(path):
    layer = layer_of(path.relative_to(SRC))
    for included in INCLUDE.findall(path.read_text()):
        other = layer_of(included)
        if other is None:
            continue
        assert other in ALLOWED[layer], f"{path.relative_to(SRC)} includes {included}: {layer} may include {sorted(ALLOWED[layer])} only"
        if other == "backends":
            mine = path.relative_to(SRC).parts[1]
            assert included.split("/")[1] in (mine, "gpu", "ptx"), f"{path.relative_to(SRC)} includes another backend: {included}"


@pytest.mark.parametrize("path", [p for p in sources() if p.parent == SRC / "render"], ids=lambda p: p.name)
def test_what_is_common_to_machine_code_knows_no_architecture(path):
    found = re.findall(r'#include [<"](?:asmjit/(?:x86|arm|a64)|render/(?:x86|a64)/)[^>"]*[>"]|\bx86::|\ba64::', path.read_text())
    assert not found, f"src/render is for every processor; {found} belongs into the folder of an architecture"


def test_the_list_of_layers_has_no_circle():
    assert set(LAYERS) | {"backends"} == set(ALLOWED)
    for i, layer in enumerate(LAYERS):
        above = set(LAYERS[i + 1 :]) | {"backends"}
        assert not ALLOWED[layer] & above, f"{layer} stands below {sorted(ALLOWED[layer] & above)}"


@cache
def symbols():
    """By layer: what its objects define, and what they call, with the objects that do. Public headers hide nothing from this."""
    defined, called = {}, {}
    # Objects of deleted sources are ignored.
    built = {Path(command["directory"]) / re.search(r" -o (\S+)", command["command"])[1] for command in json.loads(COMMANDS.read_text("utf-8"))}
    for layer in LAYERS:
        folder = OBJECTS / f"naru_{layer}.dir"
        objects = [o for o in sorted(folder.rglob("*.o")) if o in built]
        lines = subprocess.run(["nm", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout.splitlines()
        defined[layer], called[layer] = set(), defaultdict(set)
        for line in lines:
            path, rest = line.split(":", 1)
            kind, name = rest.split()[-2:]
            if kind == "U":
                called[layer][name].add(Path(path).name.removesuffix(".o"))
            else:
                defined[layer].add(name)
    return defined, called


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_calls_only_functions_of_layers_that_it_may_include(layer):
    if not shutil.which("nm") or not all((OBJECTS / f"naru_{each}.dir").is_dir() for each in LAYERS):
        pytest.skip(f"there are no objects under {OBJECTS}, or no nm to read them: ./run build")
    defined, called = symbols()
    below = set().union(*(defined[each] for each in ALLOWED[layer]))
    elsewhere = set().union(*(defined[each] for each in LAYERS if each not in ALLOWED[layer]))
    wrong = {name: sorted(files) for name, files in called[layer].items() if name in elsewhere and name not in below}
    names = subprocess.run(["c++filt"], input="\n".join(wrong), capture_output=True, text=True, check=True).stdout.splitlines()
    assert not wrong, f"{layer} calls functions that stand elsewhere: " + "; ".join(f"{n} ({f})" for n, f in zip(names, wrong.values()))


def test_the_library_destroys_no_statics():
    """Work in the destructors of a program's statics comes after ours would have run: what is made once is never destroyed."""
    if not shutil.which("nm") or not OBJECTS.is_dir():
        pytest.skip(f"there are no objects under {OBJECTS}, or no nm to read them: ./run build")
    found = []
    for path in sorted((ROOT / "build" / "release" / "src").rglob("*.o")):
        undefined = subprocess.run(["nm", "-u", str(path)], capture_output=True, text=True, check=True).stdout.split()
        if "__cxa_atexit" in undefined:
            found.append(path.name)
    assert not found, f"{found}: a static with a destructor; make it `static auto& x = *new ...`, thread-locals per_thread<T>()"


# Macros of operating systems, not of processors or compilers. (sys/single_threaded.h, execinfo.h: tested with __has_include, which works on any system.)
SYSTEM = re.compile(
    r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*\b(?:__linux__|__APPLE__|__MACH__|_WIN32|_WIN64|WIN32|__unix__|__CYGWIN__|__MINGW\w*|_MSC_VER|__ANDROID__|\w*BSD__"
    r"|O_TMPFILE|MFD_CLOEXEC)\b|^[ \t]*#[ \t]*include[ \t]*<(?:sys/(?!single_threaded)|linux/|unistd\.h|dlfcn\.h|pthread\.h|fcntl\.h|signal\.h|sched\.h|"
    r"spawn\.h|poll\.h|glob\.h|link\.h|elf\.h|windows\.h|io\.h|mach/)[^>]*>?",
    re.M,
)


@pytest.mark.parametrize("folder", [SRC, ROOT / "include", ROOT / "python" / "bindings"], ids=lambda p: p.name)
def test_only_runtime_and_the_cpu_know_the_system(folder):
    assert SYSTEM.search("#ifdef _WIN32") and SYSTEM.search("#include <sys/mman.h>")
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".inc")):
        within = path.relative_to(folder)
        if within.parts[0] in ("runtime", "distributed") or layer_of(within) == "cpu":  # builds for other systems omit distributed
            continue
        found = SYSTEM.findall(path.read_text())
        assert not found, f"{path.relative_to(ROOT)}: {found}: what differs between systems belongs into src/runtime/os/system.h, or into src/backends/cpu"


def test_each_system_answers_all_that_is_asked_of_it():
    """runtime/os/system.h and what its implementations define, by name: a cross build need not be made to see that one is missing."""
    runtime = SRC / "runtime" / "os"
    asked = set(re.findall(r"^[\w:<>*& ]+?[ *&](\w+)\([^;{]*\)(?: noexcept)?;", (runtime / "system.h").read_text(), re.M))
    assert {"map_huge", "open_library", "sleep_while"} <= asked
    for files in (["linux", "posix"], ["macos", "posix"], ["windows"]):
        text = "".join((runtime / f"system_{each}.cpp").read_text() for each in files)
        missing = sorted(name for name in asked if not re.search(rf"^[\w:<>*& ]+?[ *&]{name}\([^;]*\)(?: noexcept)? \{{", text, re.M))
        assert not missing, f"{files}: {missing}"


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm to read objects")
def test_the_extension_has_no_variable_of_its_own_that_the_library_has_too():
    """An inline variable of a header would be one in libnaru.so and another in the extension, which shows nothing: only constants may be inline."""
    folder = ROOT / "build" / "release" / "python" / "bindings"
    objects = [str(path) for path in folder.rglob("*.o")]
    if not objects:
        pytest.skip(f"there are no objects under {folder}: ./run build")
    lines = subprocess.run(["nm", "-C", "--defined-only", *objects], capture_output=True, text=True, check=True).stdout.splitlines()
    shared = {match[1] for line in lines if (match := re.match(r"[0-9a-f]+ [uV] (naru::\S+)$", line))}
    assert "naru::kDTypeTraits" in shared, "nm shows no inline variables at all"
    assert {name for name in shared if not re.search(r"(^|::)(k[A-Z]\w*|__\w+)$", name)} == set()


def test_condition_variables_are_those_that_a_forked_child_may_destroy():
    own = ROOT / "include" / "naru" / "condition_variable.h"
    files = [p for folder in (SRC, ROOT / "python" / "bindings", ROOT / "include") for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".inc")]
    assert own in files
    found = [str(p.relative_to(ROOT)) for p in files if p != own and re.search(r"std::condition_variable|<condition_variable>", p.read_text())]
    assert found == [], f"{found}: glibc's destructor waits for threads that a forked child lacks: naru::ConditionVariable (naru/condition_variable.h)"
