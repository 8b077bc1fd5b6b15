"""torch.func.vmap: the result for a batch equals the results for its entries; none of the operators tested here is run entry by entry."""
import warnings

import naru as torch
import pytest
from naru import nn
from naru.func import vmap
from naru.nn import functional as F


def g(*sizes, seed=1):
    n = torch.Size(sizes).numel()
    return (torch.arange(n, dtype=torch.float64) * 0.37 + seed).sin().reshape(sizes)


V, W = g(4), g(5, 4)
I3 = torch.tensor([2, 0, 1])


def set_rows(a, b):
    c = a.clone()
    c[0], c[1:3] = b, 7.0
    return c


def set_at(a, i):
    c = a.clone()
    c[i] = 0.0
    return c


# (function, batch dimension of each argument, arguments)
CASES = {
    **{name: (getattr(torch, name), 0, (g(3, 4),)) for name in "exp sin abs neg sigmoid tanh relu floor isnan square log1p erf round sign logical_not expm1 rsqrt isfinite".split()},
    **{f"{name} of two": (getattr(torch, name), 0, (g(3, 4).abs(), g(3, 4, seed=2))) for name in "add mul sub div maximum atan2 pow eq lt fmod remainder hypot logaddexp".split()},
    **{f"{name} with one for all": (getattr(torch, name), (0, None), (g(3, 4).abs(), V)) for name in "add mul minimum pow ge".split()},
    **{f"{name} over all": (getattr(torch, name), 0, (g(2, 3, 4),)) for name in "sum mean prod amax amin std var max min median argmax argmin norm all any".split()},
    **{f"{name} over a dimension": (lambda a, n=name: getattr(a, n)(dim=0), 0, (g(2, 3, 4),)) for name in "sum mean amax std argmax logsumexp norm any cumsum cumprod softmax".split()},
    **{f"{name} kept": (lambda a, n=name: getattr(a, n)(dim=-1, keepdim=True), 0, (g(2, 3, 4),)) for name in "sum mean amin var argmin".split()},
    **{f"{name} with positions": (lambda a, n=name: getattr(torch, n)(a, dim=0), 0, (g(2, 3, 4),)) for name in "max min median sort cummax mode".split()},
    "type of a number": (torch.mul, 0, (g(3), torch.ones(3, 2))), "type of an integer": (torch.mul, 0, (torch.arange(3), torch.ones(3, 2))),
    "operators": (lambda a: (1 - a) / (2 + a) ** 2 * 3 - (-a) // 2 % 3 + abs(a), 0, (g(3, 4),)), "where": (lambda a, b: torch.where(a > 0, a, b), 0, (g(3, 4), g(3, 4, seed=2))),
    "clamp": (lambda a, b: a.clamp(-0.5, 0.5) + a.clamp(max=b), 0, (g(3, 4), g(3, 4, seed=2))), "lerp": (torch.lerp, (0, 0, None), (g(3, 4), g(3, 4), 0.3)), "masked_fill": (lambda a: a.masked_fill(a > 0, 0.0), 0, (g(3, 4),)),
    "topk": (lambda a: a.topk(2, 0), 0, (g(2, 3, 4),)), "kthvalue": (lambda a: a.kthvalue(2, dim=0), 0, (g(2, 3, 4),)), "flip": (lambda a: a.flip(0), 0, (g(2, 3, 4),)), "roll": (lambda a: a.roll(1, 0), 0, (g(2, 3, 4),)),
    "views": (lambda a: a.permute(1, 0).transpose(0, -1).unsqueeze(0).squeeze(0).unsqueeze(-1).squeeze().T, 0, (g(2, 3, 4),)), "sizes": (lambda a: a.view(2, 2).reshape(-1).expand(3, 4).flatten(), 0, (g(3, 4),)),
    "joins": (lambda a, b: torch.stack([torch.cat([a, b, V]), torch.cat([b, a, V])], 1), 0, (g(3, 4), g(3, 4))), "pieces": (lambda a: (*a.split(2), *a.chunk(2, dim=-1), *a.unbind()), 0, (g(3, 4),)), "repeat": (lambda a: a.repeat(2, 1), 0, (g(3, 4),)),
    "diagonals": (lambda a: (a.diagonal(), torch.diag(a), torch.trace(a), torch.tril(a), torch.triu(a, 1)), 0, (g(2, 3, 3),)), "diag": (torch.diag, 0, (g(3, 4),)), "pad": (lambda a: F.pad(a, (1, 2)), 0, (g(3, 4),)),
    "mm": (torch.mm, 0, (g(2, 3, 4), g(2, 4, 2))), "mm by one": (torch.mm, (0, None), (g(2, 3, 4), g(4, 2))), "one by mm": (torch.matmul, (None, 0), (g(3, 4), g(2, 4, 2))), "mv": (torch.mv, 0, (g(2, 3, 4), g(2, 4))),
    "one by v": (torch.mv, (None, 0), (g(3, 4), g(2, 4))), "vm": (torch.matmul, 0, (g(2, 3), g(2, 3, 4))), "dot": (torch.dot, (0, None), (g(3, 4), V)), "batches of other ranks": (torch.matmul, 0, (g(2, 5, 3, 4), g(2, 4, 2))),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), (0, None), (g(2, 3, 4), g(4, 2))), "outer": (torch.outer, 0, (g(3, 4), g(3, 5))), "addmm": (torch.addmm, (None, 0, 0), (g(2), g(2, 3, 4), g(2, 4, 2))),
    "linear": (F.linear, (0, None, None), (g(3, 4), W, g(5))), "linear of weights": (F.linear, 0, (g(3, 4), g(3, 5, 4), g(3, 5))), "linear of weights over rows": (F.linear, (None, 0, 0), (g(2, 4), g(3, 5, 4), g(3, 5))),
    "conv": (lambda a: F.conv2d(a, g(2, 3, 2, 2), g(2)), 0, (g(4, 2, 3, 5, 5),)), "conv of one": (lambda a: F.conv2d(a, g(2, 3, 2, 2), stride=2), 0, (g(4, 3, 5, 5),)),
    "conv of weights": (lambda a, w, b: F.conv2d(a, w, b, padding=1), 0, (g(4, 2, 3, 5, 5), g(4, 2, 3, 2, 2), g(4, 2))), "conv of weights alone": (lambda w: F.conv1d(g(2, 3, 5), w), 0, (g(4, 2, 3, 2),)),
    "pools": (lambda a: (F.max_pool2d(a, 2), F.avg_pool2d(a, 2), F.adaptive_avg_pool2d(a, 1)), 0, (g(4, 2, 3, 4, 4),)), "group_norm": (lambda a: F.group_norm(a, 2), 0, (g(2, 3, 4, 5),)),
    "layer_norm": (lambda a: F.layer_norm(a, (4,), V, V), 0, (g(2, 3, 4),)), "layer_norm of weights": (lambda a, b: F.layer_norm(a, (4,), b, b), 0, (g(2, 3, 4), g(2, 4))),
    "batch_norm": (lambda a: F.batch_norm(a, torch.zeros(3).double(), torch.ones(3).double()), 0, (g(2, 4, 3),)), "batch_norm in training": (lambda a: F.batch_norm(a, None, None, training=True), 0, (g(2, 4, 3),)),
    "embedding": (lambda i: F.embedding(i, g(5, 2)), 0, (torch.tensor([[1, 2], [3, 4]]),)), "embedding of tables": (F.embedding, 0, (torch.tensor([[1, 2], [3, 4]]), g(2, 5, 2))),
    "cross_entropy of one": (F.cross_entropy, 0, (g(3, 4), I3)), "cross_entropy": (F.cross_entropy, 0, (g(2, 3, 4), torch.tensor([[1, 2, 3], [0, 1, -100]]))),
    "cross_entropy with weights": (lambda a, b: F.cross_entropy(a, b, weight=V.abs(), reduction="sum"), 0, (g(2, 3, 4), torch.tensor([[1, 2, 3], [0, 1, 1]]))),
    "losses": (lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b, reduction="sum"), F.binary_cross_entropy_with_logits(a, b.abs()), F.smooth_l1_loss(a, b)), (0, None), (g(3, 4), V)),
    "activations": (lambda a: (F.gelu(a), F.silu(a), F.leaky_relu(a), F.elu(a), F.softplus(a), F.softmax(a, -1), F.log_softmax(a, 0), F.normalize(a, dim=0)), 0, (g(3, 4),)),
    "attention": (F.scaled_dot_product_attention, 0, (g(2, 2, 3, 4), g(2, 2, 3, 4), g(2, 2, 3, 4))), "cosine_similarity": (lambda a, b: F.cosine_similarity(a, b, dim=0), 0, (g(3, 4), g(3, 4, seed=2))), "one_hot": (lambda i: F.one_hot(i, 5), 0, (I3,)),
    "slices": (lambda a: (a[1:3], a[..., 0], a[None, 1], a[I3]), 0, (g(3, 3, 4),)), "an entry's position": (lambda a, i: a[i], 0, (g(3, 4), I3)), "positions in the middle": (lambda a, i: a[:, i], 0, (g(3, 2, 4), torch.tensor([[0, 1], [1, 2], [3, 3]]))),
    "positions in a table": (lambda i: V[i], 0, (I3,)), "positions apart": (lambda a: a[I3, :, I3], 0, (g(2, 3, 4, 3),)), "entries' positions apart": (lambda a, i: a[i, :, i], 0, (g(3, 3, 4, 3), torch.tensor([[0, 1], [1, 2], [2, 2]]))),
    "gather": (lambda a, i: a.gather(0, i), 0, (g(3, 4), torch.tensor([[0, 1], [1, 2], [3, 3]]))), "index_select": (lambda a, i: a.index_select(0, i), 0, (g(3, 4, 2), torch.tensor([[0, 1], [1, 2], [3, 3]]))),
    "writes": (set_rows, 0, (g(3, 4), g(3))), "writes at positions": (set_at, 0, (g(3, 4), I3)), "in place": (lambda a, b: a.clone().add_(b).mul_(2).relu_(), 0, (g(3, 4), g(3, 4, seed=2))),
    "linalg": (lambda a, b: (torch.linalg.solve(a, b), torch.linalg.inv(a), torch.det(a)), 0, (g(2, 3, 3) + 5 * torch.eye(3).double(), g(2, 3))), "what is no number": (lambda a: a + a.dim() + a.shape[0] + a.numel() + int(a.is_floating_point()), 0, (g(3, 4),)),
}


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_its_entries_give(name):
    f, dims, args = CASES[name]
    each = dims if isinstance(dims, tuple) else (dims,) * len(args)
    size = next(a.shape[d] for a, d in zip(args, each) if d is not None)
    rows = [flat(f(*(a if d is None else a.select(d, i) for a, d in zip(args, each)))) for i in range(size)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = flat(vmap(f, in_dims=dims)(*args))
    assert len(found) == len(rows[0])
    for got, column in zip(found, zip(*rows)):
        wanted = torch.stack(list(column))
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        torch.testing.assert_close(got, wanted, equal_nan=True, rtol=1e-12, atol=1e-12)


def test_dimensions_of_the_batch_may_be_anywhere_and_batches_may_be_nested():
    x, y = g(3, 4), g(4, 3)
    assert torch.equal(vmap(torch.add, in_dims=(0, 1), out_dims=1)(x, y), (x + y.t()).t())
    assert torch.equal(vmap(vmap(lambda a, b: (a * b).sum()), in_dims=(0, None))(g(2, 3, 4), x), (g(2, 3, 4) * x).sum(-1))
    found = vmap(lambda d: {"s": d["a"] + d["b"]}, in_dims=({"a": 0, "b": None},))({"a": x, "b": V})
    assert torch.equal(found["s"], x + V)
    assert torch.equal(vmap(lambda a: V)(x), V.expand(3, 4)) and torch.equal(vmap(lambda a: V, out_dims=None)(x), V)
    for size in (1, 2, 3, 5):
        assert torch.equal(vmap(torch.cumsum, in_dims=(0, None), chunk_size=size)(x, 0), x.cumsum(1))


def test_modules_and_devices(device):
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(1), nn.Linear(12, 5), nn.LayerNorm(5), nn.Linear(5, 2)).to(device)
    x = g(4, 1, 2, 3, 3).float().to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vmap(model)(x)
    torch.testing.assert_close(found, model(x.squeeze(1)).unsqueeze(1))


