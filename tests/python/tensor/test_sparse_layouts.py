"""Compressed sparse layouts (CSR, CSC, BSR, BSC), and rules that hold for every layout."""
import copy
import io
import pickle

import pytest

import naru as torch


X = [[1.0, 0, 2, 0], [0, 0, 3, 0], [0, 4, 0, 0], [0, 0, 0, 5]]
COMPRESSED = {"sparse_csr": {}, "sparse_csc": {}, "sparse_bsr": {"blocksize": (2, 2)}, "sparse_bsc": {"blocksize": (1, 2)}}
LAYOUTS = {"sparse_coo": {}, **COMPRESSED}


def compressed(layout, x):
    return x.to_sparse(layout=getattr(torch, layout), **LAYOUTS[layout])


def parts_of(t):
    rows = t.layout in (torch.sparse_csr, torch.sparse_bsr)
    return [(t.crow_indices() if rows else t.ccol_indices()).tolist(), (t.col_indices() if rows else t.row_indices()).tolist(), t.values().tolist()]


def test_compressed_layouts_store_what_pytorch_stores(device):
    x = torch.tensor(X, device=device)
    assert parts_of(x.to_sparse_csr()) == [[0, 2, 3, 4, 5], [0, 2, 2, 1, 3], [1, 2, 3, 4, 5]]
    assert parts_of(x.to_sparse_csc()) == [[0, 1, 2, 4, 5], [0, 2, 0, 1, 3], [1, 4, 2, 3, 5]]
    blocks = [[[1, 0], [0, 0]], [[2, 0], [3, 0]], [[0, 4], [0, 0]], [[0, 0], [0, 5]]]
    assert parts_of(x.to_sparse_bsr((2, 2))) == [[0, 2, 4], [0, 1, 0, 1], blocks]
    assert parts_of(x.to_sparse_bsc((2, 2))) == [[0, 2, 4], [0, 1, 0, 1], [blocks[i] for i in (0, 2, 1, 3)]]
    both = torch.stack([x, x.flip(0)])
    assert parts_of(both.to_sparse_csr()) == [[[0, 2, 3, 4, 5], [0, 1, 2, 3, 5]], [[0, 2, 2, 1, 3], [3, 1, 2, 0, 2]], [[1, 2, 3, 4, 5], [5, 4, 3, 1, 2]]]
    assert parts_of(torch.ones(2, 2, 2, device=device).to_sparse_csr(dense_dim=1)) == [[0, 2, 4], [0, 1, 0, 1], [[1, 1]] * 4]
    assert repr(x.to_sparse_bsc((4, 2)).cpu()) == (
        "tensor(ccol_indices=tensor([0, 1, 2]),\n       row_indices=tensor([0, 0]),\n       values=tensor([[[1., 0.],\n"
        "                       [0., 0.],\n                       [0., 4.],\n                       [0., 0.]],\n\n                      [[2., 0.],\n"
        "                       [3., 0.],\n                       [0., 0.],\n                       [0., 5.]]]), size=(4, 4), nnz=2,\n"
        "       layout=torch.sparse_bsc)"
    )


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("batches, dense", [((), ()), ((2,), ()), ((), (3,)), ((2, 1), (2,))], ids=str)
def test_a_compressed_tensor_is_the_dense_one_in_all_that_it_has(layout, batches, dense, device):
    x = torch.tensor(X, device=device).view(*[1] * len(batches), 4, 4, *[1] * len(dense)) * torch.arange(1.0, 4.0, device=device)[: dense[0] if dense else 1]
    x = (x if dense else x.view(*[1] * len(batches), 4, 4)).expand(*batches, 4, 4, *dense).contiguous()
    s = x.to_sparse(layout=getattr(torch, layout), dense_dim=len(dense), **COMPRESSED[layout])
    assert s.layout == getattr(torch, layout) and s.shape == x.shape and s.sparse_dim() == 2 and s.dense_dim() == len(dense)
    for same in (s.clone(), s.to_sparse(), s * 1, s / 1, pickle.loads(pickle.dumps(s)), s.to("cpu").to(device), s.transpose(len(batches), len(batches) + 1).transpose(len(batches), len(batches) + 1)):
        assert torch.equal(same.to_dense(), x), same
    assert torch.equal(s.sin().to_dense(), x.sin()) and s.sin().layout == s.layout
    assert torch.equal((s + s).to_dense(), x + x) and torch.equal((x + s), x + x) and torch.equal((s * x).to_dense(), x * x)
    assert s.sum() == x.sum() and repr(s.cpu()).count("tensor(") == 4
    file = io.BytesIO()
    torch.save(s, file)
    loaded = torch.load(io.BytesIO(file.getvalue()))
    assert loaded.layout == s.layout and torch.equal(loaded.to_dense(), x)
    if not batches and not dense:
        other = torch.arange(8.0, device=device).view(4, 2)
        assert torch.equal(s @ other, x @ other) and torch.equal(other.t() @ s, other.t() @ x) and torch.equal((s @ s).to_dense(), x @ x)
        for f in ("to_sparse_csr", "to_sparse_csc"):
            assert torch.equal(getattr(s, f)().to_dense(), x)
        assert torch.equal(s.to_sparse_bsr((4, 1)).to_dense(), x)
    elif batches:
        assert torch.equal(s[0].to_dense(), x[0]) and s[0].layout == s.layout


