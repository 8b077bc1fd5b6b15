"""float64 in integers, for devices without it: each operation has the processor's bits."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HARNESS = ROOT / "tests" / "python" / "support" / "soft_float64.c"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("there is no C compiler")
    text = re.search(r'R"c\((.*)\)c"', (ROOT / "src/render/c/soft_float64.cpp").read_text(encoding="utf-8"), re.DOTALL)[1]

    def compiled(text, count):
        folder = tmp_path_factory.mktemp("soft")
        (folder / "soft.h").write_text(text, encoding="utf-8")
        subprocess.run([compiler, "-O2", "-std=c11", "-ffp-contract=off", "-fwrapv", f'-DSOFT="{folder}/soft.h"', HARNESS, "-o", folder / "soft", "-lm"], check=True)
        return subprocess.run([folder / "soft", str(count)], capture_output=True, text=True, check=False).stdout

    return lambda count, change=lambda t: t: compiled(change(text), count)


def test_every_operation_has_the_bits_of_the_processor(run):
    assert run(1_000_000) == "0 differences\n"


@pytest.mark.parametrize("line, wrong", [
    ("(m + 0x1ff + (m >> 10 & 1)) >> 10", "(m + 0x200) >> 10"),  # ties go away from zero
    ("if (e <= 0) m = jam_u64(m, 1 - e);\n  const u64", "if (e <= 0) m = 1 - e > 63 ? 0 : m >> (1 - e);\n  const u64"),  # bits below are forgotten
    ("high | (u64)(low != 0)", "high"),
])
def test_a_wrong_rounding_is_found(run, line, wrong):
    def change(text):
        assert line in text
        return text.replace(line, wrong)

    assert "differences" in run(200_000, change) and run(200_000, change) != "0 differences\n"