def test_random_numbers_are_chosen():
    x = g(3, 40)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(lambda a: a + torch.rand(40))(x)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(F.dropout)(x)
    for f in (lambda a: torch.rand(40) + 0 * a, lambda a: torch.randn_like(a), lambda a: F.dropout(torch.ones_like(a)), lambda a: torch.zeros_like(a).uniform_() if False else torch.rand(40) * (0 * a + 1)):
        same, different = vmap(f, randomness="same")(x), vmap(f, randomness="different")(x)
        assert torch.equal(same[0], same[1]) and not torch.equal(different[0], different[1])


@pytest.mark.parametrize("call, kind, text", [
    (lambda: vmap(lambda a: a)(3), ValueError, "Got in_dim=0 for an input but the input is of type <class 'int'>. We cannot vmap over non-Tensor arguments"),
    (lambda: vmap(lambda: 0)(), ValueError, "got no inputs. Maybe you forgot to add inputs"),
    (lambda: vmap(lambda a, b: a)(g(3), g(2)), ValueError, r"got sizes \[3, 2\] for the mapped dimension"),
    (lambda: vmap(lambda a: a, in_dims=5)(g(3)), ValueError, "expected in_dim to satisfy -1 <= in_dim < 1"),
    (lambda: vmap(lambda a: a, in_dims=(0, 0))(g(3)), ValueError, "in_dims is not compatible with the structure of `inputs`"),
    (lambda: vmap(lambda a: a.item())(g(3)), RuntimeError, r"It looks like you're calling .item\(\) on a Tensor"),
    (lambda: vmap(lambda a: a if a > 0 else -a)(g(3)), RuntimeError, "use a Tensor in some data-dependent control flow"),
    (lambda: vmap(lambda a: a[a > 0])(g(3, 2)), RuntimeError, "data-dependent control flow"),
    (lambda: vmap(lambda a: 3)(g(3)), ValueError, "must only return Tensors, got type <class 'int'>"),
    (lambda: vmap(lambda a: a, out_dims=None)(g(3)), ValueError, "can not return a BatchedTensor when out_dim is None"),
    (lambda: vmap(lambda a: a, randomness="x"), RuntimeError, "Only allowed values for randomness are 'error', 'different', or 'same'. Got x"),
    (lambda: vmap(lambda a: a, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
    (lambda: vmap(lambda a: a.sum(3))(g(3, 2)), IndexError, r"expected to be in range of \[-1, 0\], but got 3"),
    (lambda: vmap(lambda a, b: a.add_(b), in_dims=(None, 0))(g(2), g(3, 2)), RuntimeError, "inplace arithmetic.* is not possible because"),
])
def test_what_can_not_be_done_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_a_function_without_a_rule_is_called_for_each_entry_and_says_so():
    x = g(3, 4)
    with pytest.warns(UserWarning, match="not yet implemented the batching rule for histogram: it is called 3 times"):
        found = vmap(lambda a: torch.histogram(a, 3).hist)(x)
    assert torch.equal(found, torch.stack([torch.histogram(r, 3).hist for r in x]))


def test_a_tensor_that_is_kept_beyond_its_vmap_is_an_error():
    kept = []
    vmap(lambda a: kept.append(a) or a)(g(3))
    with pytest.raises(RuntimeError, match="a vmap that is over"):
        torch.sin(kept[0])


def test_chunks_with_the_same_randomness_draw_the_same_numbers():
    found = vmap(lambda x: x + torch.randn(()), randomness="same", chunk_size=2)(torch.zeros(5))
    assert found.unique().numel() == 1


def test_numbers_of_a_batch_are_those_of_one_draw():
    for within, plain in ((lambda x: x + torch.randn(()), torch.randn), (lambda x: x + torch.rand(()), torch.rand)):
        torch.manual_seed(0)
        found = vmap(vmap(within, randomness="different"), randomness="different")(torch.zeros(2, 3))
        torch.manual_seed(0)
        assert torch.equal(found, plain(2, 3))


@pytest.mark.parametrize("draw", [lambda c: torch.nn.functional.dropout(c, 0.5), torch.rand_like, lambda c: torch.bernoulli(c / 2)], ids=["dropout", "rand_like", "bernoulli"])
def test_random_functions_of_tensors_without_a_batch_follow_the_choice(draw):
    c, x = torch.ones(64), torch.ones(3)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda _: draw(c))(x)
    assert vmap(lambda _: draw(c), randomness="different")(x).unique(dim=0).shape[0] == 3
    assert vmap(lambda _: draw(c), randomness="same")(x).unique(dim=0).shape[0] == 1
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda _: c.clone().normal_(), randomness="different")(x)
    assert torch.equal(vmap(lambda _: torch.nn.functional.dropout(c, 0.5, False))(x), torch.ones(3, 64))


