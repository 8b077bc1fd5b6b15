"""FullyShardedDataParallel, the older form of fully_shard; loss scaling of shards; functional collectives."""
import functools

import naru as torch
import naru.distributed as dist
import naru.distributed._functional_collectives as funcol
import pytest
from naru.distributed.device_mesh import init_device_mesh
from naru.distributed.fsdp import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel as FSDP,
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictType,
)
from naru.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from naru.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    enable_wrap,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from naru.distributed.tensor import DTensor
from naru.nn.parallel import DistributedDataParallel
from ranks import on_ranks

nn = torch.nn


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Sequential(nn.Linear(4, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 16), nn.ReLU()), nn.Linear(16, 2))


def batch(rank, step):
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(10 * step + rank))


def trained(model, rank, steps=3, clip=None):
    adam = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        model(batch(rank, step)).square().mean().backward()
        if clip is not None:
            model.clip_grad_norm_(clip) if isinstance(model, FSDP) else nn.utils.clip_grad_norm_(model.parameters(), clip)
        adam.step()
        adam.zero_grad()
    return adam


POLICIES = [
    None, always_wrap_policy, ModuleWrapPolicy({nn.Sequential}), CustomPolicy(lambda m: isinstance(m, nn.Linear)),
    functools.partial(size_based_auto_wrap_policy, min_num_params=200),
    functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}),
]  # fmt: skip


def strategies(rank, size):
    plain = DistributedDataParallel(net())
    trained(plain, rank, clip=0.1)
    wanted = plain.module.state_dict()
    mesh = init_device_mesh("cpu", (2, size // 2))
    ways = [{"auto_wrap_policy": policy} for policy in POLICIES]
    ways += [{"sharding_strategy": s} for s in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD)]
    ways += [{"sharding_strategy": ShardingStrategy.HYBRID_SHARD, "device_mesh": mesh}, {"cpu_offload": CPUOffload(offload_params=True)}]
    ways += [{"sharding_strategy": ShardingStrategy.HYBRID_SHARD, "process_group": (mesh.get_group(1), mesh.get_group(0))}, {"sync_module_states": True}]
    for way in ways:
        model = FSDP(net(rank if "sync_module_states" in way else 0), use_orig_params=True, **way)
        adam = trained(model, rank, clip=0.1)
        found = model.state_dict()
        assert list(found) == list(wanted) == [name for name, _ in model.named_parameters()]
        for name, value in wanted.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6, msg=lambda text: f"{way} {name}: {text}")
    assert model.module is model._fsdp_wrapped_module and isinstance(model[2], nn.Linear) and FSDP.fsdp_modules(model) == [model]
    # State dicts, whole and sharded, of the model and the optimizer.
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        shards = model.state_dict()
        assert all(isinstance(v, DTensor) for v in shards.values())
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True, offload_to_cpu=True), FullOptimStateDictConfig()):
        assert (model.state_dict() == {}) == (rank > 0)
        state = FSDP.optim_state_dict(model, adam)
    assert state["state"]["2.weight"]["exp_avg"].shape == (2, 16) and not isinstance(state["state"]["2.weight"]["exp_avg"], DTensor)
    by_id = FSDP.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_ID, model)
    assert list(by_id["state"]) == list(range(6)) and FSDP.rekey_optim_state_dict(by_id, OptimStateKeyType.PARAM_NAME, model)["state"] == state["state"]
    assert (FSDP.full_optim_state_dict(model, adam) == {}) == (rank > 0)
    made = net()  # an optimizer that was made before
    early = torch.optim.SGD(made.parameters(), lr=1.0)
    made = FSDP(made)
    made(batch(rank, 0)).sum().backward()
    before = made.state_dict()["2.bias"]
    early.step()
    assert not torch.equal(made.state_dict()["2.bias"], before)
    other = FSDP(net(1), auto_wrap_policy=always_wrap_policy)
    for given in (found, shards):
        other.load_state_dict(given)
        assert torch.equal(other.state_dict()["2.weight"], found["2.weight"])
    second = torch.optim.AdamW(other.parameters(), lr=0.01)
    second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, state))
    for m, o in ((model, adam), (other, second)):
        m(batch(rank, 7)).sum().backward()
        o.step()
        o.zero_grad()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value)
    with FSDP.summon_full_params(other):
        assert other[2].weight.shape == (2, 16)
        with torch.no_grad():
            other[2].weight.fill_(3)
    assert other.state_dict()["2.weight"].eq(3).all()
    with other.no_sync():
        other(batch(rank, 1)).sum().backward()
    assert other[2].weight.grad is None
    other(batch(rank, 1)).sum().backward()
    assert other[2].weight.grad is not None
    half = FSDP(net(), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    assert half(batch(rank, 1)).dtype == torch.bfloat16
    with enable_wrap(wrapper_cls=FSDP, auto_wrap_policy=None):
        assert isinstance(wrap(nn.Linear(2, 2)), FSDP)
    with pytest.raises(NotImplementedError, match="use SHARDED_STATE_DICT"):
        FSDP.set_state_dict_type(model, StateDictType.LOCAL_STATE_DICT)


def scaling(rank, size):
    for kind in (ShardedGradScaler, torch.amp.GradScaler):
        model = FSDP(net())
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = kind("cpu", init_scale=4.0)
        before = model.state_dict()
        x = batch(rank, 0)
        loss = model(x).sum()
        scaler.scale(loss).backward()
        if rank == 1:  # only this rank's shard is wrong
            next(iter(model.parameters())).grad.to_local().view(-1)[0] = float("inf")
        scaler.step(sgd)
        scaler.update()
        assert scaler.get_scale() == 2.0
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[name])
        sgd.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(sgd)
        assert not torch.equal(model.state_dict()["2.weight"], before["2.weight"])


