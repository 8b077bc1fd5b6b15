"""Nested tensors: what an operator gives for each component is what it gives for the component by itself, or for padded tensors without the padding."""
import copy
import io

import pickle

import naru as torch
import pytest
from naru import nn

F = nn.functional
nested = torch.nested
LAYOUTS = (torch.jagged, torch.strided)
LENGTHS = (3, 1, 0, 5)


def parts(*rest, lengths=LENGTHS, start=0, device="cpu"):
    """Small whole numbers, of which sums and products are exact in every order."""
    found = []
    for n in lengths:
        count = n
        for r in rest:
            count *= r
        found.append(((torch.arange(count, device=device) * 7 + start) % 11 - 5).double().reshape((n, *rest)))
        start += 3
    return found


def pair(device, layout, *rest):
    """Two nested tensors of one structure, and their components."""
    a, b = parts(*rest, device=device), parts(*rest, start=4, device=device)
    x = nested.nested_tensor(a, layout=layout, requires_grad=True)
    y = nested.nested_tensor(b, layout=layout)
    if layout is torch.jagged:
        y = nested.nested_tensor_from_jagged(y.values(), x.offsets())
    return x, y, a, b


def agree(x, f, got, of_component, components):
    """The results for each component, and gradients of what they add up to, are the same bits."""
    leaves = [c.clone().requires_grad_() for c in components]
    want = [of_component(i, c) for i, c in enumerate(leaves)]
    rows = got.unbind() if got.is_nested else list(got)
    assert len(rows) == len(want)
    for g, w in zip(rows, want):
        assert g.dtype == w.dtype and torch.equal(g, w), f
    if not rows[0].requires_grad:
        return
    sum((g * g).sum() for g in rows).backward()
    sum((w * w).sum() for w in want).backward()
    for g, leaf in zip(x.grad.unbind(), leaves):
        assert torch.equal(g, leaf.grad), f
    x.grad = None


ROWS = {
    "scalars": lambda x: 2 - x * 3,
    "activation": lambda x: F.gelu(torch.tanh(x) + x.abs()),
    "comparison": lambda x: x > 1,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, dim=-1),
    "sum": lambda x: x.sum(-1, keepdim=True),
    "amax": lambda x: x.amax(-1),
    "view": lambda x: x.unflatten(-1, (2, 2)).transpose(-1, -2),
    "unsqueeze": lambda x: x.unsqueeze(-1).expand_as(x.unsqueeze(-1)).squeeze(-1),
    "chunk": lambda x: x.chunk(2, -1)[1],
    "cat": lambda x: torch.cat([x, 2 * x], -1),
    "split": lambda x: torch.stack(x.split([2, 2], -1), -1),
    "narrow": lambda x: x.narrow(-1, 1, 2) - x[..., :2],
    "where": lambda x: torch.where(x > 0, x, -x).masked_fill(x == 2, 9.0),
    "types": lambda x: x.float().exp().to(torch.float64),
    "clone": lambda x: x.clone().contiguous() + torch.zeros_like(x),
    "sort": lambda x: x.sort(-1).values,
    "embedding": lambda x: F.embedding(x.detach().abs().long(), torch.arange(12.0, device=x.device).reshape(6, 2)),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "tanh gelu": lambda x: F.gelu(x, approximate="tanh"),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_acts_on_elements_and_rows_acts_on_each_component(device, layout):
    x, y, a, b = pair(device, layout, 4)
    for name, f in ROWS.items():
        agree(x, name, f(x), lambda i, c, f=f: f(c), a)
    agree(x, "two", x * y + x / (y * y + 1), lambda i, c: c * b[i] + c / (b[i] * b[i] + 1), a)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_with_dense_tensors_and_parameters_reach_both(device, layout):
    x, _, a, _ = pair(device, layout, 4)
    weight, bias = (torch.ones(s, dtype=torch.float64, device=device).cumsum(-1) for s in ((3, 4), (3,)))
    each = torch.arange(4 * 4 * 2, device=device).reshape(4, 4, 2).double() - 5
    agree(x, "linear", F.linear(x, weight, bias), lambda i, c: F.linear(c, weight, bias), a)
    agree(x, "matmul", x @ weight.t(), lambda i, c: c @ weight.t(), a)
    agree(x, "bmm", torch.bmm(x, each), lambda i, c: c @ each[i], a)
    agree(x, "in front", each.mT @ x.transpose(1, 2), lambda i, c: each[i].mT @ c.mT, a)
    leaf = weight.clone().requires_grad_()
    F.linear(x, leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.cat(a).sum(0).expand(3, 4))


