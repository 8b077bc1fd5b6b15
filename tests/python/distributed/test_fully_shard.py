"""fully_shard and tensor parallelism: a model over several ranks is trained as it is in one process."""
import copy
import gc
import warnings

import naru as torch
import naru.distributed as dist
import pytest
from naru.distributed.device_mesh import init_device_mesh
from naru.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, register_fsdp_forward_method
from naru.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from naru.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from naru.nn.parallel import DistributedDataParallel
from naru.utils.checkpoint import checkpoint
from ranks import fully_shard_on_cpu as fully_shard, on_ranks

F, nn = torch.nn.functional, torch.nn
R, S = Replicate(), Shard


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.width = width // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=i == 3) for i in range(4))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (w(x).view(b, n, -1, self.width).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, -1))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1, self.w2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.mlp = Attention(width, heads), MLP(width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary=11, width=8, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def model_of(seed=0):
    torch.manual_seed(seed)
    return Transformer()


def batches(count=3, rows=8):
    g = torch.Generator().manual_seed(5)
    return [torch.randint(0, 11, (rows, 8), generator=g) for _ in range(count)]


def loss_of(model, ids):
    return F.cross_entropy(model(ids).flatten(0, 1), ids.roll(-1, 1).flatten())


def trained(model, data, optimizer=torch.optim.AdamW, clip=None, loss=loss_of):
    """The losses; the model is trained in place."""
    step = optimizer(model.parameters(), lr=0.01)
    losses = []
    for ids in data:
        made = loss(model, ids)
        made.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        step.step()
        step.zero_grad()
        losses.append(made.detach())
    return losses


def whole(state):
    return {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in state.items()}


def same(model, other, bits=False):
    states = whole(model.state_dict()), whole(other.state_dict())
    assert states[0].keys() == states[1].keys()
    for name, value in states[0].items():
        if bits:
            assert torch.equal(value, states[1][name]), name
        else:
            torch.testing.assert_close(value, states[1][name], rtol=1e-4, atol=1e-5, msg=lambda text: f"{name}: {text}")


def sharded(model, **options):
    for layer in model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def trains(rank, size):
    data = batches(4)
    mine = [ids.chunk(size)[rank] for ids in data]
    # As DistributedDataParallel, bit by bit, whatever is dropped when.
    plain = DistributedDataParallel(model_of())
    wanted = trained(plain, mine)
    for options in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": True}, {"mesh": init_device_mesh("cpu", (size,))}):
        model = sharded(model_of(), **options)
        assert isinstance(model, FSDPModule) and isinstance(model, Transformer) and type(model).__name__ == "FSDPTransformer"
        assert all(isinstance(p, DTensor) and p.placements == (S(0),) for p in model.parameters())
        assert [loss.item() for loss in trained(model, mine)] == [loss.item() for loss in wanted]
        same(model, plain.module, bits=True)
    # As one process with the whole batch.
    single, model = model_of(), sharded(model_of())
    trained(single, data, torch.optim.SGD, clip=0.1)
    trained(model, mine, torch.optim.SGD, clip=0.1)
    same(model, single)


def replicas(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    mine = [ids.chunk(size)[rank] for ids in batches(3)]
    plain = DistributedDataParallel(model_of())
    trained(plain, mine)
    model = sharded(model_of(), mesh=mesh)
    assert model.output.weight.placements == (R, S(0)) and model.output.weight.to_local().shape == ((6, 8), (5, 8))[rank % 2]
    trained(model, mine)
    same(model, plain.module)
    # Gradients of two micro-batches: reduced once, and between replicas once.
    for name in ("set_requires_gradient_sync", "set_requires_all_reduce"):
        model, plain = sharded(model_of(), mesh=mesh), model_of()
        getattr(model, name)(False)
        loss_of(model, mine[0]).backward()
        assert model.output.weight.grad is None
        getattr(model, name)(True)
        loss_of(model, mine[1]).backward()
        for ids in mine[:2]:
            loss_of(plain, ids).backward()
        for p, q in zip(model.parameters(), plain.parameters()):
            dist.all_reduce(q.grad, dist.ReduceOp.AVG)
            torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-6)