@pytest.mark.parametrize("layout", COMPRESSED)
def test_gradients_reach_the_values_of_compressed_tensors(layout, device):
    plain = compressed(layout, torch.tensor(X, device=device))
    rows = layout in ("sparse_csr", "sparse_bsr")
    lines, places = (plain.crow_indices(), plain.col_indices()) if rows else (plain.ccol_indices(), plain.row_indices())
    values, other = plain.values().clone().requires_grad_(), torch.arange(8.0, device=device).view(4, 2)
    made = torch.sparse_compressed_tensor(lines, places, values, (4, 4), layout=plain.layout)
    (made @ other).pow(2).sum().backward()
    dense = torch.tensor(X, device=device, requires_grad=True)
    (dense @ other).pow(2).sum().backward()
    kept = compressed(layout, dense.grad.where(torch.tensor(made.detach().to_dense().cpu().ne(0).tolist(), device=device), 0.0))
    there = values.detach().ne(0)
    assert values.grad[there].sort()[0].tolist() == kept.values()[kept.values().ne(0)].sort()[0].tolist()


@pytest.mark.parametrize("f, text", [
    (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1, 1], [1.0, 2.0], (2, 2)), r"col_indices.shape\[-1\] must be equal to nnz \(=2\) as defined by values.shape\[0\], but got 3"),
    (lambda: torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), r"`crow_indices\[..., 0\] == 0` is not satisfied."),
    (lambda: torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2)), r"`crow_indices\[..., -1\] == nnz` is not satisfied."),
    (lambda: torch.sparse_csc_tensor([0, 3, 2, 2], [0, 1], [1.0, 2.0], (2, 3)), r"`0 <= ccol_indices\[..., 1:\] - ccol_indices\[..., :-1\] <= nrows` is not satisfied."),
    (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)), "`0 <= col_indices < ncols` is not satisfied."),
    (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2)), r"crow_indices.shape\[-1\] must be equal to the number of rows \+ 1 \(=4\), but got 3"),
    (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2,)), r"tensor dimensionality must be sum of batch, base, and dense dimensionalities \(=0 \+ 2 \+ 0\) but got 1"),
    (lambda: torch.sparse_csr_tensor([[0, 1, 2]], [0, 1], [1.0, 2.0]), "crow_indices and col_indices dimensionalities must be equal but got 2 and 1, respectively"),
    (lambda: torch.sparse_csr_tensor([[0, 1]] * 2, [[0]] * 2, [[1.0]], (2, 1, 1)), r"all batch dimensions of crow_indices \(=\[2\]\), col_indices \(=\[2\]\), and values \(=\[1\]\) must be equal"),
    (lambda: torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), (3, 2)), r"tensor shape\[0\] \(=3\) must be divisible with blocksize\[0\] \(=2\) as defined by values shape"),
    (lambda: torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2), (3, 2)), r"values must have dimensionality > sum of batch and block dimensionalities \(=0 \+ 2\) but got 2"),
    (lambda: torch.sparse_compressed_tensor([0, 1], [0], [1.0], layout=torch.sparse_coo), "sparse_compressed_tensor expected sparse compressed tensor layout but got Sparse"),
    (lambda: torch.stack([torch.eye(2), torch.zeros(2, 2)]).to_sparse_csr(), "Expect the same number of specified elements per batch."),
    (lambda: torch.eye(4).to_sparse_bsr((3, 2)), r"dense_to_sparse_bsr: tensor sparse size \(4,4\) must be divisible by given blocksize \(3,2\)"),
    (lambda: torch.ones(2, 2, 2).to_sparse().to_sparse_csr(), r"conversion from Sparse to SparseCsr for input tensors with sparse_dim\(\)!=2 is not supported"),
    (lambda: torch.eye(2).to_sparse_csc().crow_indices(), "crow_indices expected sparse row compressed tensor layout but got SparseCsc"),
    (lambda: torch.eye(2).to_sparse_bsr((1, 1)).row_indices(), "row_indices expected sparse column compressed tensor layout but got SparseBsr"),
    (lambda: torch.eye(2).to_sparse_bsc((1, 1)).numpy(), "can't convert SparseBsc layout tensor to numpy. Use Tensor.to_dense\\(\\) first."),
    (lambda: torch.eye(2).to_sparse_csc().exp(), "Could not run 'aten::exp' with arguments from the 'SparseCsrCPU' backend."),
])  # fmt: skip
def test_compressed_parts_that_do_not_fit_are_told_in_pytorchs_words(f, text):
    with pytest.raises((RuntimeError, TypeError), match=text):
        f()