def test_dense_tensors_broadcast_along_the_ragged_dimension(device):
    x, _, a, _ = pair(device, torch.jagged, 4)
    row, each = torch.arange(4.0, device=device).double(), parts(1, 4, lengths=(4,), device=device)[0]
    agree(x, "row", row - x, lambda i, c: row - c, a)
    agree(x, "each", x * each, lambda i, c: c * each[i], a)
    padded = parts(5, 4, lengths=(4,), device=device)[0]
    agree(x, "padded", x + padded, lambda i, c: c + padded[i][: len(c)], a)
    leaf = each.clone().requires_grad_()
    (x * leaf).sum().backward()
    assert torch.equal(leaf.grad[:, 0], torch.stack([c.sum(0) for c in a]))
    for bad in (torch.ones(3), torch.ones(3, 1, 4), torch.ones(1, 5, 4), torch.ones(1, 1, 1, 1)):
        with pytest.raises(RuntimeError, match="match|cannot call binary pointwise function mul"):
            x * bad.to(device).double()


def test_reductions_of_the_ragged_dimension_are_dense(device):
    x, _, a, _ = pair(device, torch.jagged, 4)
    agree(x, "sum", x.sum(1), lambda i, c: c.sum(0), a)
    agree(x, "softmax", F.softmax(x, 1), lambda i, c: F.softmax(c, 0), a)
    agree(x, "cumsum", x.cumsum(1), lambda i, c: c.cumsum(0), a)
    z = nested.nested_tensor([c for c in a if len(c)], layout=torch.jagged, requires_grad=True)
    full = [c for c in a if len(c)]
    agree(z, "mean", z.mean(1, keepdim=True), lambda i, c: c.mean(0, keepdim=True), full)
    for name in ("amax", "amin", "prod", "logsumexp"):
        agree(z, name, getattr(z, name)(1), lambda i, c, n=name: getattr(c, n)(0), full)
    agree(z, "max", z.max(1).values, lambda i, c: c.max(0).values, full)
    agree(z, "argmax", z.argmax(1), lambda i, c: c.argmax(0), full)
    agree(z, "any", (z > 3).any(1), lambda i, c: (c > 3).any(0), full)
    short = nested.nested_tensor([torch.ones(700), torch.full((3000,), 0.125)], layout=torch.jagged, device=device, dtype=torch.bfloat16)
    assert short.sum(1).tolist() == [700, 376] and short.mean(1).tolist() == [1, 0.125]  # rounded once
    whole = torch.cat(a)
    assert torch.equal(x.sum(), whole.sum()) and torch.equal(x.sum((0, 1)), whole.sum(0)) and torch.equal(x.max(), whole.max())
    assert x.sum((0, 1), keepdim=True).shape == (1, 1, 4) and x.mean(dim=1, keepdim=True).shape == (4, 1, 4)


def test_the_ragged_dimension_goes_where_dimensions_go(device):
    x, _, a, _ = pair(device, torch.jagged, 2, 4)
    turned = x.transpose(1, 2)
    assert turned.size(2) == x.size(1) and turned.shape == (4, 2, x.size(1), 4)
    agree(x, "transpose", turned * 2, lambda i, c: c.transpose(0, 1) * 2, a)
    agree(x, "permute", x.permute(0, 3, 1, 2), lambda i, c: c.permute(2, 0, 1), a)
    agree(x, "sum", turned.sum(2), lambda i, c: c.sum(0), a)
    agree(x, "before", turned.sum(1), lambda i, c: c.sum(1), a)
    agree(x, "select", turned.select(1, 0), lambda i, c: c[:, 0], a)
    agree(x, "flatten", x.flatten(2), lambda i, c: c.flatten(1), a)
    agree(x, "view", x.view(4, -1, 8).reshape(4, x.size(1), 2, 4), lambda i, c: c, a)
    agree(x, "products", x @ x.mT, lambda i, c: c @ c.mT, a)
    agree(x, "over the rows", x.flatten(2).mT @ x.flatten(2), lambda i, c: c.flatten(1).mT @ c.flatten(1), a)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_padding_and_back(device, layout):
    x, _, a, _ = pair(device, layout, 4)
    padded = nested.to_padded_tensor(x, -1.0)
    assert padded.shape == (4, 5, 4)
    for row, part in zip(padded, a):
        assert torch.equal(row[: len(part)], part) and bool((row[len(part) :] == -1).all())
    wide = x.to_padded_tensor(0, output_size=(4, 7, 4))
    assert wide.shape == (4, 7, 4)
    wide.square().sum().backward()
    assert torch.equal(torch.cat(x.grad.unbind()), 2 * torch.cat(a))
    turned = x.transpose(1, 2).to_padded_tensor(-1.0)
    assert torch.equal(turned, padded.transpose(1, 2))


