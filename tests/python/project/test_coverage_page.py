"""docs/coverage.md is up to date with the operator cases."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tools import coverage  # noqa: E402


def test_the_page_is_what_the_tool_finds():
    assert coverage.PAGE.read_text() == coverage.page(), "run `python -m tools.coverage`"


def test_the_page_knows_what_falls_back_and_what_has_no_second_derivative():
    found = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:5]] for row in coverage.PAGE.read_text().splitlines() if row.startswith("| `")}
    assert found["`linalg.solve`"][0] == "fallback" and found["`add`"][:2] == ["native", "2"]
    assert found["`ctc_loss`"] == ["native", "1", "f32, f64"]
    assert found["`bitwise_and`"] == ["native", "–", "bool, integers"]
