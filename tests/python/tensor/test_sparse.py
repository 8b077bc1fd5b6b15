"""Sparse COO tensors as PyTorch users use them; operators without a sparse form raise an error that names them."""
import copy
import io
import pickle

import pytest

import naru as torch

NOT_IMPLEMENTED = "Could not run 'aten::{}' with arguments from the 'Sparse"


@pytest.fixture
def s(device):
    return torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), device=device)


def test_a_sparse_tensor_says_what_it_is(s, device):
    assert s.is_sparse and not s.is_sparse_csr and s.layout == torch.sparse_coo and isinstance(s, torch.Tensor)
    assert s.shape == (2, 3) and s.dtype == torch.float32 and s.device == torch.zeros(1, device=device).device and s.numel() == 6
    assert s._nnz() == 3 and s.sparse_dim() == 2 and s.dense_dim() == 0 and not s.is_coalesced() and s.coalesce().is_coalesced()
    rows = s.to_sparse_csr()
    assert rows.layout == torch.sparse_csr and rows.is_sparse_csr and not rows.is_sparse
    assert rows.crow_indices().tolist() == [0, 1, 3] and rows.col_indices().tolist() == [2, 0, 2] and rows.values().tolist() == [3, 4, 5]
    assert torch.zeros(2).layout == torch.strided and torch.zeros(2).sparse_dim() == 0


PRINTED = {
    lambda: torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)):
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)",
    lambda: torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], torch.tensor([3, 4, 5], dtype=torch.int32), (2, 3)):
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3, 4, 5]),\n"
        "       size=(2, 3), nnz=3, dtype=torch.int32, layout=torch.sparse_coo)",
    lambda: torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2), (3, 2)):
        "tensor(indices=tensor([[0, 1]]),\n       values=tensor([[1., 1.],\n                      [1., 1.]]),\n"
        "       size=(3, 2), nnz=2, layout=torch.sparse_coo)",
    lambda: torch.sparse_coo_tensor(size=(2, 3)):
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n       size=(2, 3), nnz=0, layout=torch.sparse_coo)",
    lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]):
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([0, 1]),\n"
        "       values=tensor([1., 2.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)",
    lambda: torch.sparse_coo_tensor([[0]], [1.0], (1,), requires_grad=True):
        "tensor(indices=tensor([[0]]),\n       values=tensor([1.]),\n       size=(1,), nnz=1, layout=torch.sparse_coo, requires_grad=True)",
}  # fmt: skip


@pytest.mark.parametrize("made", PRINTED)
def test_it_is_printed_as_pytorch_prints_it(made):
    assert repr(made()) == PRINTED[made]


@pytest.mark.parametrize("f, text", [
    (lambda s: s.indices(), "Cannot get indices on an uncoalesced tensor, please call .coalesce\\(\\) first"),
    (lambda s: s.values(), "Cannot get values on an uncoalesced tensor"),
    (lambda s: s.to_sparse_csr().indices(), "indices expected sparse coordinate tensor layout but got SparseCsr"),
    (lambda s: s.to_dense().coalesce(), "coalesce expected sparse coordinate tensor layout but got Strided"),
    (lambda s: s + s.to_dense(), r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead."),
    (lambda s: s / s, "Sparse division requires a scalar or zero-dim dense tensor divisor"),
    (lambda s: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (2,)), "indices and values must have same nnz"),
    (lambda s: torch.sparse_coo_tensor([[0, 5], [0, 0]], [1.0, 2.0], (2, 2)), "size is inconsistent with indices: for dim 0, size is 2 but found index 5"),
    (lambda s: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (2,)), "found negative index -1 for dim 0"),
    (lambda s: s.data_ptr(), "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda s: torch.optim.Adam([(w := with_sparse_gradient())]).step(), "Adam does not support sparse gradients, please consider SparseAdam instead"),
    (lambda s: torch.optim.RMSprop([with_sparse_gradient()]).step(), "RMSprop does not support sparse gradients"),
])  # fmt: skip
def test_misuse_is_told_in_pytorchs_words(s, f, text):
    with pytest.raises(RuntimeError, match=text):
        f(s)


