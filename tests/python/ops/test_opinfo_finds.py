"""Rules learned from PyTorch's OpInfo samples: each was violated by a class of faults. Expected results are PyTorch 2.15's."""
import math

import naru as torch
import numpy as np
import pytest
from naru.nn import functional as F


def gradients(out, *inputs):
    return [g.tolist() for g in torch.autograd.grad(out.sum(), inputs)]


def test_a_number_of_complex_type_has_no_dimension_to_reduce_but_its_own():
    z = torch.tensor(1 + 2j)
    for f in (torch.sum, torch.mean):
        assert f(z, 0).item() == f(z, -1, keepdim=True).item() == 1 + 2j and f(z, 0, keepdim=True).shape == ()
    assert abs(torch.logsumexp(z, 0).item() - (1 + 2j)) < 1e-6


def test_what_does_not_change_with_an_input_gives_it_a_gradient_of_zeros():
    x = torch.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    std = torch.ones(2, 2, requires_grad=True)
    assert gradients(torch.normal(x, std), x, std) == [[[0, 0], [0, 0]]] * 2
    assert gradients(torch.linalg.matrix_power(x, 0), x) == [[[0, 0], [0, 0]]]
    inf = torch.full((2, 2), math.inf, requires_grad=True)
    out = torch.baddbmm(inf[None], x[None], x[None], beta=0)
    assert out.isfinite().all() and gradients(out, inf) == [[[0, 0], [0, 0]]]
    assert gradients(torch.nextafter(x, std), x, std) == [[[1, 0], [1, 1]], [[0, 0], [0, 0]]]


def test_quantiles_have_a_gradient_by_the_share_where_they_lie_between_elements():
    x, q = torch.tensor([1.0, 3.0, 7.0], requires_grad=True), torch.tensor([0.25, 0.75], requires_grad=True)
    assert gradients(torch.quantile(x, q), x, q) == [[0.5, 1.0, 0.5], [4.0, 8.0]]


def test_the_covariance_of_one_variable_is_a_number_and_of_the_type_of_its_weights():
    x = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.bfloat16)
    assert torch.cov(x).shape == torch.corrcoef(x).shape == torch.cov(x, aweights=torch.ones(3)).shape == ()
    assert torch.cov(x).dtype == torch.bfloat16 and torch.cov(x, aweights=torch.ones(3)).dtype == torch.float32


def test_numbers_between_two_ends_of_whole_type_go_by_whole_ends():
    assert torch.linspace(4.3, -3, 5, dtype=torch.int64).tolist() == [4, 2, 0, -1, -3]
    assert torch.logspace(0, 1.2, 2, dtype=torch.int64).tolist() == [1, 10]
    assert torch.linspace(0, 1, 3, dtype=torch.complex64).tolist() == [0j, 0.5 + 0j, 1 + 0j]