def policies(rank, size):
    ids = batches(1)[0].chunk(size)[rank]
    plain = model_of()
    dtypes = []
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = model_of()
    for layer in model.layers:
        fully_shard(layer, mp_policy=half)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32))
    model.layers[0].mlp.w1.register_forward_hook(lambda m, i, o: dtypes.append((m.weight.dtype, i[0].dtype, o.dtype, tuple(m.weight.shape))))
    made = model(ids)
    assert made.dtype == torch.float32 and dtypes == [(torch.bfloat16,) * 3 + ((32, 8),)]
    torch.testing.assert_close(made, plain(ids), rtol=0.1, atol=0.1)
    made.sum().backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())
    model = sharded(model_of(), offload_policy=CPUOffloadPolicy())
    loss_of(model, ids).backward()
    assert all(p.grad.device.type == "cpu" for p in model.parameters()) and isinstance(CPUOffloadPolicy(), OffloadPolicy)
    # Gathered and dropped by hand; methods other than forward; a divisor.
    model = fully_shard(nn.Linear(3, 5))
    model.twice = lambda x: F.linear(x, model.weight, model.bias) * 2
    with pytest.raises(RuntimeError, match="got mixed"):
        model.twice(torch.ones(1, 3))
    register_fsdp_forward_method(model, "twice")
    assert torch.equal(model.twice(torch.ones(1, 3)), model(torch.ones(1, 3)) * 2)
    model.reshard()
    assert model.weight.to_local().shape == ((2, 3), (2, 3), (1, 3), (0, 3))[rank]
    model.unshard()
    assert model.weight.shape == (5, 3) and not isinstance(model.weight, DTensor)
    model.reshard()
    model.unshard(async_op=True).wait()
    assert not isinstance(model.weight, DTensor)
    model.set_gradient_divide_factor(2)
    model(torch.ones(1, 3)).sum().backward()
    assert model.weight.grad.full_tensor().eq(size / 2).all()
    # Another dimension, parameters that are left alone, shared ones, frozen ones, unused ones.
    net = nn.ModuleDict({"a": nn.Linear(6, 6), "b": nn.Linear(6, 6), "c": nn.Linear(6, 2), "unused": nn.Linear(2, 2)})
    net["b"].weight = net["a"].weight
    net["c"].weight.requires_grad_(False)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = net

        def forward(self, x):
            return self.parts["c"](self.parts["b"](self.parts["a"](x)))

    kept = net["a"].bias
    twin = copy.deepcopy(Net())
    model = fully_shard(Net(), shard_placement_fn=lambda p: S(p.dim() - 1), ignored_params={kept})
    assert net["a"].weight is net["b"].weight and net["a"].weight.placements == (S(1),) and net["a"].bias is kept
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(rank))
    for _ in range(2):
        model(x).square().sum().backward()
        twin(x).square().sum().backward()
    for (name, p), q in zip(model.named_parameters(), twin.parameters()):
        if q.grad is None:
            assert p.grad is None, name
            continue
        if isinstance(p, DTensor):
            dist.all_reduce(q.grad, dist.ReduceOp.AVG)
            torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-5, atol=1e-5)
        else:
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-5)


def corners(rank, size):
    ids = batches(1)[0].chunk(size)[rank]
    # Checkpoints within: their forward runs again in backward.
    class Checkpointed(nn.Module):
        def __init__(self, inner, reentrant):
            super().__init__()
            self.inner, self.reentrant = inner, reentrant

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=self.reentrant)

    plain = model_of()
    loss_of(plain, ids).backward()
    for reentrant in (False, True):
        for outside in (False, True):
            model = model_of()
            for i, layer in enumerate(model.layers):
                model.layers[i] = Checkpointed(fully_shard(layer), reentrant) if outside else fully_shard(Checkpointed(layer, reentrant))
            fully_shard(model)
            loss_of(model, ids).backward()
            for (name, p), q in zip(model.named_parameters(), plain.parameters()):
                mean = q.grad.clone()
                dist.all_reduce(mean, dist.ReduceOp.AVG)
                torch.testing.assert_close(p.grad.full_tensor(), mean, rtol=1e-4, atol=1e-5, msg=lambda text: f"{name} {reentrant} {outside}: {text}")
    # One module called twice, evaluation between steps, prefetching by hand.
    model = sharded(model_of())
    model.layers[0].set_modules_to_forward_prefetch([model.layers[1]])
    model.layers[1].set_modules_to_backward_prefetch([model.layers[0]])
    (loss_of(model, ids) + loss_of(model, ids.flip(0))).backward()
    plain.zero_grad()
    (loss_of(plain, ids) + loss_of(plain, ids.flip(0))).backward()
    for p, q in zip(model.parameters(), plain.parameters()):
        dist.all_reduce(q.grad, dist.ReduceOp.AVG)
        torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        before = model(ids)
    step = torch.optim.SGD(model.parameters(), lr=0.5)
    loss_of(model, ids).backward()
    step.step()
    with torch.no_grad():
        assert not torch.equal(model(ids), before)


