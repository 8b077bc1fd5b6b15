"""vmap: an operator's result for a batch equals its results for each entry, by a batching rule, or entry by entry where no rule covers the
arguments."""
import warnings

import naru as torch
import pytest

x, y, z = (torch.randn(5, 6, 7, generator=torch.Generator().manual_seed(i)) for i in range(3))
square = torch.randn(4, 4, generator=torch.Generator().manual_seed(3)).double() + 4 * torch.eye(4)
one, places = torch.tensor(0.5), torch.tensor([2, 0])
F = torch.nn.functional

# (function of tensors, the tensors of one entry, whether a rule covers it)
CASES = {
    "fft along a dimension": (lambda a: torch.fft.fft(a, 10, 1, norm="ortho"), [x], True),
    "fftn": (lambda a: torch.fft.fftn(a, dim=(0, 2)), [x], True),
    "rfft2": (torch.fft.rfft2, [x], True),
    "fftshift": (lambda a: torch.fft.fftshift(a, 1), [x], True),
    "std by its old flag": (lambda a: a.std(False), [x], True),
    "std_mean that keeps dimensions": (lambda a: torch.std_mean(a, keepdim=True, correction=0), [x], True),
    "topk without dimensions": (lambda a: torch.topk(a, 1), [one], True),
    "mode without dimensions": (lambda a: torch.mode(a, 0), [one], True),
    "renorm": (lambda a: a.renorm(2, 1, 0.5), [x], True),
    "repeat_interleave": (lambda a: a.repeat_interleave(2), [x], True),
    "prelu of channels": (F.prelu, [x, torch.randn(6)], True),
    "baddbmm that leaves out": (lambda a, b, c: torch.baddbmm(a * torch.nan, b, c, beta=0), [torch.randn(5, 6, 6), x, x.transpose(1, 2)], True),
    "addbmm of integers": (lambda a, b: torch.addbmm(a, b, b, beta=0.6), [torch.ones(3, 3).long(), torch.ones(2, 3, 3).long()], True),
    "diag_embed": (lambda a: torch.diag_embed(a, 1, 0, 2), [x[0]], True),
    "lu_solve": (lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), [square, square[:, :2].clone()], True),
    "ormqr": (lambda a, b: torch.ormqr(*torch.geqrf(a), b), [square, square.clone()], True),
    "householder_product": (lambda a: torch.linalg.householder_product(*torch.geqrf(a)), [square], True),
    "lstsq": (lambda a, b: tuple(torch.linalg.lstsq(a, b)), [square, square[:, :2].clone()], True),
    "gather without dimensions": (lambda a, i: a.gather(0, i), [one, torch.tensor([0])], True),
    "rms_norm": (lambda a: F.rms_norm(a, (7,)), [x], True),
    "masked_fill by a tensor": (lambda a, v: a.masked_fill(a > 0, v), [x, one], True),
    "inner without dimensions": (torch.inner, [x, one], True),
    "kron": (torch.kron, [x[0], y[:, 0]], True),
    "trapezoid": (lambda a, b: torch.trapezoid(a, b, dim=1), [x, x[0, :, 0].clone()], True),
    "cumulative_trapezoid": (lambda a: torch.cumulative_trapezoid(a, dx=0.5, dim=0), [x], True),
    "take_along_dim": (lambda a, i: torch.take_along_dim(a, i, 1), [x, torch.tensor([[[1], [0]]])], True),
    "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing="xy"), [x[0, 0], y[0, :, 0]], True),
    "rot90": (lambda a: torch.rot90(a, 3, (0, 2)), [x], True),
    "hstack": (lambda a, b: torch.hstack([a, b]), [x, y], True),
    "dstack": (lambda a, b: torch.dstack([a, b]), [x[0], y[0]], True),
    "block_diag": (lambda a, b: torch.block_diag(a, b), [x[0], y[0, 0]], True),
    "select_scatter": (lambda a, b: torch.select_scatter(a, b, 1, 2), [x, y[:, 0].clone()], True),
    "slice_scatter": (lambda a, b: torch.slice_scatter(a, b, 1, 1, 5, 2), [x, y[:, :2].clone()], True),
    "diagonal_scatter": (lambda a, b: torch.diagonal_scatter(a, b), [x[0], y[0, 0, :6].clone()], True),
    "index_add": (lambda a, i, b: torch.index_add(a, 1, i, b, alpha=2), [x, places, y[:, :2].clone()], True),
    "index_copy": (lambda a, i, b: torch.index_copy(a, 1, i, b), [x, places, y[:, :2].clone()], True),
    "index_fill": (lambda a, i: torch.index_fill(a, -1, i, 3.0), [x, places - 1], True),
    "searchsorted": (torch.searchsorted, [x[0, 0].sort().values, y[0]], True),
    "bucketize": (lambda a: torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0])), [x], True),
    "grid_sample": (lambda a, g: F.grid_sample(a, g, align_corners=False), [torch.randn(2, 3, 4, 4), torch.rand(2, 5, 5, 2)], True),
    "unfold of pictures": (lambda a: F.unfold(a, 2), [x], True),
    "pairwise_distance": (F.pairwise_distance, [x, y], True),
    "a Chebyshev polynomial": (lambda a: torch.special.chebyshev_polynomial_t(a, 3), [x], True),
    "histogramdd, lists within results": (lambda a: torch.histogramdd(a, [2, 3])[1], [x[0, :, :2].clone()], False),
    "permute of nothing": (lambda a: a.permute(()), [one], True),
    "unfold without dimensions": (lambda a: a.unfold(0, 1, 1), [one], True),
    "to another memory format": (lambda a: a.to(memory_format=torch.channels_last), [torch.randn(2, 3, 4, 5)], False),
    "bilinear": (lambda a, b, w: F.bilinear(a, b, w), [x[0], y[0], torch.randn(2, 7, 7)], True),
    "max_unpool2d": (lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2, output_size=(6, 6)), [torch.randn(2, 3, 6, 6)], True),
    "group_norm of its own weights": (lambda a, w, b: F.group_norm(a, 3, w, b), [x, torch.randn(6), torch.randn(6)], True),
    "instance_norm of its own weights": (lambda a, w, b: F.instance_norm(a, None, None, w, b), [x, torch.randn(6), torch.randn(6)], True),
    "rms_norm of its own weights": (lambda a, w: F.rms_norm(a, (7,), w), [x, torch.randn(7)], True),
    "index_reduce": (lambda a, i, b: a.index_reduce(1, i, b, "mean", include_self=False), [x, places, y[:, :2].clone()], True),
    "index_put": (lambda a, i, b: a.index_put((i, i), b, accumulate=True), [x, places, z[0, :2].clone()], True),
    "put": (lambda a, i, b: a.put(i - 1, b, accumulate=True), [x, places, x[0, 0, :2].clone()], True),
    "masked_scatter": (lambda a, b: a.masked_scatter(b > 0, b), [x, y], True),
    "masked mean of a number": (lambda a, m: torch.masked.mean(a, mask=m > 0), [one, one], True),
    "matrix_rank of each tolerance": (lambda a, t: torch.linalg.matrix_rank(a, atol=t), [square, torch.tensor(1.0).double()], True),
    "matrix_norm": (lambda a: torch.linalg.matrix_norm(a, "nuc", (0, 2)), [x], True),
    "cond": (lambda a: torch.linalg.cond(a, 1), [square], True),
    "tensorsolve": (lambda a, b: torch.linalg.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)), [square, square[0].clone()], True),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([0, 2], [2, 0])), [x, x.permute(2, 1, 0)], True),
    "cov of weights": (lambda a, w: torch.cov(a, aweights=w.abs(), correction=0), [x[0], y[0, 0]], True),
    "corrcoef": (torch.corrcoef, [x[0]], True),
    "histc": (lambda a: torch.histc(a, 5), [x], True),
    "stft": (lambda a: torch.stft(a, 4, window=torch.ones(4), return_complex=True).abs(), [torch.randn(2, 20)], True),
    "multi_margin_loss": (F.multi_margin_loss, [x[0], torch.tensor([0, 1, 2, 3, 4, 6])], True),
    "multilabel_margin_loss": (F.multilabel_margin_loss, [x[0], torch.tensor([[3, 1, -1, 0, 2, 4, 5]]).repeat(6, 1)], True),
    "triplet_margin_loss": (lambda a, b, c: F.triplet_margin_loss(a, b, c, swap=True), [x[0], y[0], z[0]], True),
    "margin_ranking_loss": (lambda a, b: F.margin_ranking_loss(a, b, torch.ones(7), reduction="sum"), [x[0], y[0, 0]], True),
    "kl_div of samples": (lambda a, b: F.kl_div(a, b, reduction="batchmean", log_target=True), [x[0], y[0]], True),
    "nll_loss of its own weights": (F.nll_loss, [x[0], torch.tensor([0, 1, 2, 3, 4, 6]), torch.rand(7)], True),
    "ctc_loss": (lambda a, t: F.ctc_loss(a.log_softmax(-1), t, [5] * 6, [2] * 6), [x, torch.tensor([[1, 2]]).repeat(6, 1)], True),
    "embedding_bag": (lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 1]), mode="mean"), [x[0], torch.tensor([0, 2, 5])], True),
    "attention of its own weights": (lambda a, w: F.multi_head_attention_forward(
        a, a, a, 4, 2, w, torch.zeros(12), None, None, False, 0.0, torch.eye(4), torch.zeros(4)), [torch.randn(5, 3, 4), torch.randn(12, 4)], True),
    "a product with a sparse matrix": (lambda a: torch.sparse.mm(torch.eye(6).to_sparse_csr(), a), [x[0]], True),
    "as_strided": (lambda a: a.as_strided((2, 2), (7, 2)), [x[0]], True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("only_first", [False, True])
def test_a_batch_gives_what_its_entries_give(name, only_first):
    function, tensors, by_rule = CASES[name]
    other = [t.flip(0) if t.dim() else t + (1 if t.is_floating_point() else 0) for t in tensors]
    if name in ("lu_solve", "ormqr", "householder_product", "lstsq", "searchsorted", "matrix_rank of each tolerance"):
        other = [t * 2 for t in tensors]
    dims = (0, *([None] * (len(tensors) - 1))) if only_first else 0
    batches = [t if only_first and i else torch.stack([t, o]) for i, (t, o) in enumerate(zip(tensors, other))]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = torch.vmap(function, dims)(*batches)
    assert by_rule != any("batching rule" in str(w.message) for w in said) or only_first
    for i in range(2):
        want = function(*(t if only_first and j else (t, o)[i] for j, (t, o) in enumerate(zip(tensors, other))))
        for g, w in zip(*(v if isinstance(v, (tuple, list)) else [v] for v in (got, want))):
            assert g[i].shape == w.shape and g.dtype == w.dtype
            torch.testing.assert_close(g[i], w, rtol=1e-4, atol=1e-5)


def test_an_error_is_what_an_entry_says():
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied|\(5x7 and 5x7\)|size"):
        torch.vmap(torch.mm)(torch.ones(2, 5, 7), torch.ones(2, 5, 7))
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        torch.vmap(lambda a: a.sum(2))(torch.ones(2, 5, 7))


def test_what_has_the_shape_of_values_is_refused():
    for name in ("nonzero", "unique", "unique_consecutive", "where", "masked_select"):
        with pytest.raises(RuntimeError, match=r"vmap: We do not support .* dynamic shape|vmap: Attempted to vmap over `mask`"):
            torch.vmap(lambda a, name=name: getattr(torch, name)(a, a > 0) if name == "masked_select" else getattr(torch, name)(a))(x)
    assert torch.vmap(lambda a: a.masked_select(torch.tensor([True, False] * 3).unsqueeze(1)))(x).shape == (5, 21)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::equal"):
        torch.vmap(torch.equal)(x, x)


def test_results_of_entries_keep_their_names():
    found = torch.vmap(lambda a: torch.histogram(a, 3))(torch.stack([x[0, 0], y[0, 0]]))
    assert found.hist.shape == (2, 3) and found.bin_edges.shape == (2, 4)
