"""Copies with a part overwritten, named splits, torch.gradient, and special functions at special values: what the operator cases do not cover."""
import naru as torch
import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")


def test_the_source_of_a_written_part_must_have_the_parts_sizes():
    a = torch.arange(6.0).reshape(2, 3)
    assert torch.as_strided_scatter(a, torch.ones(2), (2,), (1,)).tolist() == [[1, 1, 2], [3, 4, 5]]
    assert a.slice_scatter(torch.zeros(2, 1, dtype=torch.int64), 1, -1).tolist() == [[0, 1, 0], [3, 4, 0]] and a.tolist() == [[0, 1, 2], [3, 4, 5]]
    for call in (lambda: torch.select_scatter(a, torch.ones(3), 1, 1), lambda: torch.diagonal_scatter(a, torch.ones(3)), lambda: a.slice_scatter(torch.ones(2, 3), 1, 0, 2)):
        with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice of self. src size = "):
            call()


def test_gradients_of_a_written_part_go_to_both():
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(2, requires_grad=True)
    (torch.select_scatter(a, b, 1, 0) * torch.arange(6.0).reshape(2, 3)).sum().backward()
    assert a.grad.tolist() == [[0, 1, 2], [0, 4, 5]] and b.grad.tolist() == [0, 3]


def test_splits_by_name_want_a_dimension_that_they_divide():
    a = torch.arange(24).reshape(2, 3, 4)
    assert [t.shape for t in torch.hsplit(a, 3)] == [(2, 1, 4)] * 3 and [t.shape for t in a.vsplit((1,))] == [(1, 3, 4)] * 2
    assert [t.shape for t in torch.dsplit(a, [1, 3])] == [(2, 3, 1), (2, 3, 2), (2, 3, 1)] and [t.tolist() for t in torch.arange(4).hsplit(2)] == [[0, 1], [2, 3]]
    for call, text in ((lambda: torch.hsplit(torch.tensor(1), 2), "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!"),
                       (lambda: torch.vsplit(torch.ones(3), 2), "torch.vsplit requires a tensor with at least 2 dimension"),
                       (lambda: torch.dsplit(a, 3), "torch.dsplit attempted to split along dimension 2, but the size of the dimension 4 is not divisible by the split_size 3!")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_diagonals_spread_over_any_two_dimensions():
    a = torch.arange(6.0).reshape(2, 3)
    assert torch.diag_embed(a, -1, 0, 2).shape == (4, 2, 4) and torch.diag_embed(a, -1, 0, 2).diagonal(-1, 0, 2).tolist() == a.tolist()
    assert torch.diagflat(a, 1).diagonal(1).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="diagonal dimensions cannot be identical 0, 0"):
        torch.diag_embed(a, 0, 0, 0)


def test_sizes_are_summed_to_and_numbers_unravelled():
    a = torch.arange(6.0).reshape(2, 3)
    assert a.sum_to_size(1, 3).tolist() == [[3, 5, 7]] and a.sum_to_size(1).tolist() == [15] and a.sum_to_size((2, 3)).tolist() == a.tolist()
    with pytest.raises(RuntimeError, match=r"size \{\[4, 3\]\} is not expandable to size \{\[2, 3\]\}."):
        a.sum_to_size(4, 3)
    assert [t.tolist() for t in torch.unravel_index(torch.tensor([5, 9, -1]), (2, 4))] == [[1, 0, 1], [1, 1, 3]]
    with pytest.raises(TypeError, match="expected 'indices' to be integer dtype, but got torch.float32"):
        torch.unravel_index(torch.tensor([1.0]), (2,))
    assert torch.nonzero_static(torch.tensor([1, 0, 2]), size=3).tolist() == [[0], [2], [-1]] and torch.nonzero_static(torch.tensor([1, 1]), size=1, fill_value=9).tolist() == [[0]]
    np.testing.assert_allclose(torch.norm_except_dim(a, 2, 1).numpy(), np.sqrt([[9, 17, 29]]), rtol=1e-6)
    assert a.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2) and a.narrow_copy(1, 0, 2).tolist() == [[0, 1], [3, 4]]