@pytest.mark.parametrize("lengths", [(3, 1, 5, 5), (3, 2) * 5], ids=["each", "by length"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_attention_is_that_of_each_sequence(device, layout, lengths):
    causal = len(lengths) > 4
    a = [p / 4 for p in parts(2, 4, lengths=lengths, device=device)]
    x = nested.nested_tensor(a, layout=layout, requires_grad=True)
    q = x.transpose(1, 2)
    out = F.scaled_dot_product_attention(q, q * 2, q + 1, is_causal=causal).transpose(1, 2)

    def of_one(i, c):
        c = c.transpose(0, 1)
        return F.scaled_dot_product_attention(c, c * 2, c + 1, is_causal=causal).transpose(0, 1)

    agree(x, "attention", out, of_one, a)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_transformer_gives_what_padding_with_a_mask_gives(device, layout):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, device=device, dtype=torch.float64)
    lengths = (3, 1, 5)
    a = [p / 4 for p in parts(8, lengths=lengths, device=device)]
    x = nested.nested_tensor(a, layout=layout)
    out = layer(x)
    mask = torch.arange(5, device=device) >= torch.tensor(lengths, device=device)[:, None]
    want = layer(nested.to_padded_tensor(x, 0.0), src_key_padding_mask=mask)
    torch.testing.assert_close(out.to_padded_tensor(0.0), want.masked_fill(mask.unsqueeze(-1), 0.0), rtol=1e-12, atol=1e-12)
    out.to_padded_tensor(0.0).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    weights = layer.self_attn(x, x, x)[1]
    assert weights.shape == (3, 5, 5) and torch.allclose(weights.sum(-1), (~mask).double())
    with pytest.raises(AssertionError, match="does not support NestedTensor outside of its fast path"):
        layer(x, src_key_padding_mask=mask)


def test_components_that_differ_in_several_dimensions(device):
    a = [torch.arange(6.0, device=device).reshape(2, 3), torch.arange(20.0, device=device).reshape(4, 5)]
    x = nested.nested_tensor(a, requires_grad=True)
    for name, f in {
        "elements": lambda x: x.sin() * x + 1, "softmax": lambda x: F.softmax(x, -1), "transpose": lambda x: x.transpose(-2, -1),
        "matmul": lambda x: x @ x.transpose(-2, -1), "sum": lambda x: x.sum(-1, keepdim=True), "unsqueeze": lambda x: x.unsqueeze(-1),
    }.items():  # fmt: skip
        agree(x, name, f(x), lambda i, c, f=f: f(c), a)
    padded = x.to_padded_tensor(-1.0)
    assert padded.shape == (2, 4, 5) and torch.equal(padded[0, :2, :3], a[0]) and padded[0, 2:].sum() == -10
    assert x.size(0) == 2 and x.dim() == 3 and x.numel() == 26
    for dim in (1, 2):
        with pytest.raises(RuntimeError, match=f"Given dimension {dim} is irregular and does not have a size"):
            x.size(dim)
    with pytest.raises(NotImplementedError, match=r"nonzero\(\): not supported for NestedTensor of size \(2, \*, \*\)"):
        x.nonzero()
    assert nested.nested_tensor([]).size(0) == 0 and repr(nested.nested_tensor([1.0])) == "nested_tensor([\n  tensor(1.)\n])"


def test_construction_keeps_history_or_makes_leaves(device):
    a, b = (torch.ones(n, 2, device=device, requires_grad=True) for n in (2, 3))
    x = nested.as_nested_tensor([a, b], layout=torch.jagged)
    assert not x.is_leaf and x.requires_grad and x.layout is torch.jagged and x.is_nested and isinstance(x, torch.Tensor)
    x.backward(torch.ones_like(x) * 3)
    assert torch.equal(a.grad, torch.full_like(a, 3)) and torch.equal(b.grad, torch.full_like(b, 3))
    leaf = nested.nested_tensor([a, b], layout=torch.jagged, requires_grad=True, dtype=torch.float64)
    assert leaf.is_leaf and leaf.dtype is torch.float64 and leaf.device == a.device
    (found,) = torch.autograd.grad((leaf * leaf).sum(), leaf)
    assert found.is_nested and torch.equal(found.values(), 2 * leaf.values())
    seen = []
    leaf.register_hook(lambda g: seen.append(g.shape == leaf.shape) or g * 2)
    leaf.sum().backward()
    assert seen == [True] and torch.equal(leaf.grad.values(), torch.full_like(leaf.values(), 2))
    dense = nested.as_nested_tensor(torch.ones(2, 3, 4, device=device), layout=torch.jagged)
    assert [c.shape for c in dense.unbind()] == [(3, 4)] * 2
    assert [c.tolist() for c in nested.nested_tensor([[1, 2], [3]], layout=torch.jagged).unbind()] == [[1, 2], [3]]


def test_gaps_between_components(device):
    values, offsets, lengths = torch.arange(8.0, device=device), torch.tensor([0, 3, 4, 8], device=device), torch.tensor([2, 1, 3], device=device)
    x = nested.nested_tensor_from_jagged(values.requires_grad_(), offsets, lengths)
    assert [c.tolist() for c in (x * 2).unbind()] == [[0, 2], [6], [8, 10, 12]] and not x.is_contiguous() and x.lengths() is lengths
    assert x.sum().item() == 0 + 1 + 3 + 4 + 5 + 6 and x.numel() == 6
    whole = x.contiguous()
    assert whole.is_contiguous() and torch.equal(whole.to_padded_tensor(0.0).sum(1), torch.tensor([1.0, 3, 15], device=device))
    for f in (lambda: x.sum(1), lambda: x.to_padded_tensor(0.0)):
        with pytest.raises(RuntimeError, match="with holes"):
            f()
    part = nested.narrow(values.detach().reshape(2, 4), 1, torch.tensor([0, 1], device=device), torch.tensor([2, 3], device=device), layout=torch.jagged)
    assert [c.tolist() for c in part.unbind()] == [[0, 1], [5, 6, 7]]
    kept = nested.masked_select(values.detach().reshape(2, 4), values.detach().reshape(2, 4) > 2)
    assert [c.tolist() for c in kept.unbind()] == [[3], [4, 5, 6, 7]]


def test_writes_reach_the_values(device):
    x = nested.nested_tensor([torch.zeros(2, 2), torch.zeros(3, 2)], layout=torch.jagged, device=device)
    x.add_(1).mul_(torch.tensor([1.0, 2.0], device=device))
    x[1] = 5.0
    x[..., 0] = x[..., 0] * 2
    x.index_put_((torch.tensor([0, 1], device=device), torch.tensor([1, 2], device=device)), torch.tensor([7.0, 8.0], device=device))
    assert x.values().tolist() == [[2, 2], [7, 8], [10, 5], [10, 5], [7, 8]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.index_put_((torch.tensor([0], device=device), torch.tensor([2], device=device)), torch.zeros(2, device=device))
    assert torch.equal(torch.max(torch.zeros(2, device=device), x).values(), x.values())
    assert torch.numel(x) == 10 and F.mse_loss(x, 2 * x).item() == x.square().mean().item()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight, x.sum(1)

    @staticmethod
    def backward(ctx, grad, grad_of_sum):
        x, weight = ctx.saved_tensors
        assert x.is_nested and grad.shape == x.shape and not grad_of_sum.is_nested
        return grad * weight + grad_of_sum.unsqueeze(1), (grad * x).sum((0, 1))


def test_functions_of_ones_own_see_nested_tensors(device):
    x, _, a, _ = pair(device, torch.jagged, 4)
    weight = torch.arange(4.0, device=device).double().requires_grad_()
    out, sums = Scaled.apply(x, weight)
    assert out.shape == x.shape and torch.equal(out.values(), torch.cat(a) * weight) and sums.shape == (4, 4)
    (out.sum() + 2 * sums.sum()).backward()
    assert torch.equal(x.grad.values(), (weight + 2).detach().expand(9, 4)) and torch.equal(weight.grad, torch.cat(a).sum(0))


def test_structures_are_those_of_the_same_offsets(device):
    x = nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, device=device)
    other = nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, device=device)
    j = x.size(1)
    assert x.shape == (2, j) and x.shape != other.shape and j != 5 and j >= 2 and repr(2 * j) == f"2*{j}" and str(x.shape) == f"torch.Size([2, {j}])"
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add with inputs of shapes"):
        x + other
    same = nested.nested_tensor_from_jagged(other.values(), x.offsets())
    assert torch.equal((x + same).values(), torch.full((5,), 2.0, device=device)) and same.shape == x.shape
    there = x.to("cpu")
    assert there.device.type == "cpu" and there.offsets().device.type == "cpu" and there.shape == x.shape
    other.copy_(x * 4)
    assert other.values().sum().item() == 20
    strided = [nested.nested_tensor([torch.ones(2), torch.ones(3)], device=device) for _ in range(2)]
    assert torch.equal(*strided) and [c.sum().item() for c in (strided[0] + strided[1]).unbind()] == [4, 6]