# Each has the same effect on a tensor of any layout as on a dense one.
SAME = {
    "weight of a layer": lambda s, x: (torch.nn.functional.linear(x, s, x[0]), torch.nn.functional.linear(x, x, x[0])),
    "input of a layer": lambda s, x: (torch.nn.functional.linear(s, x.T), torch.nn.functional.linear(x, x.T)),
    "rows scaled": lambda s, x: (s * x.sum(1, keepdim=True), x * x.sum(1, keepdim=True)),
    "columns scaled": lambda s, x: (x[0] * s, x[0] * x), "one factor": lambda s, x: (s * torch.full((1, 1), 3.0, device=x.device), x * 3),
    "masked": lambda s, x: (torch.ones_like(x).sparse_mask(s) * s, x), "masked by itself": lambda s, x: (s.sparse_mask(s), x),
    "nan_to_num": lambda s, x: (s.nan_to_num(), x), "sgn": lambda s, x: (s.sgn(), x.sgn()), "angle": lambda s, x: ((-s).angle(), (-x).angle()),
    "any": lambda s, x: (s.any(), x.any()), "times sparse": lambda s, x: (s * s.to_sparse(), x * x), "zeros": lambda s, x: (torch.zeros_like(s) + s, x),
    "product": lambda s, x: (s @ x, x @ x), "product on the right": lambda s, x: (x @ s, x @ x), "square": lambda s, x: (s @ s, x @ x),
    "dense times sparse in place": lambda s, x: (x.clone().mul_(s), x * x), "dtype": lambda s, x: (s.double(), x.double()), "copy": lambda s, x: (copy.deepcopy(s), x),
    "norm": lambda s, x: (s.norm(), x.norm()), "sum": lambda s, x: (s.sum(), x.sum()), "transposed": lambda s, x: (s.mT, x.mT), "negative": lambda s, x: (-s, -x),
}  # fmt: skip


def stored(s):
    """Where a sparse tensor stores something."""
    places = s.detach().to_sparse()
    return torch.sparse_coo_tensor(places._indices(), torch.ones_like(places._values()), s.shape).to_dense() != 0


