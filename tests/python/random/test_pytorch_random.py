"""With set_algorithm("pytorch"), random numbers equal PyTorch's on the cpu, on every device."""
import json
import math
import subprocess
import sys

import naru as torch
import pytest
import random_facts as cases
from naru import distributions as D
from naru import nn
from naru.nn import functional as F

WANTED = json.loads(cases.FACTS.read_text())
# Functions that the host computes in double precision with the C library, whose last digit may differ from PyTorch's; results are in float32 or float64.
ROUNDED = ("float64", "cauchy_", "log_normal_", "gumbel_softmax", "gamma", "Gamma", "alpha_dropout", "Exponential", "Laplace", "D.Normal", "torch.normal", "xavier_", "kaiming_", "trunc_normal_", "nn.")


@pytest.fixture
def pytorchs():
    torch.random.set_algorithm("pytorch")
    yield
    torch.random.set_algorithm("philox")


def same(a, b, exact):
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(same(x, y, exact) for x, y in zip(a, b))
    return a == b or (not exact and isinstance(b, float) and math.isclose(a, b, rel_tol=3e-7))


def test_numbers_orders_and_first_weights_are_pytorchs(pytorchs):
    found = cases.facts(torch, F, nn, D)
    other = {k: (found[k], wanted) for k, wanted in WANTED.items() if not same(found[k], wanted, not any(word in k for word in ROUNDED))}
    assert not other, "\n".join(f"{k}: {got}, wanted {wanted}" for k, (got, wanted) in other.items())


def test_every_device_gets_the_same(pytorchs, device):
    torch.manual_seed(7)
    assert torch.randn(37, device=device).cpu().double().tolist() == WANTED["torch.randn(37)"]
    torch.manual_seed(7)
    assert F.dropout(torch.ones(9, device=device), 0.3).cpu().double().tolist() == WANTED["F.dropout(torch.ones(9), .3)"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(6, 5), (3, 8), (4, 2, 3)], ids=str)
def test_orthogonal_weights_are_made_of_the_numbers_that_normal_draws(pytorchs, shape, dtype):
    torch.manual_seed(7)
    drawn, after = torch.empty(shape, dtype=dtype).normal_().flatten(1).double(), torch.rand(1)
    torch.manual_seed(7)
    q = nn.init.orthogonal_(torch.empty(shape, dtype=dtype)).flatten(1).double()
    assert torch.equal(torch.rand(1), after)
    if q.shape[0] < q.shape[1]:
        drawn, q = drawn.T, q.T
    r = q.T @ drawn
    assert (r.diagonal() > 0).all() and r.tril(-1).abs().max() < 1e-5


def test_a_state_brings_the_numbers_back(pytorchs):
    torch.manual_seed(1)
    torch.randn(3)
    state = torch.get_rng_state()
    assert state.shape == (5056,)
    a = torch.randn(5).tolist(), torch.rand(700).sum().item()
    torch.set_rng_state(state)
    assert a == (torch.randn(5).tolist(), torch.rand(700).sum().item())
    with torch.random.fork_rng():
        inside = torch.rand(2).tolist()
    assert torch.rand(2).tolist() == inside


def test_philox_is_as_it_was_before_and_after(device):
    torch.manual_seed(1)
    before = torch.rand(3, device=device).tolist()
    torch.random.set_algorithm("pytorch")
    torch.rand(3)
    torch.random.set_algorithm("philox")
    torch.manual_seed(1)
    assert torch.rand(3, device=device).tolist() == before and torch.random.algorithm() == "philox"
    with pytest.raises(ValueError, match="set_algorithm: wanted one of philox, pytorch, got 'mt'"):
        torch.random.set_algorithm("mt")


def test_a_command_and_a_variable_choose_for_a_program(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import torch\ntorch.manual_seed(7)\nprint(torch.rand(1).item())\n")
    wanted = str(WANTED["torch.rand(3)"][0])
    for words in (["run", "--random", "pytorch", str(script)], ["run", "--random=pytorch", str(script)]):
        assert subprocess.run([sys.executable, "-m", "naru", *words], capture_output=True, text=True).stdout.strip() == wanted
    done = subprocess.run([sys.executable, "-m", "naru", "run", "--random", "dice", str(script)], capture_output=True, text=True)
    assert done.returncode == 2 and "philox or pytorch" in done.stderr


def test_a_graph_refuses_them(pytorchs):
    x = torch.zeros(4)
    with pytest.raises(RuntimeError, match="PyTorch's random numbers are made by the host"):
        graph = torch.Graph()
        with torch.graph(graph):
            x.uniform_()
