"""DataParallel on four virtual devices: the same results and gradients as on one, with replicas that are copied only after a change."""

import collections
import copy
import threading

import pytest

import naru as torch
from naru import nn
from naru.nn.parallel import comm, data_parallel, gather, parallel_apply, replicate, scatter, scatter_kwargs


@pytest.fixture(autouse=True)
def four():
    with torch.virtual("cuda", count=4):
        yield


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 7, 64])
def test_any_batch_size_gives_the_results_and_gradients_of_one_device(batch):
    single = network().to("cuda")
    parallel = nn.DataParallel(copy.deepcopy(single))
    x = torch.randn(batch, 5, device="cuda")
    expected, got = single(x), parallel(x)
    assert got.shape == (batch, 2) and got.device == torch.device("cuda:0")
    torch.testing.assert_close(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for p, q in zip(single.parameters(), parallel.parameters()):
        assert q.grad.device == torch.device("cuda:0")
        torch.testing.assert_close(q.grad, p.grad)


def test_each_replica_runs_on_its_own_device_and_thread():
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            seen.append((str(x.device), str(self.weight.device), torch.cuda.current_device(), threading.current_thread(), len(x)))
            return super().forward(x)

    nn.DataParallel(Spy(3, 3).to("cuda"))(torch.ones(10, 3, device="cuda"))
    assert sorted(s[:3] for s in seen) == [(f"cuda:{i}", f"cuda:{i}", i) for i in range(4)]
    assert len({s[3] for s in seen}) == 4
    assert sorted(s[4] for s in seen) == [1, 3, 3, 3]


def test_training_gives_the_losses_of_one_device():
    def losses(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(5)
        out = []
        for _ in range(10):
            x = torch.randn(13, 5).to("cuda")
            loss = (model(x) - x[:, :2]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            out.append(loss.item())
        return out

    one, four = losses(network().to("cuda")), losses(nn.DataParallel(network().to("cuda")))
    assert one == pytest.approx(four, rel=1e-5) and one[-1] < one[0]


def test_nothing_is_copied_again_that_has_not_changed():
    model = nn.DataParallel(network().to("cuda"))
    x = torch.randn(8, 5, device="cuda")
    model(x)
    assert model._copies.made == 12  # four tensors to three other devices
    model(x).sum().backward()
    with torch.no_grad():
        model(x)
    assert model._copies.made == 12
    with torch.no_grad():
        model.module[0].bias.add_(1)
    torch.testing.assert_close(model(x), model.module(x))
    assert model._copies.made == 15
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    torch.testing.assert_close(model(x), model.module(x))
    assert model._copies.made == 27


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(8, 5, device="cuda"))),
        lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
        lambda m: m[0].weight.data.fill_(0.5),
        lambda m: setattr(m[0].weight, "data", torch.full((8, 5), 0.25, device="cuda")),
        lambda m: m.append(nn.Linear(2, 4).to("cuda")),
        lambda m: m.to("cpu").to("cuda"),
        lambda m: m.double().float(),
        lambda m: m[0].register_forward_hook(lambda mod, args, out: out * 3),
    ],
)
def test_every_change_of_the_module_is_seen(change):
    model = nn.DataParallel(network().to("cuda"))
    x = torch.randn(8, 5, device="cuda")
    model(x)
    change(model.module)
    expected, got = model.module(x), model(x)
    torch.testing.assert_close(got, expected)
    (a,) = torch.autograd.grad(expected.sum(), [model.module[0].weight])
    (b,) = torch.autograd.grad(got.sum(), [model.module[0].weight])
    torch.testing.assert_close(a, b)


def test_modes_and_frozen_parameters_are_those_of_the_module():
    model = nn.DataParallel(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to("cuda"))
    x = torch.ones(40, 4, device="cuda")
    assert (model(x) == 0).any()
    model.eval()
    assert torch.equal(model(x), model.module(x))
    model.module[0].weight.requires_grad_(False)
    model(x).sum().backward()
    assert model.module[0].weight.grad is None and model.module[0].bias.grad is not None
    with torch.no_grad():
        assert not model(x).requires_grad


def test_buffers_of_the_first_replica_are_the_module_s():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen.add_(len(x))
            return x + self.seen

    model = nn.DataParallel(Counting().to("cuda"))
    for n in range(1, 4):
        out = model(torch.zeros(8, device="cuda"))
        assert model.module.seen.item() == 2 * n
        assert out.tolist() == [2.0 * n] * 8


def test_nested_arguments_and_results():
    Pair = collections.namedtuple("Pair", "a b")

    class Nested(nn.Module):
        def forward(self, pair, options, *, scale=1):
            assert isinstance(pair, Pair) and options["name"] == "x"
            return {"sum": pair.a + options["t"][0] * scale, "list": [pair.b, None]}

    t = torch.arange(12.0, device="cuda").reshape(6, 2)
    out = nn.DataParallel(Nested())(Pair(t, t * 2), {"t": [t * 3], "name": "x"}, scale=2)
    assert torch.equal(out["sum"], t * 7) and torch.equal(out["list"][0], t * 2) and out["list"][1] is None