def test_gradient_is_numpys_over_steps_and_coordinates():
    x = np.random.default_rng(0).normal(size=(5, 6))
    t = torch.tensor(x)
    places = np.array([0, 1, 1.5, 4, 5, 7.0])
    for order in (1, 2):
        for got, wanted in zip(torch.gradient(t, edge_order=order), np.gradient(x, edge_order=order)):
            np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12)
        np.testing.assert_allclose(torch.gradient(t, spacing=(torch.tensor(places),), dim=1, edge_order=order)[0].numpy(), np.gradient(x, places, axis=1, edge_order=order), atol=1e-12)
        np.testing.assert_allclose(torch.gradient(t, spacing=2.0, dim=(0,), edge_order=order)[0].numpy(), np.gradient(x, 2.0, axis=0, edge_order=order), atol=1e-12)
    for call, error, text in ((lambda: torch.gradient(t, spacing=[1.0, 2.0, 3.0]), RuntimeError, "a list of length equal to 'self.dim\\(\\) = 2'"),
                              (lambda: torch.gradient(t, edge_order=3), RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2."),
                              (lambda: torch.gradient(t[:1]), RuntimeError, "torch.gradient expected each dimension size to be at least edge_order\\+1"),
                              (lambda: torch.gradient(t.to(torch.uint8)), NotImplementedError, "torch.gradient does not support uint8 input.")):
        with pytest.raises(error, match=text):
            call()


def test_inner_sums_over_the_last_dimensions_of_any_ranks():
    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (4, 3)), ((2, 3, 3), (2, 3, 3)), ((3,), (2, 4, 3)), ((2, 1, 3), (4, 3))):
        a, b = (np.random.default_rng(1).normal(size=s) for s in (left, right))
        np.testing.assert_allclose(torch.inner(torch.tensor(a), torch.tensor(b)).numpy(), np.inner(a, b))
    with pytest.raises(RuntimeError, match=r"inner\(\) the last dimension must match on both input tensors but got shapes \[2, 3\] and \[2, 4\]"):
        torch.inner(torch.ones(2, 3), torch.ones(2, 4))


def test_pdist_and_addbmm_refuse_what_pytorch_refuses():
    for call, error, text in ((lambda: torch.pdist(torch.ones(3)), RuntimeError, "pdist only supports 2D tensors, got: 1D"), (lambda: torch.pdist(torch.ones(3, 2), -1.0), RuntimeError, "pdist only supports non-negative p values"),
                              (lambda: torch.pdist(torch.ones(3, 2, dtype=torch.int64)), RuntimeError, "pdist only supports floating-point dtypes"),
                              (lambda: torch.addbmm(torch.ones(2, 3), torch.ones(3, 2, 4), torch.ones(4, 4, 3)), RuntimeError, "batch1 and batch2 must have same number of batches, got 3 and 4")):
        with pytest.raises(error, match=text):
            call()
    assert torch.pdist(torch.ones(1, 3)).shape == (0,) and torch.pdist(torch.ones(3, 2)).tolist() == [0, 0, 0]
    a = torch.ones(2, 3)
    assert a.addbmm_(torch.ones(2, 2, 4), torch.ones(2, 4, 3)) is a and a.tolist() == [[9] * 3] * 2


def test_bessel_functions_at_their_ends_are_pytorchs(device):
    S = torch.special
    x = torch.tensor([0.0, -0.0, -1.0, INF, -INF, NAN, 1e-30], dtype=torch.float64, device=device)
    wanted = {"bessel_j0": [1, 1, 0.7651976865579666, NAN, NAN, NAN, 1], "bessel_j1": [0, 0, -0.4400505857449335, NAN, NAN, NAN, 5e-31],
              "bessel_y0": [-INF, -INF, NAN, NAN, NAN, NAN, -44.049940227874352], "bessel_y1": [-INF, -INF, NAN, NAN, NAN, NAN, -6.366197723675813e29],
              "modified_bessel_i0": [1, 1, 1.2660658777520082, NAN, NAN, NAN, 1], "modified_bessel_k0": [INF, INF, NAN, 0, NAN, NAN, 69.193484305479783],
              "modified_bessel_k1": [INF, INF, NAN, 0, NAN, NAN, 1e30], "scaled_modified_bessel_k1": [INF, INF, NAN, 0, NAN, NAN, 1e30],
              "airy_ai": [0.3550280538878172, 0.3550280538878172, 0.5355608832923521, NAN, NAN, NAN, 0.3550280538878172], "spherical_bessel_j0": [1, 1, np.sin(1), 0, 0, NAN, 1]}  # fmt: skip
    for name, numbers in wanted.items():
        np.testing.assert_allclose(getattr(S, name)(x).cpu().numpy(), numbers, rtol=1e-9, err_msg=name)
        with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for 'Half'"):
            getattr(S, name)(x.to(torch.float16))
        assert getattr(S, name)(torch.tensor([1, 2])).dtype == torch.float32


