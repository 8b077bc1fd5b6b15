"""The kinds of devices are defined in one table, include/naru/device_kinds.inc, on which everything else is based."""
import re
from pathlib import Path

import pytest

import naru as torch

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "include" / "naru" / "device_kinds.inc"
ALL_ROWS = re.findall(r'^NARU_DEVICE_KIND\((\w+), "(\w+)"', TABLE.read_text(), re.M)
ROWS = [row for row in ALL_ROWS if row[0] != "Meta"]  # which computes nothing


def test_python_has_the_kinds_of_the_table_in_its_order():
    assert ALL_ROWS[-1] == ("Meta", "meta") and "meta" not in torch.accelerator.KINDS
    assert torch._C._KINDS == tuple(name for _, name in ROWS) and torch._C._ACCELERATORS == torch._C._KINDS[1:]
    assert torch.accelerator.KINDS == torch._C._ACCELERATORS


@pytest.mark.parametrize("folder", ["src", "include", "python", "tools"])
def test_no_other_file_lists_the_kinds(folder):
    names = "|".join(name for _, name in ROWS[1:])
    types = "|".join(name for name, _ in ROWS[1:])
    # Three in a row are a duplicate of the table; two may be an example.
    one, kind = rf"""["']({names})["']""", rf"DeviceType::({types})\b"
    several = re.compile(rf"{one}(,\s*{one}){{2}}|{kind}[^;{{}}]*[,:]\s*{kind}")
    for path in (ROOT / folder).rglob("*"):
        if path == TABLE or not path.is_file() or path.suffix in (".so", ".pyc", ".pyi"):
            continue
        found = several.search(path.read_text(encoding="utf-8", errors="ignore"))
        assert not found, f"{path.relative_to(ROOT)} lists kinds of devices: {found[0]}"


@pytest.mark.parametrize("row", torch._C._KIND_ROWS[1:], ids=lambda row: row["name"])
def test_every_kind_works_as_a_virtual_one(row):
    kind = row["name"]
    with torch.virtual(kind, count=2):
        x = torch.ones(3, device=f"{kind}:1") + 1
        assert x.tolist() == [2.0] * 3 and str(x.device) == f"{kind}:1"
        assert kind in torch.accelerator.kinds() and torch.amp.is_autocast_available(kind)
        assert torch.device(0).type == torch.accelerator.kinds()[0]
        for other in torch._C._KIND_ROWS:
            if other["python"]:
                assert getattr(x, f"is_{other['python']}") is (other["name"] == kind)
        if row["python"]:
            assert str(getattr(torch.ones(1), row["python"])().device) == f"{kind}:0"
            assert getattr(torch, row["python"]).device_count() == 2