@pytest.mark.parametrize("name", SAME)
def test_every_layout_gives_what_the_dense_tensor_gives(name, device):
    x = torch.tensor(X, device=device)
    for layout in LAYOUTS:
        a, b = SAME[name](compressed(layout, x), x)
        assert a.dtype == b.dtype and torch.equal(a.to_dense(), b), layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_what_is_stored_are_those_of_the_dense_tensor(layout, device):
    x, other = torch.tensor(X, device=device), torch.arange(16.0, device=device).view(4, 4)
    for f in (lambda s: torch.nn.functional.linear(other, s), lambda s: s * other[0], lambda s: other[:, :1] * s, lambda s: s @ s, lambda s: s.mT, lambda s: s @ other):
        sparse, dense = compressed(layout, x).requires_grad_(), x.clone().requires_grad_()
        (f(sparse).to_dense() * other).sum().backward()
        (f(dense).to_dense() * other).sum().backward()
        assert sparse.grad.layout == sparse.layout and torch.equal(sparse.grad.to_dense(), dense.grad * stored(sparse))
    leaf = x.clone().requires_grad_()
    (compressed(layout, leaf).to_dense() * other).sum().backward()
    assert torch.equal(leaf.grad, other * stored(compressed(layout, x)))
    by = other.clone().requires_grad_()
    (compressed(layout, x) * by).to_dense().sum().backward()
    assert torch.equal(by.grad, x)


def test_a_write_in_place_reaches_the_tensor_or_is_refused(device):
    for layout in LAYOUTS:
        s, x = compressed(layout, torch.tensor(X, device=device)), torch.tensor(X, device=device)
        turned = torch.arange(16.0, device=device).view(4, 4).t()
        assert torch.equal(turned.add_(s, alpha=2), torch.arange(16.0, device=device).view(4, 4).t() + 2 * x)
        with pytest.raises(RuntimeError):
            s.add_(x)
        assert torch.equal(s.to_dense(), x) and torch.equal(s.mul_(2).to_dense(), 2 * x)


def test_what_is_selected_keeps_the_layout_it_can(device):
    x = torch.tensor(X, device=device)
    for layout in LAYOUTS:
        s = compressed(layout, x)
        for i in range(4):
            assert torch.equal(s[i].coalesce().values(), x[i][stored(s)[i]]) and torch.equal(s.select(1, i).to_dense(), x[:, i])
    s = torch.stack([x, 2 * x], -1).to_sparse_csr(dense_dim=1).select(-1, 1)
    assert s.layout == torch.sparse_csr and torch.equal(s.to_dense(), 2 * x)


def test_batches_are_multiplied_and_sampled_one_by_one(device):
    x = torch.stack([torch.tensor(X, device=device), torch.tensor(X, device=device).flip(0)])
    for s in (x.to_sparse(), x.to_sparse_csr()):
        assert torch.equal(torch.bmm(s, x), torch.bmm(x, x)) and torch.equal(x @ s, x @ x)
    left, right = torch.arange(24.0, device=device).view(2, 4, 3), torch.ones(2, 3, 4, device=device)
    made = torch.sparse.sampled_addmm(x.to_sparse_csr(), left, right, beta=0.5, alpha=2.0)
    assert made.layout == torch.sparse_csr and torch.equal(made.to_dense(), (x / 2 + 2 * (left @ right)) * (x != 0))


def test_coordinates_are_permuted_among_themselves(device):
    x = torch.arange(24.0, device=device).view(2, 3, 4)
    for order in ((2, 0, 1), (0, 2, 1), (0, 1, 2), (-1, 0, 1)):
        assert torch.equal(x.to_sparse().permute(order).to_dense(), x.permute(order))
    assert torch.equal(x.to_sparse(2).permute(1, 0, 2).to_dense(), x.permute(1, 0, 2))
    with pytest.raises(RuntimeError, match="is sparse and the other is not"):
        x.to_sparse(2).permute(2, 0, 1)