def test_airy_and_bessel_functions_are_right_where_their_formulas_meet():
    S = torch.special
    # Computed with 40 digits.
    for f, points in ((S.airy_ai, {-25.0: 0.16352657883042948, -10.0: 0.04024123848644319, -9.99: 0.0501821171621398, -2.0: 0.22740742820168558, 2.0: 0.03492413042327438, 5.0: 1.0834442813607442e-4}),
                      (S.bessel_j0, {19.99: 0.167684799023279, 20.0: 0.167024664340583, 50.0: 0.0558123276692518}), (S.bessel_y0, {20.0: 0.0626405968093838, 50.0: -0.0980649954700771}),
                      (S.modified_bessel_k0, {2.0: 0.113893872749533, 50.0: 3.4101677497895e-23}), (S.modified_bessel_k1, {2.0: 0.139865881816522})):
        got = f(torch.tensor(list(points), dtype=torch.float64))
        np.testing.assert_allclose(got.numpy(), list(points.values()), rtol=2e-14)
        x = torch.tensor(list(points), dtype=torch.float64)
        np.testing.assert_allclose(f(x - 1e-9).numpy(), f(x + 1e-9).numpy(), rtol=1e-7)


def test_incomplete_gamma_functions_add_up_to_one_and_have_pytorchs_ends():
    a = torch.tensor([1.0, 0, -1, INF, 2, 0, INF, NAN, 3])
    x = torch.tensor([1.0, 1, 1, 1, INF, 0, INF, 1, 0])
    np.testing.assert_allclose(torch.igamma(a, x).numpy(), [0.63212056, 1, NAN, 0, 1, NAN, NAN, NAN, 0], rtol=1e-6)
    np.testing.assert_allclose(torch.igammac(a, x).numpy(), [0.36787944, 0, NAN, 1, 0, NAN, NAN, NAN, 1], rtol=1e-6)
    a, x = torch.meshgrid(torch.logspace(-3, 6, 40, dtype=torch.float64), torch.logspace(-3, 6, 41, dtype=torch.float64), indexing="ij")
    lower, upper = torch.special.gammainc(a, x), torch.special.gammaincc(a, x)
    np.testing.assert_allclose((lower + upper).numpy(), 1, atol=1e-14)
    assert ((lower >= 0) & (lower <= 1)).all()
    # P(a + 1, x) = P(a, x) - x^a exp(-x) / Gamma(a + 1), across all evaluation methods.
    step = torch.exp(a * torch.log(x) - x - torch.lgamma(a + 1))
    np.testing.assert_allclose(torch.igamma(a + 1, x).numpy(), (lower - step).numpy(), atol=1e-8)
    with pytest.raises(NotImplementedError, match="\"igamma_cpu\" not implemented for 'Long'"):
        torch.igamma(torch.tensor([1]), torch.tensor([2]))
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented."):
        torch.igamma(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    y = torch.ones(2)
    assert y.igamma_(torch.ones(2)) is y and y.tolist() == pytest.approx([0.6321206] * 2)


def test_functions_that_end_in_copy_give_views_elements_in_memory_of_their_own():
    a = torch.arange(6.0, requires_grad=True).reshape(2, 3)
    for name, args in (("permute", ((1, 0),)), ("view", ((3, 2),)), ("t", ()), ("unsqueeze", (1,)), ("select", (1, 2)), ("expand", ((4, 2, 3),)), ("diagonal", ()),
                       ("transpose", (0, 1)), ("as_strided", ((2, 2), (3, 1))), ("unfold", (1, 2, 1)), ("squeeze", ()), ("detach", ())):
        copy, view = getattr(torch, name + "_copy")(a, *args), getattr(a, name)(*args)
        assert torch.equal(copy, view) and copy.is_contiguous() and copy.data_ptr() != view.data_ptr() and copy.requires_grad == view.requires_grad, name
    for name, args in (("split", (2, 1)), ("split_with_sizes", ([1, 2], 1)), ("unbind", ())):
        copies, views = getattr(torch, name + "_copy")(a, *args), getattr(a, name)(*args)
        assert isinstance(copies, tuple) and all(torch.equal(c, v) and c.data_ptr() != v.data_ptr() for c, v in zip(copies, views)), name
    out = torch.empty(3, 2)
    assert torch.t_copy(a.detach(), out=out) is out and out.tolist() == [[0, 3], [1, 4], [2, 5]]