def test_small_rules_of_a_batch():
    x = torch.ones(3, requires_grad=True)
    rows = vmap(lambda v: torch.autograd.grad([x * x], [x], grad_outputs=[v])[0])(torch.eye(3))
    assert torch.equal(rows, 2 * torch.eye(3))
    assert vmap(lambda a, v: a.fill_(v))(torch.zeros(2, 2), torch.tensor([1.0, 2.0])).tolist() == [[1, 1], [2, 2]]
    assert vmap(lambda a: "text", out_dims=None)(x) == "text"
    assert torch.equal(vmap(lambda a: a.transpose(0, -1))(x), x)
    assert vmap(lambda a, b: torch.cat([a, b], 1))(torch.ones(2, 1, 2), torch.ones(2, 0)).shape == (2, 1, 2)


@pytest.mark.parametrize("draw", ["normal_", "uniform_", "bernoulli_", "random_"])
def test_draws_in_place_are_as_randomness_says(draw):
    x = torch.zeros(4, 6)
    different, same = (vmap(lambda t: getattr(t, draw)(), randomness=mode)(x.clone()) for mode in ("different", "same"))
    assert torch.equal(same, same[:1].expand(4, 6)) and not torch.equal(different, different[:1].expand(4, 6))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda t: getattr(t, draw)())(x.clone())
    with pytest.raises(RuntimeError, match="inplace randomness on an unbatched"):
        vmap(lambda t: getattr(torch.zeros(6), draw)(), randomness="different")(x)


