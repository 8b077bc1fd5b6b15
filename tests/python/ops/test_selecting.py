"""Places among sorted elements, bins, elements written by place, forms in place: what the list of operator cases does not say."""
import naru as torch
import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")


def test_nextafter_is_numpys_for_every_pair_of_special_numbers(device):
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-45, -1e-45, 3.4028235e38, 1.1754944e-38, 2.5]
    a, b = np.meshgrid(np.array(values, np.float32), np.array(values, np.float32))
    for dtype in (np.float32, np.float64):
        x, y = a.astype(dtype), b.astype(dtype)
        got = torch.nextafter(torch.tensor(x, device=device), torch.tensor(y, device=device)).cpu().numpy()
        np.testing.assert_array_equal(got, np.nextafter(x, y))
        assert (np.signbit(got) == np.signbit(np.nextafter(x, y)))[~np.isnan(got)].all()
    assert torch.nextafter(torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([2.0], dtype=torch.bfloat16)).item() == 1.0078125
    with pytest.raises(NotImplementedError, match="\"nextafter_cpu\" not implemented for 'Long'"):
        torch.nextafter(torch.tensor([1]), torch.tensor([1]))


def test_frexp_takes_every_number_apart(device):
    values = [0.0, -0.0, 1.0, -3.5, INF, -INF, NAN, 1e-40, 5e-324, 0.5, 1e300, 2.0**-1022]
    for dtype in (np.float32, np.float64, np.float16):
        with np.errstate(over="ignore"):
            x = np.array(values).astype(dtype)
        mantissa, exponent = torch.frexp(torch.tensor(x, device=device))
        wanted = np.frexp(x)
        np.testing.assert_array_equal(mantissa.cpu().numpy(), wanted[0])
        finite = np.isfinite(x)
        np.testing.assert_array_equal(exponent.cpu().numpy()[finite], wanted[1][finite])
    x = torch.tensor([3.0, 0.0], requires_grad=True)
    torch.frexp(x).mantissa.sum().backward()
    assert x.grad.tolist() == [0.25, 1]


