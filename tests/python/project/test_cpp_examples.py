"""The programs in examples/cpp, as built by ./run, print the expected output."""
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import naru
from naru import nn

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "build" / "release" / "examples" / "cpp"

# Expected output; numbers that depend on the machine are left open.
SAYS = {
    "checkpoint": r"step 50, loss \d\.\d+",
    "data_parallel": r"4 devices; gradients as on one: yes\nloss 0\.\d+",
    "dataset": r"800 points learned, (9\d|100) % of 200 others right",
    "digits": r"(.*\n)+held-out accuracy \d+\.\d % on cpu, 20 steps, \d+ us a step",
    "distributed": r"2 process\(es\); the same parameters in all: yes\nloss 0\.\d+",
    "graph": r"a step of \d+ instructions: .* us, replayed .* us\nloss 0\.\d+",
    "mixed_precision": r"(step \d was left out: .*\n)*the model computed in b?float16, its parameters are float32, loss (0\.0\d+|\d\.\d+e-\d+)",
    "regression": r"(step .*\n)+y = 0\.(50|49|51) \+ (2\.0|1\.9)\d x \+ -(3\.0|2\.9)\d x\^2 .*",
    "server": r"200 answers, probabilities add up to 200\.0, a wrong shape is refused",
    "streams": r"stream \d made a, stream \d b: the last element is 524288\nthe host waited 1 time\(s\): .*",
    "vec_add": r"on .*: the last of 1000000 sums is 1000000",
    "virtual_devices": r"out of memory: .*\n(.*\n)*sum on cuda:1: 8388608\nas on hardware: .*\nthe device was lost, the program was not",
}
# Programs that torchrun starts, in so many processes.
PROCESSES = {"distributed": 2}
# Program arguments.
ARGUMENTS = {"digits": ["digits.bin", "--steps", "20", "--device", "cpu"]}


def write_digits(path):
    """A file as examples/export_digits.py writes them: 128 pictures, each label a picture of its own."""
    labels = [i % 10 for i in range(128)]
    pictures = [1.0 if pixel // 78 == label else 0.0 for label in labels for pixel in range(784)]
    path.write_bytes(b"NARUDIG1" + struct.pack("<3i", 128, 28, 28) + bytes(labels) + struct.pack(f"<{len(pictures)}f", *pictures))


def test_each_example_is_run_by_a_test():
    assert {p.stem for p in (ROOT / "examples" / "cpp").glob("*.cpp")} == set(SAYS)


def output_of(name, *arguments, cwd):
    if not (PROGRAMS / name).exists():
        pytest.skip("not built: ./run build examples")
    launcher = [sys.executable, "-m", "naru", "torchrun", "--standalone", f"--nproc_per_node={PROCESSES[name]}", "--no-python"] if name in PROCESSES else []
    done = subprocess.run([*launcher, PROGRAMS / name, *arguments], capture_output=True, text=True, cwd=cwd, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_does_what_it_says(name, tmp_path):
    write_digits(tmp_path / "digits.bin")
    said = output_of(name, *ARGUMENTS.get(name, []), cwd=tmp_path)
    assert re.fullmatch(SAYS[name], said), said


def test_a_training_goes_on_in_the_other_language_and_back(tmp_path):
    """The same bits, whoever makes steps 51 to 100."""
    for name in ("one", "other"):
        output_of("checkpoint", f"{name}.pt", cwd=tmp_path)
    wanted = [output_of("checkpoint", "one.pt", cwd=tmp_path) for _ in range(2)]

    naru.manual_seed(0)
    x = naru.randn(64, 8)
    y = x.sum(1, keepdim=True).sin()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = naru.optim.Adam(model.parameters(), lr=0.5)
    saved = naru.load(tmp_path / "other.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    for _ in range(50):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert wanted[0].splitlines() == ["going on at step 50", f"step 100, loss {loss.item():.9g}"]
    naru.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": saved["step"] + 50}, tmp_path / "other.pt")
    assert output_of("checkpoint", "other.pt", cwd=tmp_path) == wanted[1]
