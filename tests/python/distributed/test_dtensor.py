"""torch.distributed.tensor: operators on tensors that lie on several ranks give what they give in one process, and gradients too."""
import copy
import itertools
import pickle

import naru as torch
import naru.distributed as dist
import pytest
from naru.distributed.device_mesh import DeviceMesh, init_device_mesh
from naru.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from naru.distributed.tensor import ones, rand, randn, zeros
from naru.distributed.tensor.experimental import implicit_replication
from naru.distributed.tensor.placement_types import _StridedShard
from ranks import on_ranks

F = torch.nn.functional
R, S = Replicate(), Shard


@pytest.fixture
def alone():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


# --- meshes


def meshes(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
    assert repr(mesh["tp"]) == "DeviceMesh((tp=2), 'cpu', stride=(1,))" and repr(mesh["dp"]) == "DeviceMesh((dp=2), 'cpu', stride=(2,))"
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1), mesh.get_rank()) == (2, (2, 2), 4, 2, rank)
    assert mesh.get_coordinate() == (rank // 2, rank % 2) and mesh.get_local_rank("dp") == rank // 2 and mesh["tp"].get_local_rank() == rank % 2
    assert mesh["tp"].mesh.tolist() == [rank // 2 * 2, rank // 2 * 2 + 1] and mesh["dp", "tp"] is mesh
    assert mesh.get_group("dp").ranks == [rank % 2, rank % 2 + 2] == mesh["dp"].get_group().ranks
    assert [g.ranks for g in mesh.get_all_groups()] == [mesh.get_group(0).ranks, mesh.get_group(1).ranks]
    flat = mesh._flatten("all")
    assert repr(flat) == "DeviceMesh((all=4), 'cpu', stride=(1,))" and mesh["all"] == flat and flat.get_group() is dist.group.WORLD
    x = torch.ones(1)
    dist.all_reduce(x, group=mesh["dp"].get_group())
    assert x.item() == 2
    with pytest.raises(KeyError, match="ascending order"):
        mesh["tp", "dp"]
    with pytest.raises(KeyError, match=r"Valid mesh_dim_names are \['dp', 'tp', 'all'\]"):
        mesh["pp"]
    with pytest.raises(RuntimeError, match="but found 8 ranks"):
        init_device_mesh("cpu", (2, 4))
    with pytest.raises(RuntimeError, match="needs to be specified"):
        mesh.get_group()
    cube = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("pp", "dp", "cp"))
    assert cube["dp", "cp"]._flatten("dp_cp").get_group().ranks == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert repr(cube["pp", "dp_cp"]) == "DeviceMesh((pp=2, dp_cp=2), 'cpu', stride=(2, 1))"
    part = DeviceMesh("cpu", [1, 3])
    assert part.get_coordinate() == (None if rank % 2 == 0 else (rank // 2,))
    lines = DeviceMesh.from_group(mesh.get_all_groups(), "cpu", mesh.mesh, mesh_dim_names=("a", "b"))
    assert lines.get_group("b") is mesh.get_group("tp") and lines != mesh and hash(copy.deepcopy(mesh)) == hash(mesh)
    assert pickle.loads(pickle.dumps(mesh)) == mesh


# --- layouts

LAYOUTS = [[R, R], [S(0), R], [R, S(1)], [S(0), S(1)], [S(1), S(0)], [S(0), S(0)], [S(1), S(1)], [_StridedShard(0, split_factor=2), S(0)]]


def layouts(rank, size):
    mesh = init_device_mesh("cpu", (2, 2))
    for shape in [(4, 6), (5, 3), (1, 2), (3, 7)]:  # some ranks have fewer rows, or none
        whole = torch.arange(float(torch.Size(shape).numel())).view(shape)
        for old, new in itertools.product(LAYOUTS, LAYOUTS):
            x = distribute_tensor(whole, mesh, old)
            assert x.shape == whole.shape and torch.equal(x.full_tensor(), whole)
            assert torch.equal(x.redistribute(placements=new).full_tensor(), whole)
            leaf = whole.clone().requires_grad_()
            y = distribute_tensor(leaf, mesh, old)
            y.redistribute(placements=new).to_local().square().sum().backward()
            # What several ranks have gets each one's gradient, which must be the same.
            assert y.grad.placements == tuple(old) and torch.equal(y.grad.full_tensor(), 2 * whole)
    own = torch.full((4, 4), float(rank + 1), requires_grad=True)
    x = DTensor.from_local(own, mesh, [Partial(), Partial()])
    for new in LAYOUTS[:5]:
        assert torch.equal(x.redistribute(placements=new).full_tensor(), torch.full((4, 4), 10.0))
    x.redistribute(placements=[S(0), R]).square().sum().backward()
    assert torch.equal(own.grad, torch.full((4, 4), 20.0))
    average = DTensor.from_local(own.detach(), mesh, [Partial("avg"), Partial("avg")])
    assert average.full_tensor().eq(2.5).all() and DTensor.from_local(own.detach(), mesh, [Partial("max")] * 2).full_tensor().eq(4).all()
    kept = distribute_tensor(torch.ones(4), mesh, [R, R]).redistribute(placements=[Partial(), R])
    assert kept.to_local().eq(0.5).all() and kept.full_tensor().eq(1).all()
    held = DTensor.from_local(torch.full((2,), float(rank)), mesh, [R, R], run_check=True)
    assert held.to_local().eq(0).all()
    x = distribute_tensor(torch.ones(4, requires_grad=True), mesh, [R, R])
    (x.to_local(grad_placements=[Partial(), Partial()]) * (rank + 1)).sum().backward()  # each rank has a part of the gradient
    assert x.grad.full_tensor().eq(10).all()


# --- operators

def _data(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


MATRIX, OTHER, CUBE, ROW = _data(4, 6), _data(6, 8), _data(4, 2, 6), _data(6)
HEADS = _data(2, 4, 3, 6)
OPERATORS = {
    "add": (lambda x, y: x + y * 2 - 1, [MATRIX, MATRIX + 1]),
    "broadcast": (lambda x, y: x * y + y, [MATRIX, ROW]),
    "unary": (lambda x: (x.exp().sigmoid() / 3).tanh().relu() + x.abs().sqrt(), [MATRIX]),
    "linear without a bias": (F.linear, [CUBE, OTHER.t().contiguous()]),
    "linear": (F.linear, [CUBE, OTHER.t().contiguous(), _data(8)]),
    "mm": (torch.mm, [MATRIX, OTHER]),
    "matmul": (torch.matmul, [CUBE, OTHER]),
    "matrix and vector": (torch.matmul, [MATRIX, ROW]),
    "bmm": (torch.bmm, [CUBE, CUBE.transpose(1, 2).contiguous()]),
    "addmm": (torch.addmm, [_data(8), MATRIX, OTHER]),
    "einsum": (lambda x, y: torch.einsum("bsk,kj->bsj", x, y), [CUBE, OTHER]),
    "sum": (lambda x: x.sum(), [MATRIX]),
    "mean": (lambda x: x.mean(), [MATRIX]),
    "mean of rows": (lambda x: x.mean(-1, keepdim=True) * x, [MATRIX]),
    "sum of columns": (lambda x: x.sum(0), [MATRIX]),
    "var": (lambda x: x.var(1), [MATRIX]),
    "amax": (lambda x: x.amax(0), [MATRIX]),
    "max": (lambda x: x.max(1).values, [MATRIX]),
    "norm": (lambda x: x.norm(), [MATRIX]),
    "norm of rows": (lambda x: torch.linalg.vector_norm(x, 3, dim=1), [MATRIX]),
    "softmax": (lambda x: torch.softmax(x, -1), [MATRIX]),
    "log_softmax": (lambda x: x.log_softmax(0), [MATRIX]),
    "cumsum": (lambda x: x.cumsum(0), [MATRIX]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), [CUBE, ROW, ROW + 1]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w), [CUBE, ROW]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [HEADS, HEADS + 1, HEADS * 2]),
    "embedding": (lambda w: F.embedding(torch.tensor([[0, 3], [1, 1]]), w), [MATRIX]),
    "view": (lambda x: x.view(2, 2, 6), [MATRIX]),
    "reshape": (lambda x: x.reshape(8, 3), [MATRIX]),
    "flatten": (lambda x: x.flatten(0, 1), [CUBE]),
    "heads": (lambda x: x.view(4, 2, 2, 3).transpose(1, 2), [CUBE]),
    "unsqueeze": (lambda x: x.unsqueeze(1).squeeze(1).unflatten(1, (2, 3)), [MATRIX]),
    "permute": (lambda x: x.permute(2, 0, 1).T.mT, [CUBE]),
    "expand": (lambda x: x.unsqueeze(0).expand(3, -1, -1), [MATRIX]),
    "parts": (lambda x: sum(p * (i + 1) for i, p in enumerate(x.chunk(2, -1))), [MATRIX]),
    "split and cat": (lambda x: torch.cat([x.split(2)[1], x], 0), [MATRIX]),
    "stack": (lambda x, y: torch.stack([x, y], 1), [MATRIX, MATRIX + 1]),
    "index": (lambda x: x[1:3, None, ..., ::2] + x[0, 0], [MATRIX]),
    "select": (lambda x: x.select(1, 2) + x.narrow(0, 1, 1).sum(), [MATRIX]),
    "unbind": (lambda x: x.unbind(1)[3], [MATRIX]),
    "tril": (lambda x: x.tril() + x.triu(1), [MATRIX]),
    "where": (lambda x, y: torch.where(x > 0, x, y).masked_fill(y > 1, 0), [MATRIX, MATRIX + 1]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [MATRIX]),
    "gelu": (lambda x: F.gelu(x) + F.silu(x) + F.softplus(x) + F.leaky_relu(x, 0.1), [MATRIX]),
    "mse_loss": (F.mse_loss, [MATRIX, MATRIX * 2]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([0, 5, -100, 2])), [MATRIX]),
    "nll_loss": (lambda x: F.nll_loss(x.log_softmax(1), torch.tensor([0, 5, 3, 2]), reduction="sum"), [MATRIX]),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), [HEADS, _data(2, 4, 3, 3)]),
    "topk": (lambda x: x.topk(2, 1).values + x.sort(1).values[:, :2], [MATRIX]),
    "to": (lambda x: x.double().to(torch.float32) + x.type_as(x), [MATRIX]),
    "outer": (lambda x: torch.outer(x[:, 0], x[0]), [MATRIX]),
    "repeat": (lambda x: x.repeat(2, 1, 2), [MATRIX]),
    "flip": (lambda x: x.flip(0), [MATRIX]),
}