WITHOUT = {
    "exp": torch.exp, "cos": torch.cos, "view": lambda s: s.view(6), "max": lambda s: s.max(), "eq": lambda s: s == s, "softmax": lambda s: s.softmax(1),
    "cumsum": lambda s: s.cumsum(0), "sort": lambda s: s.sort(), "slice": lambda s: s[0:1], "mean": lambda s: s.mean(), "fill": lambda s: s.detach().fill_(1),
    "squeeze": lambda s: s.squeeze(), "cat": lambda s: torch.cat([s.to_sparse_csr()] * 2), "gather": lambda s: s.gather(0, torch.zeros(1, 1, dtype=torch.int64)),
    "conv": lambda s: torch.conv1d(s.view(1, 2, 3), s), "tril": lambda s: s.tril(), "item": lambda s: torch.sparse_coo_tensor([[0]], [1.0], (1,)).item(),
    "where": lambda s: torch.where(s.to_dense() > 0, s, s), "amax": lambda s: s.amax(0), "copy": lambda s: torch.zeros(2, 3).copy_(s), "narrow": lambda s: s.narrow(0, 0, 1), "resize": lambda s: s.clone().resize_(6),
    "svd": lambda s: torch.linalg.svd(s), "argmax": lambda s: s.argmax(), "tolist": lambda s: s.tolist(), "ones_like": torch.ones_like, "layer": lambda s:
    torch.nn.functional.layer_norm(s, (3,)), "nonzero": lambda s: s.nonzero(), "as_strided": lambda s: s.as_strided((1,), (1,)), "bytes": lambda s: bytes(memoryview(s)),
    "numpy": lambda s: s.numpy(), "dlpack": lambda s: torch.to_dlpack(s), "fft": lambda s: torch.fft.fft(s), "var": lambda s: s.var(), "isclose": lambda s: torch.isclose(s, s),
    "storage": lambda s: s.untyped_storage()[0], "pin": lambda s: s.contiguous(), "layout": lambda s: torch.ones(2, layout=torch.sparse_coo),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT)
def test_nothing_reads_a_sparse_tensor_as_if_it_were_dense(s, name):
    with pytest.raises((NotImplementedError, RuntimeError, TypeError, BufferError, IndexError)):
        WITHOUT[name](s)
    assert s.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]


@pytest.mark.parametrize("dtype", ["complex32", "uint16"])
def test_values_that_instructions_do_not_know_are_refused(s, dtype):
    wanted = getattr(torch, dtype)
    for f in (lambda: s.to(wanted), lambda: torch.ones(2, 2).to(wanted).to_sparse(), lambda: torch.sparse_coo_tensor([[0]], [1], (1,), dtype=wanted)):
        with pytest.raises(NotImplementedError, match=f"sparse tensors of dtype {dtype} are not supported"):
            f()


def test_a_missing_operator_names_itself(s):
    with pytest.raises(NotImplementedError, match=NOT_IMPLEMENTED.format("exp")):
        s.exp()
    with pytest.raises(NotImplementedError, match=NOT_IMPLEMENTED.format("view")):
        s.view(6)


def test_gradients_reach_values_and_sparse_leaves(device):
    v, d = torch.tensor([3.0, 4.0, 5.0], requires_grad=True, device=device), torch.arange(6.0, device=device).view(3, 2).requires_grad_()
    (torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], v, (2, 3), device=device) @ d).pow(2).sum().backward()
    leaf = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), device=device, requires_grad=True)
    (leaf @ d.detach()).pow(2).sum().backward()
    dense = leaf.detach().to_dense().requires_grad_()
    (dense @ d.detach()).pow(2).sum().backward()
    assert leaf.grad.is_sparse and leaf.grad._values().tolist() == v.grad.tolist() == dense.grad[[0, 1, 1], [2, 0, 2]].tolist()
    again = torch.autograd.grad((leaf @ d.detach()).pow(2).sum(), leaf, create_graph=True)[0]
    assert again.requires_grad and torch.autograd.grad(again.to_dense().sum(), leaf)[0].is_sparse


def with_sparse_gradient(device="cpu"):
    table = torch.nn.Parameter(torch.ones(6, 2, device=device))
    torch.nn.functional.embedding(torch.tensor([1, 3, 1], device=device), table, sparse=True).sum().backward()
    return table