def test_scatter_and_gather_are_the_inverse_of_each_other():
    t = torch.arange(10.0, requires_grad=True)
    pieces = scatter(t, [0, 1, 2])
    assert [str(p.device) for p in pieces] == ["cuda:0", "cuda:1", "cuda:2"] and [len(p) for p in pieces] == [4, 4, 2]
    back = gather(pieces, -1)
    assert back.device.type == "cpu" and torch.equal(back, t)
    (back * 2).sum().backward()
    assert t.grad.tolist() == [2.0] * 10
    assert scatter_kwargs((t,), {"k": 1}, [0, 1])[1] == ({"k": 1}, {"k": 1})
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert gather([torch.tensor(1.0, device="cuda:0"), torch.tensor(2.0, device="cuda:1")], 0).tolist() == [1.0, 2.0]
    sizes = comm.scatter(torch.arange(5), [0, 3], [1, 4])
    assert [p.tolist() for p in sizes] == [[0], [1, 2, 3, 4]] and sizes[1].device.index == 3
    assert comm.reduce_add([torch.ones(2, device=f"cuda:{i}") * i for i in range(4)], 2).tolist() == [6.0, 6.0]
    assert [str(b.device) for b in comm.broadcast(torch.ones(1, device="cuda"), [0, 2])] == ["cuda:0", "cuda:2"]
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        comm.reduce_add([torch.ones(2, device="cuda:0"), torch.ones(3, device="cuda:1")])


def test_an_error_names_the_replica_and_keeps_its_type():
    class Picky(nn.Module):
        def forward(self, x):
            if x.device.index == 2:
                raise KeyError("no such key here")
            return x

    with pytest.raises(KeyError, match=r"Caught KeyError in replica 2 on device 2\.\nOriginal Traceback") as error:
        nn.DataParallel(Picky())(torch.ones(8, 1, device="cuda"))
    assert "no such key here" in str(error.value)
    with pytest.raises(RuntimeError, match="in replica 0 on device 0"):
        nn.DataParallel(nn.Linear(3, 1).to("cuda"))(torch.ones(8, 2, device="cuda"))


def test_a_module_in_the_wrong_place_is_an_error():
    with pytest.raises(RuntimeError, match=r"module must have its parameters and buffers on device cuda:0 \(device_ids\[0\]\) but found one of them on device: cuda:1"):
        nn.DataParallel(nn.Linear(3, 1).to("cuda:1"))(torch.ones(8, 3, device="cuda"))


def test_devices_and_the_output_s_place_can_be_chosen():
    model = nn.DataParallel(nn.Linear(3, 1).to("cuda:1"), device_ids=[1, 3], output_device=2)
    assert model.device_ids == [1, 3] and model.output_device == 2
    assert model(torch.ones(8, 3)).device == torch.device("cuda:2")
    one = nn.DataParallel(nn.Linear(3, 1), device_ids=["cuda:2"])
    assert one.module.weight.device == torch.device("cuda:2") and one(torch.ones(2, 3)).device == torch.device("cuda:2")
    assert data_parallel(nn.Linear(3, 1).to("cuda"), torch.ones(8, 3), output_device=-1).device.type == "cpu"


def test_without_devices_the_module_runs_as_it_is():
    with torch.virtual("cuda", count=0), torch.virtual("mps", count=0):
        model = nn.DataParallel(nn.Linear(3, 1))
        assert model.device_ids == [] and model(torch.ones(2, 3)).shape == (2, 1)


def test_the_state_has_the_names_of_the_module_behind_a_prefix():
    model = nn.DataParallel(nn.Linear(3, 1).to("cuda"))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    other = copy.deepcopy(model)
    other.load_state_dict(model.state_dict())
    x = torch.ones(4, 3, device="cuda")
    assert torch.equal(other(x), model(x))


def test_shared_parameters_stay_shared_in_a_replica():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight
            self.again = self.a

        def forward(self, x):
            assert self.a.weight is self.b.weight and self.again is self.a
            return self.b(self.a(x))

    model = nn.DataParallel(Tied().to("cuda"))
    x = torch.randn(8, 3, device="cuda")
    model(x).sum().backward()
    got = model.module.a.weight.grad.clone()
    model.zero_grad()
    model.module(x).sum().backward()
    torch.testing.assert_close(got, model.module.a.weight.grad)


def test_gradients_add_up_over_several_backwards():
    model = nn.DataParallel(nn.Linear(3, 1).to("cuda"))
    x = torch.randn(8, 3, device="cuda")
    model(x).sum().backward()
    once = model.module.weight.grad.clone()
    model(x).sum().backward()
    torch.testing.assert_close(model.module.weight.grad, once * 2)


def test_replicate_and_parallel_apply_by_hand():
    model = nn.Linear(2, 2).to("cuda:0")
    replicas = replicate(model, [0, 1])
    inputs = [torch.ones(1, 2, device="cuda:0"), torch.ones(3, 2, device="cuda:1")]
    outs = parallel_apply(replicas, inputs)
    assert [str(o.device) for o in outs] == ["cuda:0", "cuda:1"]
    assert list(replicas[1].parameters()) == [] and replicas[1].weight.device.index == 1
    with pytest.raises(AssertionError, match="not equal to the number of inputs"):
        parallel_apply(replicas, inputs[:1])