def test_nan_is_left_out_of_medians_and_quantiles():
    a = torch.tensor([[1.0, NAN, 3.0], [NAN, NAN, NAN], [5, 2, 2]])
    values, places = a.nanmedian(1)
    assert values[[0, 2]].tolist() == [1, 2] and values[1].isnan() and places.tolist() == [0, 0, 2] and a.nanmedian().item() == 2
    np.testing.assert_allclose(torch.nanquantile(a, torch.tensor([0, 0.25, 1.0]), dim=1).numpy(), [[1, NAN, 2], [1.5, NAN, 2], [3, NAN, 5]])
    assert torch.nanquantile(a, 0.4, dim=1, keepdim=True, interpolation="nearest")[::2].tolist() == [[1], [2]]
    assert torch.nanquantile(a, torch.tensor([0.5]), keepdim=True).shape == (1, 1, 1) and torch.tensor([]).nanmedian().isnan()
    for wrong, text in ((lambda: torch.nanquantile(a, 1.5), r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"),
                        (lambda: torch.nanquantile(a, 0.5, interpolation="x"), "interpolation must be one of linear, lower, higher, midpoint or nearest, but got x")):
        with pytest.raises(RuntimeError, match=text):
            wrong()


def test_places_among_many_are_those_among_few():
    rng = np.random.default_rng(0)
    for n in (1, 2, 31, 32, 33, 64, 65, 1000):
        s = np.sort(rng.integers(0, 50, n)).astype(float)
        v = np.concatenate([rng.integers(-1, 52, 100).astype(float), [INF, -INF, NAN]])
        for side in ("left", "right"):
            got = torch.searchsorted(torch.tensor(s), torch.tensor(v), side=side).numpy()
            np.testing.assert_array_equal(got[:-1], np.searchsorted(s, v[:-1], side=side))
            assert got[-1] == n, "NaN comes last"
        np.testing.assert_array_equal(torch.isin(torch.tensor(v), torch.tensor(s)).numpy(), np.isin(v, s))
    for n in (3, 100):
        s = torch.tensor([1.0, 2] + [NAN] * (n - 2))
        assert torch.searchsorted(s, torch.tensor([NAN, 3.0, 2.0])).tolist() == [n, 2, 1] and torch.searchsorted(s, torch.tensor([2.0, 1.0]), right=True).tolist() == [2, 1]
    many = torch.arange(100000.0)
    assert torch.equal(torch.searchsorted(many, many + 0.5), torch.arange(1, 100001)) and torch.isin(many + 0.5, many).sum().item() == 0


def test_elements_are_put_at_places_of_the_flattened_tensor():
    a = torch.arange(6.0).reshape(2, 3)
    t = a.clone().t()
    assert t.put_(torch.tensor([1, -1]), torch.tensor([9.0, 8.0])) is t and t.tolist() == [[0, 9], [1, 4], [2, 8]]
    assert a.put(torch.tensor([0, 0]), torch.tensor([9.0, 8.0]), accumulate=True)[0, 0].item() == 17
    for kind, text, call in ((IndexError, "Expected source and index to have the same number of elements, but got source.numel\\(\\) = 1, index.numel\\(\\) = 2", lambda: a.put(torch.tensor([0, 1]), torch.ones(1))),
                             (IndexError, "", lambda: a.put(torch.tensor([6]), torch.ones(1))),
                             (RuntimeError, "Expected a long tensor for index, but got Float", lambda: a.put(torch.ones(1), torch.ones(1)))):
        with pytest.raises(kind, match=text):
            call()
    assert torch.zeros(3).masked_scatter(torch.ones(2, 3, dtype=torch.bool), torch.arange(6.0)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_histograms_count_what_numpy_counts():
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal(500), rng.random(500)
    for density in (False, True):
        hist, edges = torch.histogram(torch.tensor(x), 7, weight=torch.tensor(w), density=density)
        wanted = np.histogram(x, 7, weights=w, density=density)
        np.testing.assert_allclose(hist.numpy(), wanted[0], rtol=1e-12)
        np.testing.assert_allclose(edges.numpy(), wanted[1], rtol=1e-12)
    np.testing.assert_array_equal(torch.histogram(torch.tensor(x), 5, range=(-1, 1)).hist.numpy(), np.histogram(x, 5, (-1, 1))[0])
    points = rng.standard_normal((300, 2))
    hist, edges = torch.histogramdd(torch.tensor(points), bins=[torch.tensor([-2.0, 0, 1], dtype=torch.float64), torch.tensor([-1.0, 1], dtype=torch.float64)])
    np.testing.assert_array_equal(hist.numpy(), np.histogramdd(points, [[-2, 0, 1], [-1, 1]])[0])
    assert torch.histogram(torch.ones(3), 2).hist.tolist() == [0, 3] and torch.histogram(torch.tensor([]), 2).bin_edges.tolist() == [0, 0.5, 1]
    for text, call in (("input tensor should have at least 2 dimensions, but got 0", lambda: torch.histogramdd(torch.tensor(1.0), 3)), ("bins must be > 0, but got 0", lambda: torch.histogram(torch.ones(2), 0)), ("range \\[nan, nan\\] is not finite", lambda: torch.histogram(torch.tensor([NAN]), 2)),
                       ("min should not exceed max, but got min 3 max 1", lambda: torch.histogram(torch.ones(2), 2, range=(3, 1)))):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_segments_begin_with_what_is_given_and_may_be_empty():
    s, lengths = torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([2, 0, 3])
    wanted = {"sum": ([3, 0, 12], [5, 2, 14]), "max": ([2, -INF, 5], [2, 2, 5]), "min": ([1, INF, 3], [1, 2, 2]), "prod": ([2, 1, 60], [4, 2, 120])}
    for reduce, (plain, begun) in wanted.items():
        assert torch.segment_reduce(s, reduce, lengths=lengths).tolist() == plain and torch.segment_reduce(s, reduce, lengths=lengths, initial=2).tolist() == begun
    mean = torch.segment_reduce(s, "mean", lengths=lengths)
    assert mean[[0, 2]].tolist() == [1.5, 4] and mean[1].isnan()
    assert torch.segment_reduce(s, "sum", offsets=torch.tensor([0, 2, 5])).tolist() == [3, 12]
    assert torch.segment_reduce(torch.arange(10.0).reshape(2, 5), "sum", lengths=torch.tensor([[2, 3], [1, 4]]), axis=1).tolist() == [[1, 9], [5, 30]]
    for text, call in (("sum to data.size", lambda: torch.segment_reduce(s, "sum", lengths=torch.tensor([2, 2]))), ("negative value", lambda: torch.segment_reduce(s, "sum", lengths=torch.tensor([-1, 6]))),
                       ("Either lengths or offsets", lambda: torch.segment_reduce(s, "sum")), ("reduce argument must be either sum, prod", lambda: torch.segment_reduce(s, "foo", lengths=torch.tensor([5])))):
        with pytest.raises(RuntimeError, match=text):
            call()


FORMS = {
    "addmm_": (torch.ones(2, 2), torch.ones(2, 2)), "addmv_": (torch.ones(2, 2), torch.ones(2)), "addr_": (torch.ones(2), torch.ones(2)), "cumprod_": (0,), "deg2rad_": (), "rad2deg_": (),
    "heaviside_": (torch.ones(2),), "ldexp_": (torch.tensor([1, 2]),), "logit_": (0.1,), "nan_to_num_": (), "polygamma_": (1,), "renorm_": (2, 0, 1.0), "sinc_": (), "nextafter_": (torch.ones(2),),
    "arccos_": (), "arctan2_": (torch.ones(2),), "fix_": (), "greater_": (0.5,), "less_equal_": (torch.ones(2),), "not_equal_": (1,), "sgn_": (), "swapaxes_": (0, -1), "i0_": (), "put_": (torch.tensor([0]), torch.ones(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_in_place_writes_what_the_function_gives(name):
    a = torch.tensor([0.3, 0.6]) if name == "addmv_" else torch.tensor([[0.3, 0.6], [0.9, 0.4]])
    plain = {"polygamma": lambda t, n: torch.polygamma(n, t)}.get(name[:-1], getattr(torch.Tensor, name[:-1]))
    wanted = plain(a, *FORMS[name]) if name != "polygamma_" else torch.polygamma(1, a)
    t = a.clone()
    assert getattr(t, name)(*FORMS[name]) is t and t.dtype == a.dtype
    assert torch.equal(t, wanted.to(a.dtype))


def test_forms_in_place_refuse_what_they_can_not_hold():
    for kind, text, call in ((RuntimeError, "result type Float can't be cast to the desired output type Int", lambda: torch.ones(2, dtype=torch.int32).rad2deg_()),
                             (RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation", lambda: torch.ones(2, requires_grad=True).sinc_()),
                             (RuntimeError, "doesn't match the broadcast shape", lambda: torch.ones(2).heaviside_(torch.ones(3, 2)))):
        with pytest.raises(kind, match=text):
            call()
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 2
    y.addmm_(x, x)
    y.sum().backward()
    assert x.grad.tolist() == [[6, 6], [6, 6]]


def test_special_functions_hold_far_out():
    S = torch.special
    x = torch.tensor([30.0, 100.0, -5.0, 1e8], dtype=torch.float64)
    np.testing.assert_allclose(S.erfcx(x).numpy()[[0, 1, 3]], [0.018795888861416751, 0.0056416137829894328, 5.6418958354775626e-09], rtol=1e-14)
    np.testing.assert_allclose(S.log_ndtr(-x).numpy()[[0, 1]], [-454.32124395634319, -5005.5242086942], rtol=1e-13)
    p = torch.tensor([1e-300, 1e-20, 1e-5, 0.5, 0.975, 0.0, 1.0], dtype=torch.float64)
    np.testing.assert_allclose(S.ndtri(p).numpy(), [-37.0471, -9.262340089798409, -4.264890793922825, 0, 1.959963984540054, -INF, INF], rtol=1e-6, atol=1e-16)
    np.testing.assert_allclose(S.ndtr(S.ndtri(p[1:5])).numpy(), p[1:5].numpy(), rtol=1e-12)
    assert S.i0(torch.tensor([1000.0])).item() == INF and S.i0e(torch.tensor([1e30], dtype=torch.float64)).item() == pytest.approx(3.989422804014327e-16, rel=1e-14)
    assert S.ndtri(torch.tensor([-0.1, 1.1, NAN])).isnan().all() and S.entr(torch.tensor([0.0, -1.0])).tolist() == [0, -INF]
    assert S.xlog1py(0, torch.tensor([-1.0, INF])).tolist() == [0, 0] and S.xlog1py(torch.tensor([0.0]), NAN).isnan().all()
    assert S.chebyshev_polynomial_t(torch.tensor([0.5]), torch.tensor([-1, 0, 1, 2])).tolist() == [0, 1, 0.5, -0.5]


IN_PLACE = {"i0_": (), "logit_": (), "cumprod_": (0,), "sinc_": (), "mvlgamma_": (2,), "polygamma_": (1,), "renorm_": (2.0, 0, 0.1), "nan_to_num_": (), "ldexp_": (torch.tensor(2),)}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_form_that_writes_in_place_has_its_functions_gradient(name):
    def gradient(f):
        w = torch.tensor([[0.3, 0.6]], dtype=torch.float64, requires_grad=True)
        f(w + (1 if name == "mvlgamma_" else 0)).sum().backward()
        return w.grad

    args = IN_PLACE[name]
    assert torch.equal(gradient(lambda x: getattr(x, name)(*args)), gradient(lambda x: getattr(x, name[:-1])(*args)))