def test_a_table_read_twice_adds_its_sparse_gradients_up(device):
    table = torch.nn.Embedding(5, 2, padding_idx=4, sparse=True, device=device)
    rows = table(torch.tensor([[1, 4], [3, 1]], device=device)).sum() + 2 * table(torch.tensor([0], device=device)).sum()
    rows.backward()
    assert table.weight.grad.is_sparse and table.weight.grad.to_dense().tolist() == [[2, 2], [2, 2], [0, 0], [1, 1], [0, 0]]
    rows = table(torch.tensor([2], device=device)).sum()
    rows.backward()
    assert table.weight.grad.is_sparse and table.weight.grad.to_dense()[:, 0].tolist() == [2, 2, 1, 1, 0]
    (table.weight * 3).sum().backward()
    assert not table.weight.grad.is_sparse and table.weight.grad[:, 0].tolist() == [5, 5, 4, 4, 3]


def test_bags_have_sparse_gradients(device):
    for mode in ("sum", "mean"):
        dense, sparse = torch.nn.EmbeddingBag(5, 2, mode=mode, device=device), torch.nn.EmbeddingBag(5, 2, mode=mode, sparse=True, device=device)
        sparse.load_state_dict(dense.state_dict())
        for bag in (dense, sparse):
            bag(torch.tensor([[0, 1], [1, 4]], device=device)).pow(2).sum().backward()
        assert sparse.weight.grad.is_sparse and torch.allclose(sparse.weight.grad.to_dense(), dense.weight.grad)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1), "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_by_sparse_gradients_is_that_by_dense_ones(name, device):
    tables = []
    for sparse in (False, True):
        torch.manual_seed(1)
        table = torch.nn.Embedding(6, 2, sparse=sparse).to(device)
        optimizer = OPTIMIZERS[name](table.parameters())
        for i in ([1, 3, 1], [3, 3, 5], [0, 1, 2]):
            optimizer.zero_grad()
            table(torch.tensor(i, device=device)).pow(2).sum().backward()
            optimizer.step()
        tables.append(table.weight.detach())
    assert torch.allclose(*tables, rtol=1e-5, atol=1e-6)


def test_sparse_adam_moves_only_the_rows_that_were_read(device):
    table, optimizer = with_sparse_gradient(device), None
    optimizer = torch.optim.SparseAdam([table], lr=0.5)
    optimizer.step()
    assert torch.allclose(table.detach()[:, 0], torch.tensor([1, 0.5, 1, 0.5, 1, 1], device=device))
    assert optimizer.state[table]["step"] == 1 and optimizer.state[table]["exp_avg"][0].tolist() == [0, 0]
    table.grad = torch.ones(6, 2, device=device)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optimizer.step()


def test_writing_in_place_changes_what_is_stored(s):
    other = s.clone()
    other.add_(s).mul_(2)
    assert other.to_dense().tolist() == [[0, 0, 12], [16, 0, 20]] and s.to_dense().sum() == 12
    assert copy.deepcopy(s).to_dense().tolist() == s.to_dense().tolist() and torch.zeros_like(s)._nnz() == 0
    whole = torch.ones(2, 3, device=s.device)
    whole.add_(s, alpha=2)
    assert whole.tolist() == [[1, 1, 7], [9, 1, 11]]
    assert other.zero_()._nnz() == 0 and other.to_dense().sum() == 0


def test_pickles_keep_the_parts(s):
    for t in (s, s.coalesce().requires_grad_(), s.to_sparse_csr()):
        read = pickle.loads(pickle.dumps(t))
        assert repr(read) == repr(t) and read.device == t.device


