"""Each public Python name of nn, optim, autograd, utils.data and devices has a C++ counterpart, or a reason why not (docs/cpp-parity.md)."""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tools import parity  # noqa: E402


@pytest.mark.parametrize("namespace", parity.NAMESPACES)
def test_every_public_python_name_has_a_cpp_one_or_a_reason(namespace):
    holes = [name for name, other, why in parity.rows(namespace) if other is None and not why]
    assert not holes, f"naru.{namespace}: {holes} are in no header of {parity.NAMESPACES[namespace][1]}; declare them, or give a reason in tools/parity.py"


def test_the_page_is_what_the_tool_writes():
    assert parity.PAGE.read_text() == parity.page(), "run `python -m tools.parity`"


def test_no_entry_of_the_table_speaks_of_a_name_that_is_gone():
    for namespace, name in parity.SPELT:
        assert name in parity.public_names(namespace), f"naru.{namespace} has no {name}"


def test_names_that_are_spelt_otherwise_exist():
    headers = "\n".join(p.read_text() for p in (ROOT / "include" / "naru").rglob("*.h"))
    for (namespace, name), (other, _) in parity.SPELT.items():
        if other and "::" in other:
            word = other.rsplit("::", 1)[1]
            assert re.search(rf"\b{re.escape(word)}\b", headers), f"naru.{namespace}.{name}: there is no {other}"