def test_text_is_pytorchs():
    x = nested.nested_tensor([torch.ones(1, 2), torch.zeros(2, 2)], layout=torch.jagged)
    assert repr(x) == f"NestedTensor(size=(2, {x.size(1)}, 2), offsets=tensor([0, 1, 3]), contiguous=True)"
    leaf = x.clone().requires_grad_()
    assert repr(leaf).endswith("offsets=tensor([0, 1, 3]), requires_grad=True, contiguous=True)") and "grad_fn=<MulBackward0" in repr(leaf * 2)
    y = nested.nested_tensor([torch.ones(1, 2), torch.zeros(2, 2)])
    assert repr(y) == "nested_tensor([\n  tensor([[1., 1.]]),\n  tensor([[0., 0.],\n          [0., 0.]])\n])"
    assert repr(torch.jagged) == "torch.jagged" and isinstance(torch.jagged, torch.layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_copies_and_pickles(layout):
    x = nested.nested_tensor([torch.ones(1, 2), torch.zeros(3, 2)], layout=layout, requires_grad=True)
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.layout is layout and made.requires_grad and [c.tolist() for c in made.unbind()] == [c.tolist() for c in x.unbind()]
    file = io.BytesIO()
    torch.save({"x": x, "offsets": x.unbind()[1]}, file)
    file.seek(0)
    read = torch.load(file)["x"]
    assert read.layout is layout and [c.tolist() for c in read.unbind()] == [c.tolist() for c in x.unbind()]
    assert copy.deepcopy(x).values().data_ptr() != x.values().data_ptr()


REFUSED = [
    (lambda x: x.sum(0), RuntimeError, r"sum\(\): reducing along the batch dimension but not the ragged dimension is not supported"),
    (lambda x: x.sum((1, 2)), RuntimeError, r"sum\(\): reducing along a ragged and non-batch dimension is not supported"),
    (lambda x: F.softmax(x, 0), RuntimeError, r"softmax\(\): not supported when reducing across the batch dimension"),
    (lambda x: x.transpose(0, 1), ValueError, "Transpose is not supported on the batch dimension for jagged NT"),
    (lambda x: x.permute(1, 0, 2), ValueError, "Permute is not supported on the batch dimension for jagged NT"),
    (lambda x: x.unsqueeze(0), RuntimeError, r"unsqueeze\(\): not supported for NestedTensor on dim=0"),
    (lambda x: x.split(1, 1), RuntimeError, r"split\(\): not supported for NestedTensor on ragged dim"),
    (lambda x: x.flatten(1), RuntimeError, r"flatten\(\): not supported for NestedTensor on ragged dim"),
    (lambda x: x.select(1, 0), RuntimeError, r"select\(\): not supported for NestedTensor on ragged dim"),
    (lambda x: x.unbind(1), RuntimeError, r"unbind\(\): only supported for NestedTensor on dim=0"),
    (lambda x: torch.cat([x, x]), RuntimeError, r"cat\(\): not supported for NestedTensor on dim=0"),
    (lambda x: torch.cat([x, x], 1), RuntimeError, r"cat\(\): not supported for NestedTensor on ragged dim"),
    (lambda x: torch.stack([x, x], 1), RuntimeError, r"stack\(\): not supported for NestedTensor on ragged dim"),
    (lambda x: x.view(-1, 4), RuntimeError, r"view\(\): cannot view shape \(2, j\d+, 4\) as \[-1, 4\]"),
    (lambda x: x @ x.mT, RuntimeError, r"matmul\(\): not supported between inputs of shapes"),
    (lambda x: F.layer_norm(x[..., 0], (2,)), RuntimeError, "layer_norm|normalized_shape"),
    (lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(1)), ValueError, "Masks are not yet supported"),
    (lambda x: x.flip(1), NotImplementedError, r"flip\(\): not supported .* to_padded_tensor\(padding\) makes a dense tensor of it, unbind\(\) gives"),
    (lambda x: x.nonzero(), NotImplementedError, r"nonzero\(\): not supported for NestedTensor of size \(2, j\d+, 4\)"),
    (lambda x: x.tolist(), RuntimeError, "tolist"),
    (lambda x: x.item(), RuntimeError, "a Tensor with 12 elements cannot be converted to Scalar"),
    (lambda x: int(x.size(1)), TypeError, r"the length j\d+ of a ragged dimension is no number"),
    (lambda x: torch.ones(2).to_padded_tensor(0.0), NotImplementedError, "wanted a nested tensor"),
    (lambda x: nested.nested_tensor([], layout=torch.jagged), RuntimeError, "from an empty tensor list"),
    (lambda x: nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 2)], layout=torch.jagged), RuntimeError, "only allows for a single ragged dimension"),
    (lambda x: nested.nested_tensor([torch.ones(2), torch.ones(3, 2)]), RuntimeError, "Found dimension 2 for Tensor at index 1 and dimension 1"),
    (lambda x: nested.nested_tensor(3), TypeError, "Only lists"),
    (lambda x: nested.nested_tensor([[1]], layout=torch.sparse_coo), RuntimeError, "Specified layout is unsupported for nested tensors: torch.sparse_coo"),
    (lambda x: nested.as_nested_tensor(3), TypeError, r"as_nested_tensor\(\): Expected first argument"),
    (lambda x: nested.nested_tensor_from_jagged(x, torch.tensor([0, 3])), TypeError, "wanted a dense tensor as values, got NestedTensor"),
    (lambda x: torch.cumsum(torch.ones(2), x), TypeError, "wanted a nested tensor as the first argument"),
    (lambda x: torch.ones(2, 4).reshape(x), TypeError, "wanted a nested tensor as the first argument|invalid combination"),
    (lambda x: nested.nested_tensor_from_jagged(torch.ones(3)), RuntimeError, "At least one of offsets or lengths is required"),
    (lambda x: nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 5])).unbind(), RuntimeError, "offsets and lengths do not match"),
    (lambda x: nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 2])).sum(1), RuntimeError, "wanted offsets from 0 to 3, as many rows"),
    (lambda x: nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 2, 1])).unbind(), RuntimeError, "offsets that do not fall"),
]