def test_a_leaf_that_requires_grad_is_not_written_in_place(s):
    leaf = s.clone().requires_grad_()
    for write in (leaf.zero_, lambda: leaf.mul_(2)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            write()
    assert leaf._nnz() == 3


def test_a_matrix_is_transposed_and_meets_vectors(s):
    for turned in (s.t(), s.T, s.mT, s.transpose(0, 1), s.permute(1, 0)):
        assert turned.is_sparse and turned.to_dense().tolist() == s.to_dense().t().tolist()
    ones = torch.ones(3, device=s.device)
    assert (s @ ones).tolist() == s.mv(ones).tolist() == (s.to_sparse_csr() @ ones).tolist() == [3, 9]


def test_conversions_keep_the_coordinates(s):
    assert s.double().dtype == torch.float64 and s.double()._indices().tolist() == s._indices().tolist()
    assert s.cpu().device.type == "cpu" and s.cpu().to_dense().tolist() == s.to_dense().tolist()
    dense = torch.tensor([[0.0, 2.0], [0.0, 3.0]])
    assert dense.to_sparse().indices().tolist() == [[0, 1], [1, 1]] and dense.to_sparse(1).values().tolist() == [[0, 2], [0, 3]]
    assert dense.to_sparse(layout=torch.sparse_csr).crow_indices().tolist() == [0, 1, 2] and s.t().shape == (3, 2)


def test_softmax_counts_what_is_not_stored_as_minus_infinity(s):
    assert torch.sparse.softmax(s, 1).to_dense()[0].tolist() == [0, 0, 1]
    assert torch.allclose(torch.sparse.log_softmax(s, 1)._values().exp(), torch.sparse.softmax(s, 1)._values())
    assert torch.sparse.sum(s, 0).to_dense().tolist() == [4, 0, 8] and torch.sparse.sum(s, (0, 1)).item() == 12 and s.sum().item() == 12


# Operators that rearrange the stored elements: the result equals that for a dense tensor.
MOVED = {
    "cat": lambda s: torch.cat([s, s * 2]), "cat along columns": lambda s: torch.cat([s, s], 1), "cat of one": lambda s: torch.cat([s], -1), "stack": lambda s: torch.stack([s, s * 3], 1),
    "unsqueeze": lambda s: s.unsqueeze(0), "unsqueeze behind": lambda s: s.unsqueeze(-1), "row": lambda s: s.select(0, 1), "column": lambda s: s.select(1, -1), "index": lambda s: s[1],
    "element": lambda s: s[1, 2], "column by index": lambda s: s[:, 2], "column of nothing": lambda s: s[:, 1], "unbind": lambda s: s.unbind(1)[2], "index_select": lambda s: s.index_select(0, torch.tensor([1, 0, 1], device=s.device)),
    "index_select of columns": lambda s: torch.index_select(s, 1, torch.tensor([2, 2], device=s.device)), "narrow_copy": lambda s: s.narrow_copy(1, 1, 2), "transpose": lambda s: s.transpose(0, 1),
    "sum": lambda s: s.sum(0, keepdim=True), "sum of all": lambda s: s.sum((0, 1), keepdim=True), "norm": lambda s: s.norm(), "norm 1": lambda s: s.norm(1),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_elements_moves_stored_ones_and_their_gradients(s, name):
    dense = lambda t: t.to_dense()  # noqa: E731
    f, hybrid = MOVED[name], torch.sparse_coo_tensor([[0, 1]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (2, 3), device=s.device)
    for t in (s,) if name == "transpose" else (s, hybrid):
        assert torch.equal(dense(f(t)), f(dense(t)))
        leaf, whole = t.detach().coalesce().requires_grad_(), dense(t).detach().requires_grad_()
        weights = torch.arange(1.0, f(whole).numel() + 1, device=s.device).view(f(whole).shape)
        (dense(f(leaf)) * weights).sum().backward()
        (f(whole) * weights).sum().backward()
        assert torch.allclose(leaf.grad.to_dense(), whole.grad * (whole.detach() != 0))


def test_a_write_that_changes_what_is_stored_changes_the_tensor_itself(s):
    t = s.clone()
    assert t.transpose_(0, 1) is t and t.shape == (3, 2) and torch.equal(t.to_dense(), s.to_dense().T)
    assert t.t_().shape == (2, 3) and torch.equal(t.copy_(s * 2).to_dense(), 2 * s.to_dense())
    with pytest.raises(RuntimeError, match="between dense and sparse Tensors is not implemented"):
        t.copy_(s.to_dense())
    with pytest.raises(RuntimeError, match="requires grad"):
        s.clone().requires_grad_().transpose_(0, 1)


def test_writes_to_parts_of_a_sparse_tensor_are_refused_and_not_lost(s):
    def put(t, index):
        t[index] = 7.0

    line = torch.sparse_coo_tensor([[1]], [3.0], (3,), device=s.device)
    for f in (lambda: put(s, 0), lambda: put(s, (0, 1)), lambda: put(line, 1), lambda: line.select_scatter(torch.tensor(1.0, device=s.device), 0, 1)):
        with pytest.raises(NotImplementedError, match="there is no sparse form of this operator"):
            f()


@pytest.mark.parametrize("f, error, text", [
    (lambda s, h: torch.cat([s, s.to_dense()]), RuntimeError, "Concatenating sparse tensors, but a dense tensor was found at position 1."),
    (lambda s, h: torch.cat([s, s.t()]), RuntimeError, r"All tensors must have the same shape: \[2, 3\] \(except in the concatenating dimension\), but found shape: \[3, 2\] at position 1."),
    (lambda s, h: torch.cat([s, h]), RuntimeError, "All tensors must have the same sparse_dim and dense_dim: 2, 0, but tensor at position 1 has 1, 1."),
    (lambda s, h: s.select(0, 5), IndexError, r"select\(\): index 5 out of range for tensor of size \[2, 3\] at dimension 0"),
    (lambda s, h: s.index_select(0, torch.tensor([5])), IndexError, r"index_select\(\): index contains 5 that is out of range for tensor of size \[2, 3\] at dimension 0"),
    (lambda s, h: s.narrow_copy(0, 1, 5), RuntimeError, r"Invalid range to narrow. range\(start, start\+length\) must be a subset of range\(0, 2\)"),
    (lambda s, h: s.norm(2, 0), RuntimeError, "norm_sparse currently only supports full reductions"),
])  # fmt: skip
def test_parts_that_do_not_fit_are_told_in_pytorchs_words(f, error, text):
    s, h = torch.sparse_coo_tensor([[0]] * 2, [1.0], (2, 3)), torch.sparse_coo_tensor([[0]], torch.ones(1, 3), (2, 3))
    with pytest.raises(error, match=text):
        f(s, h)


def test_complex_values_are_stored_added_multiplied_and_have_gradients(device):
    values = torch.tensor([1 + 2j, 3j, 2 - 1j], device=device, requires_grad=True)
    z, d = torch.sparse_coo_tensor([[1, 1, 0], [2, 2, 0]], values, (2, 3), device=device), torch.tensor([[1j, 1], [2, 0], [1 - 1j, 3]], device=device)
    dense = z.to_dense()
    assert dense[1, 2].item() == 1 + 5j and torch.equal(z.coalesce().to_dense(), dense) and torch.allclose(z @ d, dense @ d)
    assert torch.equal((z * 1j + z).to_dense(), dense * 1j + dense) and torch.equal(z.conj().to_dense(), dense.conj()) and torch.equal(z.coalesce().real.to_dense(), dense.real)
    assert torch.allclose(z.abs().to_dense(), dense.abs()) and z.to_sparse_csr().dtype == torch.complex64 and torch.sparse.sum(z).item() == 3 + 4j
    (a,) = torch.autograd.grad((z @ d).abs().sum(), values)
    (b,) = torch.autograd.grad((z.to_dense() @ d).abs().sum(), values)
    assert torch.allclose(a, b)


@pytest.mark.parametrize("new", [True, False])
def test_files_hold_sparse_tensors_as_pytorch_writes_them(s, new):
    file, parts = io.BytesIO(), {"a": s, "b": s.coalesce(), "c": s.to_sparse_csr(), "d": torch.ones(2)}
    torch.save(parts, file, _use_new_zipfile_serialization=new)
    file.seek(0)
    read = torch.load(file)
    for name, t in parts.items():
        assert read[name].layout == t.layout and torch.equal(read[name].to_dense(), t.to_dense().cpu().to(read[name].device))
    assert read["a"]._nnz() == 3 and read["b"].is_coalesced() and not read["a"].is_coalesced()


def test_a_file_whose_sparse_tensor_can_not_be_is_refused():
    for indices, size, text in (([[5]], (3,), "size is inconsistent"), ([[1, 0]], (3,), "cannot set is_coalesced to true"), ([[0, 0]], (3,), "cannot set is_coalesced to true"), ([[0]], (1 << 62, 4), "can be counted")):
        data = (torch.tensor(indices), torch.ones(len(indices[0])), size, True)
        with pytest.raises((ValueError, RuntimeError), match=text):
            torch._utils._rebuild_sparse_tensor(torch.sparse_coo, data)
    with pytest.raises(NotImplementedError, match="no tensors of layout 'torch._mkldnn'"):
        torch.serialization._get_layout("torch._mkldnn")
