"""torch.distributed.checkpoint: what some ranks save others load; PyTorch's files."""
import base64
import io
import os
import pickle
import tarfile

import naru as torch
import naru.distributed as dist
import naru.distributed.checkpoint as dcp
import pytest
from naru.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from naru.distributed.checkpoint.metadata import MetadataIndex, read_metadata
from naru.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from naru.distributed.device_mesh import init_device_mesh
from naru.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from naru.nn.parallel import DistributedDataParallel
from ranks import fully_shard_on_cpu as fully_shard, on_ranks

nn = torch.nn

# Written by four ranks of PyTorch 2.15 on a mesh of 2 x 2: w = arange(20.0).view(5, 4) with [Shard(0), Shard(1)], r = arange(3) with [Replicate(),
# Replicate()], half = [1.5, -2.0] in bfloat16, {"model": {"w", "r", "half"}, "step": 7, "list": [ones(2), {"a": "x"}]}.
RECORDED = """
H4sIAAAAAAAAA+1ba2wcVxW++96sk9htUxwqCE5EUkfE63nPbqKSxG2NosWO47QQAmXYx6xnlfU+Z52HBEqF1hB1pEZkXGgkqgoJJQIJqQJUCaES8QcJgVAQ
rZAAKaICUaSKP/zgH5w7s7u+u+ud9WNtr/H9mtHszt57znfvOfecc+e64XG06WAAsihad0Dr3frMijzD8aIocTI8l2WORSPi5lNDqFLW46WREVTK53Wndt1+
36EIjysKrzDhVKasJwubowMbWBKEDvZnGUGWm+3Pcgy2P7M5dJqxy+0/E/N4EQoG238ZQo+jeCmpZRbU8VRcj4cLV7KTE/vR5SbcdMcC4ZlYIDi2sMT5oJvP
UegwkhpCw+l8aT6uKwtqqZzJ5yYnuBbZqwGLdb/9rz9/3QXSXY66n0Lysu6yni/F51Qlns3M5ebVnD45wa9D/WVJwAROXy1+4AYVbkcCj6HTDQKJ67qaL6XU
0uTEqfXorSOb0fWsijlUn3n/o37Q4nfkMIieaXBoTHx0/Qz4ENb98I25F7uP/xDilg2AXWq8rJYyYIEbcR14KJnU5ER4jVQYLspEBCkiybIscVGOh3ACQUWM
ynxEikI8YaMi/LOsZOaZ744Cj1GLpQuTbfAk3XeojXnrOmjtTTrgcFPPF4neLQ7fKoR0oqeahDwkhbR5bqsc0hEea5Iz60LtDtjanbTlYFP394juHcZATvGh
Zt1u1MX4MzG//0TdVTxjjZ7+lvsdl33/j9u+Q78Avr/itb/bUcDnt/v4rfZ2240HuyRMflILKxU9ky2HlJKaqGSyKUVXc+V8SVngQkU0OnoJ06mZqeiyu4Qm
s/m4ftF+GCq6L2GWTNFzyQP3ZKFS9Ma8etF3IYZi7ph7seiHm2uxGLiVTOazWTWJ56gcOo8NpqaeyyT1UDF4fLa4Ry+GZosDVgQ++oUj03dB2l3HkQ6jw50j
8MedVx8NtmsLtvvRp5u8apyZnDi5AQIIfeUsQgW4bsP1nbOYyUjwyn+HkB20nMI+3x72x9dKZbuDPSvKXISNQkRnI6IgCVAySozAywIvSlFJ4niZh+gfjWCW
n3/lTxc7BXtypfQy2P8T9SDYX3D1Jtj/fjXBnvSe/U3dP+dGLb67+kTxyN01UZDmaUkUnvUmikDL/Xf1ROGx7/VE8Suf/Z1MFAH4D7e32/Z3onDXE0UV0oSr
uqYkgQ6c+clrIOk1x1EOo6Odk8Th7quWJortThQ3T+MLM7h9wf8uVhl0ZDCITrUnCHm9FPoyUUicKAiMHJVEVopEWHguYZanfvvkyU6JglwtvUwUf0c7LVGQ
XtS7RPHH7omCNE//JYodD/z+j9nW938Mz4hs2/s/RqDv/7YC/V3p+GuVjmedW+Kr70QydEtcx/9npYNhVTtnEHoTLgRb4yFra/zLh6mlg/DgoCOjQfSp9srn
6dVS6stKR4gIUSkqylFG4BgpGmVZGbOMpN7+YadKh1wpu3tLTHpN7yqdf3SvdEjz0EqHYkuA6z+uH89/GVr/bQU2Xv9ZZdu1IrIKLpX5y8kB+D7gKHoYMZ0L
rhNryoC0/qLnvyuc/0ocz0t8VJYgqghQBzGY5U+/XLzXqf4hHbeX9c8X0a46/yWnmJ7/0vPf3R1se7/ZPQOb2xm4bsL1TWuT+9fkpEDPf0WZESOszLOCyER4
zPJnb96g579dgz3pPVt6/kuap/82u9uZKCasTMFKm3YE/M4PxOrrIOl1x4EOoyOd88ShLguXJortTRQPTqMHWHvgwuX3cVXkddQ+SMxAw8QbGn9fJgpR5GSB
lSKCzEQjLMfK9vnve7cn3u2UKMil0stE8QHaaYmC9KTeJYo/dE8UpHn6L1HseOD3f+z2nv9KLMe1n//K9P3fVqC/t8T0/LcbdnulAyLPwD+4HsD1CK4R2Boz
1tb4rWNfu7u7z395iRWjkgxNMMvwLwJv0PPfbpUO6TVbev5Lmqf/Kp3tTBSfzefmHPOEp54n1rEd/vbh1MtLIGnJcZDD6FjnHHFkFYuWJoptTxQND0e1GbD9
OhD8zZeM87syUYiCKMEjXHnzogQNGOsPhb41/u+FTomCXC69TBR/QzstUZBes6WJgjRP/yUKip2E8Hh4XtXj2Fc2TUe3v/+W+Na//2FFlqf7/63ATe+SWVvz
xlG7QMOvgkqZREVXU+GkpiavFPKZnN5wE9MITtU/3jGPv2x+1Rw1noBZ1FUlBRWW0miIfwjM51NqNnzV1JDx5AtWqVer5NqFhAqlfEEt6Rm1jJsP2c1nlh9a
LUcNn8XTNAJp/AKB5+C58YTNvSncmcaAMqfqSjZ+PV/Rcat9tVYwvpSaMqvmrHkLNB1Qpp6fUibPz06dfUF5fvrZ88+dm/4MtI8hq4X13sHUzYThLWduqGaD
gPci/grtfDHvoiXN8Ce1Su5K2XzJHMWCn8XfOg44kE+ny6oOoz0CxSuqifBhJdYz/NrDelZJaMftPtoJq23tucY4tPLUJVqt3B1buVdupVYSdeuVTG1Prcte
bT+2gTZk+MApJAEGox28pX3sFpTdeIq0T2CZVVvisZfMZt5VgnW1picOekK2Hi2eTa+kKphI22diK2pzr0Kbm9QWzIKHh9lwHHvZgQnI7+UVTQTm1tWCqS3g
z36rE9NO7/GNM6oYewvZeC6nlpT2hWP4rE+m4bpqLpqESV41XCX8pGnyXjW81odFU7tW4181tRuGF9M3sUeQw78bcxmuuPkNExjUy6U6A5ibffX5OJdLqdeW
/daTLuZMkmHG+j2GDL/t0U0ODTP+tGNkSWeyavk6cJ03jb1KzRTncun8ssZ9JTULa3pBVQpxXcPNiP9rydTuY9VZNTcHv00d94OLf6827d8nItC9mEu7Ty4f
aPejWru3sEi2WaT24w6ySlgWsmVV2yRpP9fuQ8f23sTE35tu1c216f7Q23Ecbku3Z3mGCe2/Bu0fetu1N7mJE30s4CMD7QJqq6GdOr8W6p4a9RVMoD3qQL2x
9pxoPyJpE/6M0xFe6APEGicca9kPoToGp8b+lc0kTGPPTL6cuTaD3e0ONHSNm4ZHny9Y69DwlNQkLHeI1oFyHLwSd/0kn2aTaTEhjSV4ITEmyAI3Fhc5dUxg
GTnBxnmeUyF5BCCUpXCHaWteKuD7kC1wsK2V+7Ce2DADw60kwttbHFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQ9B3+B3ATnbMA
eAAA
"""


