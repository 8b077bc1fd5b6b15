"""The rules of the layers: which layer may include which."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
ALLOWED = {
    "core": {"core"},
    "ir": {"core", "ir"},
    "render": {"core", "ir", "render"},
    "runtime": {"core", "ir", "render", "runtime"},
    "host": {"core", "ir", "render", "runtime", "host"},
    "ops": {"core", "ir", "runtime", "autograd", "ops"},
    "autograd": {"core", "ir", "runtime", "autograd", "ops"},
    "nn": {"core", "runtime", "autograd", "ops", "nn"},
    "optim": {"core", "runtime", "autograd", "ops", "nn", "optim"},
    "data": {"core", "runtime", "ops", "data"},
    "backends": {"core", "ir", "render", "runtime", "host", "backends"},
    "cli": {"core", "runtime", "ops", "cli"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def sources():
    return sorted(p for p in SRC.rglob("*") if p.suffix in (".h", ".cpp", ".inc"))


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SRC)))
def test_a_layer_includes_only_layers_below_it(path):
    layer = path.relative_to(SRC).parts[0]
    for included in INCLUDE.findall(path.read_text()):
        other = included.split("/")[0]
        if other == "naru" or other not in ALLOWED:
            continue
        assert other in ALLOWED[layer], f"{path.relative_to(SRC)} includes {included}: {layer} may include {sorted(ALLOWED[layer])} only"
        if other == "backends":
            mine = path.relative_to(SRC).parts[1]
            assert included.split("/")[1] == mine, f"{path.relative_to(SRC)} includes another backend: {included}"


@pytest.mark.parametrize("path", [p for p in sources() if p.parent == SRC / "render"], ids=lambda p: p.name)
def test_what_is_common_to_machine_code_knows_no_architecture(path):
    found = re.findall(r'#include [<"](?:asmjit/(?:x86|arm|a64)|render/(?:x86|a64)/)[^>"]*[>"]|\bx86::|\ba64::', path.read_text())
    assert not found, f"src/render is for every processor; {found} belongs into the folder of an architecture"
