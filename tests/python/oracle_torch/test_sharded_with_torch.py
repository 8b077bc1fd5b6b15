"""Meshes, DTensor, fully_shard and checkpoints in four processes, compared with PyTorch over gloo. `./run test --torch` runs this in PyTorch's environment."""
import json
import os
import subprocess
import sys

import pytest

if os.environ.get("NARU_ORACLE") != "torch":
    pytest.skip("PyTorch is compared with by ./run test --torch only", allow_module_level=True)

pytest.importorskip("torch")

START = """
import importlib, json, os, sys, tempfile
torch, dist, mp = (importlib.import_module(sys.argv[1] + name) for name in ("", ".distributed", ".multiprocessing"))
device_mesh, tensor, fsdp, dcp, helpers, parallel = (
    importlib.import_module(sys.argv[1] + ".distributed." + name)
    for name in ("device_mesh", "tensor", "fsdp", "checkpoint", "checkpoint.state_dict", "tensor.parallel")
)
S, R, P = tensor.Shard, tensor.Replicate, tensor.Partial

def begin(rank, size, path, work):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)
    work(rank, size)
    dist.destroy_process_group()

def on_ranks(size, work):
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(begin, args=(size, os.path.join(folder, "store"), work), nprocs=size, start_method="fork")
"""

PRINTED = START + """
def work(rank, size):
    mesh = device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    d = tensor.distribute_tensor(torch.arange(24.0).view(4, 6), mesh, [S(0), S(1)])
    r = tensor.distribute_tensor(torch.ones(6, 8), mesh, [R(), R()])
    w = tensor.distribute_tensor(torch.ones(8, 6), mesh, [R(), S(1)])
    found = [
        mesh, mesh["tp"], mesh["dp"], mesh._flatten("all"), mesh["all"], mesh.get_coordinate(), mesh.get_local_rank("tp"), mesh.size(0), d, d.stride(),
        repr(S(1)), str(S(1)), repr(R()), str(R()), repr(P()), str(P("avg")), d.sum(), d.mean(), d.max(), d.sum(0), d + d, d @ d.T, d @ r, d.T, d.view(2, 2, 6),
        torch.softmax(d, -1), torch.zeros_like(d), d.sum() + d.sum(), d.sum() / 2, d.sum() > 3, d.var(0), d.argmax(), d.cumsum(0), torch.cat([d, d]),
        torch.nn.functional.linear(d, w), torch.nn.functional.layer_norm(d, (6,)), d.sort(0).values, d.unsqueeze(0), torch.where(d > 1, d, 0.0),
        parallel.ColwiseParallel(), parallel.RowwiseParallel(output_layouts=S(1)), parallel.SequenceParallel(),
        parallel.PrepareModuleInput(input_layouts=S(0), desired_input_layouts=R()), d.sum().item(), d.chunk(2, 1), d[1:3],
    ]
    if rank == 3:
        print(json.dumps([str(f) for f in found]))

on_ranks(4, work)
"""

TRAINED = START + """
def work(rank, size):
    what, folder = sys.argv[2], sys.argv[3]
    net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_((torch.arange(float(p.numel())).view(p.shape) * (1 + i)).sin() * (what == "save"))
    mesh = device_mesh.init_device_mesh("cpu", (size,))
    for part in (net[0], net[2], net):
        fsdp.fully_shard(part, mesh=mesh)
    adam = torch.optim.AdamW(net.parameters(), lr=0.01)
    x = (torch.arange(20.0).view(4, 5) * 0.3).cos()

    def step():
        loss = net(x[rank % 4 : rank % 4 + 1]).square().sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    model, optim = helpers.get_state_dict(net, adam)
    state = {"model": model, "optim": optim, "step": 3 * (what == "save"), "more": [torch.ones(2) * (what == "save"), {"a": "x" * (what == "save")}]}
    if what == "save":
        for _ in range(3):
            step()
        model, optim = helpers.get_state_dict(net, adam)
        dcp.save({**state, "model": model, "optim": optim}, checkpoint_id=folder)
    else:
        dcp.load(state, checkpoint_id=folder)
        assert state["step"] == 3 and state["more"][0].tolist() == [1, 1] and state["more"][1] == {"a": "x"}
        helpers.set_state_dict(net, adam, model_state_dict=state["model"], optim_state_dict=state["optim"])
    found = {name: value.full_tensor().tolist() for name, value in net.state_dict().items()}
    moments = [adam.state[p]["exp_avg"].full_tensor().tolist() for p in net.parameters()]
    if rank == 0:
        print(json.dumps([found, moments]))

on_ranks(int(sys.argv[4]), work)
"""


def ran(program, name, *words):
    command = [sys.executable, "-W", "ignore", "-c", program, name, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_meshes_and_placements_print_as_pytorchs():
    ours, theirs = (ran(PRINTED, name) for name in ("naru", "torch"))
    assert ours == theirs


def near(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b))
    return a == pytest.approx(b, rel=1e-5, abs=1e-6)


def test_a_checkpoint_of_each_is_loaded_by_the_other_on_any_number_of_ranks(tmp_path):
    saved = {name: ran(TRAINED, name, "save", str(tmp_path / name), "4") for name in ("naru", "torch")}
    assert near(saved["naru"], saved["torch"])
    for reader, writer in (("naru", "torch"), ("torch", "naru"), ("naru", "naru")):
        for size in ("4", "2", "1"):
            assert near(ran(TRAINED, reader, "load", str(tmp_path / writer), size), saved[writer]), (reader, writer, size)
