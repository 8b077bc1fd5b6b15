"""Predicted peak memory: devices without elements, whose allocator counts as if they had memory."""
import json
import os
import subprocess
import sys
from pathlib import Path

import naru as torch
import pytest
from naru import nn
from naru._command.predict import at_peak, without_elements

F = nn.functional


def steps(model, optimizer, loss_of, batches):
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        assert loss.item() == loss.item()


def perceptron():
    model = nn.Sequential(nn.Linear(300, 500), nn.ReLU(), nn.Dropout(0.1), nn.Linear(500, 700), nn.GELU(), nn.Linear(700, 10)).to("cuda")
    batches = [(torch.randn(64, 300).to("cuda"), torch.randint(10, (64,)).to("cuda")) for _ in range(3)]
    steps(model, torch.optim.Adam(model.parameters()), lambda m, b: F.cross_entropy(m(b[0]), b[1]), batches)


def convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, stride=2), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 5),
    ).to("cuda")  # fmt: skip
    batches = [torch.randn(n, 3, 24, 24, device="cuda") for n in (16, 16, 7)]
    steps(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), lambda m, x: (m(x) ** 2).mean(), batches)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        self.head = nn.Linear(64, 1000)

    def forward(self, words):
        return self.head(self.layers(self.embedding(words), mask=nn.Transformer.generate_square_subsequent_mask(words.shape[1], device="cuda"), is_causal=True))


def transformer():
    model = Words().cuda()
    batches = [torch.randint(1000, (4, 33), device="cuda") for _ in range(3)]
    steps(model, torch.optim.AdamW(model.parameters()), lambda m, w: F.cross_entropy(m(w[:, :-1]).flatten(0, 1), w[:, 1:].flatten()), batches)


def figures(train, **options):
    """Of the allocator, after a run on a virtual device; the devices come and go, so that each run has its own."""
    with torch.virtual("cuda", memory="2GiB", **options):
        train()
        torch.cuda.synchronize()
        found = torch.cuda.memory_stats()
        return {name: found[name] for name in found if name.startswith(("alloc", "reserved", "requested", "segment")) and "current" not in name}


@pytest.mark.parametrize("train", [perceptron, convolutions, transformer], ids=lambda f: f.__name__)
def test_what_is_predicted_is_what_a_run_takes(train):
    wanted = figures(train)
    assert wanted["allocated_bytes.all.peak"] > 1 << 20
    assert figures(train, without="elements") == wanted


def test_what_the_host_reads_of_a_device_without_elements_is_0_and_no_memory_is_taken():
    with torch.virtual("cuda", memory="8T", without="elements"):
        x = torch.ones(1 << 40, device="cuda")
        assert x.sum().item() == 0 and x[:3].tolist() == [0, 0, 0] and torch.cuda.memory_allocated() >= 1 << 42
        assert torch.multinomial(torch.ones(3, device="cuda"), 2).shape == (2,) and torch.linalg.eigvals(torch.ones(3, 3, device="cuda")).shape == (3,)
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(9 << 40, dtype=torch.uint8, device="cuda")


def test_the_peak_names_who_held_it():
    with without_elements("mps", "1GiB") as devices:
        a = torch.ones(1 << 20, device="mps")
        b = torch.ones(1 << 21, device="mps")
        torch.mps.synchronize()
        del a, b
        torch.ones(1 << 21, device="mps").sum().item()
    peaks = {str(history.device): at_peak(history.events) for history in devices.histories}
    peak = peaks.pop("mps:0")
    assert all(not other["holders"] for other in peaks.values())
    assert peak["allocated"] == (3 << 22) and sum(holder["bytes"] for holder in peak["holders"]) == peak["allocated"]
    assert [(h["operator"], h["bytes"], h["tensors"]) for h in peak["holders"]] == [("ones", 2 << 22, 1), ("ones", 1 << 22, 1)]
    assert all("test_predict.py:" in holder["line"] for holder in peak["holders"]) and at_peak([])["holders"] == []


SCRIPT = """
import sys
import torch
x = torch.randn(300, 400, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)
for i in range(3):
    (x @ x.t()).tanh().sum().backward()
print(torch.cuda.max_memory_allocated())
if len(sys.argv) > 1:
    torch.empty(1 << 30, device="cuda")
"""

def test_a_script_runs_as_ever_and_is_told_what_it_would_take(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*command):
        env = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1]), "NARU_VIRTUAL": "cuda:1"}
        return subprocess.run([sys.executable, "-m", "naru", "memory", "--predict", "--size", "1GiB", *command], cwd=tmp_path, env=env, capture_output=True, text=True)

    with torch.virtual("cuda", memory="1GiB"):
        x = torch.randn(300, 400, device="cuda", requires_grad=True)
        for _ in range(3):
            (x @ x.t()).tanh().sum().backward()
        wanted = torch.cuda.max_memory_allocated()
    done = run("--json", "train.py")
    said, told = done.stdout.splitlines()
    assert done.returncode == 0 and int(said) == json.loads(told)["cuda:0"]["allocated"] == wanted, done.stderr
    failed = run("train.py", "too much")
    assert failed.returncode == 1 and "OutOfMemoryError" in failed.stderr and "cuda:0: peak " in failed.stdout and "ended with status 1" in failed.stdout
    assert "train.py:6 · mm" in failed.stdout