def test_indices_that_do_not_rise_in_a_row_count_as_they_stand(device):
    s = torch.sparse_csr_tensor([0, 3, 4], [2, 0, 2, 1], [1.0, 2.0, 4.0, 8.0], (2, 3), device=device)
    dense = [[2.0, 0, 5], [0, 8, 0]]
    for same in (s, s.to_sparse(), s.to_sparse_csc(), s.to_sparse_bsr((1, 3)), s.t().t(), s * 1, pickle.loads(pickle.dumps(s))):
        assert same.to_dense().tolist() == dense
    leaf = torch.ones(2, 3, device=device).to_sparse_csr().requires_grad_()
    (leaf * s).to_dense().sum().backward()
    assert leaf.grad.to_dense().tolist() == dense and (s + leaf.detach()).to_dense().tolist() == [[3, 1, 6], [1, 9, 1]]
    for on in ({"check_invariants": True}, {}):
        with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="for all i = 1, ..., nrows are sorted and distinct"):
            torch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), **on)
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"):
        torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True)


def test_tensors_that_store_nothing_are_made_by_their_layout(device):
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        for t in (torch.zeros(2, 3, layout=layout, device=device), torch.empty(2, 3, layout=layout, device=device), torch.zeros_like(torch.ones(2, 3, device=device), layout=layout)):
            assert t.layout == layout and t._nnz() == 0 and t.to_dense().tolist() == [[0] * 3] * 2
    some = torch.eye(2, device=device).to_sparse_bsr((2, 1))
    assert torch.zeros_like(some)._nnz() == 0 and torch.zeros_like(some, layout=torch.strided).tolist() == [[0, 0], [0, 0]]
    assert torch.ones_like(some).values().tolist() == torch.ones(2, 2, 1).tolist() and some.clone().zero_()._nnz() == 0
    assert torch.eye(2).to_sparse().new_zeros(3).is_sparse and torch.sparse_coo_tensor([[1]], 5.0, (2,)).to_dense().tolist() == [0, 5]
    with pytest.raises(RuntimeError, match=r"empty_sparse_compressed expected sparse compressed \(non-block\) tensor layout but got SparseBsr"):
        torch.zeros(2, 2, layout=torch.sparse_bsr)
    with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
        torch.zeros(2, layout=torch.sparse_csr)


def test_layouts_are_pickled_and_old_types_make_coordinates():
    for layout in (torch.strided, torch.sparse_coo, torch.sparse_bsc, torch.channels_last):
        assert pickle.loads(pickle.dumps(layout)) is layout and copy.deepcopy(layout) is layout
    s = torch.sparse.FloatTensor(torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0]), torch.Size([3]))
    assert s.to_dense().tolist() == [1, 2, 0] and s.type() == "torch.sparse.FloatTensor" and isinstance(s, torch.sparse.FloatTensor)
    assert torch.sparse.DoubleTensor(2, 3).shape == (2, 3) and not isinstance(s, torch.FloatTensor)


def test_sparse_tensors_are_compared_place_by_place():
    x = torch.tensor(X)
    for layout in LAYOUTS:
        s = compressed(layout, x)
        torch.testing.assert_close(s, s.clone())
        with pytest.raises(AssertionError, match=f"Sparse {layout[7:].upper()} values are not close!"):
            torch.testing.assert_close(s, s * 2)
        with pytest.raises(AssertionError, match="The number of specified values in sparse"):
            torch.testing.assert_close(s, torch.zeros_like(s))
        with pytest.raises(AssertionError, match="The values for attribute 'layout' do not match"):
            torch.testing.assert_close(s, x)
        torch.testing.assert_close(s, x, check_layout=False)


def test_a_sparse_tensor_has_no_storage():
    for layout in LAYOUTS:
        s = compressed(layout, torch.eye(4))
        for f in (s.storage, s.untyped_storage, s.is_shared, s.share_memory_, lambda: torch.zeros(4, 4).set_(s)):
            with pytest.raises(NotImplementedError, match="Cannot access storage of Sparse(Csr)?TensorImpl"):
                f()