def state_of(mesh, w, r, fill=0):
    w = distribute_tensor(torch.arange(20.0).view(5, 4) * fill, mesh, w)
    r = distribute_tensor(torch.arange(3) * fill, mesh, r)
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16) * fill
    return {"model": {"w": w, "r": r, "half": half}, "step": 7 * fill, "list": [torch.ones(2) * fill, {"a": "x" * fill}]}


def is_filled(state):
    whole = state["model"]["w"].full_tensor() if isinstance(state["model"]["w"], DTensor) else state["model"]["w"]
    r = state["model"]["r"]
    assert whole.tolist() == torch.arange(20.0).view(5, 4).tolist() and (r.full_tensor() if isinstance(r, DTensor) else r).tolist() == [0, 1, 2]
    assert state["model"]["half"].tolist() == [1.5, -2.0] and state["model"]["half"].dtype == torch.bfloat16
    assert state["step"] == 7 and state["list"][0].tolist() == [1, 1] and state["list"][1] == {"a": "x"}


LAYOUTS = [([Shard(0)], [Replicate()]), ([Shard(1)], [Shard(0)]), ([Replicate()], [Replicate()])]


def loads(rank, size, folder):
    """Any layout, on any number of ranks."""
    for w, r in LAYOUTS:
        state = state_of(init_device_mesh("cpu", (size,)), w, r)
        dcp.load(state, checkpoint_id=folder)
        is_filled(state)
    if size == 4:
        state = state_of(init_device_mesh("cpu", (2, 2)), [Shard(1), Shard(0)], [Shard(0), Shard(0)])
        dcp.load(state, storage_reader=dcp.FileSystemReader(folder))
        is_filled(state)
    state = {"model": {"w": torch.zeros(5, 4)}}
    dcp.load(state, checkpoint_id=folder)
    assert state["model"]["w"].sum() == 190