@pytest.mark.parametrize("name", ["alpha_dropout", "dropout2d", "feature_alpha_dropout"])
def test_dropout_of_channels_and_to_a_mean_is_as_randomness_says(name):
    function, x = getattr(torch.nn.functional, name), torch.ones(4, 2, 8, 3, 3)

    def rows(mode, *inputs):
        return vmap(lambda t: function(*(inputs or (t,)), training=True), randomness=mode)(x).flatten(1)

    for inputs in ((), (x[0],)):  # one argument is batched, the other is shared by all entries
        same = rows("same", *inputs)
        assert torch.equal(same, same[:1].expand(4, -1))
        assert len(rows("different", *inputs).unique(dim=0)) > 1
        with pytest.raises(RuntimeError, match="randomness error mode"):
            rows("error", *inputs)
    if name != "alpha_dropout":  # whole channels, drawn independently
        channels = rows("different").reshape(4, 16, 9)
        assert torch.equal(channels, channels[..., :1].expand(4, 16, 9)) and len(channels[..., 0].reshape(8, 8).unique(dim=0)) > 2


def test_products_of_a_batch_take_the_ranks_that_they_take_without():
    a, b = torch.ones(2, 3, 3), torch.ones(2, 3)
    for name, operands in (("dot", (a, b)), ("mm", (a, b)), ("mv", (b, b)), ("bmm", (a, a))):
        with pytest.raises(RuntimeError, match="1D tensors|must be a matrix|vector|3D tensor"):
            vmap(getattr(torch, name))(*operands)


