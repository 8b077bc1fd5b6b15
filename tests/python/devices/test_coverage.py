"""`naru devices --coverage`: its report agrees with what happens, operator by operator."""
import json

import pytest

import naru
from naru import _C
from naru.__main__ import main
from naru._command.coverage import coverage
from naru.testing.operator_cases import CASES, result_bits


def served(device):
    return {o["name"]: o["devices"][device] for o in coverage()["operators"]}


def test_each_device_of_the_machine_has_a_column_and_each_operator_a_line(capsys):
    assert main(["devices", "--coverage"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["operator", "family", *(d["device"] for d in _C.devices())]
    names = [line.split()[0] for line in lines[1:lines.index("")]]
    assert len(names) == len(set(names))
    for row in _C._elementwise_table():
        assert row[0] in names
    assert {"sum", "argmax", "cumsum", "gather", "index_put_", "sort", "matmul", "float64"} <= set(names)
    assert not any("'" in name for name in names), "derivatives that are served as their operators need no line"
    assert f"cpu: {len(names)} native" in lines


def test_what_a_device_does_not_support_is_absent_or_a_fallback_as_the_policy_says(capsys):
    with naru.virtual("mps", without=["sort", "exp", "tanh'a", "fp64"]):
        assert [served("mps:0")[n] for n in ("sort", "exp", "exp'a", "tanh", "tanh'a", "float64")] == ["absent", "absent", "native", "native", "absent", "absent"]
        assert set(served("cpu").values()) == {"native"}
        with pytest.raises(NotImplementedError):
            naru.ones(3, device="mps").sort()
        with naru.fallback.policy("count"):
            assert [served("mps:0")[n] for n in ("sort", "exp", "add", "float64")] == ["fallback", "fallback", "native", "absent"]
            assert main(["devices", "--coverage"]) == 0
            text = capsys.readouterr().out
    line = next(line for line in text.splitlines() if line.startswith("mps:0: "))
    assert line.endswith(" native, 3 fallback, 1 absent")
    derivatives = [line.split()[0] for line in text.splitlines() if line.split()[1:2] == ["derivative"]]
    assert derivatives == ["exp'a", "tanh'a"]


def test_the_json_has_every_derivative_too(capsys):
    assert main(["devices", "--coverage", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == coverage()
    assert {"exp'a", "mul'b", "where'c"} <= {o["name"] for o in found["operators"]}


def test_the_list_has_every_operator_that_any_case_asks_a_device_for():
    asked = set()
    with naru.virtual("cuda", without="*"):
        assert {how for name, how in served("cuda:0").items() if name not in ("float64", "float16", "bfloat16")} == {"absent"}
        with naru.fallback.policy("count"):
            for case in CASES:
                naru.fallback.reset()
                assert result_bits(case, "cuda:0") == result_bits(case), case.name
                asked |= {use.op for use in naru.fallback.report()}
        naru.fallback.reset()
    listed = {o["name"]: o["family"] for o in coverage()["operators"]}
    assert asked <= set(listed)
    assert {listed[name] for name in asked} == set(listed.values()) - {"type"}