def saves(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,))
    metadata = dcp.save(state_of(mesh, [Shard(0)], [Replicate()], 1), checkpoint_id=folder)
    assert [c.sizes for c in metadata.state_dict_metadata["model.w"].chunks] == [(2, 4), (2, 4), (1, 4)]  # the fourth rank has none
    assert len(metadata.state_dict_metadata["model.r"].chunks) == 1 and metadata.planner_data["list.1.a"] == ("list", 1, "a")
    future = dcp.async_save(state := state_of(mesh, [Shard(1)], [Shard(0)], 1), checkpoint_id=folder + "_async")
    state["model"]["w"].zero_()  # after it was copied
    dist.barrier()
    assert future.result().storage_meta.checkpoint_id == folder + "_async"
    assert dcp.async_save({"x": torch.ones(1)}, checkpoint_id=folder + "_alone" + str(rank), no_dist=True).result().storage_data
    # An error on one rank is raised on all, and names it.
    with pytest.raises(dcp.CheckpointException, match="Rank 1: ValueError"):
        dcp.save({"a": torch.ones(1), **({"a.b": 1, "a": {"b": 1}} if rank == 1 else {})}, checkpoint_id=folder + "_wrong")
    with pytest.raises(dcp.CheckpointException, match="not the same tensor on all ranks"):
        dcp.save({"a": torch.ones(1 + rank)}, checkpoint_id=folder + "_wrong")
    for wrong, message in (({"b": torch.ones(1)}, "Missing key in checkpoint state_dict: b"), ({"step": 1, "model": {"w": torch.zeros(3)}}, "Size mismatch")):
        with pytest.raises(dcp.CheckpointException, match=message):
            dcp.load(wrong, checkpoint_id=folder)
    with pytest.raises(dcp.CheckpointException, match="already exists"):
        dcp.save({"a": torch.ones(1)}, storage_writer=dcp.FileSystemWriter(folder, overwrite=False))
    state = {"step": 0, "more": torch.ones(1)}
    dcp.load(state, checkpoint_id=folder, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state["step"] == 7


def training(rank, size, folder, what, kind):
    """Saved by four ranks under fully_shard, loaded by others, also by ones without it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    if what == "load":
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
    if kind == "fsdp":
        for part in (model[0], model[2], model):
            fully_shard(part)
    elif kind == "ddp":
        model = DistributedDataParallel(model)
    adam = torch.optim.AdamW(model.parameters(), lr=0.01 if what == "save" else 0.5)

    def step():
        model(torch.ones(4, 5)).square().sum().backward()
        adam.step()
        adam.zero_grad()

    if what == "save":
        step()
        states = get_state_dict(model, adam)
        dcp.save(dict(zip(("model", "optim"), states)), checkpoint_id=folder)
        step()
        torch.save({k: v.full_tensor() for k, v in model.state_dict().items()}, folder + f"{rank}.pt")
        return
    states = get_state_dict(model, adam)
    assert list(states[0]) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    state = dict(zip(("model", "optim"), states))
    dcp.load(state, checkpoint_id=folder)
    found = dcp.load_sharded_optimizer_state_dict(states[0], "optim", dcp.FileSystemReader(folder))["optim"]
    for name, each in state["optim"]["state"].items():
        for key, value in each.items():
            assert type(found["state"][name][key]) is type(value) and torch.equal(found["state"][name][key], value)
    set_state_dict(model, adam, model_state_dict=state["model"], optim_state_dict=state["optim"])
    assert adam.param_groups[0]["lr"] == 0.01
    step()
    wanted = torch.load(folder + "0.pt")
    for name, value in get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)).items():
        torch.testing.assert_close(value, wanted[name])


def options(rank, size):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    steps = torch.optim.AdamW(plain.parameters(), lr=0.01)
    plain(torch.ones(4, 5)).square().sum().backward()
    steps.step()
    whole = {"full_state_dict": True, "cpu_offload": True}
    wanted = get_model_state_dict(plain), get_optimizer_state_dict(plain, steps)
    for flat in (False, True):
        torch.manual_seed(rank + 1)
        model = fully_shard(nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3)))
        adam = torch.optim.AdamW(model.parameters(), lr=0.5)
        given = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, flatten_optimizer_state_dict=flat)
        source = get_optimizer_state_dict(plain, steps, options=StateDictOptions(flatten_optimizer_state_dict=flat))
        set_model_state_dict(model, wanted[0] if rank == 0 else {}, options=given)
        set_optimizer_state_dict(model, adam, source if rank == 0 else {}, options=given)
        found = get_state_dict(model, adam, options=StateDictOptions(**whole))
        assert (found == ({}, {})) == (rank > 0)  # whole ones on the cpu are rank 0's
        if rank == 0:
            for name, value in wanted[0].items():
                assert torch.equal(found[0][name], value)
                for key, v in wanted[1]["state"][name].items():
                    assert torch.equal(found[1]["state"][name][key], v)
            assert found[1]["param_groups"][0]["lr"] == 0.01 and found[1]["param_groups"][0]["params"] == list(wanted[0])
    assert list(get_optimizer_state_dict(model, adam, options=StateDictOptions(flatten_optimizer_state_dict=True)))[:2] == [
        "state.0.weight.step", "state.0.weight.exp_avg"]  # fmt: skip
    assert isinstance(get_model_state_dict(model)["0.weight"], DTensor)
    model[0].weight.requires_grad_(False)
    assert "0.weight" not in get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    assert list(get_model_state_dict(model, submodules={model[1]})) == ["1.weight", "1.bias"]
    short = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(model, submodules={model[1]}, options=short)) == ["weight", "bias"]
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))


def test_ranks_save_and_load(tmp_path):
    folder = str(tmp_path / "checkpoint")
    on_ranks(tmp_path, 4, saves, folder)
    for size in (4, 2, 1):
        on_ranks(tmp_path, size, loads, folder)
        on_ranks(tmp_path, size, loads, folder + "_async")


def test_a_training_goes_on_with_another_number_of_ranks(tmp_path):
    folder = str(tmp_path / "checkpoint")
    on_ranks(tmp_path, 4, training, folder, "save", "fsdp")
    for size, kind in ((2, "fsdp"), (1, "fsdp"), (2, "ddp"), (1, "plain")):
        on_ranks(tmp_path, size, training, folder, "load", kind)


def test_options_of_state_dicts(tmp_path):
    on_ranks(tmp_path, 2, options)


@pytest.fixture
def recorded(tmp_path):
    tarfile.open(fileobj=io.BytesIO(base64.b64decode(RECORDED))).extractall(tmp_path / "recorded", filter="data")
    return str(tmp_path / "recorded")


def test_pytorchs_files_load(tmp_path, recorded):
    state = {"model": {"w": torch.zeros(5, 4), "r": torch.zeros(3, dtype=torch.int64), "half": torch.zeros(2, dtype=torch.bfloat16)}, "step": 0,
             "list": [torch.zeros(2), {"a": ""}]}  # fmt: skip
    dcp.load(state, checkpoint_id=recorded)
    is_filled(state)
    for size in (4, 2):
        on_ranks(tmp_path, size, loads, recorded)
    dcp_to_torch_save(recorded, tmp_path / "all.pt")
    is_filled(torch.load(tmp_path / "all.pt"))


def test_the_metadata_names_pytorchs_classes(tmp_path, recorded):
    """The same checkpoint, written here, names what PyTorch's names; only the ranks that write replicated tensors are chosen differently."""
    torch_save_to_dcp_source = tmp_path / "all.pt"
    dcp_to_torch_save(recorded, torch_save_to_dcp_source)
    torch_save_to_dcp(torch_save_to_dcp_source, tmp_path / "again")
    pickles = []
    for folder in (recorded, str(tmp_path / "again")):
        with open(os.path.join(folder, ".metadata"), "rb") as file:
            pickles.append(file.read())
    import pickletools

    def classes(data):
        texts = [arg for op, arg, _ in pickletools.genops(data) if op.name == "SHORT_BINUNICODE"]
        return {t for t in texts if t.startswith("torch") or t[0].isupper() or t.startswith("_")}

    assert classes(pickles[1]) <= classes(pickles[0]) | {"__0_0.distcp", "__0_"} and "TensorStorageMetadata" in classes(pickles[1])
    mine, theirs = (read_metadata(io.BytesIO(data)) for data in pickles[::-1])
    assert mine.state_dict_metadata.keys() == theirs.state_dict_metadata.keys() and mine.planner_data == theirs.planner_data
    assert mine.version == theirs.version and MetadataIndex("model.half", [0]) in mine.storage_data
    half = "model.half"
    assert mine.state_dict_metadata[half] == theirs.state_dict_metadata[half]


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


def test_a_hostile_checkpoint_is_refused(tmp_path, recorded):
    path = os.path.join(recorded, ".metadata")
    with open(path, "rb") as file:
        metadata = read_metadata(file)
    for wrong in (Evil(), {"a": 1}):
        with open(path, "wb") as file:
            pickle.dump(wrong, file)
        with pytest.raises(dcp.CheckpointException, match=r"which is no part of one|must hold Metadata"):
            dcp.load({"step": 0}, checkpoint_id=recorded)
    reader = dcp.FileSystemReader(recorded)
    reader.storage_data = metadata.storage_data
    reader.storage_data[MetadataIndex("step")].relative_path = "../all.pt"
    from naru.distributed.checkpoint.planner import LoadItemType, LoadPlan, ReadItem

    item = ReadItem(LoadItemType.BYTE_IO, MetadataIndex("step"), None, MetadataIndex("step"), None, None)
    with pytest.raises(ValueError, match="outside of its folder"):
        reader.read_data(LoadPlan([item]), dcp.DefaultLoadPlanner())
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        dcp.load({"step": 0})


def test_stateful_objects(tmp_path):
    class Counter:
        count = 3

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    model, counter = nn.Linear(2, 1), Counter()
    dcp.save({"model": model, "counter": counter, "nothing": None, "empty": [], "shape": (1, 2)}, checkpoint_id=tmp_path / "c")
    wanted = model.weight.clone()
    counter.count = 0
    with torch.no_grad():
        model.weight.zero_()
    state = {"model": model, "counter": counter, "nothing": 1, "empty": [1], "shape": ()}
    dcp.load(state, checkpoint_id=tmp_path / "c")
    assert torch.equal(model.weight, wanted) and counter.count == 3 and state["nothing"] is None and state["empty"] == [] and state["shape"] == (1, 2)


def test_a_tensor_of_a_part_of_a_storage_is_written_alone(tmp_path):
    dcp.save({"x": torch.zeros(100000)[:3]}, checkpoint_id=tmp_path)
    assert os.path.getsize(tmp_path / "__0_0.distcp") < 4000
