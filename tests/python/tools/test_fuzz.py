"""The fuzzers run, find seeded faults, and find nothing else: the first calls of a fixed seed, and everything found so far."""

import os
import random
import subprocess
import sys
from pathlib import Path

import naru
import pytest

from tools.sanitized import SANITIZED

ROOT = str(Path(__file__).resolve().parents[3])


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.path.dirname(os.path.dirname(naru.__file__)), os.environ.get("PYTHONPATH", "")])}
    if SANITIZED:  # the fuzzer looks for signals
        environment["ASAN_OPTIONS"] += ":handle_segv=0"
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800)


def test_random_calls_of_every_public_function_end_in_an_answer_or_an_error():
    done = run("tools.fuzz.api", "--seconds", "200", "--calls", "30000", "--seed", "1")  # enough time for the same calls on any reasonably fast machine
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_found_stays_mended():
    done = run("tools.fuzz.corpus")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program, word", [("import os\nos.kill(os.getpid(), 11)", "signal 11"), ("raise RuntimeError('vector::_M_fill_insert')", "vector"), ("raise SystemError('x')", "SystemError")])
def test_the_fuzzer_sees_what_it_looks_for(tmp_path, program, word):
    file = tmp_path / "bad.txt"
    file.write_text(program + "\n")
    done = run("tools.fuzz.corpus", str(file))
    assert done.returncode == 1 and word in done.stdout


def test_a_call_is_the_same_for_the_same_seed_and_number():
    calls = {run("tools.fuzz.api", "--seed", "3", "--only", "11").stdout for _ in range(2)}
    assert len(calls) == 1


def test_calls_of_hard_numbers_are_near_those_of_float64():
    done = run("tools.fuzz.numbers", "--seconds", "100", "--calls", "6000", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "subject, how",
    [
        ("x.to(t.float16).sum(-1) if x.dtype is not t.float64 else x.sum(-1)", "ROWS"), ("x.abs().sqrt() ** 4", "ELEMENTWISE"), ("x * (1 + 2.0**-6) if x.dtype is not t.float64 else x", "ELEMENTWISE"),
    ],
)  # fmt: skip
def test_the_fuzzer_of_numbers_sees_what_is_far_from_float64(monkeypatch, subject, how):
    """A sum that is rounded early, a derivative of 0 * inf, and a result with the wrong last places."""
    from tools.fuzz import numbers

    monkeypatch.setattr(numbers, "ROWS", [(subject, "sum")])
    monkeypatch.setattr(numbers, "ELEMENTWISE", [subject])
    monkeypatch.setattr(numbers, "OF_TWO", [])
    fuzzer = numbers.Numbers(1)
    call = fuzzer.of_rows if how == "ROWS" else fuzzer.elementwise
    assert any(call(random.Random(seed))[1] for seed in range(60))


def test_the_fuzzer_of_numbers_sees_memory_that_nobody_has_written():
    from tools.fuzz import numbers

    class Calls:
        table = {"sum": lambda: naru.empty(16)}

        def make(self, index):
            return "sum", [], {}, None

    fuzzer = numbers.Numbers(1)
    fuzzer.calls = Calls()
    assert "depends on what memory held" in fuzzer.memory(random.Random(1), 0)[1]