def functional(rank, size):
    mesh = init_device_mesh("cpu", (2, size // 2))
    x = torch.full((4, 2), float(rank), requires_grad=True)
    assert funcol.wait_tensor(funcol.all_reduce(x, "sum", dist.group.WORLD)).eq(6).all()
    assert funcol.all_reduce(x, "avg", (mesh, 1)).eq(rank // 2 * 2 + 0.5).all() and funcol.all_reduce(x, "max", mesh.get_group(0)).eq(rank % 2 + 2).all()
    assert funcol.broadcast(x, 2, list(range(size))).eq(2).all()
    for dim in (0, 1):
        whole = funcol.all_gather_tensor(x, dim, None)
        assert whole.shape[dim] == x.shape[dim] * size and whole.select(dim, x.shape[dim] * 3).eq(3).all()
        assert torch.equal(funcol.reduce_scatter_tensor(whole, "sum", dim, None), x * size)
    rows = funcol.all_to_all_single(x, None, None, None)
    assert rows[:, 0].tolist() == [0, 1, 2, 3]
    assert funcol.permute_tensor(x, [1, 2, 3, 0], None).eq((rank - 1) % size).all()
    assert [t.shape for t in funcol.all_gather_into_tensor_coalesced([x, x[0]], None)] == [(16, 2), (8,)]
    (funcol.all_gather_tensor_autograd(x, 0, None).sum() * (rank + 1)).backward()
    assert x.grad.eq(10).all()
    with pytest.raises(ValueError, match="no group of the ranks"):
        funcol.all_reduce(x, "sum", [0, 3])
    with pytest.raises(ValueError, match="reduceOp must be one of"):
        funcol.all_reduce(x, "median", None)
    out = torch.zeros(8) if rank == 2 else None
    dist.gather_single(torch.full((2,), float(rank)), out, dst=2)
    assert rank != 2 or out.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("body", [strategies, scaling, functional], ids=lambda body: body.__name__)
def test_on_four_ranks(tmp_path, body):
    on_ranks(tmp_path, 4, body)
