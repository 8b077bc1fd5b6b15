"""`naru selftest` finds the faults of a device, and reports none if there are none."""
import pytest

import naru
from naru.__main__ import main
from naru.testing import selftest
from naru.testing.operator_cases import CASES, Case


@pytest.fixture
def cases(monkeypatch):
    """Replaces the operator cases."""
    return lambda *some: monkeypatch.setattr(selftest, "CASES", list(some))


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setenv("NARU_SELF_CHECK", "0")  # the command sets it for its process


def test_every_device_passes_and_all_cases_are_counted(device):
    found = selftest.run(device, quick=True)
    assert [text for f in found.values() for text in f.wrong + f.missing] == []
    assert sum(f.cases for f in found.values()) == len(CASES)
    assert set(found) == {"elementwise", "reductions", "products", "networks", "shapes", "indexing", "fused", "linalg", "fourier"}
    assert 0 < found["elementwise"].worst < 4


def test_the_whole_run_also_compares_bits_with_cpu(capsys):
    assert main(["selftest", "cuda:1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cuda:1: Virtual cuda" and lines[-1].endswith("checks against float64 on the CPU: all right")
    head, row = lines[2], next(line for line in lines if line.startswith("elementwise"))
    assert head.endswith("bits of cpu")
    same, _, all_of_them = row.split()[-3:]
    assert same == all_of_them != "0"


def test_memory_of_every_kind_is_tried():
    names = [name for name, _, _ in selftest.variants(CASES[0], "cpu", naru.float32, quick=False)]
    for kind in ("contiguous", "transposed", "offset", "strided", "stride 0", "size (0,)", "size ()", "size (1,)", "size (17,)"):
        assert kind in names
    for _, operands, arrays in selftest.variants(CASES[0], "cpu", naru.float32, quick=False):
        for t, a in zip(operands, arrays):
            assert t.shape == a.shape and (t.numpy() == a).all()


def test_a_wrong_number_in_one_layout_is_found(cases, capsys):
    def wrong_when_transposed(a):
        return a + 1e-4 if not a.is_contiguous() and a.dim() == 2 and a.stride(0) < a.stride(1) else a + 0

    cases(Case("sum", wrong_when_transposed, lambda a: a, [(5, 7)]), CASES[0])
    assert main(["selftest", "cpu"]) == 1
    text = capsys.readouterr().out
    assert "wrong: sum, transposed, float32: " in text and "wrong: sum, transposed, float64: " in text
    assert "contiguous" not in text and text.rstrip().endswith("some WRONG")


def test_an_error_is_a_finding_and_an_operator_that_a_device_does_not_support_is_named(cases, capsys):
    def fails(a):
        raise RuntimeError("no such\nkernel")

    def unsupported(a):
        raise NotImplementedError("lgamma: not on this device")

    cases(Case("matmul", fails, lambda a: a, [(5, 7)]), Case("sum", unsupported, lambda a: a, [(5, 7)]))
    assert main(["selftest", "cpu", "--quick"]) == 1
    text = capsys.readouterr().out
    assert "wrong: matmul, contiguous, float32: no such kernel" in text
    assert text.count("missing: sum: lgamma: not on this device") == 1
    cases(Case("sum", unsupported, lambda a: a, [(5, 7)]))
    assert main(["selftest", "cpu", "--quick"]) == 0


def test_a_device_that_is_not_there_is_an_error(capsys):
    assert main(["selftest", "cuda:7"]) == 2
    assert "invalid device ordinal" in capsys.readouterr().err
    assert main(["selftest"]) == 2