def operators(rank, size):
    mesh = init_device_mesh("cpu", (2, 2))
    for name, (function, operands) in OPERATORS.items():
        leaves = [t.clone().requires_grad_() for t in operands]
        wanted = function(*leaves)
        weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
        (wanted * weights).sum().backward()
        ways = [[[R, R], [S(0), R], [R, S(t.dim() - 1)], [S(0), S(t.dim() - 1)], [S(0), S(0)]] for t in operands]
        for chosen in itertools.product(*ways) if len(operands) < 3 else zip(*[w[i:] + w[:i] for i, w in enumerate(ways)]):
            tensors = [distribute_tensor(t.clone().requires_grad_(), mesh, way) for t, way in zip(operands, chosen)]
            with implicit_replication():  # of indices
                made = function(*tensors)
            assert made.shape == wanted.shape, (name, chosen)
            torch.testing.assert_close(made.full_tensor(), wanted, msg=lambda text: f"{name} {chosen}: {text}")
            with implicit_replication():
                (made * weights).sum().backward()
            for t, leaf in zip(tensors, leaves):
                assert t.grad.placements == t.placements, (name, chosen)
                torch.testing.assert_close(t.grad.full_tensor(), leaf.grad, rtol=1e-4, atol=1e-5, msg=lambda text: f"the gradient of {name} {chosen}: {text}")