def test_cross_products_of_a_batch_are_along_the_dimension_of_an_entry():
    x, y = g(3, 3, 2), g(3, 3, 2, seed=4)
    for cross in (torch.cross, lambda a, b: torch.linalg.cross(a, b, dim=0)):
        assert torch.equal(vmap(cross)(x, y), torch.stack([cross(a, b) for a, b in zip(x, y)]))


def test_a_checkpointed_function_may_hold_a_vmap():
    from naru.utils.checkpoint import checkpoint

    x = g(3, 2, 2).requires_grad_()
    checkpoint(lambda t: vmap(torch.linalg.qr)(t)[0].sum(), x, use_reentrant=False).backward()
    (wanted,) = torch.autograd.grad(torch.linalg.qr(x)[0].sum(), x)
    torch.testing.assert_close(x.grad, wanted)


@pytest.mark.parametrize("call", [
    lambda z, c: torch.exp(z, out=c), lambda z, c: torch.add(c, 1, out=z), lambda z, c: torch.sum(z.expand(4, 2), 0, out=c),
    lambda z, c: torch.sort(z, out=(c, torch.empty(2, dtype=torch.int64))), lambda z, c: torch.cat([c[:1], c[:1]], out=z), lambda z, c: torch.mv(torch.eye(2), z, out=c),
])  # fmt: skip
def test_out_is_refused_and_keeps_its_elements(call):
    z, c = torch.ones(3, 2), torch.zeros(2)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::[a-z]+.out"):
        vmap(lambda x: call(x, c))(z)
    assert torch.equal(z, torch.ones(3, 2)) and torch.equal(c, torch.zeros(2))
    assert torch.equal(vmap(lambda x: x * torch.exp(c, out=torch.empty(2)))(z), z)  # no batch among the arguments