def test_gradcheck_looks_at_what_is_stored():
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    for layout in LAYOUTS:
        s = compressed(layout, torch.tensor(X, dtype=torch.float64)).requires_grad_()
        assert check(lambda s, x: (s * x, s @ x), (s, torch.ones(4, 4, dtype=torch.float64, requires_grad=True)), masked=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check(lambda s: s.detach() * s, s)


def test_dimensions_change_places_among_their_kind(device):
    x = torch.arange(1.0, 49.0, device=device).view(2, 2, 2, 2, 3)
    for layout, more in COMPRESSED.items():
        s = x.to_sparse(layout=getattr(torch, layout), dense_dim=1, **({"blocksize": (2, 1)} if more else {}))
        turned = s.permute(1, 0, 3, 2, 4)
        assert torch.equal(turned.to_dense(), x.permute(1, 0, 3, 2, 4)) and str(turned.layout)[-3:] == {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[layout[7:]]
        assert torch.equal(s.transpose(0, 1).to_dense(), x.transpose(0, 1)) and s.transpose(0, 1).layout == s.layout
        with pytest.raises(RuntimeError, match=r"can only transpose dimensions of the same type \(Batch, Sparse, Dense\), got 0\(Batch\) and 2\(Sparse\)"):
            s.transpose(0, 2)


def test_coordinates_are_resized_in_place():
    s = torch.eye(2).to_sparse()
    assert s.sparse_resize_((2, 3), 2, 0) is s and s.to_dense().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.eye(2).to_sparse(1).sparse_resize_((3, 3), 1, 1).to_dense().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert s.resize_as_sparse_(torch.zeros(4, 4).to_sparse()).shape == (4, 4) and s._nnz() == 2
    for size, dims, text in (((2, 5), (2, 0), r"shrinking the size of sparse dimensions \(from \[4, 4\] to \[2, 5\]\)"), ((4, 4), (1, 1), r"changing the number of sparse dimensions \(from 2 to 1\)"), ((4, 4), (1, 0), "is not satisfied")):
        with pytest.raises(RuntimeError, match=text):
            s.sparse_resize_(size, *dims)
    assert s.sparse_resize_and_clear_((5, 2, 1), 2, 1)._nnz() == 0 and s.shape == (5, 2, 1) and s.dense_dim() == 1
    with pytest.raises(NotImplementedError, match="sparse_resize_"):
        torch.eye(2).to_sparse_csr().sparse_resize_((4, 4), 2, 0)


def test_sums_over_coordinates_keep_the_type_of_integers_and_tensors_sums_count_in_int64():
    s = torch.tensor([[1, 2], [0, 3]], dtype=torch.int32).to_sparse()
    assert torch.sparse.sum(s, 0).dtype == torch.int32 and torch.sparse.sum(s, 0).to_dense().tolist() == [1, 5]
    assert s.sum(0).dtype == s.sum(0, keepdim=True).dtype == torch.sparse.sum(s, (0, 1)).dtype == s.sum().dtype == torch.int64
    assert torch.sparse.sum(s.bool(), 0).to_dense().tolist() == [True, True]


def test_what_is_stored_once_is_coalesced_and_a_block_size_may_be_one_number():
    assert torch.sparse_coo_tensor([[1]], [2.0], (3,)).is_coalesced() and torch.sparse_coo_tensor((2, 3)).is_coalesced()
    assert torch.eye(4).to_sparse_bsr(2).values().shape == (2, 2, 2)
    with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2, but got 3"):
        torch.eye(4).to_sparse_bsr((2, 2, 2))


def test_other_processes_get_sparse_tensors_part_by_part():
    for layout in LAYOUTS:
        s = compressed(layout, torch.tensor(X))
        make, arguments = torch.multiprocessing.reductions.reduce_tensor(s)
        again = make(*arguments)
        assert again.layout == s.layout and torch.equal(again.to_dense(), s.to_dense())


@pytest.mark.parametrize("layout", COMPRESSED)
def test_indices_keep_their_type(layout):
    long = compressed(layout, torch.tensor(X))
    lines, plain = (long.crow_indices, long.col_indices) if layout in ("sparse_csr", "sparse_bsr") else (long.ccol_indices, long.row_indices)
    t = torch.sparse_compressed_tensor(lines().int(), plain().int(), long.values(), long.shape, layout=long.layout)
    for made in (t, t * 2, t + t, t.sin(), t.clone(), t + compressed(layout, torch.eye(4)), compressed("sparse_csc", t), compressed("sparse_bsr", t)):
        rows = made.layout in (torch.sparse_csr, torch.sparse_bsr)
        assert (made.crow_indices() if rows else made.ccol_indices()).dtype == (made.col_indices() if rows else made.row_indices()).dtype == torch.int32
    assert torch.equal((t + t).to_dense(), 2 * torch.tensor(X)) and torch.equal(t @ torch.eye(4), torch.tensor(X))
    assert t.to_sparse_coo()._indices().dtype == torch.int64


@pytest.mark.parametrize("shapes", [((2, 3, 4), (3, 1)), ((2, 1, 4), (2, 3, 1)), ((4,), (3, 4)), ((3, 4), ()), ((1, 1), (3, 4)), ((0, 4), (1, 4)), ((3, 1), (3, 0))])
def test_products_broadcast_whatever_is_sparse(shapes, device):
    torch.manual_seed(0)
    a, b = ((torch.rand(s, device=device) * (torch.rand(s, device=device) > 0.5)) for s in shapes)
    for x, y in ((a.to_sparse(), b.to_sparse()), (a.to_sparse(), b), (a, b.to_sparse())):
        product = x * y
        assert product.is_sparse and torch.equal(product.to_dense(), a * b)
    x, y = a.to_sparse().requires_grad_(), b.clone().requires_grad_()
    (x * y).to_dense().sum().backward()
    dense = a.clone().requires_grad_()
    (dense * b).sum().backward()
    assert torch.allclose(x.grad.to_dense(), dense.grad * (a != 0)) and y.grad.shape == b.shape


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_sum_of_all_has_a_dense_gradient_and_that_of_what_is_stored_a_sparse_one(layout):
    t = compressed(layout, torch.tensor(X)).requires_grad_()
    (2 * t.sum()).backward()
    assert t.grad.layout is torch.strided and torch.equal(t.grad, torch.full((4, 4), 2.0))
    if layout == "sparse_coo":
        t.grad = None
        torch.sparse.sum(t).backward()
        assert t.grad.is_sparse and torch.equal(t.grad.to_dense(), (torch.tensor(X) != 0).float())
    else:
        drawn = [f(t.detach()) for f in (torch.rand_like, torch.randn_like)]
        assert all(r.layout is t.layout and parts_of(r)[:2] == parts_of(t)[:2] and bool((r.values() != 0).all()) for r in drawn)


def test_a_program_may_say_that_coordinates_stand_once():
    t = torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,))
    assert not t.is_coalesced() and t._coalesced_(True).is_coalesced() and t.indices().tolist() == [[1, 0]]
    with pytest.raises(RuntimeError, match="expected sparse coordinate tensor layout"):
        torch.eye(2).to_sparse_csr()._coalesced_(True)
    torch._validate_sparse_coo_tensor_args(t._indices(), t._values(), t.shape)
    with pytest.raises(RuntimeError, match="found index 1"):
        torch._validate_sparse_coo_tensor_args(t._indices(), t._values(), (1,))
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        torch._validate_sparse_csr_tensor_args(torch.tensor([0, 2]), torch.tensor([1, 0]), torch.ones(2), (1, 2))


def test_a_matrix_of_no_diagonals_stores_nothing():
    t = torch.sparse.spdiags(torch.ones(0, 3, dtype=torch.float64), torch.zeros(0, dtype=torch.int64), (3, 2), layout=torch.sparse_csr)
    assert t.layout is torch.sparse_csr and t.dtype is torch.float64 and t.shape == (3, 2) and t._nnz() == 0
    for layout, name in ((torch.strided, "Strided"), (torch.sparse_bsr, "SparseBsr")):
        with pytest.raises(RuntimeError, match=f"are supported, got {name}"):
            torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([0]), (3, 3), layout=layout)
