"""The conformance board without PyTorch: its page follows from the recorded counts, and its runner distinguishes the outcomes."""
import pickle
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tools.conformance import board, runner  # noqa: E402
from tools.conformance.close import differs  # noqa: E402


def packed(values, dtype="float32"):
    a = np.array(values, dtype)
    return ("tensor", dtype, a.shape, tuple(s // a.itemsize for s in a.strides), a.tobytes(), False, 0)


def sample(function, argument, result):
    return {
        "form": "function", "call": ("path", function), "process": None, "processed": None, "given": (("list", [("object", 0, packed(argument))]), ("dict", [])),
        "options": (False, False, False), "repeats": True, "result": ("object", 0, packed(result)), "views": [False], "gradients": None, "truth": None,
    }  # fmt: skip


def test_the_page_is_that_of_the_counts():
    assert board.PAGE.read_text() == board.page(board.STATE.read_text()), "run `./run conformance`"


def test_each_outcome_is_told_apart_and_a_sample_that_ends_the_process_is_one_crash(tmp_path):
    samples = [
        sample("torch.neg", [1.0, -2.0], [-1.0, 2.0]),
        sample("os.abort", [1.0], [1.0]),
        sample("torch.neg", [1.0], [1.0]),
        sample("torch.linalg.inv", [1.0], [1.0]),
        sample("torch.no_such_function", [1.0], [1.0]),
    ]
    samples[1]["given"] = (("list", []), ("dict", []))
    file = tmp_path / "neg.float32.pickle"
    file.write_bytes(pickle.dumps({"op": "neg", "dtype": "float32", "samples": samples}))
    assert [outcome for outcome, _ in runner.Runner().answers(file)] == ["right", "crash", "wrong", "refused", "missing"]


def test_an_element_may_be_as_far_from_the_exact_value_as_twice_pytorchs_own():
    want, exact = packed([1.001]), packed([1.0], "float64")
    assert differs(packed([0.999]), want, None) and not differs(packed([0.999]), want, exact)
    assert differs(packed([0.997]), want, exact) and differs(packed([[1.001]]), want, exact) and differs(packed([1.0], "float64"), want, exact)


def test_what_is_not_right_is_in_the_page_with_its_reason():
    state = board.State("2.15.0")
    recorded = {"op": "neg", "dtype": "float32", "raised": 0, "internal": False, "samples": [sample("torch.neg", [1.0], [1.0])] * 2}
    state.add(recorded, [("right", ""), ("wrong", "1 of 1 elements differ: at [0] -1.0 for 1.0")])
    text = board.page(state.as_json())
    assert "| `neg` | 2 | 1 wrong | float32 1 | 1 wrong: values differ |" in text and "| **all** | 2 | 1 | 1 | 0 | 0 | 0 | 50.0 % |" in text


def test_a_part_of_the_operators_can_be_counted_anew():
    state = board.State("2.15.0")
    recorded = {"op": "neg", "dtype": "float32", "raised": 0, "internal": False, "samples": [sample("torch.neg", [1.0], [1.0])] * 2}
    state.add(recorded, [("right", ""), ("right", "")])
    old = board.STATE.read_text()
    new = board.renewed(old, state.as_json())
    assert [a for a, b in zip(new.splitlines(), old.splitlines(), strict=True) if a != b] == ['    "neg": {"counts": {"float32": [2, 0, 0, 0, 0]}, "reasons": []},']
    assert board.renewed(old, '{"operators": {}}') == old