def placements(rank, size):
    """As PyTorch 2.15 has them."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    d = distribute_tensor(torch.arange(24.0).view(4, 6), mesh, [S(0), S(1)])
    found = {
        "add": d + d, "matmul": d @ d.T, "T": d.T, "view": d.view(2, 2, 6), "sum": d.sum(), "mean": d.mean(), "columns": d.sum(0), "max": d.max(),
        "softmax": torch.softmax(d, -1), "zeros_like": torch.zeros_like(d),
    }  # fmt: skip
    assert {name: t.placements for name, t in found.items()} == {
        "add": (S(0), S(1)), "matmul": (S(0), Partial()), "T": (S(1), S(0)), "view": (S(0), S(2)), "sum": (Partial(), Partial()),
        "mean": (Partial("avg"), Partial("avg")), "columns": (Partial(), S(0)), "max": (Partial("max"), Partial("max")), "softmax": (S(0), R),
        "zeros_like": (S(0), S(1)),
    }  # fmt: skip
    assert d.stride() == (6, 1) and d.to_local().stride() == (3, 1) and len(d) == 4 and d.numel() == 24 and d.ndim == 2
    if rank == 3:
        assert repr(d) == (
            "DTensor(local_tensor=tensor([[15., 16., 17.],\n        [21., 22., 23.]]), "
            "device_mesh=DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1)), placements=(Shard(dim=0), Shard(dim=1)))"
        )
    assert d.sum().full_tensor().item() == 276 and float(d.mean().full_tensor()) == 11.5 and bool(d.sum() > 3)
    assert d.sum().item() == d.sum().to_local().item()  # PyTorch's, too, is this rank's part
    for method in ("tolist", "numpy"):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses.*full_tensor"):
            getattr(d, method)()
    leaf = distribute_tensor(torch.ones(4, 6, requires_grad=True), mesh, [S(0), R])
    (g,) = torch.autograd.grad(leaf.mean(), leaf)
    assert g.placements == (S(0), R) and g.full_tensor().eq(1 / 24).all()
    with pytest.raises(RuntimeError, match="got mixed torch.Tensor and DTensor"):
        d + torch.ones(4, 6)
    with pytest.raises(NotImplementedError, match=r"linalg_svd: no rule for a DTensor .*x\.redistribute\(placements=\[Replicate\(\), Replicate\(\)\]\)"):
        torch.linalg.svd(d)
    assert torch.linalg.svd(d.redistribute(placements=[R, R])).S.placements == (R, R)
    with pytest.raises(ValueError, match="Found placements length: 1"):
        distribute_tensor(torch.ones(2), mesh, [R])
    with pytest.raises(RuntimeError, match="give the whole tensor's shape"):
        DTensor.from_local(torch.ones(3), mesh, [S(0), R], shape=(4,))
    with pytest.raises(NotImplementedError, match="in place on a DTensor"):
        DTensor.from_local(torch.ones(3), mesh, [Partial(), R]).exp_()
    other = DeviceMesh("cpu", [0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="on different meshes"):
        d + distribute_tensor(torch.ones(4, 6), other, [R])


def in_place(rank, size):
    mesh = init_device_mesh("cpu", (2, 2))
    whole = _data(4, 6)
    for layout in LAYOUTS:
        x = distribute_tensor(whole, mesh, layout)
        same = x
        for other in LAYOUTS[:5]:
            wanted = x.full_tensor().clone()
            y = distribute_tensor(wanted + 1, mesh, other)
            x += y
            x.mul_(0.5).addcmul_(y, y, value=0.1).clamp_(-2, 2)
            wanted = (wanted + wanted + 1) * 0.5 + 0.1 * (wanted + 1) ** 2
            assert x is same and x.placements == tuple(layout)
            torch.testing.assert_close(x.full_tensor(), wanted.clamp(-2, 2))
        x[1:3, 2], wanted[1:3, 2] = 7, 7
        x.zero_()
        assert x.full_tensor().eq(0).all()
        x.copy_(distribute_tensor(whole, mesh, [R, R]))
        assert torch.equal(x.full_tensor(), whole)
        torch.manual_seed(3)
        wanted = torch.nn.init.kaiming_uniform_(torch.empty(4, 6))
        torch.manual_seed(3)
        assert torch.equal(torch.nn.init.kaiming_uniform_(x).full_tensor(), wanted)
        torch.manual_seed(5)
        wanted = F.dropout(whole)
        torch.manual_seed(5)
        torch.testing.assert_close(F.dropout(distribute_tensor(whole, mesh, layout)).full_tensor(), wanted)
    for optimizer in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        plain = torch.nn.Parameter(whole.clone())
        params = [torch.nn.Parameter(distribute_tensor(whole, mesh, layout)) for layout in LAYOUTS]
        steps = [optimizer([p], lr=0.1) for p in (plain, *params)]
        for _ in range(3):
            plain.square().sum().backward()
            for p in params:
                p.square().sum().backward()
                torch.nn.utils.clip_grad_norm_([p], 0.5)
            torch.nn.utils.clip_grad_norm_([plain], 0.5)
            for step in steps:
                step.step()
                step.zero_grad()
        for p, layout, step in zip(params, LAYOUTS, steps[1:]):
            torch.testing.assert_close(p.full_tensor(), plain.detach())
            for value in step.state[p].values():
                assert value.dim() == 0 or (isinstance(value, DTensor) and value.placements == p.placements)


def norms(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    grads = [_data(4, 6), _data(5), _data(3, 3)]
    for order in (2.0, 1.0, 3.0, float("inf")):
        for scale in (0.5, 1e3):
            plain, spread = [], []
            for g, on, layout in zip(grads, (mesh, mesh["tp"], mesh), ([S(0), S(1)], [S(0)], [R, R])):
                plain.append(torch.nn.Parameter(torch.zeros(g.shape)))
                plain[-1].grad = g.clone()
                spread.append(torch.nn.Parameter(distribute_tensor(torch.zeros(g.shape), on, layout)))
                spread[-1].grad = distribute_tensor(g, on, layout)
            wanted = torch.nn.utils.clip_grad_norm_(plain, scale, order)
            norm = torch.nn.utils.clip_grad_norm_(spread, scale, order)
            torch.testing.assert_close(norm.full_tensor(), wanted)
            for p, q in zip(plain, spread):
                torch.testing.assert_close(q.grad.full_tensor(), p.grad)
    torch.nn.utils.clip_grad_value_(spread, 0.1)
    assert spread[0].grad.full_tensor().abs().max() <= 0.1


def modules(rank, size):
    mesh = init_device_mesh("cpu", (4,))
    torch.manual_seed(rank)  # rank 0's parameters are taken
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8))

    def partition(name, part, mesh):
        if isinstance(part, torch.nn.Linear):
            part.weight = torch.nn.Parameter(distribute_tensor(part.weight, mesh, [S(0)]))

    made = distribute_module(module, mesh, partition, lambda mod, inputs, mesh: (DTensor.from_local(inputs[0], mesh, [R]),))
    assert made[0].weight.placements == (S(0),) and made[0].bias.placements == (R,) == made[2].running_mean.placements
    torch.manual_seed(0)
    assert torch.equal(made[0].weight.full_tensor(), torch.nn.Linear(4, 8).weight)
    assert isinstance(made[0].weight, torch.nn.Parameter) and isinstance(made[0].weight, DTensor)
    twin = copy.deepcopy(made)
    with torch.no_grad():
        made[0].weight.zero_()
    assert twin[0].weight.full_tensor().ne(0).all() and isinstance(twin[0].weight, torch.nn.Parameter)
    again = pickle.loads(pickle.dumps(twin[0].weight))
    assert again.placements == (S(0),) and torch.equal(again.to_local(), twin[0].weight.to_local())
    made.load_state_dict(twin.state_dict())
    assert torch.equal(made[0].weight.full_tensor(), twin[0].weight.full_tensor())
    assert made.double()[0].weight.dtype == torch.float64 and made[0].weight.placements == (S(0),)
    torch.manual_seed(7)
    wanted = torch.randn(6, 3), torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(randn(6, 3, device_mesh=mesh, placements=[S(0)]).full_tensor(), wanted[0])
    assert torch.equal(rand(3, device_mesh=mesh, placements=[S(0)]).full_tensor(), wanted[1])
    with mesh:
        assert zeros(5, placements=[S(0)]).to_local().shape == ((2,), (2,), (1,), (0,))[rank] and ones((2, 2)).full_tensor().sum() == 4
    seen = []
    x = distribute_tensor(torch.ones(4, requires_grad=True), mesh, [S(0)])
    x.register_hook(lambda g: seen.append(g.placements) or g * 2)
    (x * 3).sum().backward()
    assert seen == [(S(0),)] and x.grad.full_tensor().tolist() == [6] * 4


# What asks about the local tensor, or makes no tensor of its elements.
ABOUT = frozenset(
    """data_ptr const_data_ptr element_size get_device is_contiguous is_distributed is_inference is_pinned is_shared storage storage_offset storage_type
    untyped_storage type typename new from_file stride _base is_storage is_tensor data grad grad_fn shape layout device dtype names is_leaf nbytes""".split()
)
# What draws numbers, changes settings or the process, or is slow.
LEFT = frozenset(
    """bernoulli rand_like randn_like randint_like rrelu poisson multinomial normal binomial rand randn randint randperm feature_dropout
    feature_alpha_dropout alpha_dropout dropout1d dropout2d dropout3d gumbel_softmax fractional_max_pool2d fractional_max_pool3d empty_like new_empty
    empty empty_permuted empty_strided resize_ resize_as_ random_ set_ share_memory_ save seed manual_seed set_flush_denormal set_default_device set_num_threads
    set_default_dtype set_printoptions set_default_tensor_type set_deterministic_debug_mode set_warn_always set_grad_enabled vmap compile takes_tensors
    from_dlpack to_dlpack pca_lowrank svd_lowrank lobpcg exponential_ cauchy_ geometric_ log_normal_ normal_ uniform_ bernoulli_ register_hook dropout_
    native_dropout dropout rrelu_ sdpa backward retain_grad requires_grad_ hash_tensor unsafe_split argwhere use_deterministic_algorithms
    set_rng_state set_float32_matmul_precision init_num_threads set_autocast_enabled set_num_interop_threads set_anomaly_enabled""".split()
)


def every_operator(rank, size):
    """Each function and method gives what it gives for the whole tensor, or refuses."""
    mesh = init_device_mesh("cpu", (2,))
    whole = torch.rand(4, 4, generator=torch.Generator().manual_seed(1)) * 0.8 + 0.1
    square = torch.arange(16.0).view(4, 4) / 20

    def flat(value):
        return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]

    spaces = [torch, F, torch.linalg, torch.special, torch.fft]
    names = [(space, name) for space in spaces for name in sorted(dir(space)) if not name.startswith("_")]
    names += [(torch.Tensor, name) for name in sorted(dir(torch.Tensor)) if not name.startswith("__") or name in ("__contains__", "__reversed__")]
    done, wrong = 0, []
    for space, name in names:
        if name in ABOUT or name in LEFT or (space is not torch.Tensor and (isinstance(getattr(space, name, None), type) or not callable(getattr(space, name, None)))):
            continue
        for shape in ("x", "xy", "xyx", "x1", "[xy]"):
            def called(make):
                x, y = make(whole), make(square)
                args = {"x": (x,), "xy": (x, y), "xyx": (x, y, x), "x1": (x, 1), "[xy]": ([x, y],)}[shape]  # noqa: B023
                if space is not torch.Tensor:
                    return getattr(space, name)(*args)
                found = getattr(x, name)
                return found(*args[1:]) if callable(found) else found

            if space is torch.Tensor and shape == "[xy]":
                continue
            for placement in (S(0), S(1), R):
                try:
                    made = called(lambda t: distribute_tensor(t, mesh, [placement]))  # noqa: B023
                except Exception as error:  # noqa: BLE001
                    assert not isinstance(error, dist.DistBackendError), (name, shape, placement)
                    continue
                said = f"{name} of {shape} with {placement}"
                try:
                    wanted = called(lambda t: t.clone())
                    done += 1
                    for a, b in zip(flat(made), flat(wanted), strict=True):
                        assert isinstance(b, torch.Tensor) == isinstance(a, DTensor), f"{type(a)}"
                        if isinstance(b, torch.Tensor):
                            torch.testing.assert_close(a.full_tensor(), b, equal_nan=True)
                        else:
                            assert a == b or a is b or type(a) is type(b)
                except Exception as error:  # noqa: BLE001
                    assert not isinstance(error, dist.DistBackendError), said
                    wrong.append(f"{said}: {error}")
    assert not wrong, "\n".join(wrong)
    assert done > 1000


def test_every_operator_gives_the_whole_tensors_result_or_refuses(tmp_path):
    on_ranks(tmp_path, 2, every_operator)


@pytest.mark.parametrize("body", [meshes, layouts, operators, placements, in_place, norms, modules], ids=lambda body: body.__name__)
def test_on_four_ranks(tmp_path, body):
    on_ranks(tmp_path, 4, body)