def test_what_is_not_possible_says_so():
    x = nested.nested_tensor([torch.ones(2, 4), torch.ones(1, 4)], layout=torch.jagged)
    for f, kind, text in REFUSED:
        with pytest.raises(kind, match=text):
            f(x)


def jagged(*lengths, start=0.0):
    return nested.nested_tensor([torch.full((n, 2), start + i) for i, n in enumerate(lengths)], layout=torch.jagged)


def test_cat_joins_the_rows_of_components_of_equal_lengths():
    x, y = jagged(2, 3), jagged(2, 3, start=5.0)  # not of the same offsets
    whole = torch.cat([x, y, torch.ones(1)], -1)
    assert [c.shape for c in whole.unbind()] == [(2, 6), (3, 6)]
    assert whole.unbind()[1].tolist() == [[1, 1, 6, 6, 1, 1]] * 3
    assert torch.cat([x.transpose(1, 2), y.transpose(1, 2)], 1).unbind()[0].tolist() == [[0, 0]] * 2 + [[5, 5]] * 2
    with pytest.raises(RuntimeError, match="same nested structure"):  # as many rows, but of other components
        torch.cat([x, jagged(1, 4)], -1)
    with pytest.raises(RuntimeError, match="same nested structure"):
        torch.stack([x, y], -1)


def test_cat_of_components_with_gaps_needs_the_same_places():
    lengths, base = torch.tensor([2, 1]), torch.arange(12.0).reshape(2, 3, 2)
    front, back = (nested.narrow(base, 1, torch.tensor(begin), lengths, layout=torch.jagged) for begin in ([0, 0], [1, 2]))
    assert torch.cat([front, 2 * front], -1).unbind()[1].tolist() == [[6, 7, 12, 14]]
    with pytest.raises(RuntimeError, match="same nested structure"):
        torch.cat([front, back], -1)