def recoveries(rank, size):
    ids = batches(1)[0].chunk(size)[rank]
    plain, model = model_of(), sharded(model_of())
    step = torch.optim.SGD(model.parameters(), lr=0.5)
    # A backward that fails leaves nothing behind.
    for fails in (True, False):
        step.zero_grad()
        loss = loss_of(model, ids)
        if fails:
            hook = model.layers[0].mlp.w1.register_full_backward_hook(lambda *args: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                loss_of(model, ids).backward()
            hook.remove()
            assert model._fsdp_state.run.in_backward
        else:
            loss.backward()
    plain.load_state_dict(whole(model.state_dict()))
    plain.zero_grad()
    loss_of(plain, ids).backward()
    for p, q in zip(model.parameters(), plain.parameters()):
        dist.all_reduce(q.grad, dist.ReduceOp.AVG)
        torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-5)
    # A state loads into a model that was forwarded, and goes through copies on other devices.
    state = {k: v.clone() for k, v in model.state_dict().items()}
    other = sharded(model_of(1))
    other(ids)
    other.load_state_dict(state)
    same(other, model, bits=True)
    assert other.double().output.weight.dtype == torch.float64
    loss_of(other, ids).backward()
    # From the meta device.
    with torch.device("meta"):
        empty = Transformer()
    sharded(empty)
    assert empty.output.weight.is_meta and isinstance(empty.output.weight, DTensor)
    empty.to_empty(device="cpu")
    empty.load_state_dict(state)
    same(empty, model, bits=True)
    assert [loss.isfinite().item() for loss in trained(empty, [ids])] == [True]
    # Only shards are kept between forward and backward.
    big = fully_shard(nn.Sequential(*(fully_shard(nn.Linear(64, 64, bias=False)) for _ in range(4))))
    y = big(torch.ones(1, 64))
    gc.collect()
    assert all(part._fsdp_state.group.params[0].whole.untyped_storage().nbytes() < 64 for part in big)
    y.sum().backward()
    assert big[0].weight.grad.full_tensor().abs().sum() > 0
    # Where there is another device the default mesh is on it, and parameters and buffers are moved there.
    with torch.virtual("cuda", count=1):
        placed = dist.fsdp.fully_shard(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)))
        assert all(t.device.type == "cuda" for t in placed.state_dict().values()) and placed[0].weight.device_mesh.device_type == "cuda"
        placed(torch.ones(2, 4, device="cuda")).sum().backward()
        torch.optim.AdamW(placed.parameters()).step()
        assert placed[0].weight.full_tensor().device.type == "cuda"
    with pytest.raises(NotImplementedError, match="does not support deepcopy"):
        copy.deepcopy(big)
    with pytest.raises(ValueError, match="containers that do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(1, 1)]))
    with pytest.raises(TypeError, match="wanted an nn.Module"):
        fully_shard(3)
    with pytest.raises(ValueError, match="scalar parameters"):
        module = nn.Module()
        module.p = nn.Parameter(torch.tensor(1.0))
        fully_shard(module)


PLAN = {"attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(), "attention.wo": RowwiseParallel(),
        "mlp.w1": ColwiseParallel(), "mlp.w2": RowwiseParallel()}  # fmt: skip
SEQUENCE = {"attention": PrepareModuleInput(input_layouts=(S(1),), desired_input_layouts=(R,)), "attention.wq": ColwiseParallel(),
            "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(), "attention.wo": RowwiseParallel(output_layouts=S(1)),
            "mlp": PrepareModuleInput(input_layouts=(S(1),), desired_input_layouts=(R,)), "mlp.w1": ColwiseParallel(),
            "mlp.w2": RowwiseParallel(output_layouts=S(1)), "norm1": SequenceParallel(), "norm2": SequenceParallel()}  # fmt: skip


def split(model, mesh, sequence):
    """As torchtitan does it."""
    if sequence:
        parallelize_module(model, mesh, {
            "embedding": RowwiseParallel(input_layouts=R, output_layouts=S(1)), "norm": SequenceParallel(),
            "output": ColwiseParallel(input_layouts=S(1), output_layouts=S(-1) if sequence == "loss" else R, use_local_output=sequence != "loss"),
        })  # fmt: skip
    for layer in model.layers:
        parallelize_module(layer, mesh, SEQUENCE if sequence else PLAN)
    return model


def parallel_loss(model, ids):
    with loss_parallel():
        made = model(ids)
        spread = distribute_tensor(ids.roll(-1, 1).flatten(), made.device_mesh, [R] * made.device_mesh.ndim)
        return F.cross_entropy(made.flatten(0, 1), spread)


def tensor_parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    data = batches(3)
    single = model_of()
    wanted = trained(single, data, torch.optim.SGD, clip=0.5)
    for sequence in (False, True, "loss"):
        model = split(model_of(rank if sequence else 0), mesh, sequence)  # rank 0's parameters are taken
        loss = parallel_loss if sequence == "loss" else loss_of
        found = trained(model, data, torch.optim.SGD, 0.5, loss)
        assert model.layers[0].attention.wq.weight.placements == (S(0),) and model.layers[0].mlp.w2.weight.placements == (S(1),)
        for a, b in zip(found, wanted):
            torch.testing.assert_close(a.full_tensor() if isinstance(a, DTensor) else a, b)
        same(model, single)
    with pytest.raises(NotImplementedError, match="only support nn.Linear and nn.Embedding"):
        parallelize_module(nn.LayerNorm(3), mesh, ColwiseParallel())
    with pytest.warns(UserWarning, match="no submodule matches 'nothing.*'"):
        parallelize_module(model_of(), mesh, {"nothing.*": ColwiseParallel()})
    with pytest.raises(ValueError, match="only accepts a 1D DeviceMesh"):
        parallelize_module(model_of(), init_device_mesh("cpu", (2, 2)), PLAN)
    out = parallelize_module(nn.Identity(), mesh, PrepareModuleOutput(output_layouts=S(0), desired_output_layouts=R))
    assert out(torch.full((1,), float(rank))).tolist() == [0, 1, 2, 3]


def both(rank, size):
    """Tensor parallelism and fully_shard on a mesh of two dimensions."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    data = batches(3)
    mine = [ids.chunk(2)[rank // 2] for ids in data]
    single = model_of()
    trained(single, data, clip=0.5)
    for options in ({}, {"reshard_after_forward": False}):
        model = sharded(split(model_of(), mesh["tp"], True), mesh=mesh["dp"], **options)
        weight = model.layers[0].attention.wq.weight
        assert repr(weight.device_mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))" and weight.to_local().shape == (2, 8)
        assert str(weight.placements[0]) == "_S(0, 2)" and weight.placements[1] == S(0)
        assert model.layers[0].attention.wo.weight.placements == (S(0), S(1)) and model.norm.weight.placements == (S(0), R)
        step = torch.optim.AdamW(model.parameters(), lr=0.01)
        for ids in mine:
            loss_of(model, ids).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            assert isinstance(norm, DTensor)
            step.step()
            step.zero_grad()
        same(model, single)
        state = step.state_dict()["state"]
        assert all(isinstance(v["exp_avg"], DTensor) for v in state.values())
    other = init_device_mesh("cpu", (4,))
    with pytest.raises(ValueError, match="the same parent mesh"):
        fully_shard(split(model_of(), mesh["tp"], True), mesh=other)


@pytest.mark.parametrize("body", [trains, replicas, policies, corners, recoveries, tensor_parallel, both], ids=lambda body: body.__name__)
def test_on_four_ranks(tmp_path, body):
    on_ranks(tmp_path, 4, body)