@pytest.mark.parametrize("algorithm", ["philox", "pytorch"])
def test_draws_are_refused_while_a_vmap_under_way_refuses_them_and_allowed_behind_it(algorithm):
    plain, x = torch.zeros(3), torch.ones(2, 3)
    torch.random.set_algorithm(algorithm)
    try:
        for draw in (lambda: torch.rand(2), lambda: plain.normal_(), lambda: torch.randperm(4), lambda: F.dropout(plain + 1)):
            with pytest.raises(RuntimeError, match="randomness error mode"):
                vmap(lambda row, draw=draw: row * draw().sum())(x)
            with pytest.raises(RuntimeError, match="randomness error mode"):  # the outer vmap refuses, although the inner one allows draws
                vmap(lambda row, draw=draw: vmap(lambda e: e * draw().sum(), randomness="same")(row))(x)
            draw()  # an error in the function ends the refusal
        assert vmap(lambda row: row * torch.rand(3), randomness="different")(x).shape == x.shape
    finally:
        torch.random.set_algorithm("philox")


def test_what_the_function_sees_are_tensors_of_one_entry():
    def look(x):
        assert type(x) is torch.Tensor and x.shape == (4,) and x.stride() == (1,) and x.is_contiguous() and x.grad is None and len(x) == 4
        assert x.requires_grad and x.is_leaf == base.is_leaf and repr(x).startswith("BatchedTensor(lvl=1, bdim=0, value=tensor(")
        return x * 2

    base = g(3, 4).requires_grad_()
    vmap(look)(base).sum().backward()
    assert torch.equal(base.grad, torch.full((3, 4), 2.0).double())


@pytest.mark.parametrize("call", [
    lambda x: F.conv1d(x[None], x[None, :, :2]), lambda x: F.layer_norm(x, (4,)), lambda x: F.max_pool1d(x, 2), lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])),
    lambda x: F.pad(x, (1, 1), "reflect"), lambda x: F.interpolate(x[None], 3), lambda x: torch.fft.rfft(x), lambda x: F.mse_loss(x, x + 1), lambda x: torch.searchsorted(x.sort().values, x),
    lambda x: F.embedding(x.argsort(), x.t()), lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), lambda x: torch.linalg.lstsq(x, x).solution, lambda x: torch.cdist(x, x),
])  # fmt: skip
def test_without_pythons_rules_cpp_computes_what_entries_give_or_refuses(call, monkeypatch):
    from naru.func import _batched

    monkeypatch.setattr(_batched, "RULES", {})
    torch._C._set_batching(_batched._has_rule, _batched._dispatch, _batched._missed)  # forgets which functions have rules
    x = g(2, 3, 4)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(vmap(call)(x), torch.stack([call(e) for e in x]))
            (got,) = torch.autograd.grad(vmap(call)(z := x.clone().requires_grad_()).abs().sum(), z, allow_unused=True) if call(x[0]).is_floating_point() else (None,)
            (want,) = torch.autograd.grad(sum(call(e).abs().sum() for e in z), z, allow_unused=True) if got is not None else (None,)
            torch.testing.assert_close(got, want)
    finally:
        monkeypatch.undo()
        torch._C._set_batching(_batched._has_rule, _batched._dispatch, _batched._missed)


@pytest.mark.parametrize("f", [torch.linalg.svdvals, torch.linalg.eigvalsh, torch.linalg.det, torch.linalg.slogdet, torch.linalg.inv, torch.linalg.cholesky])
def test_a_batch_of_vectors_is_no_matrix(f):
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        vmap(f)(torch.eye(3))


def test_a_batch_of_two_numbers_is_no_complex_number():
    with pytest.raises(RuntimeError, match="one or more dimensions"):
        vmap(torch.view_as_complex)(torch.ones(2))


def test_autocast_is_asked_before_the_batch():
    x = g(2, 3, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        y = vmap(lambda a: (a @ a, torch.linalg.svdvals(a), a.sum(0), torch.stack([a, a.bfloat16()])))(x)
        each = [(a @ a, torch.linalg.svdvals(a), a.sum(0), torch.stack([a, a.bfloat16()])) for a in x]
    assert [t.dtype for t in y] == [torch.bfloat16, torch.float32, torch.float32, torch.float32]
    for i, t in enumerate(y):
        assert torch.equal(t, torch.stack([e[i] for e in each]))