def test_integrals_take_positions_of_any_shape_that_broadcasts_and_wrap_as_whole_numbers_do():
    y = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 0.0]])
    x = torch.tensor([[0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    np.testing.assert_allclose(torch.trapezoid(y, x, dim=0).numpy(), np.trapezoid(y.numpy(), x.numpy(), axis=0))
    np.testing.assert_allclose(torch.trapezoid(y, torch.tensor([0.0, 1.0, 3.0]), dim=0).numpy(), np.trapezoid(y.numpy(), [0.0, 1.0, 3.0], axis=0))
    assert torch.trapezoid(torch.tensor([5, 6, 4], dtype=torch.uint8), torch.tensor([9, 3, 1], dtype=torch.uint8)).item() == ((11 * 250) % 256 + (10 * 254) % 256) / 2
    assert torch.equal(torch.diff(y, n=0, prepend=y), y)


def test_padding_in_a_circle_sees_what_is_left_of_a_side_that_is_cut():
    assert F.pad(torch.tensor([[0, 1, 2, 3]]), (-1, 2), "circular").tolist() == [[1, 2, 3, 1, 2]]


def test_windows_go_over_the_parts_of_complex_numbers():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    z = torch.complex(x, -x)
    for f in (lambda t: F.unfold(t, 2), lambda t: F.pad(t, (1, 1, 1, 1), "reflect"), lambda t: F.pad(t, (1, 2, 0, 0), "circular")):
        assert torch.equal(f(z), torch.complex(f(x), -f(x)))


def test_the_types_of_results_are_pytorchs():
    half, whole = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.uint8)
    assert torch.ldexp(half, whole).dtype == torch.bfloat16 and torch.ldexp(whole, whole).dtype == torch.float32
    assert F.bilinear(whole, whole, torch.ones(1, 2, 2, dtype=torch.uint8)).dtype == torch.uint8
    assert torch.unravel_index(whole, (300, 2))[0].dtype == torch.int64 and whole.sum_to_size(()).dtype == torch.int64
    assert F.prelu(torch.tensor(-2.0), torch.tensor([0.5])).shape == ()
    assert torch.add(torch.tensor([True, False]), torch.tensor([True, True]), alpha=False).tolist() == [True, False]
    weight = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    (g,) = torch.autograd.grad(F.batch_norm(torch.randn(3, 2, dtype=torch.bfloat16), None, None, weight, training=True).sum(), weight)
    assert g.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_compositions_of_half_precision_are_rounded_once(dtype):
    x = torch.linspace(-7.9, 8.1, 24).reshape(2, 3, 4).to(dtype)
    wide = x.float()
    pairs = [(f(x), f(wide)) for f in (torch.sinc, lambda t: F.normalize(t, dim=2), lambda t: F.rms_norm(t * 100, [4]), lambda t: F.group_norm(t, 3, t[0, :, 0], t[0, :, 1]),
                                       lambda t: F.huber_loss(t, t.flip(0)), lambda t: torch.addcmul(t, t, t.flip(0), value=2), lambda t: F.cosine_similarity(t, t.flip(1)))]  # fmt: skip
    pairs.append((F.rms_norm(x * 100, [4]), F.rms_norm((x * 100).float(), [4], eps=torch.finfo(dtype).eps)))
    for i, (got, want) in enumerate(pairs):
        assert i == 2 or torch.equal(got, want.to(dtype))
    assert F.rms_norm(torch.tensor([300.0, 600.0]).half(), [2]).isfinite().all()


def test_polygammas_derivatives_reach_left_of_zero():
    x = torch.tensor([-4.8, -0.6, 2.5], dtype=torch.float64, requires_grad=True)
    for n in range(3):
        (g,) = torch.autograd.grad(torch.polygamma(n, x).sum(), x, create_graph=True)
        assert torch.allclose(g, torch.polygamma(n + 1, x)) and g.isfinite().all()
        (again,) = torch.autograd.grad(g.sum(), x)
        assert torch.allclose(again, torch.polygamma(n + 2, x))
    (g,) = torch.autograd.grad(torch.digamma(x).sum(), x, create_graph=True)
    assert torch.allclose(torch.autograd.grad(g.sum(), x)[0], torch.polygamma(2, x))


def test_a_volume_without_batch_loses_whole_channels():
    out = F.dropout3d(torch.ones(64, 2, 2, 2), 0.5).flatten(1)
    assert ((out == 0).all(1) | (out == 2).all(1)).all() and 0 < (out == 0).sum() < out.numel()
    z = F.dropout(torch.ones(64, dtype=torch.complex64), 0.5)
    assert ((z == 0) | (z == 2)).all()


def test_a_result_with_a_history_changes_its_shape_in_place():
    x = torch.arange(6.0, requires_grad=True)
    y = (x * 2).reshape(2, 3).clone()
    y.t_().unsqueeze_(0)
    assert y.shape == (1, 3, 2) and y.requires_grad
    (y * torch.arange(6.0).reshape(1, 3, 2)).sum().backward()
    assert x.grad.tolist() == [0, 4, 8, 2, 6, 10]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.unsqueeze_(0)
    assert torch.ones(1, 2, 1).squeeze_((0, 2)).shape == (2,)


def test_pictures_of_bytes_are_resampled_to_bytes():
    x = torch.tensor([[[[0, 255], [255, 0]]]], dtype=torch.uint8)
    for mode in ("bilinear", "bicubic"):
        y = F.interpolate(x, size=(2, 3), mode=mode)
        assert y.dtype == torch.uint8 and y[0, 0, :, 1].tolist() == [128, 128]


def test_cubic_sampling_of_volumes_gives_their_elements_at_their_places():
    x = torch.randn(1, 2, 3, 4, 5, dtype=torch.float64)
    grid = F.affine_grid(torch.eye(3, 4, dtype=torch.float64)[None], (1, 2, 3, 4, 5), align_corners=True)
    assert torch.allclose(F.grid_sample(x, grid, "bicubic", align_corners=True), x)


def test_products_by_row_of_a_sparse_matrix_can_be_reduced_otherwise():
    s = torch.sparse_csr_tensor([0, 2, 2], [0, 2], [2.0, -3.0], (2, 3), requires_grad=True)
    d = torch.tensor([[1.0, 2.0], [9.0, 9.0], [1.0, -1.0]], requires_grad=True)
    for how, want in {"sum": [[-1, 7], [0, 0]], "mean": [[-0.5, 3.5], [0, 0]], "amax": [[2, 4], [0, 0]], "amin": [[-3, 3], [0, 0]]}.items():
        assert torch.sparse.mm(s, d, how).tolist() == want
    torch.sparse.mm(s, d, "amax").sum().backward()
    assert d.grad.tolist() == [[2, 2], [0, 0], [0, 0]]
    out = torch.sparse.sampled_addmm(s.detach(), torch.ones(2, 4), torch.ones(4, 3), beta=2.0)
    assert out.values().tolist() == [8, -2] and out.is_sparse_csr


def test_gradients_of_factors_and_hermitian_inverses_are_not_cut_to_what_is_read():
    f, b = torch.tensor([[2.0, 7.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True), torch.ones(2, 1, dtype=torch.float64)
    wanted = {False: [[-0.2222222222, -0.7654320988], [-0.0555555556, -0.1913580247]], True: [[-1.2222222222, 0.2777777778], [-0.9506172840, 0.2160493827]]}
    for upper, want in wanted.items():
        for made in (torch.cholesky_solve(b, f, upper), torch.cholesky_inverse(f, upper)):
            assert torch.allclose(torch.autograd.grad(made.sum(), f)[0], torch.tensor(want, dtype=torch.float64))
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((torch.linalg.pinv(x, hermitian=True) * torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)).sum(), x)
    assert torch.allclose(g, torch.tensor([[0.04, -0.08], [-0.28, -0.44]], dtype=torch.float64))
    none = torch.zeros(0, 3, requires_grad=True)
    assert torch.autograd.grad(torch.linalg.pinv(none).sum(), none)[0].shape == (0, 3)


def test_reflectors_may_stand_in_a_wide_matrix():
    a, tau, c = torch.randn(3, 5, requires_grad=True), torch.rand(3), torch.randn(3, 2)
    made = torch.ormqr(a, tau, c)
    assert torch.equal(made, torch.ormqr(a[:, :3].contiguous(), tau, c))
    assert (torch.autograd.grad(made.sum(), a)[0][:, 3:] == 0).all()


def test_gradients_at_nan_and_at_the_ends_are_pytorchs():
    nan, inf = float("nan"), float("inf")

    def slope(f, *values):
        x = torch.tensor(values, requires_grad=True)
        f(x).sum().backward()
        return x.grad.tolist()

    for f in (F.relu, F.relu6, F.elu, lambda x: torch.maximum(x, torch.zeros(1)), lambda x: torch.minimum(x, torch.zeros(1)), lambda x: x.max()):
        assert slope(f, nan) == [1.0]
    assert slope(F.relu, 0.0, -0.0, -1.0, 2.0) == [0, 0, 0, 1] and slope(F.relu6, 0.0, 6.0, 3.0, 7.0) == [0, 0, 1, 0]
    assert [g != g for g in slope(lambda x: torch.copysign(x, torch.tensor(-1.0)), inf, nan, 1.0)] == [True, True, False]
    for f in (torch.amax, torch.amin, lambda x: x.logsumexp(0)):
        assert all(g != g for g in slope(f, nan, 1.0))
    assert slope(lambda x: F.huber_loss(x, torch.zeros(2), reduction="none"), inf, -inf) == [1.0, -1.0]
    assert slope(lambda x: x.cumprod(0), inf) == [1.0] and slope(lambda x: torch.nextafter(x, torch.tensor([2.0, 0.0])), 1.0, 0.0) == [1.0, 0.0]
    assert slope(lambda x: torch.frexp(x).mantissa * torch.tensor([0.0]), 9.8091e-45) == [0.0]


def test_the_third_hurwitz_zeta_has_its_sign_left_of_zero():
    q = torch.tensor([-4.076012721760325, -0.3], dtype=torch.float64)
    assert torch.allclose(torch.special.zeta(3.0, q), torch.tensor([-2276.3590147729183, -33.81954059994157], dtype=torch.float64))


def test_complex_numbers_go_where_pytorch_takes_them():
    z = torch.tensor([3 + 4j], requires_grad=True)
    F.softsign(z).backward(torch.tensor([1 + 2j]))
    assert torch.allclose(F.softsign(z.detach()), torch.tensor([0.5 + 2 / 3 * 1j])) and torch.allclose(z.grad, torch.tensor([-0.0166667 + 0.0888889j]))
    for f in (torch.softmax, F.softmin, torch.log_softmax):
        assert torch.equal(f(torch.tensor([1 + 2j, 0j]), 0, dtype=torch.float32), f(torch.tensor([1.0, 0.0]), 0))
    filled = torch.empty(50, dtype=torch.complex64).uniform_(2, 3)
    assert filled.real.min() >= 2 and filled.imag.max() < 3 and filled.real.ne(filled.imag).all()
    empty = torch.ones(2, 0, dtype=torch.complex64, requires_grad=True)
    assert torch.autograd.grad(empty.prod(1).real.sum(), empty)[0].shape == (2, 0)
    one = torch.ones(2, 1, dtype=torch.complex64)
    one.prod(1).zero_()
    assert (one == 1).all()


def test_whole_numbers_and_bytes_round_as_pytorch_rounds_them():
    x = torch.tensor([[[[1, 4], [3, 2]]]], dtype=torch.uint8)
    for mode in ("bilinear", "bicubic"):
        assert F.interpolate(x, size=(3, 3), mode=mode).tolist() == [[[[1, 3, 4], [2, 3, 3], [3, 3, 2]]]]
    wanted = torch.tensor([0.999775, 1.9991006, 2.9975276, 3.9946086, 4.9958792, 5.9923616]).view(1, 3, 2)
    assert torch.allclose(F.local_response_norm(torch.arange(1, 7).reshape(1, 3, 2), 3), wanted)
    small = torch.ones(1, 1, 1, dtype=torch.uint8)
    assert torch.tensordot(small, torch.ones(2, 1, 2, dtype=torch.uint8), ([0, 1], [2, 0])).dtype == torch.uint8
    assert torch.cov(torch.tensor([-8.5, -1.75]).bfloat16(), fweights=torch.tensor([7, 4])).dtype == torch.bfloat16
    assert F.batch_norm(torch.ones(0), None, None, training=True).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_and_losses_of_half_precision_are_rounded_once(dtype):
    torch.manual_seed(3)
    q, k, v = (torch.randn(2, 5, 8).mul(2).to(dtype) for _ in range(3))
    for mask in (None, torch.randn(5, 5).to(dtype)):
        got, want = (F.scaled_dot_product_attention(*(t.to(d) for t in (q, k, v)), None if mask is None else mask.to(d)) for d in (dtype, torch.float32))
        assert torch.equal(got, want.to(dtype))
    x, w, y = torch.randn(6, 8).to(dtype), torch.randn(9, 8).to(dtype), torch.arange(6)
    got, want = (F.linear_cross_entropy(x.to(d), w.to(d), y) for d in (dtype, torch.float32))
    assert torch.equal(got, want.to(dtype))
    got, want = (F.bilinear(x.to(d), x.to(d), w.reshape(9, 8, 1).expand(9, 8, 8).to(d)) for d in (dtype, torch.float32))
    assert torch.equal(got, want.to(dtype))
